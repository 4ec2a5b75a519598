r"""What messages say of other messages: acknowledgements and trace reports in the archive.

They tell of managers whose event logs are not here. An acknowledgement names the message that it is
about in its correlation identifier and its fate in its class. A report of tracing (MQQB 3.1.5.8.9)
has it in its label, and in its body where the message goes next:

    0D1A:00000007:02 received by 0D1AB8E4-3A0D-4B0E-9F4F-0A7D3C1F2B5E at 22:13:20 PM Tue,Nov 14 23

Both become events, as if the managers had told them: `told` and `reported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LABEL: Final = (
    r"^[0-9A-F]{4}:([0-9A-F]{8}):[0-9A-F]{2} received by ([0-9A-Fa-f-]{36}) at "
    r"(\d\d:\d\d:\d\d) [AP]M \w{3},(\w{3} \d\d \d\d)"
)
_NEXT_HOP: Final = "<NEXT HOP>(.*?)</NEXT HOP>"
_TARGET: Final = "<TARGET QUEUE>(.*?)</TARGET QUEUE>"
_ANSWERS: Final = "message_class rlike '^N?ACK_' and correlation_id is not null"
_COPIES: Final = "('journaled', 'dead_lettered')"  # tell nothing that the first did not
_COLUMNS: Final = (
    *("number", "at", "kind", "manager", "computer", "message_id", "queue", "lookup_id"),
    *("arrival_number", "size", "reason", "detail", "sent_at", "sequence_id", "sequence_number"),
    *("previous_number", "destination", "trace"),
)


def answers(messages: DataFrame) -> DataFrame:
    """Acknowledgements as events of the kind `told`."""
    found = messages.where(_ANSWERS).where(f"kind not in {_COPIES}")
    return _as_events(
        found,
        at=sql.coalesce("arrived_at", "sent_at"),
        kind=sql.lit("told"),
        manager=sql.col("manager"),
        message_id=sql.col("correlation_id"),
        reason=sql.col("message_class"),
    )


def reports(messages: DataFrame) -> DataFrame:
    """Reports of tracing as events of the kind `reported`, at the manager that reports."""
    found = messages.where("message_class = 'REPORT'").where(sql.col("label").rlike(_LABEL))
    found = found.where(f"kind not in {_COPIES}")

    def part(number: int) -> Column:
        return sql.regexp_extract("label", _LABEL, number)

    # UTF-16, and what we look for in it is ASCII: damaged texts must not stop the others.
    body = sql.regexp_replace(sql.col("body").cast("string"), "\\x00", "")
    text = sql.concat_ws(" ", part(3), part(4))
    ordinal = sql.conv(part(1), 16, 10)
    return _as_events(
        found,
        at=sql.try_to_timestamp(text, sql.lit("HH:mm:ss MMM dd yy")),
        kind=sql.lit("reported"),
        manager=sql.col("source_queue_manager"),
        message_id=sql.concat(sql.lit("{"), sql.upper(part(2)), sql.lit("}\\"), ordinal),
        detail=_filled(sql.regexp_extract(body, _NEXT_HOP, 1)),
        destination=_filled(sql.regexp_extract(body, _TARGET, 1)),
        trace=sql.lit(True),
    )


def _filled(text: Column) -> Column:
    return sql.when(text != "", text)


def _as_events(found: DataFrame, **known: Column) -> DataFrame:
    types = {
        **dict.fromkeys(("at", "sent_at"), "timestamp"),
        **dict.fromkeys(("number", "lookup_id", "arrival_number", "size"), "bigint"),
        **dict.fromkeys(("sequence_number", "previous_number"), "bigint"),
        "trace": "boolean",
    }
    nothing = sql.lit(None)
    return found.select(
        *(known.get(name, nothing).cast(types.get(name, "string")).alias(name) for name in _COLUMNS)
    )
