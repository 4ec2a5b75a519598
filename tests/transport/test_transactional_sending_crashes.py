"""Exactly once and in order, whatever breaks at whatever moment (MQQB 3.1.1.5, QB-A38, QB-A39).

The whole transfer is a row of steps: one piece delivered, one event, or time until the next timer.
Every test breaks something at each step in turn, lets the rest happen, and looks at the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from falconmq.errors import MqStatus
from falconmq.manager.model import ReadResult
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType
from falconmq.message import Journal
from falconmq.names import parse_format_name
from tests.transport.estate import Estate, Line, bodies, direct
from tests.transport.played_peer import fail_power

BODIES = [b"1", b"2", b"3"]
QUIET_SECONDS = 25.0  # without trouble everything is over by then
RECOVERY_SECONDS = 200.0


class Transfer:
    """Three journaled messages, each in a transaction, and a reader who takes what comes."""

    def __init__(self) -> None:
        self.estate = Estate()
        self.here = self.estate.node("SALES01", 1)
        self.there = self.estate.node("SALES02", 2)
        self.there.queue("orders", transactional=True)
        self.name = direct(self.there, "orders")
        self.read: list[bytes] = []

    def send(self) -> None:
        for body in BODIES:
            self.here.send(self.name, body, transactional=True, journal=Journal.JOURNAL)

    def step(self) -> bool:
        """Let one thing happen; False if all is quiet."""
        estate = self.estate
        if estate._later:
            node, event, args = estate._later.popleft()
            node.run(event, *args)
        elif (line := self.busy_line()) is not None:
            estate.deliver(line)
        else:
            return self._wait()
        if not self.there.holds_commits:
            self.receive()
        return True

    def _wait(self) -> bool:
        """Until the next timer, if it is near."""
        nodes = (self.here, self.there)
        waits = [w for node in nodes if (w := node.core.next_deadline()) is not None]
        if self.estate.clock.monotonic() + min(waits) > QUIET_SECONDS:
            return False
        self.estate.clock.advance(min(waits))
        for node in nodes:
            node.run(node.core.run_timers)
        return True

    def busy_line(self) -> Line | None:
        return next((line for line in self.estate._lines() if line.outbox), None)

    def receive(self) -> None:
        """The reader takes every message that is there; it has it when that is durable."""
        there = self.there
        descriptor = open_queue(there.core, parse_format_name(self.name), AccessType.RECEIVE)
        while True:
            result = there.run(partial(dequeue_message, there.core, descriptor, timeout=0))
            assert isinstance(result, ReadResult)
            if result.status is not MqStatus.OK:
                break
            assert result.position is not None
            packet = result.position.message.packet
            self.read.append(bytes(packet.properties.message_body))
        close_queue(there.core, descriptor)

    def finish(self) -> None:
        """Let the rest happen, with all the time it needs."""
        end = self.estate.clock.monotonic() + RECOVERY_SECONDS
        while self.estate.clock.monotonic() < end:
            self.estate.advance(5.0)
            self.receive()

    def check(self, expected: list[bytes] | None = None) -> None:
        expected = BODIES if expected is None else expected
        assert self.read == expected
        assert bodies(self.here.core.journal) == expected
        assert not any(len(queue.positions) for queue in self.here.core.outgoing.values())
        assert bodies(self.here.core.transactional_dead_letter) == []
        assert self.here.transport.awaiting == {}


def steps_of_a_quiet_transfer() -> int:
    transfer = Transfer()
    transfer.send()
    count = 0
    while transfer.step():
        count += 1
    transfer.check()
    return count


def break_at_each_step(trouble: Callable[[Transfer], None]) -> None:
    for number in range(steps_of_a_quiet_transfer() + 1):
        transfer = Transfer()
        transfer.send()
        for _ in range(number):
            transfer.step()
        trouble(transfer)
        transfer.finish()
        try:
            transfer.check()
        except AssertionError as error:
            error.add_note(f"after {number} steps")
            raise


@pytest.mark.requirement("QB-A38-01", "QB-A39-01", "QB-3.1.1.3.1-31", "QB-3.1.1.3.1-32")
def test_power_failure_of_the_sender_at_any_step_loses_and_doubles_nothing() -> None:
    break_at_each_step(lambda transfer: fail_power(transfer.here))


@pytest.mark.requirement("QB-A39-01")
def test_power_failure_of_the_receiver_at_any_step_loses_and_doubles_nothing() -> None:
    break_at_each_step(lambda transfer: fail_power(transfer.there))


def test_broken_connection_at_any_step_loses_and_doubles_nothing() -> None:
    def cut(transfer: Transfer) -> None:
        for line in transfer.here.lines:
            transfer.estate.cut(line)

    break_at_each_step(cut)


@pytest.mark.requirement("QB-A38-01")
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_disk_that_stops_some_steps_before_the_sender_fails_loses_and_doubles_nothing(
    steps: int,
) -> None:
    def trouble(transfer: Transfer) -> None:
        transfer.here.holds_commits = True
        for _ in range(steps):
            transfer.step()
        fail_power(transfer.here)

    break_at_each_step(trouble)


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_slow_disk_of_the_sender_changes_nothing(steps: int) -> None:
    def trouble(transfer: Transfer) -> None:
        transfer.here.holds_commits = True
        for _ in range(steps):
            transfer.step()
        transfer.here.release_commits()

    break_at_each_step(trouble)


def test_sender_that_fails_before_its_commit_is_durable_has_sent_nothing() -> None:
    # given one message that is durable, and two whose commits the power failure forestalls
    transfer = Transfer()
    here = transfer.here
    here.send(transfer.name, b"1", transactional=True, journal=Journal.JOURNAL)
    here.holds_commits = True
    for body in (b"2", b"3"):
        here.send(transfer.name, body, transactional=True, journal=Journal.JOURNAL)
    for _ in range(30):
        transfer.step()
    assert b"2" not in transfer.read
    fail_power(here)
    transfer.finish()
    transfer.check([b"1"])
    # and the numbers that were given in vain are no hole that stops the stream
    here.send(transfer.name, b"4", transactional=True, journal=Journal.JOURNAL)
    transfer.finish()
    transfer.check([b"1", b"4"])


@pytest.mark.requirement("QB-A36-01", "QB-A38-01", "QB-A39-01")
@pytest.mark.parametrize("seed", range(12))
def test_twenty_messages_arrive_once_and_in_order_through_any_series_of_troubles(
    seed: int,
) -> None:
    chance = Random(seed)
    transfer = Transfer()
    sent: list[bytes] = []
    for number in range(20):
        body = b"%02d" % number
        transfer.here.send(transfer.name, body, transactional=True, journal=Journal.JOURNAL)
        sent.append(body)
        for _ in range(chance.randrange(12)):
            transfer.step()
        trouble = chance.randrange(6)
        if trouble == 0:
            for line in transfer.here.lines:
                transfer.estate.cut(line)
        elif trouble == 1:
            fail_power(transfer.here)
        elif trouble == 2:
            fail_power(transfer.there)
        elif trouble == 3 and (busy := transfer.busy_line()) is not None:
            transfer.estate.cut(busy)  # with what is on the way
        elif trouble == 4:
            transfer.estate.clock.advance(chance.uniform(0.0, 40.0))
    transfer.finish()
    transfer.check(sent)
