"""Tables that a peer could fill with what it invents: each has an end, and honest ones go on."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
from contextlib import ExitStack
from typing import Any, Final

import pytest

from falconmq.errors import ResourceError
from falconmq.manager import destinations
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.queues import purge_queue
from falconmq.manager.states import AccessType, OutgoingState
from falconmq.names import parse_format_name
from falconmq.transport import binding, callers, idling, incoming_streams, transactional_acks
from falconmq.transport.links import TcpLink
from falconmq.transport.session import Session
from falconmq.transport.settings import PORT
from falconmq.transport.transactional_acks import send_order_ack
from falconmq.wire.establish_connection import EstablishConnection
from tests.conformance_wire import packets
from tests.manager.helpers import STRANGER, commit, make_core
from tests.service.services import ORDERS, direct, run, send, serving, until
from tests.transport.estate import bodies
from tests.transport.raw_peer import RawPeer, routed_estate

S1: Final = 7 << 32 | 1
FEW: Final = 5
LARGE: Final = 1 << 20  # bytes of a packet


# Destinations


def open_for_a_peer(core: QueueManagerCore, number: int) -> None:
    name = parse_format_name(rf"DIRECT=TCP:10.9.0.{number}\private$\admin")
    close_queue(core, open_queue(core, name, AccessType.SEND, internal=True))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "UNREACHED_MAX", FEW)
    monkeypatch.setattr(destinations, "DESTINATIONS_MAX", 2 * FEW)


@pytest.mark.usefixtures("few")
def test_invented_administration_queues_come_to_an_end(caplog: pytest.LogCaptureFixture) -> None:
    # given a peer that wants each answer at another place
    estate = routed_estate()
    node = estate.node("B", 2)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    # when it sends more than we would call
    with caplog.at_level(logging.WARNING, "falconmq.manager"):
        for number in range(4 * FEW):
            admin = rf"TCP:10.9.0.{number}\private$\admin"
            message = peer.message(queue, b"", message_id=number, acknowledgements=15, admin=admin)
            peer.write(message.encode())
        estate.settle()
    # then there are so many outgoing queues, and the operator is told once
    assert len(node.core.outgoing) == FEW
    assert len([line for line in caplog.messages if "too many destinations" in line]) == 1
    assert node.core.refused_destinations == 3 * FEW
    # and its messages came all the same, and so does a new message with a known place for answers
    assert len(bodies(queue)) == 4 * FEW
    known = rf"TCP:10.9.0.{FEW - 1}\private$\admin"
    before = len(node.outgoing(f"DIRECT={known}").positions)
    again = peer.message(queue, b"", message_id=99, acknowledgements=15, admin=known)
    peer.write(again.encode())
    assert len(node.outgoing(f"DIRECT={known}").positions) == before + 1


@pytest.mark.usefixtures("few")
def test_what_users_send_is_not_counted_out() -> None:
    core = make_core()
    for number in range(3 * FEW):
        name = parse_format_name(rf"DIRECT=TCP:10.9.0.{number}\private$\far")
        open_queue(core, name, AccessType.SEND)
    assert len(core.outgoing) == 3 * FEW


@pytest.mark.usefixtures("few")
def test_destinations_without_messages_or_with_a_session_leave_room() -> None:
    core = make_core()
    # given destinations that have nothing to send, or are connected
    for number in range(2 * FEW - 1):
        open_for_a_peer(core, number)
    for queue in core.outgoing.values():
        queue.state = OutgoingState.CONNECTED
    # then there is room for one more, up to the limit for all
    open_for_a_peer(core, 100)
    with pytest.raises(ResourceError, match="one destination too many"):
        open_for_a_peer(core, 101)


def test_invented_destinations_go_soon_when_nothing_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idling, "_CROWDED", FEW)
    estate = routed_estate()
    node = estate.node("B", 2)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    # given more destinations than usual, most of them without messages
    for number in range(2 * FEW):
        admin = rf"TCP:10.9.0.{number}\private$\admin"
        message = peer.message(queue, b"", message_id=number, acknowledgements=15, admin=admin)
        peer.write(message.encode())
    estate.settle()
    for outgoing in list(node.core.outgoing.values())[1:]:
        purge_queue(node.core, outgoing)
    # when two minutes pass, then only the one with a message is left
    estate.advance(120)
    assert len(node.core.outgoing) == 1
    assert len(node.transport.peers) == 1


# Streams


def test_invented_senders_of_transactions_come_to_an_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(incoming_streams, "STREAMS_MAX", FEW)
    estate = routed_estate()
    node = estate.node("B", 2)
    strict = node.queue("strict", transactional=True)
    # when more senders come than we keep streams of
    with caplog.at_level(logging.WARNING, "falconmq.transport"):
        for number in range(1, 4 * FEW):
            peer = RawPeer(node, guid=number.to_bytes(16, "big")).open()
            peer.write(peer.message(strict, b"%d" % number, transaction=(S1, 1, 0)).encode())
    # then the messages of the first were taken
    assert bodies(strict) == [b"%d" % number for number in range(1, FEW + 1)]
    estate.settle()
    assert len(list(node.store.scan(incoming_streams.TABLE))) == FEW
    assert len([line for line in caplog.messages if "too many senders" in line]) == 1
    # and these can go on
    first = RawPeer(node, guid=(1).to_bytes(16, "big")).open()
    first.write(first.message(strict, b"next", transaction=(S1, 2, 1)).encode())
    assert bodies(strict)[-1] == b"next"


def test_streams_that_were_refused_are_taken_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming_streams, "STREAMS_MAX", 0)
    estate = routed_estate()
    node = estate.node("B", 2)
    strict = node.queue("strict", transactional=True)
    peer = RawPeer(node).open()
    packet = peer.message(strict, b"patient", transaction=(S1, 1, 0)).encode()
    peer.write(packet)
    assert bodies(strict) == []
    monkeypatch.setattr(incoming_streams, "STREAMS_MAX", 1)
    peer.write(packet)
    assert bodies(strict) == [b"patient"]


# OrderAcks


def test_order_acks_do_not_pile_up_for_a_sender_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactional_acks, "WAITING_MAX", FEW)
    core = make_core()

    def acknowledge(number: int) -> bool:
        done = send_order_ack(
            core,
            source=STRANGER.bytes_le,
            reply_address="192.0.2.7",
            tx_sequence_id=S1,
            tx_sequence_number=number,
        )
        commit(core)
        return done

    # given a sender that cannot be reached
    assert [acknowledge(number) for number in range(1, FEW + 3)] == [True] * FEW + [False] * 2
    (queue,) = core.outgoing.values()
    assert len(queue.positions) == FEW
    # but one that is connected is told everything
    queue.state = OutgoingState.CONNECTED
    assert acknowledge(99)


# Connections


class _Link:
    """As much of a link as is counted."""

    def __init__(self, address: str) -> None:
        self.address, self.is_accepted = address, True


def link(address: str) -> Any:
    return _Link(address)


def test_the_greediest_address_loses_its_largest_half_packet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "PENDING_MAX", 1000)
    found = callers.Callers(100)
    honest, small, large = link("10.0.0.1"), link("10.0.0.2"), link("10.0.0.2")
    # given one honest link with a large packet on its way, and an address with more than that
    assert found.keeps(honest, 500) is None
    assert found.keeps(large, 400) is None
    assert found.keeps(small, 100) is None
    # when it gets too much
    assert found.keeps(small, 200) == large
    # and when that one is gone, there is room
    found.left(large)
    assert found.keeps(small, 500) is None


def test_half_packets_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "PENDING_MAX", 3 * LARGE)

    async def main() -> None:
        async with serving() as service, serving() as friend:
            queue = await service.manager.create_queue(ORDERS)
            loop = asyncio.get_running_loop()
            opening = packets.establish(bytes(range(16))) + packets.parameters()
            almost = packets.base(LARGE, 3) + bytes(LARGE - 17)
            with ExitStack() as all_of_them:
                for _ in range(6):
                    caller = all_of_them.enter_context(socket.socket())
                    caller.setblocking(False)
                    await loop.sock_connect(caller, (service.configuration.manager.bind, PORT))
                    # when a peer leaves out the last byte of packet after packet
                    await loop.sock_sendall(caller, opening + almost)
                # then only so many are kept
                await until(lambda: service.transport.counters["sessions closed"] == 3)
                kept = sum(session.pending for session in service.transport.sessions)
                assert kept <= 3 * LARGE
                # and others are served
                await send(friend, direct(service), "hello")
                assert (await queue.receive(timeout=30)).text == "hello"

    run(main())


def test_one_address_has_a_part_of_all_sessions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "OF_ONE_ADDRESS_MIN", 3)

    async def main() -> None:
        async with serving(sessions_max=30) as service, serving() as friend:
            queue = await service.manager.create_queue(ORDERS)
            loop = asyncio.get_running_loop()
            with ExitStack() as all_of_them:
                # given as many open sessions of one address as it may have
                for number in range(1, 5):
                    caller = all_of_them.enter_context(socket.socket())
                    caller.setblocking(False)
                    await loop.sock_connect(caller, (service.configuration.manager.bind, PORT))
                    if number < 4:
                        await loop.sock_sendall(caller, packets.establish(bytes(range(16))))
                        answer = EstablishConnection.decode(await loop.sock_recv(caller, 600))
                        assert not answer.refused
                # then one more is not let in
                await until(lambda: service.network.refused.total() == 1)
                assert list(service.network.refused) == ["too many connections of this address"]
                # but somebody else is
                await send(friend, direct(service), "hello")
                assert (await queue.receive(timeout=30)).text == "hello"

    run(main())


# Names


def test_slow_names_keep_nobody_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of peers are looked up on threads of their own."""
    answered = threading.Event()

    def slow(*_: object, **__: object) -> list[Any]:
        answered.wait(60)
        raise OSError(socket.EAI_AGAIN, "no answer")

    async def main() -> None:
        async with serving() as service:
            monkeypatch.setattr(socket, "getaddrinfo", slow)
            # given more names than are looked up at a time, and a resolver that does not answer
            for number in range(40):
                await send(service, rf"DIRECT=OS:slow{number}.invalid\private$\q", "x")
            # then work for other threads is done
            assert await asyncio.to_thread(lambda: "done") == "done"
            answered.set()

    try:
        run(main())
    finally:
        answered.set()


