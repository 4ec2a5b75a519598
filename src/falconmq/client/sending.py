"""Sending to a queue of a service: as packets where that can be, in requests of a fitting size.

Outside a transaction messages before a refused one are sent, as embedded programs have it. The
service takes all messages of a request or none, so a request that it refuses is sent again in
halves until the refused message stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from falconmq.client import packets
from falconmq.client.calls import Call, Operation
from falconmq.client.json_messages import to_json
from falconmq.client.places import Place
from falconmq.client.session import Json, ask_keyed, post, restarted
from falconmq.client.transactions import Work, forgotten, use
from falconmq.errors import FalconMQError
from falconmq.message import Delivery, Message, MessageId, SenderIdType
from falconmq.names import (
    DirectFormatName,
    MultipleElementFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)

REQUEST_MESSAGES: Final = 1000
REQUEST_BYTES: Final = 4 * 1024 * 1024  # beyond this a request takes no more messages


def send(place: Place, message: Message, work: Work | None) -> Operation[MessageId]:
    sent = yield from send_many(place, [message], work)
    return sent[0]


def send_many(
    place: Place, messages: Iterable[Message], work: Work | None
) -> Operation[list[MessageId]]:
    """Send messages, in their order; their ids."""
    place.check_open()
    ids: list[MessageId] = []
    if work is not None:
        work.check()
    for part in _parts(place, messages, in_transaction=work is not None):
        if isinstance(part, FalconMQError):
            raise part  # those before it are sent
        if work is not None:
            yield from use(work)
        ids += yield from _send_part(place, part, work)
    return ids


# Requests


@dataclass(frozen=True, slots=True)
class _Part:
    """Messages that go with one request."""

    messages: Sequence[Message]
    packets: Sequence[bytes]  # empty: they go as JSON


def _send_part(place: Place, part: _Part, work: Work | None) -> Operation[list[MessageId]]:
    outcome = yield from ask_keyed(place.session, _call(place, part, work))
    if outcome.is_restarted:
        raise restarted(place.session) if work is None else forgotten(work)
    if outcome.refusal() is not None and work is None and len(part.messages) > 1:
        middle = len(part.messages) // 2
        first = _Part(part.messages[:middle], part.packets[:middle])
        rest = _Part(part.messages[middle:], part.packets[middle:])
        ids = yield from _send_part(place, first, work)
        return ids + (yield from _send_part(place, rest, work))
    found = place.checked(outcome, work).json(place.session)
    ids = packets.ids_of(found) if part.packets else [MessageId.parse(i) for i in found["ids"]]
    for message, id in zip(part.messages, ids, strict=True):
        message.id = id
    return ids


def _call(place: Place, part: _Part, work: Work | None) -> Call:
    if part.packets:
        wanted = "false" if work is None else str(work.id)
        path = f"{place.path}/packets?transaction={wanted}"
        headers = {"Content-Type": packets.MEDIA_TYPE}
        if _hides_sender(part.messages[0]):
            headers[packets.SENDER_HEADER] = packets.NO_SENDER
        return Call("POST", path, b"".join(part.packets), headers)
    body: Json = {
        "messages": [to_json(message) for message in part.messages],
        "transaction": False if work is None else str(work.id),
    }
    return post(f"{place.path}/messages", body)


# Which messages go together


def _parts(
    place: Place, messages: Iterable[Message], *, in_transaction: bool
) -> Iterator[_Part | FalconMQError]:
    """The messages in requests; an error stands for the message that cannot be sent at all."""
    goal = _packet_goal(place)
    found: list[tuple[Message, bytes]] = []
    size = 0
    for message in messages:
        if goal is None or not packets.can_carry(message):
            if found:
                yield _together(found)
                found, size = [], 0
            yield _as_json(place, message)
            continue
        try:
            packet = packets.to_packet(
                message, goal, in_transaction=in_transaction, source=place.session.id
            )
        except FalconMQError as error:
            if found:
                yield _together(found)
            yield error
            return
        if found and _hides_sender(found[0][0]) != _hides_sender(message):
            yield _together(found)
            found, size = [], 0
        found.append((message, packet))
        size += len(packet)
        if len(found) == REQUEST_MESSAGES or size >= REQUEST_BYTES:
            yield _together(found)
            found, size = [], 0
    if found:
        yield _together(found)


def _hides_sender(message: Message) -> bool:
    """Whether it is not to say who sent it; no packet can ask for that, so its request does."""
    return message.sender_id_type == SenderIdType.NONE


def _together(found: list[tuple[Message, bytes]]) -> _Part:
    return _Part([message for message, _ in found], [packet for _, packet in found])


def _as_json(place: Place, message: Message) -> _Part:
    """For several queues at once, and for what no packet carries."""
    name = place.parsed
    if isinstance(name, MultipleElementFormatName):
        message.destinations = name.elements
        message.destination = name.elements[-1]
    else:
        message.destination, message.destinations = name, ()
    if message.recoverable is None:
        message.delivery = Delivery.RECOVERABLE
    return _Part([message], [])


def _packet_goal(place: Place) -> SingleFormatName | None:
    """How packets name the queue; None if it takes none: then the service says why."""
    name = place.parsed
    if isinstance(name, DirectFormatName) and name.subqueue is not None:
        return None
    if not isinstance(name, DirectFormatName | PrivateFormatName | PublicFormatName):
        return None
    return None if name.is_read_only else name
