"""Floods over real sockets: the daemon stays small, and serves honest peers meanwhile."""

from __future__ import annotations

import contextlib
import socket
from typing import Final
from uuid import uuid4

from falconmq.transport.binding import OPENING_MAX
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import opened
from tests.conformance_wire.play import Play
from tests.hostile.scene import (
    MIB,
    PING_PORT,
    Scene,
    all_read,
    closed_in_the_end,
    flooding,
    request,
)

SOURCE_AT, MESSAGE_ID_AT = 16, 56  # in a UserMessage
GUID: Final = bytes(range(16))


def test_a_flood_of_connections_is_bounded_for_each_address(scene: Scene) -> None:
    before = scene.memory
    with contextlib.ExitStack() as crowd:
        # when five addresses open 120 connections each, and say nothing or half a request
        for address in [scene.stage.address() for _ in range(5)]:
            for number in range(120):
                line = crowd.enter_context(scene.connect(address))
                if number % 2:
                    with contextlib.suppress(ConnectionError):
                        line.sendall(request(GUID)[:300])
        # then an honest peer is served, and the memory is what so many connections cost
        scene.is_well()
        assert scene.memory - before < 40 * MIB
        sessions = scene.stage.client.request("GET", "/sessions")["sessions"]
        assert len(sessions) <= 5 * OPENING_MAX
    scene.is_well()


def test_half_open_sessions_from_everywhere_do_not_stop_the_others(scene: Scene) -> None:
    before = scene.memory
    with contextlib.ExitStack() as crowd:
        # given 100 addresses that ask for a session and then fall silent
        for _ in range(100):
            line = crowd.enter_context(scene.connect())
            line.sendall(request(uuid4().bytes_le))
            assert line.recv(600)
        # and 50 that send their packets byte by byte
        drops = [crowd.enter_context(scene.connect()) for _ in range(50)]
        for place in range(30):
            for line in drops:
                line.sendall(request(GUID)[place : place + 1])
        scene.is_well()
        assert scene.memory - before < 30 * MIB


def test_announced_sizes_cost_nothing(scene: Scene) -> None:
    before = scene.memory
    with contextlib.ExitStack() as crowd:
        # when peers announce four gibibytes, then they are cut off
        for size in (0xFFFFFFFF, 0x80000000, 0x400001, 0):
            line = crowd.enter_context(scene.connect())
            line.sendall(packets.base(size, 3) + b"x" * 100)
            assert closed_in_the_end(line), f"{size:#x} is waited for"
        # when they announce what may be, then only what comes is kept
        for _ in range(100):
            line = crowd.enter_context(scene.connect())
            line.sendall(packets.base(0x400000, 3) + b"x" * 100)
        scene.is_well()
        assert scene.memory - before < 30 * MIB


def test_invented_sources_and_numbers_leave_little_behind(scene: Scene) -> None:
    with Play.calling(scene.stage) as play:
        opened(64)(play)
        packet = play.message("plain", body=b"").encode()
        queue = scene.stage.path(play.queue("plain"))
        # given a flood of messages, each of another queue manager, and a table that is full of them
        flooding(play, 10_000, packet, varies_at=SOURCE_AT)
        all_read(play, 10_000)
        scene.stage.client.purge_queue(queue)
        before = scene.memory
        # when as many come again, with other sources and other numbers
        flooding(play, 10_000, packet, varies_at=SOURCE_AT + 8)
        all_read(play, 20_001)
        scene.stage.client.purge_queue(queue)
        # then nothing is left of them
        assert scene.memory - before < 25 * MIB
    scene.is_well()


def test_pings_are_answered_one_for_one_and_byte_for_byte(scene: Scene) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((scene.stage.address(), 0))
        datagrams.connect((scene.daemon.address, PING_PORT))
        datagrams.settimeout(0.2)
        ping = packets.ping(0, 1, GUID)
        # when thousands of pings come, and as many datagrams that are none
        asked = answered = 0
        for number in range(2000):
            datagrams.send(packets.ping(0, number, GUID))
            asked += len(ping)
            if number % 4 == 0:
                datagrams.send(b"x" * 1400)
                datagrams.send(ping[:-1])
        # then the answers are no more bytes than the right ones of them had
        with contextlib.suppress(TimeoutError):
            while True:
                answer = datagrams.recv(4096)
                assert len(answer) == len(ping)
                answered += len(answer)
        assert 0 < answered <= asked
    scene.is_well()
