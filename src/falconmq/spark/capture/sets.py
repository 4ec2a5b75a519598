"""Which capture files there are, which of them belong together, and which have changed.

A capture program that rotates its files begins a new one when the last is full; a connection then
goes on from one file to the next. Such files form a set and are read one after the other. They are
known by their names: in one folder, alike but for a time or a counter of at least five digits
(`traffic_00003_20261116093000.pcapng`), or a number behind the ending (`traffic.pcap3`). Names that
differ in any other way are sets of their own, so two captures of the same traffic taken at two
places (`client1.pcap`, `client2.pcap`) are never mixed.

A set is the unit of work: if any of its files is new or has changed, all of it is read again, for
what a packet is may depend on the file before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from falconmq.capture.pcap import CaptureError, is_capture
from falconmq.spark.capture.files import NO_TIME, mapped, read_frames

_HEAD: Final = 4096
_COUNTER: Final = re.compile(r"\d{5,}")
_BEHIND: Final = re.compile(r"(\.p?cap(?:ng)?)\d+$", re.IGNORECASE)
_ENDING: Final = re.compile(r"\.(p?cap(ng)?|dmp)\d*$", re.IGNORECASE)
LANES_MAX: Final = 8
LANE_BYTES: Final = 16 * 1024 * 1024  # less is not worth a worker


@dataclass(frozen=True)
class CaptureFile:
    """A file and what tells whether it is still the same."""

    path: str
    size: int
    changed_ns: int
    head: str  # hash of its first bytes
    first_ns: int  # time of its first frame


@dataclass(frozen=True)
class CaptureSet:
    """Files that follow each other."""

    name: str
    files: tuple[CaptureFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def fingerprint(self) -> list[dict[str, Any]]:
        """The same as long as no file of it has changed."""
        return [asdict(file) for file in self.files]


def find_captures(paths: Iterable[str]) -> list[Path]:
    """Files by name, patterns with * and ?, and all captures below folders."""
    found: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        matches = [path] if path.exists() else sorted(path.parent.glob(path.name))
        if not matches:
            raise CaptureError(
                f"there is no capture {path}",
                hint="name files, folders, or patterns in quotation marks: 'traffic/*.pcapng'",
            )
        for match in matches:
            found.update(dict.fromkeys(_below(match)))
    return list(found)


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path.absolute()
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and _ENDING.search(file.name) and is_capture(_head(file)):
            yield file.absolute()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def group(paths: Sequence[Path], *, is_joined: bool = True) -> list[CaptureSet]:
    """The sets that these files form; each file by itself unless they are to be joined."""
    named: dict[str, list[CaptureFile]] = {}
    for path in paths:
        name = str(path.with_name(set_name(path.name))) if is_joined else str(path)
        named.setdefault(name, []).append(describe(path))
    return [
        CaptureSet(name, tuple(sorted(files, key=lambda file: (file.first_ns, file.path))))
        for name, files in sorted(named.items())
    ]


def set_name(name: str) -> str:
    """The name of a file without what rotation counts."""
    return _COUNTER.sub("#", _BEHIND.sub(r"\1", name))


def describe(path: Path) -> CaptureFile:
    facts = path.stat()
    head = hashlib.sha256(_head(path)).hexdigest()[:16]
    return CaptureFile(str(path), facts.st_size, facts.st_mtime_ns, head, _first_time(path))


def _first_time(path: Path) -> int:
    with mapped(path) as data:
        try:
            for frames in read_frames(data, 1):
                if len(frames):
                    return int(frames.times[0])
        except CaptureError:
            pass  # what is wrong with it is told when it is read
    return NO_TIME


def lanes_for(sets: Sequence[CaptureSet], workers: int) -> list[int]:
    """How many workers share each set, so that all have something to do."""
    total = sum(capture_set.size for capture_set in sets) or 1
    return [
        max(1, min(LANES_MAX, round(workers * s.size / total), s.size // LANE_BYTES)) for s in sets
    ]
