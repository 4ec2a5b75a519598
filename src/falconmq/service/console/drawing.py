"""How values look on a page: numbers, sizes, times, ages, links. Everything is escaped."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
_UNITS: Final = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
# What turns the direction of a text, or means something to a terminal that it is pasted into.
_HIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_AGES: Final = ((86_400, "d"), (3600, "h"), (60, "min"))

Moment = datetime | str | float | None


def moment_of(value: Moment) -> datetime | None:
    """A moment as the API writes it: ISO 8601, or seconds of the calendar."""
    if not value:
        return None
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif isinstance(value, int | float):
        value = datetime.fromtimestamp(value, UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def time_of(value: Moment) -> Markup:
    """A moment. UTC; the script of the console writes it as the reader's clock shows it."""
    moment = moment_of(value)
    if moment is None:
        return Markup('<span class="muted">–</span>')
    iso, text = f"{moment:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z", f"{moment:%Y-%m-%d %H:%M:%S}"
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(iso, text, text)


def age_of(value: Moment, now: datetime | None = None) -> Markup:
    """How long ago a moment was: 12 s ago."""
    moment = moment_of(value)
    if moment is None:
        return Markup('<span class="muted">–</span>')
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    iso, text = f"{moment:%Y-%m-%dT%H:%M:%S}Z", f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    words = f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"
    return Markup('<time datetime="{}" title="{}" data-age>{}</time>').format(iso, text, words)


def span(seconds: float | None) -> str:
    """A length of time with two figures at most: 45 s, 3 min 20 s, 2 d 4 h."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds % 1 >= 0.05 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < _AGES[-1][0]:
        return f"{whole} s"
    for (size_of, unit), (smaller, below) in pairwise((*_AGES, (1, "s"))):
        if whole >= size_of:
            number, rest = divmod(whole, size_of)
            part = rest // smaller
            return f"{number} {unit} {part} {below}" if part else f"{number} {unit}"
    raise AssertionError("the smallest unit takes everything")


def count(number: float | None) -> str:
    """1,234,567."""
    if number is None:
        return "–"
    return f"{number:,.1f}" if number % 1 else f"{int(number):,}"


def size(number: float | None) -> str:
    """512 B, 1.5 KB, 20 MB."""
    if number is None:
        return "–"
    for unit, name in _UNITS:
        if number >= unit:
            shown = number / unit
            return f"{shown:.1f} {name}" if shown < 100 else f"{shown:,.0f} {name}"
    return f"{int(number)} B"


def plural(number: int, noun: str) -> str:
    """1 message, 2 messages."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def segment(text: object) -> str:
    """A name as one segment of a path: nothing in it means anything to a browser."""
    return quote(str(text), safe="")


def queue_link(name: str, *more: object) -> str:
    """The page of a queue, or one below it."""
    return "/".join(["/queues", segment(name), *(segment(part) for part in more)])


def message_link(queue: str, lookup_id: object) -> str:
    return queue_link(queue, "messages", lookup_id)


def trace_link(message_id: str) -> str:
    return f"/messages/{segment(message_id)}"


def with_query(path: str, **values: object) -> str:
    """A path with a query; what is empty is left out."""
    given = {key: str(value) for key, value in values.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path


def short_name(name: str) -> str:
    r"""A queue of this computer without the part that all of them have: private$\orders."""
    return name.removeprefix(".\\")


def words(name: object) -> str:
    """NACK_Q_PURGED, TRANSACTION_SEQUENCE: names as sentences begin: Nack q purged."""
    return str(name).replace("_", " ").lower()


def visible(value: object) -> object:
    """Any value of a page; in a text of strangers nothing hides, it is written as an escape."""
    if isinstance(value, str) and not isinstance(value, Markup) and _HIDDEN.search(value):
        return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return value


def _fingerprint() -> str:
    """Of style sheet and script: another one after an upgrade, so no browser keeps the old ones."""
    contents = [(STATIC / name).read_bytes() for name in ("console.css", "console.js")]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12]


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        age=age_of,
        count=count,
        plural=plural,
        segment=segment,
        short=short_name,
        size=size,
        span=span,
        time=time_of,
        words=words,
    )
    made.globals.update(
        message_link=message_link,
        queue_link=queue_link,
        trace_link=trace_link,
        static_version=_fingerprint(),
        with_query=with_query,
    )
    return made


ENVIRONMENT: Final = environment()
