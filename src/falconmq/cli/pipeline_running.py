"""How a job of the pipeline is run: Spark, progress, Ctrl-C, and what it did."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from falconmq.cli.connection import UnreachableServiceError, refusal
from falconmq.cli.interrupting import Interrupt, interrupt_between_steps
from falconmq.cli.pipeline_options import Engine
from falconmq.cli.problems import CommandError
from falconmq.cli.tables import print_json, print_pairs, printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from falconmq.spark.jobs.running import Summary, Tell
    from falconmq.spark.tables import Lake


@dataclass(frozen=True)
class Work:
    """What a job is given."""

    spark: SparkSession
    lake: Lake
    tell: Tell  # after each batch; raises KeyboardInterrupt if somebody pressed Ctrl-C


Start = Callable[[Work], "Summary"]
"""A job with its options."""

# Errors of ours as Spark shows them: the class, the text, perhaps a hint on the next line.
_OURS: Final = re.compile(r"falconmq\.[\w.]*Error: (.+)(?:\n\s*hint: (.+))?")
_NUMBERS_MOST: Final = 20  # entries of a list that are printed


def run_jobs(engine: Engine, jobs: list[Start], *, as_json: bool = False) -> int:
    """One session for all of them; what each did is printed when it is done."""
    engine.check()
    done: list[Summary] = []
    with told_errors():
        from falconmq.spark import session  # noqa: PLC0415 - optional, and slow
        from falconmq.spark.progress import shown  # noqa: PLC0415
        from falconmq.spark.tables import Lake  # noqa: PLC0415

        lake = Lake(engine.lake)
        if engine.table_format is not None and not engine.dry_run:
            lake.become(engine.table_format)
        with (
            shown(sys.stderr, is_quiet=engine.quiet or as_json) as tell,
            session.session(
                master=engine.master, remote=engine.remote, settings=engine.settings()
            ) as spark,
            # Behind the session: Spark has a handler of its own for Ctrl-C.
            interrupt_between_steps() as interrupt,
        ):
            work = Work(spark, lake, stopping(tell, interrupt))
            with told_errors():  # Spark can say what is wrong only as long as it runs
                done.extend(job(work) for job in jobs)
    if as_json:
        print_json([asdict(summary) for summary in done] if len(jobs) > 1 else asdict(done[0]))
        return 0
    for place, summary in enumerate(done):
        sys.stdout.write("\n" if place else "")
        print_summary(summary)
    return 0


def stopping(tell: Tell, interrupt: Interrupt) -> Tell:
    """Jobs tell when a batch is done: a good place to end after Ctrl-C."""

    def told(progress: Any) -> None:
        tell(progress)
        if interrupt.is_pressed:
            raise KeyboardInterrupt

    return told


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Errors of FalconMQ and of Spark as those of commands."""
    from falconmq.client import UnreachableError  # noqa: PLC0415 - `falconmq --help` is quick
    from falconmq.errors import FalconMQError, MqStatus  # noqa: PLC0415

    try:
        yield
    except UnreachableError as error:
        raise UnreachableServiceError(str(error), error.hint) from error
    except FalconMQError as error:
        if error.status is MqStatus.ERROR:  # it says nothing that the text does not
            raise CommandError(str(error), error.hint) from error
        raise refusal(error) from error
    except (CommandError, KeyboardInterrupt):
        raise
    except Exception as error:
        if not _is_of_spark(error):
            raise
        raise spark_refusal(error) from error


def _is_of_spark(error: Exception) -> bool:
    """Without asking for pyspark: it may not be there."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


def spark_refusal(error: Exception) -> CommandError:
    """What Spark says in a hundred lines, in one: ours, if one of ours is inside."""
    text = str(error)
    found = _OURS.findall(text)
    if found:
        message, hint = found[-1]
        return CommandError(message.strip(), hint.strip())
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return CommandError(f"Spark could not do it: {first.strip()}")


def print_summary(summary: Summary) -> None:
    """A word and its value on each line."""
    sys.stdout.write(
        f"{summary.job}{' (dry run: nothing was written)' if summary.is_dry else ''}\n"
    )
    pairs: dict[str, object] = {"read": f"{summary.read:,}"}
    pairs |= {table: f"{rows:,}" for table, rows in summary.written.items()}
    if summary.rejected:
        pairs["rejected"] = f"{summary.rejected:,}, see rejects/{summary.job}"
    tables: dict[str, Any] = {}
    for name, value in summary.facts.items():
        if isinstance(value, dict | list):
            tables[name] = value
        else:
            pairs[name.replace("_", " ")] = value
    print_pairs({f"  {name}": value for name, value in pairs.items()})
    for name, value in tables.items():
        _print_nested(name, value)


def _print_nested(name: str, value: dict[str, Any] | list[Any]) -> None:
    entries = list(value.items()) if isinstance(value, dict) else [("", one) for one in value]
    if not entries:
        return
    sys.stdout.write(f"  {name.replace('_', ' ')}\n")
    for key, entry in entries[:_NUMBERS_MOST]:
        said = _flat(entry)
        sys.stdout.write(f"    {printable(f'{key}: {said}' if key else said)}\n")
    if len(entries) > _NUMBERS_MOST:
        sys.stdout.write(f"    and {len(entries) - _NUMBERS_MOST} more\n")


def _flat(entry: Any) -> str:
    if isinstance(entry, dict):
        return ", ".join(f"{key} {value}" for key, value in entry.items() if value is not None)
    return str(entry)
