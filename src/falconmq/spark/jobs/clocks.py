"""Clocks of queue managers differ; what they told each other says by how much.

How to think about it. A hands a message over to B. A noted when it queued the message and when B
had taken it; B noted when the message came. In true time B's moment lies between A's two, so every
message bounds the difference of their clocks from both sides, and the tightest bounds of all
messages say it to within the quickest round trip. A difference that may be nothing is taken for
nothing: only where the bounds exclude zero by more than the tolerance is a clock wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """What messages from one manager to another show: B's clock is ahead of A's by low..high."""

    a: str
    b: str
    low: float | None  # seconds; None: nothing is known
    high: float | None


def combined(known: Iterable[Link], new: Iterable[Link]) -> list[Link]:
    """Both; where they contradict each other a clock was set, and the new ones count."""
    links = {(link.a, link.b): link for link in known}
    for link in new:
        old = links.get((link.a, link.b))
        links[link.a, link.b] = link if old is None else _both(old, link)
    return [links[key] for key in sorted(links)]


def offsets(links: Iterable[Link], tolerance: float) -> dict[str, float]:
    """Seconds that each manager's clock is ahead of the first one's that it has to do with."""
    differences: dict[str, dict[str, float]] = {}
    for (a, b), link in _in_one_direction(links).items():
        ahead = _difference(link, tolerance)
        differences.setdefault(a, {})[b] = ahead
        differences.setdefault(b, {})[a] = -ahead
    found: dict[str, float] = {}
    for start in sorted(differences):
        if start not in found:
            _walk(start, differences, found)
    return found


def _walk(
    start: str, differences: Mapping[str, Mapping[str, float]], found: dict[str, float]
) -> None:
    found[start], waiting = 0.0, [start]
    while waiting:
        here = waiting.pop(0)
        for there, ahead in sorted(differences[here].items()):
            if there not in found:
                found[there] = found[here] + ahead
                waiting.append(there)


def _in_one_direction(links: Iterable[Link]) -> dict[tuple[str, str], Link]:
    """What B to A shows bounds A to B as well."""
    merged: dict[tuple[str, str], Link] = {}
    for link in links:
        if link.a > link.b:
            low = None if link.high is None else -link.high
            high = None if link.low is None else -link.low
            link = Link(link.b, link.a, low, high)
        old = merged.get((link.a, link.b))
        merged[link.a, link.b] = link if old is None else _both(old, link)
    return merged


def _both(old: Link, new: Link) -> Link:
    lows = [link.low for link in (old, new) if link.low is not None]
    highs = [link.high for link in (old, new) if link.high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        return new
    return Link(new.a, new.b, low, high)


def _difference(link: Link, tolerance: float) -> float:
    low, high = link.low, link.high
    if low is not None and low > tolerance:
        return low if high is None else (low + high) / 2
    if high is not None and high < -tolerance:
        return high if low is None else (low + high) / 2
    return 0.0
