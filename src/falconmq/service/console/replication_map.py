"""The servers of a directory as a picture: a row for each site, who decides about it at the left.

A line at the left joins the primary controllers, which all tell each other; arrows to the right
lead to the backup controllers that a primary one passes everything on to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from falconmq.service.console.drawing import plural
from falconmq.service.directory.replication_servers import DirectoryServer, DirectorySite

SITES_MOST: Final = 60  # that are drawn; the tables have them all
BACKUPS_MOST: Final = 6  # of a site
_MARGIN, _SPACE = 12, 14  # around all, between sites
_HEAD, _FOOT = 30, 12  # of a site, above and below its boxes
_WIDTH, _HEIGHT, _GAP, _BETWEEN = 214, 68, 72, 10  # of boxes, between columns and rows
_BUS: Final = 40  # room for the line that joins the primary controllers
_PAD: Final = 12  # of a box in its site
_LETTERS: Final = 20  # of a name


@dataclass(frozen=True, slots=True)
class Box:
    """A server."""

    server: DirectoryServer
    x: int
    y: int
    width: int
    height: int
    short: str
    look: str  # CSS classes
    summary: str

    @property
    def middle(self) -> int:
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Ground:
    """What a site stands on."""

    site: DirectorySite
    x: int
    y: int
    width: int
    height: int
    more: int  # backup controllers that are not drawn
    short: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """Who tells whom; `heads` are the points of the arrow."""

    line: str
    heads: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    grounds: tuple[Ground, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    bus: str  # the line that joins the primary controllers; empty if there is one only
    summary: str


def draw(sites: Sequence[DirectorySite]) -> Picture | None:
    """The picture; None if there is nothing to draw, or too much."""
    if not 0 < len(sites) <= SITES_MOST:
        return None
    has_bus = len(sites) > 1
    left = _MARGIN + (_BUS if has_bus else 0)
    has_backups = any(site.backups for site in sites)
    width = 2 * _PAD + _WIDTH + (_GAP + _WIDTH if has_backups else 0)
    grounds: list[Ground] = []
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    y = _MARGIN
    for site in sites:
        backups = site.backups[:BACKUPS_MOST]
        more = len(site.backups) - len(backups)
        rows = max(1, len(backups))
        inside = rows * (_HEIGHT + _BETWEEN) - _BETWEEN
        height = _HEAD + inside + _FOOT + (18 if more else 0)
        grounds.append(Ground(site, left, y, width, height, more, _cut(site.name)))
        primary = _box(site.primary, left + _PAD, y + _HEAD + (inside - _HEIGHT) // 2)
        boxes.append(primary)
        if has_bus and site.primary.name:
            arrows.append(_both_ways(primary, _MARGIN + 4))
        for number, backup in enumerate(backups):
            top = y + _HEAD + number * (_HEIGHT + _BETWEEN)
            box = _box(backup, left + _PAD + _WIDTH + _GAP, top)
            boxes.append(box)
            arrows.append(_to_backup(primary, box))
        y += height + _SPACE
    servers = sum(bool(box.server.name) for box in boxes)
    return Picture(
        left + width + _MARGIN,
        y - _SPACE + _MARGIN,
        tuple(grounds),
        tuple(boxes),
        tuple(arrows),
        _bus(boxes, arrows),
        f"{plural(len(sites), 'site')} and {plural(servers, 'directory server')}",
    )


def _box(server: DirectoryServer, x: int, y: int) -> Box:
    parts = (server.standing.words, server.sending.words)
    name = server.name or "no server"
    looks = [server.standing.look, server.sending.look]
    worst = next((look for look in ("bad", "warn") if look in looks), "")
    look = " ".join(filter(None, ("here" if server.is_here else "", worst)))
    summary = ": ".join((f"{server.role} {name}", ", ".join(filter(None, parts))))
    return Box(server, x, y, _WIDTH, _HEIGHT, _cut(name), look, summary.removesuffix(": "))


def _both_ways(box: Box, bus: int) -> Arrow:
    heads = (f"M{box.x - 1} {box.middle}l-9 -5v10z", f"M{bus + 1} {box.middle}l9 -5v10z")
    text = f"{box.server.name} and the other primary controllers tell each other"
    return Arrow(f"M{bus + 8} {box.middle}H{box.x - 8}", heads, text)


def _to_backup(primary: Box, backup: Box) -> Arrow:
    start, turn = primary.x + primary.width, primary.x + primary.width + _GAP // 2
    line = f"M{start} {primary.middle}H{turn}V{backup.middle}H{backup.x - 8}"
    head = f"M{backup.x - 1} {backup.middle}l-9 -5v10z"
    text = f"{primary.server.name or 'nobody'} tells {backup.server.name}"
    return Arrow(line, (head,), text)


def _bus(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """From the first primary controller to the last."""
    middles = [box.middle for box in boxes if box.server.role != "BSC" and box.server.name]
    if len(middles) < 2 or not arrows:
        return ""
    return f"M{_MARGIN + 4} {middles[0]}V{middles[-1]}"


def _cut(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
