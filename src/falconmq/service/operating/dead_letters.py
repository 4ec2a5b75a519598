"""Dead letters: messages that were not delivered, and whose senders asked to keep them.

How to think about it. A dead letter is a copy of a message in one of the two dead-letter queues of
the system, or in a queue that its application named for that. Its record says why it died. To
redrive one is to send it again as a new message and to take the letter away, both in one turn: the
store gets them in one batch, so a crash at any moment leaves one of them, never both or none.

A letter whose new message is refused (its queue is gone, full, or of the other kind) stays where it
is; so does one that a reader holds.

Lists are walked in pages, a page a turn, so that a million letters keep nobody waiting. The place
where a page ends is "queue number:lookup identifier".
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError, MqStatus, QueueError, ReadError
from falconmq.manager.access import check_open
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import AccessType, PositionState
from falconmq.message import MessageId
from falconmq.service.explaining_schemas import LetterFilters, LettersRequest
from falconmq.service.observation.event_texts import class_text, message_id_text, queue_text
from falconmq.service.operating.redriving import check, destination_of, redrive
from falconmq.service.requests.finding import find_local
from falconmq.service.requests.reading import durable
from falconmq.wire.field_words import class_words
from falconmq.wire.message_class import MessageClass

PAGE: Final = 200  # letters that are looked at in one turn
SCANNED_MAX: Final = 20_000  # in one request; `next` says where to go on

Json = dict[str, Any]
Work = Callable[[QueueManagerCore, MessagePosition], Json]


@dataclass(slots=True)
class Page:
    """What one request came to."""

    items: list[Json] = field(default_factory=list)
    next: str | None = None  # None: there is nothing behind


@dataclass(frozen=True, slots=True)
class Wanted:
    """`LetterFilters`, checked and in the values that letters have."""

    reason: int | None = None
    source: bytes | None = None
    id: tuple[bytes, int] | None = None
    contains: str = ""
    before: float | None = None  # seconds since 1970
    after: float | None = None
    lookup_ids: frozenset[int] | None = None

    @classmethod
    def of(cls, filters: LetterFilters, now: float) -> Wanted:
        """ReadError, with what is wrong with a filter."""
        older, newer = filters.older_than, filters.newer_than
        limits = [moment for moment in (_time(filters.until),) if moment is not None]
        limits += [] if older is None else [now - older]
        given = getattr(filters, "lookup_ids", None)
        return cls(
            reason=_reason(filters.reason),
            source=_source(filters.source),
            id=_identity(filters.id),
            contains=(filters.contains or "").casefold(),
            before=min(limits, default=None),
            after=None if newer is None else now - newer,
            lookup_ids=None if given is None else frozenset(map(int, given)),
        )

    def takes(self, position: MessagePosition) -> bool:
        message = position.message
        source, ordinal = message.identity
        if self.lookup_ids is not None and position.lookup_id not in self.lookup_ids:
            return False
        if self.id is not None and self.id != (source, ordinal):
            return False
        if self.source is not None and self.source != source:
            return False
        if self.reason is not None and self.reason != message.dead_letter_reason:
            return False
        if self.before is not None and message.arrival_time > self.before:
            return False
        if self.after is not None and message.arrival_time < self.after:
            return False
        return not self.contains or self.contains in _searched(position)


def _searched(position: MessagePosition) -> str:
    source, ordinal = position.message.identity
    properties = position.message.packet.properties
    texts = (properties.label, destination_of(position), message_id_text(source, ordinal))
    return "\n".join(texts).casefold()


async def walk(
    engine: Engine, filters: LetterFilters, work: Work, *, count: int, after: str | None
) -> Page:
    """Do something with each letter that is wanted, in order; a page a turn.

    What was done is durable when this returns. It may end before `count` letters are found: then
    `next` says where to go on.
    """
    wanted = Wanted.of(filters, engine.core.clock.time())
    page, scanned = Page(next=after or "0:-1"), 0
    while page.next is not None and len(page.items) < count and scanned < SCANNED_MAX:
        step, commit = engine.run(
            _walk_page, filters.queue, wanted, work, page.next, count - len(page.items)
        )
        if commit is not None:
            await durable(engine, commit)
        page.items += step.items
        page.next = step.next
        scanned += PAGE
        await asyncio.sleep(0)  # others have their turns
    return page


def _walk_page(
    core: QueueManagerCore, name: str | None, wanted: Wanted, work: Work, start: str, count: int
) -> Page:
    queues = queues_of(core, name)
    number, lookup_id = _start(start)
    if not any(queue.number == number for queue in queues):
        number, lookup_id = queues[0].number, -1
    page, scanned, is_there = Page(), 0, False
    for queue in queues:
        is_there = is_there or queue.number == number
        behind = lookup_id if queue.number == number else -1
        for position in _letters(queue, behind, wanted.lookup_ids) if is_there else ():
            if scanned == PAGE or len(page.items) == count:
                return page
            scanned += 1
            page.next = f"{queue.number}:{position.lookup_id}"
            if wanted.takes(position):
                page.items.append(work(core, position))
    page.next = None
    return page


def _letters(
    queue: Queue, behind: int, lookup_ids: frozenset[int] | None
) -> Iterator[MessagePosition]:
    """The letters behind a place, in order; those that a reader holds too."""
    numbers = _numbers(queue, behind)
    if lookup_ids is not None:
        numbers = iter(sorted(number for number in lookup_ids if number > behind))
    for lookup_id in numbers:
        position = queue.positions.find(lookup_id)
        if position is not None and position.message.arrival_number:
            yield position


def _numbers(queue: Queue, behind: int) -> Iterator[int]:
    """Places, in order. Whoever gets one may take its letter away before he asks for the next."""
    positions = queue.positions
    held = deque(sorted(number for number in positions.held if number > behind))
    following = positions.available.after(behind)
    while held or following is not None:
        if following is None or (held and held[0] < following):
            yield held.popleft()
        else:
            yield following
            following = positions.available.after(following)


def queues_of(core: QueueManagerCore, name: str | None) -> list[Queue]:
    """The dead-letter queues that are meant: the one named, or those of the system."""
    found = [core.dead_letter, core.transactional_dead_letter]
    if name is not None:
        short = {"deadletter": core.dead_letter, "deadxact": core.transactional_dead_letter}
        found = [short.get(name.casefold()) or find_local(core, name)]
    for queue in found:
        check_open(core, queue, AccessType.PEEK)
    return found


# What is done with a letter


def show(core: QueueManagerCore, position: MessagePosition) -> Json:
    """As `DeadLetterOut` describes it."""
    message = position.message
    user = message.packet.user
    return {
        **_named(position),
        "reason_text": class_words(message.dead_letter_reason) or "not said",
        "source": str(UUID(bytes_le=user.source_queue_manager)),
        "died_at": _utc(message.arrival_time),
        "sent_at": _utc(user.sent_time),
        "age_seconds": max(0.0, core.clock.time() - message.arrival_time),
        "size_bytes": message.size,
        "transactional": message.transaction is not None,
        "is_held": position.state is not PositionState.AVAILABLE,
    }


def _named(position: MessagePosition) -> Json:
    message = position.message
    return {
        "queue": queue_text(position.queue),
        "lookup_id": str(position.lookup_id),
        "id": message_id_text(*message.identity),
        "reason": class_text(message.dead_letter_reason) if message.dead_letter_reason else "",
        "destination": destination_of(position),
        "label": message.packet.properties.label.rstrip("\0"),
    }


def redrive_to(target: str | None, *, dry_run: bool) -> Work:
    """Send a letter again, to its destination or elsewhere, and take it away."""

    def work(core: QueueManagerCore, position: MessagePosition) -> Json:
        named = _named(position)
        try:
            if dry_run:
                check(core, position, target)
                return {**named, "outcome": "would-go"}
            new = redrive(core, position, target)
        except FalconMQError as error:
            return {**named, "outcome": "stays", "problem": str(error)}
        return {**named, "outcome": "redriven", "new_id": str(new)}

    return work


def delete(core: QueueManagerCore, position: MessagePosition) -> Json:
    """Take a letter away for good."""
    named = _named(position)
    check_open(core, position.queue, AccessType.RECEIVE)
    if position.state is not PositionState.AVAILABLE:
        return {**named, "outcome": "stays", "problem": "a reader holds it"}
    message_position_deleted(core, position.queue, position, MessageClass.NACK_Q_PURGED)
    return {**named, "outcome": "deleted"}


def count_of(request: LettersRequest) -> int:
    """How many letters one request may work on."""
    return request.limit if request.lookup_ids is None else max(1, len(request.lookup_ids))


# Filters


def _reason(text: str | None) -> int | None:
    if text is None:
        return None
    name = text.upper().removeprefix("MQMSG_CLASS_").replace("-", "_")
    if name in MessageClass.__members__:
        return MessageClass[name]
    known = ", ".join(member.name for member in MessageClass if member.is_negative)
    raise _bad_filter("reason", f"{text!r} is no class of messages", f"one of {known}")


def _source(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return UUID(text).bytes_le
    except ValueError as error:
        hint = "it is the guid in the front of a message id"
        raise _bad_filter("source", f"{text!r} is no queue manager id", hint) from error


def _identity(text: str | None) -> tuple[bytes, int] | None:
    if text is None:
        return None
    id = MessageId.parse(text)
    return id.queue_manager.bytes_le, id.ordinal


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        hint = "such as 2025-01-31T12:00:00+00:00"
        raise _bad_filter("until", f"{text!r} is no time", hint) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _start(text: str) -> tuple[int, int]:
    number, _, lookup_id = text.partition(":")
    try:
        return int(number), int(lookup_id)
    except ValueError as error:
        hint = "give `next` of the answer before"
        raise _bad_filter("after", f"{text!r} is no place", hint) from error


def _bad_filter(name: str, problem: str, hint: str) -> ReadError:
    return ReadError(f"{name}: {problem}", status=MqStatus.INVALID_PARAMETER, hint=hint)


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def letter_not_found(queue: str, lookup_id: int) -> QueueError:
    return QueueError(
        f"no dead letter {lookup_id} in {queue}",
        status=MqStatus.MESSAGE_NOT_FOUND,
        hint="falconmq dead-letter list shows those that are there",
    )
