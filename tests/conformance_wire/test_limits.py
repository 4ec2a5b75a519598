"""Where the daemon stops: how many sessions, how long, and whether it is worth calling.

MQQB 2.2.7, 3.1.5.2.2, 3.1.6.2, 3.1.7.6 to 3.1.7.8.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Final

import pytest

from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.calling import accepted, given, nothing_waits
from tests.conformance_wire.exchange import closed, establish, expect, made, opened, still_open
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import Stage

PING_PORT: Final = 3527
NOT_SERVER, REFUSED = 1, 2  # Ping.Flags
IDLE: Final = 2.0  # cleanup_interval of the narrow stage
ATTEMPTS: Final = 10
GUID: Final = bytes(range(16))


@contextlib.contextmanager
def asking(stage: Stage) -> Iterator[socket.socket]:
    """A socket that pings the daemon."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((stage.address(), 0))
        datagrams.connect((stage.daemon.address, PING_PORT))
        datagrams.settimeout(PATIENCE)
        yield datagrams


@pytest.mark.requirement(
    *("QB-2.2.7-04", "QB-2.2.7-05", "QB-2.2.7-08", "QB-2.2.7-12", "QB-2.1.2-09"),
    *("QB-3.1.7.7-03", "QB-3.1.7.7-04", "QB-3.1.7.7-05", "QB-3.1.7.7-06", "QB-3.1.7.7-07"),
)
@pytest.mark.parametrize("cookie", [0, 1, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("flags", [0, 1, 2, 3, 0xFFFC, 0xFFFF])
def test_a_ping_is_answered(stage: Stage, flags: int, cookie: int) -> None:
    with asking(stage) as datagrams:
        datagrams.send(packets.ping(flags, cookie, GUID))
        expected = packets.ping(flags & NOT_SERVER, cookie, stage.guid)
        assert datagrams.recv(100) == expected


@pytest.mark.requirement("QB-2.2.7-10", "QB-3.1.7.7-01")
def test_what_is_no_ping_is_not_answered(stage: Stage) -> None:
    with asking(stage) as datagrams:
        # given datagrams that are no pings, and a right one behind them
        right = packets.ping(0, 99, GUID)
        wrong = [packets.ping(0, n, GUID, signature=n) for n in (0, 0x4855, 0x5549, 0xFFFF)]
        for datagram in (*wrong, b"", right[:-1], right + b"\0", bytes(24), b"x" * 1400):
            datagrams.send(datagram)
        datagrams.send(right)
        # then only that one is answered
        assert datagrams.recv(100) == packets.ping(0, 99, stage.guid)


@pytest.mark.requirement("QB-2.2.1-10", "QB-2.2.7-05", "QB-3.1.7.7-02", "QB-A07-01")
def test_one_session_too_many_is_refused_and_a_ping_says_so(narrow_stage: Stage) -> None:
    stage = narrow_stage
    with Play.calling(stage) as first, Play.calling(stage) as second, asking(stage) as datagrams:
        # given as many sessions as the daemon takes
        opened(2)(first)
        opened(2)(second)
        # when one more comes
        with Play.calling(stage) as third:
            third.write(made(establish(), third))
            # then it is told so, and its connection ends
            expect(EstablishConnection, refused=True)(third)
            closed()(third)
        # and a ping would have told it before
        datagrams.send(packets.ping(0, 5, GUID))
        assert datagrams.recv(100) == packets.ping(REFUSED, 5, stage.guid)
        # and the others live on
        still_open(first)
        still_open(second)
        # when one of them goes
        second.hang_up()
        _until_welcome(datagrams, stage)
        # then there is room again
        with Play.calling(stage) as fourth:
            opened(2)(fourth)


def _until_welcome(datagrams: socket.socket, stage: Stage) -> None:
    deadline = time.monotonic() + PATIENCE
    cookie = 10
    while time.monotonic() < deadline:
        cookie += 1
        datagrams.send(packets.ping(0, cookie, GUID))
        if datagrams.recv(100) == packets.ping(0, cookie, stage.guid):
            return
    raise AssertionError("it is full for ever")


@pytest.mark.requirement("QB-3.1.6.2-01", "QB-3.1.6.2-02", "QB-3.1.5.9-01")
def test_a_session_without_messages_is_closed_and_one_with_messages_is_not(
    narrow_stage: Stage,
) -> None:
    # A computer that has no time for this test for as long as a session may be idle proves nothing.
    assert any(_only_the_idle_one_is_closed(narrow_stage) for _ in range(ATTEMPTS))


def _only_the_idle_one_is_closed(stage: Stage) -> bool:
    """False if the busy session could not be kept busy."""
    with asking(stage) as datagrams:
        _until_welcome(datagrams, stage)
    with Play.calling(stage) as busy, Play.calling(stage) as idle:
        # given two sessions
        opened(2)(busy)
        spoke = begun = time.monotonic()
        opened(2)(idle)
        # when on one of them nothing happens, then it ends without a word
        while True:
            try:
                still_open(busy)
            except (AssertionError, ConnectionError):
                if time.monotonic() - spoke < IDLE * 0.9:
                    raise
                return False
            spoke = time.monotonic()
            assert spoke < begun + PATIENCE
            if idle.read(0.05) is not None:
                break
        assert idle.read(0) in (b"", None)
        assert time.monotonic() - begun >= IDLE * 0.9
        # and the other one lives on
        still_open(busy)
        return True


@pytest.mark.requirement("QB-A43-01")
def test_after_an_idle_end_a_new_message_opens_a_new_session(narrow_stage: Stage) -> None:
    with Play(narrow_stage) as play:
        play.listen()
        # given a session that was used and then closed for nothing happened on it
        given("first", recoverable=False)(play)
        accepted()(play)
        expect(UserMessage)(play)
        play.write(packets.session_ack(play.header()))
        nothing_waits(play)
        closed()(play)
        # when there is one more message
        given("second", recoverable=False)(play)
        # then the daemon calls again
        accepted()(play)
        expect(UserMessage)(play)


@pytest.mark.requirement("QB-3.1.6.2-01")
def test_a_connection_on_which_nobody_speaks_is_closed(narrow_stage: Stage) -> None:
    with Play.calling(narrow_stage) as play:
        closed()(play)


# The daemon asks before it calls


@contextlib.contextmanager
def answering(play: Play) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((play.address, PING_PORT))
        datagrams.settimeout(PATIENCE)
        yield datagrams


def asked(datagrams: socket.socket, stage: Stage) -> tuple[int, tuple[str, int]]:
    """The cookie of the next ping, and where its answer goes."""
    data, address = datagrams.recvfrom(100)
    cookie = int.from_bytes(data[4:8], "little")
    assert data == packets.ping(0, cookie, stage.guid)
    return cookie, address


@pytest.mark.requirement(
    *("QB-3.1.5.2.2-03", "QB-2.2.3.1-10", "QB-2.2.7-03", "QB-2.2.7-06"),
    *("QB-3.1.7.6-03", "QB-3.1.7.6-04"),
)
def test_a_welcome_is_followed_by_a_request_that_says_so(asking_stage: Stage) -> None:
    with Play(asking_stage) as play, answering(play) as datagrams:
        play.listen()
        given("hello")(play)
        cookie, address = asked(datagrams, asking_stage)
        datagrams.sendto(packets.ping(0xFFFC, cookie, play.guid), address)
        play.answer()
        expect(EstablishConnection, operating_system=0x0210)(play)


@pytest.mark.requirement("QB-3.1.5.2.2-05", "QB-3.1.6.1-04", "QB-3.1.7.6-08", "QB-2.2.3.1-10")
def test_who_refuses_a_ping_is_called_later_without_another(asking_stage: Stage) -> None:
    with Play(asking_stage) as play, answering(play) as datagrams:
        play.listen()
        given("hello")(play)
        # given a ping that is refused
        cookie, address = asked(datagrams, asking_stage)
        datagrams.sendto(packets.ping(REFUSED, cookie, play.guid), address)
        # then the next try is a retry: it does not ask, and its request says so
        play.answer()
        expect(EstablishConnection, operating_system=0x0310)(play)
        datagrams.settimeout(0.05)
        with pytest.raises(TimeoutError):
            datagrams.recv(100)


@pytest.mark.requirement("QB-2.2.7-13", "QB-3.1.7.8-01", "QB-3.1.7.8-02")
def test_an_answer_with_a_wrong_cookie_is_none(asking_stage: Stage) -> None:
    with Play(asking_stage) as play, answering(play) as datagrams:
        play.listen()
        given("hello")(play)
        # when a refusal has the wrong cookie, and a welcome the right one
        cookie, address = asked(datagrams, asking_stage)
        datagrams.sendto(packets.ping(REFUSED, cookie + 1, play.guid), address)
        datagrams.sendto(packets.ping(REFUSED, cookie, play.guid, signature=0x5549), address)
        datagrams.sendto(packets.ping(0, cookie, play.guid), address)
        # then the welcome counts: the request says that there was a ping
        play.answer()
        expect(EstablishConnection, operating_system=0x0210)(play)


@pytest.mark.requirement("QB-3.1.7.6-05", "QB-3.1.7.6-07")
def test_an_answer_is_waited_for_one_second(asking_stage: Stage) -> None:
    with Play(asking_stage) as play, answering(play) as datagrams:
        play.listen()
        given("hello")(play)
        asked(datagrams, asking_stage)
        begun = time.monotonic()
        # when nothing is said, then the call comes when the second is over
        play.answer()
        assert time.monotonic() - begun > 0.8
        expect(EstablishConnection, operating_system=0x0310)(play)


# What takes long


@pytest.mark.slow
@pytest.mark.requirement("QB-A28-01")
def test_seventy_thousand_messages_on_one_session(stage: Stage) -> None:
    with Play.calling(stage) as play:
        opened(64)(play)
        count, batch = 70_000, 1000
        for _ in range(0, count, batch):
            play.write(b"".join(play.message(body=b"").encode() for _ in range(batch)))
            _acknowledged(play, play.sent - 32)  # half a window may wait for its timer
        # the counts of both sides have wrapped and still agree
        play.write(packets.session_ack(play.header(2)))
        still_open(play)
        queue = stage.path(play.queue("plain"))
        assert stage.client.purge_queue(queue) == count + 1


def _acknowledged(play: Play, number: int) -> None:
    """Wait until so many are acknowledged; numbers on the wire have 16 bits."""
    while not play.acks or (play.acks[-1].session.ack_sequence_number - number) & 0x8000:
        expect(SessionAck)(play)


@pytest.mark.slow
@pytest.mark.requirement("QB-3.1.6.3-02", "QB-3.1.6.3-03", "QB-3.1.6.4-01", "QB-A52-01")
def test_a_peer_that_says_nothing_is_given_up_and_one_that_speaks_is_not(stage: Stage) -> None:
    """The shortest time that two queue managers may agree on is 20 seconds.

    When it is over for the first time, something has been heard: the ConnectionParameters.
    """
    with Play.calling(stage) as silent, Play.calling(stage) as speaking, Play.calling(stage) as one:
        # given two peers that have a message of the daemon's, and one that has sent an express one
        begun = time.monotonic()
        for play in (silent, speaking):
            opened(2, ack=0)(play)  # 0 is taken as 20 seconds
            given("hello")(play)
            expect(UserMessage)(play)
        opened(64)(one)
        one.write(one.message().encode())
        # then the express message is acknowledged after half of the time
        expect(SessionAck, session__ack_sequence_number=1)(one)
        assert 9 < time.monotonic() - begun < 19
        # when one of the two speaks now and then, but acknowledges nothing
        for _ in range(3):
            assert silent.read(6.0) is None, "given up too early"
            speaking.write(packets.session_ack(packets.session_header(0, 0, 0, 0, 0, 2)))
        # then the silent one is given up
        closed()(silent)
        assert 38 < time.monotonic() - begun < 58
        # and the other is not
        still_open(speaking)
