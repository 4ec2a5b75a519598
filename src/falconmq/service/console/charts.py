"""Curves as SVG, drawn here: no script, no style inside, the colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from falconmq.service.console.drawing import count

WIDTH: Final = 600.0
HEIGHT: Final = 120.0
_POINTS_MOST: Final = 240  # more than a screen can tell apart


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart."""

    label: str
    line: str  # the `d` of a path
    area: str
    now: str
    highest: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What the template of a chart draws."""

    title: str
    curves: tuple[Curve, ...]
    top: str  # the value at the upper edge
    summary: str  # the same in words, for those who do not see it
    begin: str  # how long ago the left edge is
    unit: str


def chart(
    title: str,
    times: Sequence[float],
    curves: Sequence[tuple[str, Sequence[float]]],
    unit: str = "",
) -> Chart:
    """Curves over the same times; the highest value decides the scale."""
    highest = max((value for _, values in curves for value in values), default=0.0)
    top = _nice(highest)
    drawn = tuple(_curve(label, times, values, top) for label, values in curves)
    said = "; ".join(f"{c.label} {c.now}{unit} now, {c.highest}{unit} at most" for c in drawn)
    length = times[-1] - times[0] if len(times) > 1 else 0.0
    summary = f"{title}: {said}" if times else f"{title}: no samples yet"
    begin = f"{round(length / 60)} min" if length >= 60 else f"{length:.0f} s"
    return Chart(title, drawn, _short(top), summary, begin, unit)


def _curve(label: str, times: Sequence[float], values: Sequence[float], top: float) -> Curve:
    shown = _thin(list(zip(times, values, strict=True)))
    now = _short(values[-1]) if values else "0"
    highest = _short(max(values, default=0.0))
    if len(shown) < 2:
        return Curve(label, "", "", now, highest)
    first, length = shown[0][0], (shown[-1][0] - shown[0][0]) or 1.0
    points = [
        f"{(time - first) / length * WIDTH:.1f} {HEIGHT - value / top * HEIGHT:.1f}"
        for time, value in shown
    ]
    line = "M" + "L".join(points)
    return Curve(label, line, f"{line}L{WIDTH:.0f} {HEIGHT:.0f}L0 {HEIGHT:.0f}Z", now, highest)


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Few enough points; of those that fall together the highest stays: a peak is never lost."""
    if len(points) <= _POINTS_MOST:
        return points
    step = -(-len(points) // _POINTS_MOST)
    groups = [points[start : start + step] for start in range(0, len(points), step)]
    return [max(group, key=lambda point: point[1]) for group in groups[:-1]] + [points[-1]]


def _nice(highest: float) -> float:
    """The next of 1, 2, 5, 10, 20 ... above a value."""
    if highest <= 1:
        return 1.0
    power = 1.0
    while power * 10 < highest:
        power *= 10
    return next(power * step for step in (1, 2, 5, 10) if power * step >= highest)


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.4g} M"
    if value >= 10_000:
        return f"{value / 1000:.4g} k"
    if value and value < 10 and value != int(value):
        return f"{value:.1f}"
    return count(round(value))
