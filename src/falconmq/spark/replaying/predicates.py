"""Conditions that users write: an expression over one row, and nothing else.

Spark parses an expression, never a statement, so nothing can be changed by one. But an expression
may ask other tables, call Java, or answer differently each time, and then nobody could say which
messages a replay meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from falconmq.errors import FalconMQError, MqStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXTS: Final = (r"'(?:[^'\\]|\\.|'')*'", r'"(?:[^"\\]|\\.|"")*"', "`(?:[^`]|``)*`")
_QUOTED: Final = re.compile("|".join(_TEXTS), re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_SUBQUERIES: Final = frozenset({"select", "table", "values"})
_IMPURE: Final = frozenset(
    {
        *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle"),
        *("monotonically_increasing_id", "spark_partition_id", "raise_error", "assert_true"),
        *("input_file_name", "input_file_block_start", "input_file_block_length"),
        *("reflect", "java_method", "try_reflect"),
    }
)


def check_predicate(text: str) -> None:
    """FalconMQError says what an expression must not have; Spark checks the rest."""
    bare = _QUOTED.sub(" ", text)
    if not bare.strip() and not text.strip():
        raise _refused("it is empty", "leave --where out")
    for sign in (";", "--", "/*", "|>"):
        if sign in bare:
            raise _refused(f"it has {sign}", "write one expression, without comments")
    for quote in "'\"`":
        if quote in bare:
            raise _refused(f"a {quote} is not closed", "close it, or double it inside a text")
    words = {word.lower() for word in _WORD.findall(bare)}
    if asked := sorted(words & _SUBQUERIES):
        raise _refused(f"it asks another table ({asked[0]})", "use only columns of bronze/messages")
    if impure := sorted(words & _IMPURE):
        raise _refused(
            f"{impure[0]} does not depend on the message alone",
            "use only columns of bronze/messages",
        )


def matching(frame: DataFrame, text: str) -> DataFrame:
    """The rows for which an expression is true; FalconMQError if Spark cannot read it."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - pyspark is optional

    check_predicate(text)
    try:
        found = frame.where(f"({text})")
        found.schema  # noqa: B018 - with Spark Connect only now somebody looks at it
    except AnalysisException as error:
        first = str(error).strip().splitlines()[0]
        hint = f"columns: {', '.join(frame.columns)}"
        raise _refused(first, hint) from error
    return found


def _refused(problem: str, hint: str) -> FalconMQError:
    return FalconMQError(
        f"--where is no condition on a message: {problem}",
        status=MqStatus.INVALID_PARAMETER,
        hint=hint,
    )
