"""The sockets of the transport: real ones, on loopback addresses."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
from contextlib import ExitStack

import pytest

from falconmq import Message
from falconmq.manager.states import ConnectionStatus
from falconmq.service import host as host_module
from falconmq.service.configuration import Configuration
from falconmq.service.daemon import Service
from falconmq.transport import binding, links
from falconmq.transport.session import SessionState
from falconmq.transport.settings import PING_PORT, PORT
from falconmq.transport.socket_errors import ListenError, cannot_listen, connection_failure
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.ping import Ping
from tests.embedded.helpers import GatedStore
from tests.service.services import (
    ORDERS,
    configured,
    direct,
    loopback,
    outgoing,
    run,
    send,
    serving,
    until,
    waiting,
)

GUID = bytes(range(16))


def address_of(service: Service) -> str:
    return service.configuration.manager.bind


async def knock(service: Service, callers: ExitStack, source: str = "") -> socket.socket:
    """A connection of somebody who says nothing yet."""
    caller = callers.enter_context(socket.socket())
    caller.setblocking(False)
    if source:
        caller.bind((source, 0))
    await asyncio.get_running_loop().sock_connect(caller, (address_of(service), PORT))
    return caller


async def is_shut_out(caller: socket.socket) -> bool:
    try:
        return await asyncio.get_running_loop().sock_recv(caller, 100) == b""
    except ConnectionResetError:
        return True


def tries(service: Service) -> list[ConnectionStatus]:
    return [attempt.status for queue in outgoing(service) for attempt in queue.connection_history]


@pytest.mark.requirement("QB-1.9-01")
@pytest.mark.requirement("QB-2.1.1-04", "QB-2.1.1-05", "QB-2.1.1-07")
def test_a_message_goes_over_tcp_to_port_1801() -> None:
    async def main() -> None:
        async with serving() as sender, serving() as receiver:
            assert receiver.network.addresses == [f"{address_of(receiver)}:1801"]
            queue = await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "hello")
            assert (await queue.receive(timeout=10)).text == "hello"
            await until(lambda: not waiting(sender))

    run(main())


def test_a_peer_sees_the_address_that_we_are_bound_to() -> None:
    async def main() -> None:
        async with serving() as sender, serving() as receiver:
            await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "hello")
            await until(lambda: not waiting(sender))
            (session,) = receiver.transport.sessions
            assert session.remote_address == address_of(sender)

    run(main())


def test_a_name_of_the_configuration_needs_no_dns() -> None:
    async def main() -> None:
        async with serving() as receiver:
            queue = await receiver.manager.create_queue(ORDERS)
            base = configured(loopback())
            hosts = {"sales02": (address_of(receiver),)}
            chosen = Configuration(base.manager, base.transport, hosts)
            async with serving(configuration=chosen) as sender:
                await send(sender, r"DIRECT=OS:Sales02\private$\orders", "hello")
                assert (await queue.receive(timeout=10)).text == "hello"

    run(main())


def test_a_name_that_nobody_knows_is_a_dns_failure() -> None:
    async def main() -> None:
        async with serving() as sender:
            too_long = "x" * 64  # no label of DNS: the resolver need not ask anybody
            await send(sender, rf"DIRECT=OS:{too_long}\private$\orders", "hello")
            await until(lambda: ConnectionStatus.DNS_FAILURE in tries(sender))

    run(main())


def test_a_computer_where_nobody_listens_refuses_the_connection() -> None:
    async def main() -> None:
        async with serving() as sender:
            await send(sender, rf"DIRECT=TCP:{loopback()}\private$\orders", "hello")
            await until(lambda: ConnectionStatus.CONNECTION_REFUSED in tries(sender))
            assert waiting(sender) == 1

    run(main())


def test_a_computer_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "CONNECT_SECONDS", 0.05)

    async def main() -> None:
        address = loopback()
        with socket.socket() as deaf, ExitStack() as callers:
            # given a computer whose line of callers is full
            deaf.bind((address, PORT))
            deaf.listen(0)
            for _ in range(8):
                callers.enter_context(_caller(address))
            # when we call as well
            async with serving() as sender:
                await send(sender, rf"DIRECT=TCP:{address}\private$\orders", "hello")
                await until(lambda: ConnectionStatus.SOCKET_CONNECT_FAILURE in tries(sender))

    run(main())


def _caller(address: str) -> socket.socket:
    caller = socket.socket()
    caller.setblocking(False)
    caller.connect_ex((address, PORT))
    return caller


@pytest.mark.requirement("DM-3.1.1.3-24", "DM-3.1.1.3-31")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (errno.ECONNREFUSED, ConnectionStatus.CONNECTION_REFUSED),
        (errno.EHOSTUNREACH, ConnectionStatus.SOCKET_CONNECT_FAILURE),
        (errno.ETIMEDOUT, ConnectionStatus.SOCKET_CONNECT_FAILURE),
        (errno.EADDRNOTAVAIL, ConnectionStatus.SOCKET_BIND_FAILURE),
        (errno.EMFILE, ConnectionStatus.LOW_RESOURCE),
        (errno.EAFNOSUPPORT, ConnectionStatus.TCP_NOT_ENABLED),
        (None, ConnectionStatus.SOCKET_CONNECT_FAILURE),
    ],
)
def test_the_history_says_what_the_system_said(code: int | None, status: ConnectionStatus) -> None:
    error = OSError("odd") if code is None else OSError(code, "odd")
    assert connection_failure(error)[0] is status


def test_a_lost_connection_is_made_again() -> None:
    async def main() -> None:
        async with serving() as sender, serving() as receiver:
            queue = await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "one")
            await until(lambda: not waiting(sender))
            # when the network takes the connection away
            for link in list(receiver.network.open_links):
                link.abort()
            await until(lambda: not sender.transport.sessions)
            # then the next message opens another
            await send(sender, direct(receiver), "two")
            bodies = [(await queue.receive(timeout=10)).text for _ in range(2)]
            assert bodies == ["one", "two"]

    run(main())


def test_bytes_that_are_no_packet_close_the_connection() -> None:
    async def main() -> None:
        async with serving() as service:
            with ExitStack() as callers:
                caller = await knock(service, callers)
                caller.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                assert await is_shut_out(caller)
            await until(lambda: service.network.links == 0)
            assert service.transport.sessions == []

    run(main())


def test_one_address_may_not_have_many_connections_that_are_not_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(binding, "OPENING_MAX", 3)

    async def main() -> None:
        async with serving() as service, serving() as friend:
            queue = await service.manager.create_queue(ORDERS)
            with ExitStack() as callers:
                # given as many as may be
                first, *_ = [await knock(service, callers) for _ in range(3)]
                await until(lambda: service.network.accepted == 3)
                # when more come from there, then they are shut out
                for _ in range(2):
                    assert await is_shut_out(await knock(service, callers))
                # but not a peer from elsewhere
                await send(friend, direct(service), "hello")
                assert (await queue.receive(timeout=10)).text == "hello"
                # and when one leaves, there is room again
                first.close()
                await until(lambda: len(service.transport.sessions) == 3)
                await knock(service, callers)
                await until(lambda: len(service.transport.sessions) == 4)
                assert sum(service.network.refused.values()) == 2

    run(main())
    lines = [line for line in caplog.messages if line.startswith("connection refused")]
    assert len(lines) == 1  # one line for both
    assert "not open yet" in lines[0]


def test_an_open_session_is_not_counted_among_those_that_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "OPENING_MAX", 1)

    async def main() -> None:
        async with serving() as sender, serving() as receiver:
            await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "hello")
            await until(lambda: not waiting(sender))
            # when another connection comes from the address of the open session
            with ExitStack() as callers:
                await knock(receiver, callers, source=address_of(sender))
                await until(lambda: len(receiver.transport.sessions) == 2)
                assert not receiver.network.refused

    run(main())


def test_there_is_a_limit_to_all_sessions() -> None:
    async def main() -> None:
        async with serving(sessions_max=2) as service:
            loop = asyncio.get_running_loop()
            request = EstablishConnection.request(GUID, uptime_ms=1).encode()
            with ExitStack() as callers:
                first, *_ = [await knock(service, callers) for _ in range(2)]
                await until(lambda: service.network.accepted == 2)
                # when one too many asks for a session, it is told that there is none
                third = await knock(service, callers)
                await loop.sock_sendall(third, request)
                assert EstablishConnection.decode(await loop.sock_recv(third, 600)).refused
                assert await is_shut_out(third)
                # when one leaves, there is room again
                first.close()
                await until(lambda: service.network.links == 1)
                fourth = await knock(service, callers)
                await loop.sock_sendall(fourth, request)
                assert not EstablishConnection.decode(await loop.sock_recv(fourth, 600)).refused

    run(main())


def test_peers_are_not_read_from_while_the_disk_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "CONGESTED_BYTES", 1_000_000)
    monkeypatch.setattr(host_module, "RELIEVED_BYTES", 500_000)
    size, count = 200_000, 60

    async def main() -> None:
        store = GatedStore()
        async with serving() as sender, serving(store) as receiver:
            queue = await receiver.manager.create_queue(ORDERS)
            # given a receiver whose disk stands still
            store.gate.clear()
            out = await sender.manager.queue(direct(receiver))
            await asyncio.gather(*(out.send(Message(bytes(size))) for _ in range(count)))
            # when far more comes than it can write
            await until(lambda: receiver.host.is_congested)
            await asyncio.sleep(0.1)
            # then it takes what fits, and no more
            taken = sum(session.messages_received for session in receiver.transport.sessions)
            assert taken * size < 3_000_000
            # and the rest when the disk goes on
            store.gate.set()
            for _ in range(count):
                await queue.receive(timeout=10)

    run(main())


def test_a_peer_that_does_not_read_cannot_keep_a_closed_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "CLOSING_SECONDS", 0.05)

    async def main() -> None:
        async with serving() as service:
            with ExitStack() as callers:
                await knock(service, callers)
                await until(lambda: service.network.links == 1)
                (link,) = service.network.open_links
                # given more than its buffers take
                link.write([bytes(64 << 20)])
                # when we close, then the rest is given up soon
                link.close()
                await until(lambda: service.network.links == 0)

    run(main())


def test_a_port_that_is_taken_is_named_with_who_may_have_it() -> None:
    async def main() -> None:
        async with serving() as first:
            address = address_of(first)
            with pytest.raises(ListenError) as caught:
                async with serving(bind=address):
                    pass
            assert str(caught.value) == (
                f"cannot listen on TCP {address}:1801: address already in use"
            )
            assert "ss -ltnp 'sport = :1801'" in caught.value.hint

    run(main())


def test_an_address_of_another_computer_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(ListenError, match=r"192\.0\.2\.77:1801: cannot assign") as caught:
            async with serving(bind="192.0.2.77"):
                pass
        assert "ip address" in caught.value.hint

    run(main())


def test_a_port_for_the_mighty_says_which_right_it_needs() -> None:
    error = cannot_listen(PermissionError(errno.EACCES, "no"), "TCP", "::1", 80)
    assert str(error) == "cannot listen on TCP [::1]:80: permission denied"
    assert "CAP_NET_BIND_SERVICE" in error.hint


@pytest.mark.requirement("QB-2.1.2-07", "QB-2.1.2-08", "QB-2.1.2-09")
def test_a_ping_is_answered_to_where_it_came_from() -> None:
    async def main() -> None:
        async with serving(ping_answered=True, ping_enabled=True) as service:
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.setblocking(False)
                peer.bind((loopback(), 0))
                request = Ping.request(7, GUID, server_class=True)
                await loop.sock_sendto(peer, request.encode(), (address_of(service), PING_PORT))
                data, source = await loop.sock_recvfrom(peer, 100)
            assert Ping.decode(data).cookie == 7
            assert source == (address_of(service), PING_PORT)

    run(main())


def test_no_ping_port_is_taken_unless_pings_are_on() -> None:
    async def main() -> None:
        async with serving() as service:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.bind((address_of(service), PING_PORT))

    run(main())


@pytest.mark.requirement("QB-2.1.2-04", "QB-2.1.2-06")
def test_a_ping_goes_to_port_3527_and_its_answer_is_heard_where_it_left() -> None:
    async def main() -> None:
        async with serving(ping_answered=True) as receiver, serving(ping_enabled=True) as sender:
            queue = await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "hello")
            assert (await queue.receive(timeout=10)).text == "hello"
            assert ConnectionStatus.PING_FAILURE not in tries(sender)

    run(main())


def test_an_answer_to_a_ping_is_never_answered() -> None:
    async def main() -> None:
        async with serving(ping_answered=True, ping_enabled=True) as service:
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.setblocking(False)
                address = loopback()
                peer.bind((address, PING_PORT))
                # given a service that asks us
                await send(service, rf"DIRECT=TCP:{address}\private$\orders", "hello")
                _, source = await loop.sock_recvfrom(peer, 100)
                # when we answer something else than it asked
                wrong = Ping.request(99, GUID, server_class=True).encode()
                await loop.sock_sendto(peer, wrong, source)
                # then it gives up after a second, and has said nothing to that
                (queue,) = service.engine.core.outgoing.values()
                await until(lambda: bool(queue.connection_history))
                assert queue.connection_history[0].status is ConnectionStatus.PING_FAILURE
                with pytest.raises(BlockingIOError):
                    peer.recvfrom(100)

    run(main())


def test_the_session_ends_when_the_service_stops() -> None:
    async def main() -> None:
        async with serving() as sender:
            async with serving() as receiver:
                await receiver.manager.create_queue(ORDERS)
                await send(sender, direct(receiver), "hello")
                await until(lambda: not waiting(sender))
                (session,) = sender.transport.sessions
            await until(lambda: session.state is SessionState.CLOSED)

    run(main())


def test_a_connection_that_comes_while_the_service_stops_is_not_lost() -> None:
    async def main() -> None:
        with socket.socket() as caller:
            async with serving() as service:
                caller.connect((address_of(service), PORT))
                # given a loop that has accepted the connection and made no link of it yet
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert not service.network.links
                service.network.stop_accepting()
            # when the service is gone, then the connection is too
            caller.setblocking(False)
            assert await is_shut_out(caller)

    run(main())
    gc.collect()  # a socket that nobody closed would be named here
