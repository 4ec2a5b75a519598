"""Messages of senders whom nobody has verified, and queues that are not open to everybody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from falconmq import Message
from falconmq.manager.events import EventKind, EventLog
from falconmq.manager.model import Queue
from falconmq.manager.queues import set_queue_properties
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.security_header import SENDER_ID_QUEUE_MANAGER, SENDER_ID_SID, SecurityHeader
from falconmq.wire.sid import Sid
from falconmq.wire.user_header import SECURITY_HEADER
from tests.service.services import ORDERS, direct, run, serving, until
from tests.service.why.situations import codes, why
from tests.transport.estate import Node, bodies
from tests.transport.raw_peer import ACKS, RawPeer, routed_estate

DENIED = MessageClass.NACK_ACCESS_DENIED
SEQUENCE = 7 << 32 | 1
KNOWN_ONLY = "D:(A;;GA;;;AU)(A;;GA;;;S-1-5-21-1-2-3-1105)"  # nobody is verified yet
ASKING: dict[str, Any] = {"acknowledgements": NEGATIVE_ARRIVAL | POSITIVE_ARRIVAL, "admin": ACKS}


def given(sddl: str, *, insecure: bool = False, **properties: Any) -> tuple[Node, Queue, RawPeer]:
    node = routed_estate().node("B", 2, send_insecure_nacks=insecure)
    queue = node.queue("orders", **properties)
    node.run(lambda: set_queue_properties(node.core, queue, security=parse_sddl(sddl)))
    node.core.events = EventLog(node.core.clock.time)
    return node, queue, RawPeer(node).open()


@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.requirement("QB-3.1.5.8.3-46", "QB-3.1.5.8.3-48", "QB-3.1.7.15-12", "QB-A54-01")
def test_a_queue_that_is_not_open_to_unknown_senders_refuses_them(insecure: bool) -> None:
    node, queue, peer = given(KNOWN_ONLY, insecure=insecure)
    peer.send(queue, b"x", **ASKING)
    peer.send(queue, b"y")  # asks for nothing
    assert bodies(queue) == []
    # its sender hears of it only if the administrator lets it
    assert peer.classes == [DENIED] * insecure
    assert not peer.is_closed
    # we know why
    assert node.transport.refusals[DENIED] == 2
    assert node.core.events is not None
    events = node.core.events.newest_first()
    refused = [event for event in events if event.kind is EventKind.REFUSED]
    assert [event.reason for event in refused] == [DENIED] * 2


@pytest.mark.requirement("QB-3.1.5.8.3-47", "QB-3.1.7.17-09")
def test_the_queue_manager_of_a_transactional_message_is_told_and_its_stream_goes_on() -> None:
    node, queue, peer = given(KNOWN_ONLY, transactional=True)
    peer.send(queue, b"1", transaction=(SEQUENCE, 1, 0), **ASKING)
    assert bodies(queue) == []
    assert peer.classes == []
    assert [ack.message_class for ack in peer.final_acks] == [DENIED]
    node.run(lambda: set_queue_properties(node.core, queue, security=parse_sddl("D:(A;;GA;;;WD)")))
    peer.send(queue, b"2", transaction=(SEQUENCE, 2, 1))
    assert bodies(queue) == [b"2"]


@pytest.mark.parametrize(
    "sddl", ["D:(A;;0x4;;;WD)", "D:(A;;0x4;;;AN)", "D:NO_ACCESS_CONTROL", "D:(A;;GW;;;WD)"]
)
def test_a_queue_that_is_open_to_everybody_takes_their_messages(sddl: str) -> None:
    _, queue, peer = given(sddl)
    peer.send(queue, b"x")
    assert bodies(queue) == [b"x"]


@pytest.mark.parametrize("kind", [SENDER_ID_SID, SENDER_ID_QUEUE_MANAGER])
def test_what_a_sender_says_of_itself_gives_it_no_right(kind: int) -> None:
    """Anybody can write a SID into a packet, or that a queue manager has sent it."""
    node, queue, peer = given("D:(D;;0x4;;;AN)(A;;GA;;;S-1-5-21-1-2-3-1105)(A;;GA;;;WD)")
    packet = peer.message(queue, b"x")
    sid = Sid.parse("S-1-5-21-1-2-3-1105").encode()
    claimed = SecurityHeader(kind, sid if kind == SENDER_ID_SID else bytes(16))
    user = replace(packet.user, flags=packet.user.flags | SECURITY_HEADER)
    peer.write(replace(packet, user=user, security=claimed).encode())
    assert bodies(queue) == []
    assert node.transport.refusals[DENIED] == 1


def test_why_explains_a_refusal_where_it_happened_and_says_nothing_elsewhere() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS)
            core = there.engine.core
            (queue,) = [q for q in core.private_numbers.values() if q.path_name.name == "orders"]
            there.host.run(
                lambda: set_queue_properties(core, queue, security=parse_sddl(KNOWN_ONLY))
            )
            remote = await here.manager.queue(direct(there))
            id = str(await remote.send(Message("secret")))
            await until(lambda: there.transport.refusals[DENIED] == 1)
            found = await why(there, id)
            assert codes(found) == ["refused"]
            assert "NACK_ACCESS_DENIED" in found.summary
            assert any("falconmq queue permissions grant" in hint for hint in found.hints)
            while "delivered" not in codes(await why(here, id)):  # the session took it: no more
                await asyncio.sleep(0)

    run(main())
