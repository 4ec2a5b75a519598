"""The frames that the specification prints, played against a daemon (MQQB 4.1).

Only what names a machine is changed: the GUID of the server, and the age of the message. The dump
of FRAME 7 ends before its body does; what is missing repeats what is there.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any, Final

import pytest

from falconmq.wire.establish_connection import EstablishConnection
from tests.conformance_wire.exchange import (
    Exchange,
    Late,
    Part,
    cases,
    control,
    expect,
    expect_bytes,
    send,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import QUEUE_OF_FRAME_7, Stage

_VECTORS: Final = Path(__file__).parent.parent / "vectors" / "mqqb-frames.json"
_TEXT: Final = json.loads(_VECTORS.read_text(encoding="utf-8"))
FRAMES: Final[dict[str, bytes]] = {
    frame["name"].split(":")[0]: bytes.fromhex(frame["hex"]) for frame in _TEXT["frames"]
}
PING_PORT: Final = 3527
SERVER_GUID = slice(36, 52)
BOTH_GUIDS = slice(20, 52)  # FRAME 4 was captured with other machines than FRAME 3
SENT_TIME = slice(52, 56)
GARBAGE: Final = (1,)  # BaseHeader.Reserved


def patched(frame: str, place: slice, value: Part) -> Part:
    def part(play: Play) -> bytes:
        data = bytearray(FRAMES[frame])
        data[place] = value if isinstance(value, bytes) else value(play)
        return bytes(data)

    return part


def daemon(play: Play) -> bytes:
    return play.stage.guid


def answered(play: Play) -> bytes:
    """The GUID of FRAME 3's client, and that of the daemon."""
    return FRAMES["FRAME 3"][20:36] + play.stage.guid


def whole_frame_7(sent_time: int | None = None) -> bytes:
    """FRAME 7 with its whole body, as old as it was or sent at this time."""
    data = bytearray(FRAMES["FRAME 7"])
    size = int.from_bytes(data[8:12], "little")
    body_end = size - 2
    data += (b"a\0" * body_end)[: body_end - len(data)] + bytes(2)
    if sent_time is not None:
        data[SENT_TIME] = struct.pack("<I", sent_time)
    assert len(data) == size
    return bytes(data)


def public_queue(play: Play) -> list[dict[str, Any]]:
    """What is in the queue `q`; it is empty then."""
    name = f"PUBLIC={QUEUE_OF_FRAME_7}"
    return play.stage.client.receive(name, count=100)


def holds_frame_7(play: Play) -> None:
    (message,) = public_queue(play)
    assert message["label"] == "mqsender label"
    assert message["text"] == "a" * 1000
    assert message["source_queue_manager"].upper() == "557358D1-9150-9595-4997-B6E611EA26C6"
    assert message["id"].endswith("\\2286")


OPENED = (
    send(patched("FRAME 3", SERVER_GUID, daemon)),
    expect_bytes(patched("FRAME 4", BOTH_GUIDS, answered), ignoring=GARBAGE),
    # The published window of 64 would let the answer to one message wait for a minute: QB-A31.
    send(patched("FRAME 5", slice(30, 32), b"\2\0")),
    expect_bytes(FRAMES["FRAME 6"], ignoring=GARBAGE),
)


def renumbered(packet: bytes, message_id: int) -> bytes:
    return packet[:56] + struct.pack("<I", message_id) + packet[60:]


def _assert_empty(messages: list[dict[str, Any]]) -> None:
    assert messages == []


def _assert_count(messages: list[dict[str, Any]], count: int) -> None:
    assert len(messages) == count


def _until_two(play: Play) -> None:
    while not play.acks or play.acks[-1].session.ack_sequence_number < 2:
        assert play.read()


CONVERSATIONS = [
    Exchange(
        "FRAMES 3 to 8: a message is delivered and acknowledged",
        *OPENED,
        send(lambda _: whole_frame_7(int(time.time()))),
        expect_bytes(FRAMES["FRAME 8"], ignoring=GARBAGE),
        control(holds_frame_7),
    ),
    Exchange(
        "FRAME 7 as old as it is has expired: it is acknowledged and goes nowhere",
        *OPENED,
        send(renumbered(whole_frame_7(), 78)),  # or it would be known from the one above
        expect_bytes(FRAMES["FRAME 8"], ignoring=GARBAGE),
        control(lambda play: _assert_empty(public_queue(play))),
        rows=("QB-MQMQ2.2.19.1-07", "QB-A14-01"),
    ),
    Exchange(
        "FRAME 7 twice is delivered once",
        *OPENED,
        send(lambda _: renumbered(whole_frame_7(int(time.time())), 77) * 2),
        _until_two,
        control(lambda play: _assert_count(public_queue(play), 1)),
        rows=("QB-3.1.5.8.1-03",),
    ),
    Exchange(
        "FRAME 3 as it is asks for another queue manager and is refused",
        send(FRAMES["FRAME 3"]),
        expect(EstablishConnection, refused=True, server_guid=Late(daemon)),
    ),
]


@pytest.mark.parametrize("exchange", cases(CONVERSATIONS))
def test_the_published_conversation(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


def test_frame_1_is_answered_by_frame_2(stage: Stage) -> None:
    # given the ping that was published
    request, response = FRAMES["FRAME 1"], FRAMES["FRAME 2"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((stage.address(), 0))
        asking.settimeout(PATIENCE)
        # when it is sent to the daemon
        asking.sendto(request, (stage.daemon.address, PING_PORT))
        found, address = asking.recvfrom(100)
    # then the published answer comes back, from the daemon that was asked
    assert address == (stage.daemon.address, PING_PORT)
    assert found[2:8] == response[2:8]
    assert found[8:] == stage.guid
    assert found[0] & 3 == response[0] & 3
