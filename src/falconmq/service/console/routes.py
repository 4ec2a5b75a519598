"""The route of a message as a picture: queue managers as stops, times on the way between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from falconmq.service.console.drawing import moment_of, span

_STEP: Final = 210  # from one stop to the next
_LEFT: Final = 90
_TOP: Final = 56
_HEIGHT: Final = 130
_NAME_LONGEST: Final = 22  # characters that fit between two stops
_BAD: Final = frozenset(
    {"expired", "refused", "dead_lettered", "purged", "rejected", "queue_deleted"}
)


@dataclass(frozen=True, slots=True)
class Stop:
    """A queue manager in the picture."""

    x: int
    y: int
    name: str
    whole_name: str
    text: str
    look: str  # "", "bad", or "beyond": nothing more is known of it


@dataclass(frozen=True, slots=True)
class Edge:
    """The way between two stops."""

    start: int
    end: int
    middle: int
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What the template draws."""

    width: int
    height: int
    stops: tuple[Stop, ...]
    edges: tuple[Edge, ...]
    summary: str  # the same in words


def picture(stops: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Picture:
    """Events at the same queue manager, one behind the other, are one stop."""
    stops, edges = _with_next(stops, edges)
    groups: list[list[int]] = []
    for index, stop in enumerate(stops):
        if groups and stops[groups[-1][0]]["manager"] == stop["manager"]:
            groups[-1].append(index)
        else:
            groups.append([index])
    place = {index: number for number, group in enumerate(groups) for index in group}
    drawn = tuple(_stop(number, [stops[i] for i in group]) for number, group in enumerate(groups))
    ways = {(place[e["start"]], place[e["end"]]): e["seconds"] for e in edges}
    lines = tuple(_edge(pair, ways.get(pair)) for pair in _neighbours(len(groups)))
    words = ", then ".join(f"{stop.whole_name} ({stop.text})" for stop in drawn)
    width = 2 * _LEFT + _STEP * max(0, len(groups) - 1)
    return Picture(width, _HEIGHT, drawn, lines, words)


def _with_next(
    stops: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """If the last that is known is that another queue manager has it, that one is a stop too."""
    last = stops[-1]
    if last["kind"] != "delivered":
        return stops, edges
    there = {**last, "manager": "", "name": host_of(last["queue"]), "kind": "there"}
    queued = next((stop for stop in reversed(stops) if stop["kind"] == "queued"), last)
    seconds = _seconds(queued, last)
    way = {"start": len(stops) - 1, "end": len(stops), "seconds": seconds}
    return [*stops, {**there, "text": "has it"}], [*edges, way]


def host_of(queue: str) -> str:
    """The computer in a direct format name; another name as it is."""
    address = queue.partition(":")[2] if queue.upper().startswith("DIRECT=") else ""
    return address.lstrip("/").partition("\\")[0].partition("/")[0] or queue


def _seconds(start: Mapping[str, Any], end: Mapping[str, Any]) -> float | None:
    left, came = moment_of(start["time"]), moment_of(end["time"])
    return None if left is None or came is None else (came - left).total_seconds()


def _neighbours(count: int) -> list[tuple[int, int]]:
    return [(number, number + 1) for number in range(count - 1)]


def _stop(number: int, events: Sequence[Mapping[str, Any]]) -> Stop:
    last = events[-1]
    name = last["name"] or last["manager"]
    short = name if len(name) <= _NAME_LONGEST else f"{name[: _NAME_LONGEST - 1]}…"
    text = (
        last["text"] if len(last["text"]) <= _NAME_LONGEST + 6 else last["kind"].replace("_", " ")
    )
    look = "bad" if last["kind"] in _BAD else "beyond" if last["kind"] == "there" else ""
    return Stop(_LEFT + number * _STEP, _TOP, short, name, text, look)


def _edge(pair: tuple[int, int], seconds: float | None) -> Edge:
    start, end = _LEFT + pair[0] * _STEP, _LEFT + pair[1] * _STEP
    return Edge(start, end, (start + end) // 2, _TOP, _time(seconds))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1000 * seconds:.0f} ms" if 0 <= seconds < 1 else span(seconds)
