"""The last hour in curves, from the samples of the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from falconmq.service.api.context import Control
from falconmq.service.console.charts import Chart, chart
from falconmq.service.console.drawing import moment_of

SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class History:
    """What the pages show of it."""

    charts: tuple[Chart, ...]
    rates: dict[str, float]  # now, a second


def hour(control: Control) -> History:
    """The four curves that tell whether all is well."""
    samples, latest = _samples(control)
    times = [_seconds(sample["time"]) for sample in samples]

    def values(name: str) -> list[float]:
        return [float(sample[name]) for sample in samples]

    charts = (
        chart(
            "Messages a second",
            times,
            [("in", values("in_per_second")), ("out", values("out_per_second"))],
            "/s",
        ),
        chart("Messages in queues", times, [("waiting", values("messages"))]),
        chart("Backlog to other computers", times, [("outgoing", values("backlog"))]),
        chart("Dead letters", times, [("kept", values("dead_letters"))]),
    )
    rates = {name: latest.get(f"{name}_per_second", 0.0) for name in ("in", "out")}
    return History(charts, rates)


def _samples(control: Control) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    sampler = control.watch.sampler
    return sampler.since(SECONDS), sampler.latest()


def _seconds(time: str) -> float:
    moment = moment_of(time)
    assert moment is not None
    return moment.timestamp()
