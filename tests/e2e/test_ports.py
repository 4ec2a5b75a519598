"""What a daemon does on its ports, seen by a peer that is a plain socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from uuid import uuid4

import pytest

from falconmq.wire.establish_connection import SESSION_NOT_PINGED, SIZE, EstablishConnection
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.packet import decode_packet
from falconmq.wire.ping import Ping
from tests.e2e.estate import PATIENCE, Estate

PORT = 1801
PING_PORT = 3527
STRANGER = uuid4().bytes_le


def read_request(connection: socket.socket) -> EstablishConnection:
    data = b""
    while len(data) < SIZE:
        data += connection.recv(SIZE - len(data)) or pytest.fail("the connection was closed")
    packet = decode_packet(data)
    assert isinstance(packet, EstablishConnection)
    return packet


@pytest.fixture
def peer(estate: Estate) -> Iterator[socket.socket]:
    """A socket on the port of the protocol, where a queue manager could be."""
    with socket.create_server((estate.net.address(), PORT)) as listener:
        listener.settimeout(PATIENCE)
        yield listener


@pytest.mark.requirement("QB-3.1.5.2.3-02", "QB-2.1.1-05", "QB-2.1.1-06")
def test_a_daemon_calls_its_peers_on_tcp_port_1801(estate: Estate, peer: socket.socket) -> None:
    # given a daemon and a peer that only listens
    a = estate.manager("A").start()
    address = peer.getsockname()[0]
    # when a message is sent there
    a.client.send(rf"DIRECT=TCP:{address}\private$\orders", [{"text": "hello"}])
    # then the daemon connects, from its own address and any port, and begins a session
    connection, (source, port) = peer.accept()
    with connection:
        connection.settimeout(PATIENCE)
        request = read_request(connection)
    assert (source, request.client_guid) == (a.address, a.id.bytes_le)
    assert request.server_guid == NULL_GUID
    assert port not in (PORT, 0)


@pytest.mark.requirement("QB-2.1.1-07")
def test_a_daemon_answers_on_tcp_port_1801(estate: Estate) -> None:
    a = estate.manager("A").start()
    with socket.create_connection((a.address, PORT), PATIENCE) as connection:
        connection.sendall(EstablishConnection.request(STRANGER, uptime_ms=7).encode())
        answer = read_request(connection)
    assert (answer.client_guid, answer.server_guid) == (STRANGER, a.id.bytes_le)
    assert answer.time_stamp == 7


@pytest.mark.requirement("QB-3.1.5.9-03")
@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", bytes(600)])
def test_whoever_speaks_something_else_is_hung_up_on(estate: Estate, first: bytes) -> None:
    # given a daemon
    a = estate.manager("A").start()
    # when somebody says what is no packet
    with socket.create_connection((a.address, PORT), PATIENCE) as connection:
        connection.sendall(first)
        # then the connection is closed, with nothing said, and the next one is welcome
        assert connection.recv(1) == b""
    with socket.create_connection((a.address, PORT), PATIENCE) as connection:
        connection.sendall(EstablishConnection.request(STRANGER, uptime_ms=0).encode())
        assert read_request(connection).server_guid == a.id.bytes_le


@pytest.mark.requirement("QB-2.1.2-08", "QB-2.1.2-09", "QB-3.1.7.7-07", "QB-3.1.1.7.1-02")
def test_a_ping_is_answered_where_it_came_from(estate: Estate) -> None:
    # given a daemon that was told to answer
    a = estate.manager("A", ping_answered=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.bind((estate.net.address(), 0))
        # when somebody asks from a port of its own
        asking.sendto(Ping.request(42, STRANGER).encode(), (a.address, PING_PORT))
        # then the answer comes to that port
        data, source = asking.recvfrom(100)
    answer = Ping.decode(data)
    assert source == (a.address, PING_PORT)
    assert (answer.cookie, answer.qm_guid, answer.refused) == (42, a.id.bytes_le, False)


@pytest.mark.requirement("QB-2.1-01", "QB-2.1.2-01", "QB-2.1.2-06", "QB-3.1.7.6-04")
@pytest.mark.requirement("QB-3.1.1.7.1-01", "QB-2.1.2-03")
def test_a_daemon_that_pings_first_asks_on_udp_port_3527(
    estate: Estate, peer: socket.socket
) -> None:
    # given a daemon that pings, and a peer that answers pings
    a = estate.manager("A", ping_enabled=True).start()
    address = peer.getsockname()[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as pinged:
        pinged.settimeout(PATIENCE)
        pinged.bind((address, PING_PORT))
        # when a message is sent there
        a.client.send(rf"DIRECT=TCP:{address}\private$\orders", [{"text": "hello"}])
        # then it asks, hears the answer where it asked from, and calls
        data, source = pinged.recvfrom(100)
        request = Ping.decode(data)
        assert request.qm_guid == a.id.bytes_le
        pinged.sendto(request.response(STRANGER, refused=False).encode(), source)
    connection, _ = peer.accept()
    with connection:
        connection.settimeout(PATIENCE)
        assert not read_request(connection).operating_system & SESSION_NOT_PINGED