def test_connections_are_asked_for_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_CONNECTING_MAX", 2)
    most = 0
    asked: list[asyncio.Future[None]] = []

    async def never(*_: object, **__: object) -> None:
        nonlocal most
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asked.append(future)
        most = max(most, sum(not each.done() for each in asked))
        await future
        raise ConnectionRefusedError

    async def main() -> None:
        async with serving() as service:
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "create_connection", never)
            for number in range(6):
                await send(service, rf"DIRECT=TCP:10.9.0.{number}\private$\q", "x")
            done = 0
            while done < 6:
                await until(lambda: any(not each.done() for each in asked))
                next(each for each in asked if not each.done()).set_result(None)
                done += 1
            assert most == 2
            for each in asked:
                if not each.done():
                    each.cancel()

    run(main())


def test_sessions_that_are_over_leave_nothing_in_memory() -> None:
    """Their timers end a minute later, or five; they must not keep the sessions until then."""

    async def main() -> None:
        async with serving() as service:
            loop = asyncio.get_running_loop()
            for _ in range(50):
                with socket.socket() as caller:
                    caller.setblocking(False)
                    await loop.sock_connect(caller, (service.configuration.manager.bind, PORT))
                    await loop.sock_sendall(caller, packets.establish(bytes(range(16))) + b"x" * 20)
            await until(lambda: service.network.accepted == 50 and not service.transport.sessions)
            await until(lambda: not service.network.links)
            gc.collect()
            kept = [each for each in gc.get_objects() if isinstance(each, Session | TcpLink)]
            assert len(kept) < 10

    run(main())
