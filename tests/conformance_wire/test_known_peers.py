"""Names that are not direct: the daemon looks for the queue manager, or passes a message on.

MQQB 3.1.5.2, 3.1.5.3.2, 3.1.5.8.2, 3.1.7.17. The daemon knows one peer by its GUID, and that the
way to a second one leads over the first.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from tests.conformance_wire import packets
from tests.conformance_wire.calling import confirmed, response
from tests.conformance_wire.exchange import (
    Exchange,
    Late,
    Step,
    answer,
    cases,
    closed,
    control,
    establish,
    expect,
    hear,
    message,
    opened,
    send,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import FAR, KNOWN, Stage

FLAGS_AT = 60  # UserHeader.Flags in a packet
SEQUENCE = 0x6000_0000_0000_0001


def given(**properties: Any) -> Step:
    """An application of the daemon sends to the private queue 9 of the known peer."""

    def step(play: Play) -> None:
        name = rf"PRIVATE={KNOWN}\00000009"
        play.stage.client.send(name, [{"text": "hello", **properties}], transaction=False)

    return step


def called(play: Play) -> None:
    play.answer()
    expect(EstablishConnection, server_guid=KNOWN.bytes_le)(play)


def _check_message(play: Play) -> None:
    packet: Any = hear(play)
    assert packet.user.queue_manager_address == KNOWN.bytes_le
    assert packet.user.destination_queue_type == packets.PRIVATE
    assert packet.user.destination_queue == 9


CALLS = [
    Exchange(
        "the request names the queue manager that is called, and so does the message",
        given(),
        called,
        send(response()),
        expect(ConnectionParameters),
        send(packets.parameters()),
        _check_message,
        confirmed(1, 1, 1),
        rows=("QB-2.2.3.1-04",),
    ),
    Exchange(
        "the answer of another queue manager ends the session",
        given(),
        called,
        send(response(server=FAR.bytes_le)),
        closed(),
        called,
        send(response(server=packets.NULL)),
        closed(),
        called,
        send(response()),
        expect(ConnectionParameters),
        send(packets.parameters()),
        control(hear),
        confirmed(1, 1, 1),
        rows=("QB-3.1.5.3.2-03",),
    ),
]


@pytest.mark.requirement("QB-A56-01")
def test_a_direct_session_does_not_carry_what_has_no_direct_name(stage: Stage) -> None:
    with Play(stage, address=stage.known_address, guid=KNOWN.bytes_le) as known:
        # given a session that the known peer has opened without naming the daemon
        known.listen()
        known.connect()
        opened(2)(known)
        direct = known.socket
        # when there is a message for it by its GUID
        known.socket = None
        given()(known)
        # then the daemon calls
        called(known)
        assert direct is not None
        direct.close()
        send(response())(known)
        expect(ConnectionParameters)(known)
        known.write(packets.parameters())
        hear(known)
        confirmed(1, 1, 1)(known)


def to_far(play: Play, hops: int, **fields: Any) -> bytes:
    """A message of another peer's for the queue manager behind the known one."""
    headers = play.message(label="through", extension=b"ext", **fields)
    headers.flags = headers.flags & ~(7 << 10) | packets.PRIVATE << 10 | hops | 1 << 31
    headers.destination = struct.pack("<I", 9)
    headers.address = FAR.bytes_le
    return headers.encode()


@pytest.mark.requirement("QB-3.1.5.8.2-21", "QB-3.1.1.5-07")
@pytest.mark.parametrize("hops", [0, 1, 0x1B, 0x1C])
@pytest.mark.parametrize("kind", ["express", "recoverable", "transactional"])
def test_a_message_that_is_passed_on_changes_in_its_hop_count_alone(
    stage: Stage, hops: int, kind: str
) -> None:
    fields: dict[str, Any] = {"recoverable": kind == "recoverable"}
    if kind == "transactional":
        fields["transaction"] = (SEQUENCE, 7, 6)
    with (
        Play(stage, address=stage.known_address, guid=KNOWN.bytes_le) as known,
        Play.calling(stage) as sender,
    ):
        # given a peer, and the next hop behind the daemon
        known.listen()
        opened(2, "daemon")(sender)
        # when it sends a message for somebody behind that hop
        data = to_far(sender, hops, **fields)
        sender.write(data)
        # then the next hop gets the same bytes, but for one hop more
        called(known)
        send(response())(known)
        expect(ConnectionParameters)(known)
        known.write(packets.parameters())
        flags = int.from_bytes(data[FLAGS_AT : FLAGS_AT + 4], "little") + 1
        expected = data[:FLAGS_AT] + struct.pack("<I", flags) + data[FLAGS_AT + 4 :]
        assert known.read() == expected


def _private(play: Play, kind: str = "transactional") -> bytes:
    headers = play.message(kind, transaction=(SEQUENCE, 1, 0))
    headers.flags = headers.flags & ~(7 << 10) | packets.PRIVATE << 10
    headers.destination = struct.pack("<I", play.private_number(kind))
    headers.address = play.stage.guid
    return headers.encode()


ACKNOWLEDGED = [
    Exchange(
        "the OrderAck of a message without a direct name goes to the GUID of its source",
        send(establish("daemon")),
        expect(EstablishConnection),
        send(packets.parameters(window=2)),
        expect(ConnectionParameters),
        send(_private),
        answer(
            0x00FF,
            base__flags=0,
            user__queue_manager_address=KNOWN.bytes_le,
            user__flags=packets.MESSAGE_PROPERTIES | packets.PRIVATE << 10,
            user__destination_queue=4,
            properties__message_body=Late(lambda _: packets.order_ack_body(SEQUENCE, 1, 0)),
        ),
        rows=("QB-2.2.4-06", "QB-2.2.4-07", "QB-3.1.7.17-37", "QB-A57-01"),
    ),
    Exchange(
        "so does its FinalAck",
        send(establish("daemon")),
        expect(EstablishConnection),
        send(packets.parameters(window=2)),
        expect(ConnectionParameters),
        send(lambda play: _private(play, kind="plain")),
        answer(
            0x8009,
            base__flags=0,
            user__queue_manager_address=KNOWN.bytes_le,
            user__flags=packets.MESSAGE_PROPERTIES | packets.PRIVATE << 10 | 1 << 5,
            user__destination_queue=4,
        ),
        rows=("QB-2.2.5-07", "QB-2.2.5-08"),
    ),
    Exchange(
        "a private administration queue of the source is found by its GUID",
        opened(2, "daemon"),
        send(
            message(
                acknowledgements=1,
                flags=2 << 13,
                admin=struct.pack("<I", 77),
            )
        ),
        answer(
            0x0002,
            user__queue_manager_address=KNOWN.bytes_le,
            user__destination_queue_type=packets.PRIVATE,
            user__destination_queue=77,
        ),
    ),
]


@pytest.mark.parametrize("exchange", cases(CALLS))
def test_calls_by_name(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage, address=stage.known_address, guid=KNOWN.bytes_le)


@pytest.mark.parametrize("exchange", cases(ACKNOWLEDGED))
def test_acknowledgements_by_name(stage: Stage, exchange: Exchange) -> None:
    with Play(stage, address=stage.known_address, guid=KNOWN.bytes_le) as play:
        play.connect()
        exchange.perform(play)
