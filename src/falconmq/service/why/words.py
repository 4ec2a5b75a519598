"""Words for ages, sizes, message classes and events: the ones operators read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from falconmq.manager.events import EventKind, MessageEvent
from falconmq.service.observation.event_texts import class_text
from falconmq.wire.field_words import class_words
from falconmq.wire.message_class import MessageClass

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_KIBI: Final = 1024

# What to do about a message that ended with this class.
_CLASS_HINTS: Final[Mapping[int, str]] = {
    MessageClass.NACK_BAD_DST_Q: "create the queue there, or send to its right name",
    MessageClass.NACK_DELETED: "somebody purged the outgoing queue; send it again if it is needed",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "see why the way is closed, or give messages a longer "
    "time_to_reach_queue",
    MessageClass.NACK_Q_EXCEED_QUOTA: "let the readers of that queue catch up, or raise its quota",
    MessageClass.NACK_ACCESS_DENIED: "give the sender the right to send there: falconmq queue "
    "permissions grant QUEUE Anonymous send",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "the routes go in a circle: check [[routes]]",
    MessageClass.NACK_BAD_SIGNATURE: "the queue takes signed messages only, or the signature or "
    "its certificate is not good; the log of the receiver says which",
    MessageClass.NACK_BAD_ENCRYPTION: "the queue takes encrypted messages only, or the receiver "
    "cannot read this one; the log of the receiver says which",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "import the keys of the receiver: falconmq key import "
    "FILE",
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: "send it outside a transaction, or make the queue "
    "transactional",
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: "send it in a transaction",
    MessageClass.NACK_Q_DELETED: "create the queue again, then redrive the dead letters",
    MessageClass.NACK_RECEIVE_TIMEOUT: "let somebody read the queue, or give messages a longer "
    "time_to_be_received",
}
_EVENTS: Final[Mapping[EventKind, str]] = {
    EventKind.QUEUED: "put into an outgoing queue",
    EventKind.ARRIVED: "arrived",
    EventKind.DELIVERED: "handed over to the next queue manager",
    EventKind.RECEIVED: "received",
    EventKind.EXPIRED: "expired",
    EventKind.PURGED: "purged",
    EventKind.QUEUE_DELETED: "deleted with its queue",
    EventKind.REJECTED: "rejected by its reader",
    EventKind.MOVED: "moved",
    EventKind.JOURNALED: "a copy was kept in the journal",
    EventKind.DEAD_LETTERED: "a copy was kept as a dead letter",
    EventKind.REFUSED: "refused here",
    EventKind.DUPLICATE: "came again, and was dropped",
    EventKind.RETURNED: "given back by a reader whose transaction was aborted",
    EventKind.TOLD: "an answer came back",
    EventKind.RESTORED: "a write of the store failed: what was recorded shortly before is undone",
}


def age(seconds: float) -> str:
    """How long, in the two units that matter: 12 s, 3 min, 2 h 5 min, 4 d 3 h."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "min")
    return _two(whole, _DAY, "d", _HOUR, "h")


def _two(whole: int, first: int, unit: str, second: int, part: str) -> str:
    rest = whole % first // second
    return f"{whole // first} {unit}" + (f" {rest} {part}" if rest else "")


def ago(seconds: float | None) -> str:
    """When; "never" for None."""
    return "never" if seconds is None else f"{age(seconds)} ago"


def messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def waits(count: int) -> str:
    """How many messages wait, as the begin of a sentence."""
    return f"{messages(count)} {'waits' if count == 1 else 'wait'}"


def size(count: int) -> str:
    """Bytes, in the unit that people would use."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < _KIBI or unit == "GiB":
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= _KIBI
    raise AssertionError("the last unit takes everything")


def class_hint(message_class: int) -> str:
    return _CLASS_HINTS.get(message_class, "")


def reason_words(message_class: int) -> str:
    """A class in words with its name: what people read and what they search for."""
    words = class_words(message_class)
    name = class_text(message_class)
    return f"{words} ({name})" if words else name


def event_words(event: MessageEvent) -> str:
    """What happened, in words."""
    text = _EVENTS[event.kind]
    if event.kind is EventKind.DELIVERED and event.detail:
        text = f"{text} at {event.detail}"
    elif event.kind is EventKind.MOVED:
        text = f"{text} to {event.detail}"
    elif event.kind is EventKind.DUPLICATE:
        text = f"came again from {event.detail}, and was dropped"
    if event.reason and event.kind is not EventKind.RECEIVED:
        text = f"{text}: {reason_words(event.reason)}"
    return text
