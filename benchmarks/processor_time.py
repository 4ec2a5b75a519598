"""Processor time of this process and of all that it started: what other work cannot slow down."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _OWN, _ENDED = 1, slice(11, 13), slice(13, 15)  # in /proc/PID/stat, behind the name


@dataclass(frozen=True)
class Taken:
    """What some work took, in seconds."""

    wall: float
    here: float  # of this process
    java: float
    others: float  # of Python workers, and of whatever else this process started

    @property
    def processor(self) -> float:
        return self.here + self.java + self.others

    def __str__(self) -> str:
        return (
            f"{self.processor:.2f} s of processor "
            f"(Java {self.java:.2f}, workers {self.others:.2f}, driver {self.here:.2f})"
        )


def taken_by(work: Callable[[], object]) -> Taken:
    """Do it; `others` may hold what ended meanwhile, and misses what ended unseen."""
    begun, here, (java, others) = time.perf_counter(), time.process_time(), _children()
    work()
    wall, worked = time.perf_counter() - begun, time.process_time() - here
    java_now, others_now = _children()
    return Taken(wall, worked, java_now - java, others_now - others)


def _children() -> tuple[float, float]:
    """Seconds of Java and of the others, of all processes below this one."""
    below: dict[int, list[tuple[int, str, float, float]]] = defaultdict(list)
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            head, _, rest = (place / "stat").read_text().rpartition(")")
        except OSError:  # it ended
            continue
        fields = rest.split()
        own, ended = (sum(map(int, fields[part])) / _TICKS for part in (_OWN, _ENDED))
        name = head.partition("(")[2]
        below[int(fields[_PARENT])].append((int(place.name), name, own, ended))
    java = others = 0.0
    found = list(below[os.getpid()])
    while found:
        process, name, own, ended = found.pop()
        if name == "java":
            java += own
        else:
            others += own + ended
        found += below[process]
    return java, others
