"""Periods, the steps they are cut into, and both in the words of Spark.

Times travel as seconds since 1970: a `datetime` that Spark gives back is one of the driver's own
time zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from falconmq.errors import FalconMQError
from falconmq.spark.report.facts import Period, Series, Timeline

if TYPE_CHECKING:
    from pyspark.sql import Column

_POINTS_MOST: Final = 100
_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 10_080)


def default_period(known: Period | None, since: datetime | None, until: datetime | None) -> Period:
    """What was asked for; else the last day that the lake knows, or less if it knows less."""
    if known is None and (since is None or until is None):
        raise FalconMQError(
            "the lake holds nothing to report on", hint="fill it: falconmq pipeline run"
        )
    if until is None:
        assert known is not None
        until = known.until
    if since is None:
        assert known is not None
        since = until - timedelta(days=1)
        since = known.since if since < known.since < until else since
    if since >= until:
        raise FalconMQError(
            f"the period ends before it begins: {since} to {until}",
            hint="--since is the earlier one",
        )
    return Period(since, until)


def step_of(period: Period) -> timedelta:
    """The shortest that gives few enough points."""
    steps = (timedelta(minutes=minutes) for minutes in _MINUTES)
    return next(
        (step for step in steps if period.length / step <= _POINTS_MOST), period.length / 100
    )


def timeline(
    period: Period,
    step: timedelta,
    cells: Sequence[tuple[str, int, float | None]],
    names: Sequence[str],
) -> Timeline:
    if not cells:
        return Timeline()
    begins = moments(period, step)
    values: dict[str, list[float | None]] = {name: [None] * len(begins) for name in names}
    for name, place, value in cells:
        values[name][place] = value
    return Timeline(begins, step, tuple(Series(name, tuple(values[name])) for name in names))


def during(column: str, period: Period) -> str:
    """The period as a condition on a column of times."""
    since, until = seconds(period.since), seconds(period.until)
    return f"{column} >= timestamp_seconds({since}) and {column} < timestamp_seconds({until})"


def bucket(column: str, period: Period, step: timedelta) -> Column:
    """The place of a time in a timeline."""
    from pyspark.sql.functions import expr  # noqa: PLC0415 - pyspark is optional

    since, size = seconds(period.since), int(step.total_seconds())
    return expr(f"cast(floor((unix_seconds({column}) - {since}) / {size}) as int)").alias("place")


def moments(period: Period, step: timedelta) -> tuple[datetime, ...]:
    count = -(-period.length // step)
    return tuple(period.since + step * place for place in range(count))


def seconds(at: datetime) -> int:
    return int(at.timestamp())


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: int | None) -> datetime | None:
    return None if seconds is None else moment(seconds)
