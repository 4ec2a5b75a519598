"""Plots as SVG, drawn here: no script, and colours only by name, so that a style sheet decides.

Only shapes are inside the SVG: it is stretched to the width of the page. Letters stay outside, in
HTML, so that they are as large on a phone as on a desk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Final

from falconmq.spark.report.facts import Route, Series, Timeline
from falconmq.spark.report.words import duration, number

WIDTH: Final = 1000
HEIGHT: Final = 200
COLOURS: Final = 6  # that the style sheet knows; further series share the last one
_ROW: Final = 18  # of a heat strip
_GAP: Final = 1.0
_MINUTE: Final = timedelta(minutes=1)
_SHADES: Final = (1, 10, 60, 600, 3600)  # seconds: a waiting message gets darker above each

Text = Callable[[float], str]


def lines(name: str, title: str, timeline: Timeline, text: Text = number) -> str:
    """A line for each series; it breaks where nothing was measured."""
    top = nice(max(_present(timeline.series), default=0.0))
    shapes = [
        f'<path class="line c{_colour(index)}" d="{_path(series.values, top)}"/>'
        f"{_dots(series.values, top, index)}"
        for index, series in enumerate(timeline.series)
    ]
    shapes.append(_hover(timeline, text))
    return _framed(name, title, timeline, "".join(shapes), top, text)


def stacked_bars(name: str, title: str, timeline: Timeline, text: Text = number) -> str:
    """A bar for each moment, its parts upon each other."""
    sums = [
        sum(series.values[place] or 0 for series in timeline.series)
        for place in range(len(timeline.moments))
    ]
    top = nice(max(sums, default=0.0))
    width = WIDTH / max(1, len(timeline.moments))
    gap = min(2.0, width / 4)
    shapes = []
    for place in range(len(timeline.moments)):
        above = float(HEIGHT)
        for index, series in enumerate(timeline.series):
            high = (series.values[place] or 0) / top * HEIGHT
            if high:
                above -= high
                shapes.append(
                    f'<rect class="c{_colour(index)}" x="{place * width + gap / 2:.1f}" '
                    f'y="{above:.1f}" width="{width - gap:.1f}" height="{high:.1f}"/>'
                )
    shapes.append(_hover(timeline, text))
    return _framed(name, title, timeline, "".join(shapes), top, text)


def heat_strips(name: str, title: str, timeline: Timeline) -> str:
    """A strip for each series: the darker, the longer the oldest message waited."""
    parts = []
    for index, series in enumerate(timeline.series):
        strip = f"{name}-{index}"
        longest = max((value for value in series.values if value is not None), default=0.0)
        said = f"{series.label}: at most {duration(longest)}"
        parts.append(
            f'<div class="strip"><p class="strip-name"><span>{escape(series.label)}</span>'
            f'<span class="muted">at most {escape(duration(longest))}</span></p>'
            f'<svg class="heat" viewBox="0 0 {WIDTH} {_ROW}" preserveAspectRatio="none" '
            f'role="img" aria-labelledby="{strip}"><title id="{strip}">{escape(said)}</title>'
            f"{_cells(timeline, series)}</svg></div>"
        )
    return (
        f'<div class="chart" role="group" aria-label="{escape(title)}">{"".join(parts)}'
        f"{_axis(timeline)}{_shades()}</div>"
    )


def bars(routes: Sequence[Route]) -> str:
    """Lying bars, one for each route, with what it says beside it."""
    most = max((route.messages for route in routes), default=1) or 1
    rows = []
    for route in routes:
        wide = max(0.5, route.messages / most * 100)
        said = f"{number(route.messages)} messages"
        if route.p95_seconds is not None:
            said += f", p95 {duration(route.p95_seconds)} in the worst hour"
        rows.append(
            f'<div class="strip"><p class="strip-name"><span>{escape(route.name)}</span>'
            f'<span class="muted">{escape(said)}</span></p>'
            f'<svg class="bar" role="img" aria-label="{escape(route.name)}: {escape(said)}">'
            f'<rect class="c1" width="{wide:.1f}%" height="100%" rx="3"/></svg></div>'
        )
    return f'<div class="chart">{"".join(rows)}</div>'


def legend(series: Sequence[Series]) -> str:
    """Which colour is what."""
    entries = "".join(
        f'<li><span class="key c{_colour(index)}"></span>{escape(one.label)}</li>'
        for index, one in enumerate(series)
    )
    return f'<ul class="legend">{entries}</ul>'


def nice(highest: float) -> float:
    """The next of 1, 2, 5, 10, 20 ... (or 0.5, 0.2 ...) that is not below."""
    if highest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(highest))
    steps = (power * step for step in (1, 2, 5, 10))
    return next((step for step in steps if step >= highest * 0.999_999), power * 10)


def shade(seconds: float | None) -> int:
    """0: nobody waited; 5: somebody waited for more than an hour."""
    return 0 if seconds is None else sum(seconds > limit for limit in _SHADES)


def step_text(moment: datetime, step: timedelta) -> str:
    """The name of a moment: a day, or a time of day."""
    if step >= timedelta(days=1):
        return moment.strftime("%d %b")
    return moment.strftime("%d %b %H:%M:%S" if step < _MINUTE else "%d %b %H:%M")


def _framed(name: str, title: str, timeline: Timeline, shapes: str, top: float, text: Text) -> str:
    told = "; ".join(
        f"{series.label}: at most {text(max(values))}"
        for series in timeline.series
        if (values := [value for value in series.values if value is not None])
    )
    grid = "".join(
        f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
        for y in (0, HEIGHT // 2, HEIGHT)
    )
    scale = "".join(f"<span>{escape(text(value))}</span>" for value in (top, top / 2, 0))
    return (
        f'<div class="chart">{legend(timeline.series)}<div class="plot">'
        f'<div class="scale" aria-hidden="true">{scale}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{name}-title {name}-told"><title id="{name}-title">{escape(title)}'
        f'</title><desc id="{name}-told">{escape(told or "no data")}</desc>{grid}{shapes}</svg>'
        f"</div>{_axis(timeline)}</div>"
    )


def _axis(timeline: Timeline) -> str:
    """Five moments from left to right; a phone shows three of them."""
    if not timeline.moments:
        return ""
    first = timeline.moments[0].astimezone(UTC)
    whole = timeline.step * len(timeline.moments)
    marks = [first + whole * place / 4 for place in range(5)]
    form = "%d %b" if whole > timedelta(days=4) else "%H:%M"
    if form == "%H:%M" and whole > timedelta(days=1):
        form = "%d %b %H:%M"
    elif timeline.step < _MINUTE:
        form = "%H:%M:%S"
    texts = "".join(f"<span>{mark.strftime(form)}</span>" for mark in marks)
    return f'<div class="axis" aria-hidden="true">{texts}</div>'


def _path(values: Sequence[float | None], top: float) -> str:
    parts, pen = [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        parts.append(f"{pen}{_x(place, len(values)):.1f} {HEIGHT - value / top * HEIGHT:.1f}")
        pen = "L"
    return "".join(parts)


def _dots(values: Sequence[float | None], top: float, index: int) -> str:
    """What stands alone would be a line without length: it becomes a round dot."""
    shapes = []
    for place, value in enumerate(values):
        around = (values[place - 1] if place else None, *values[place + 1 : place + 2])
        if value is not None and all(other is None for other in around):
            x, y = _x(place, len(values)), HEIGHT - value / top * HEIGHT
            shapes.append(f'<path class="line dot c{_colour(index)}" d="M{x:.1f} {y:.1f}h0.01"/>')
    return "".join(shapes)


def _hover(timeline: Timeline, text: Text) -> str:
    """What a pointer over a moment is told."""
    width = WIDTH / max(1, len(timeline.moments))
    shapes = []
    for place, moment in enumerate(timeline.moments):
        told = [
            f"{series.label}: {text(value)}"
            for series in timeline.series
            if (value := series.values[place]) is not None
        ]
        if told:
            said = "\n".join([step_text(moment, timeline.step), *told])
            shapes.append(
                f'<rect class="hover" x="{place * width:.1f}" y="0" width="{width:.1f}" '
                f'height="{HEIGHT}"><title>{escape(said)}</title></rect>'
            )
    return "".join(shapes)


def _cells(timeline: Timeline, series: Series) -> str:
    width = WIDTH / max(1, len(series.values))
    return "".join(
        f'<rect class="h{shade(value)}" x="{place * width:.2f}" y="0" '
        f'width="{max(width - _GAP, 0.5):.2f}" height="{_ROW}">'
        f"<title>{escape(step_text(timeline.moments[place], timeline.step))}: "
        f"{escape(duration(value or 0))}</title></rect>"
        for place, value in enumerate(series.values)
    )


def _shades() -> str:
    names = ["below 1 s", *(f"above {duration(limit)}" for limit in _SHADES)]
    entries = "".join(
        f'<li><span class="key h{index}"></span>{escape(name)}</li>'
        for index, name in enumerate(names)
    )
    return f'<ul class="legend">{entries}</ul>'


def _present(series: Sequence[Series]) -> list[float]:
    return [value for one in series for value in one.values if value is not None]


def _colour(index: int) -> int:
    return min(index + 1, COLOURS)


def _x(place: int, count: int) -> float:
    """The middle of its step."""
    return (place + 0.5) * WIDTH / max(1, count)
