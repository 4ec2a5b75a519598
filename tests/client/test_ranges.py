"""Reading by numbers over a queue manager that goes away and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.client import ControlClient, ServiceError, UnreachableError
from falconmq.client.ranges import Ranges
from falconmq.errors import MqStatus
from falconmq.message import Delivery, Message
from tests.e2e.estate import Daemon, Estate, path

ORDERS = path("orders")
COUNT = 600
BODY = bytes(100_000)  # so that the messages are several batches


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Estate(tmp_path_factory.mktemp("ranges")) as estate:
        daemon = estate.manager("A").start()
        daemon.create_queue("orders")
        for first in range(0, COUNT, 100):
            messages = [
                Message(BODY, label=str(number), delivery=Delivery.RECOVERABLE)
                for number in range(first, first + 100)
            ]
            daemon.client.send_packets(ORDERS, messages)
        yield daemon


class Restarting:
    """Time that passes only when somebody waits, and a queue manager that comes back meanwhile."""

    def __init__(self, daemon: Daemon, after: int) -> None:
        self.now = 0.0
        self.pauses = 0
        self._daemon = daemon
        self._after = after

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        if self.pauses == self._after:
            self._daemon.start()


def ranges(daemon: Daemon, time: Restarting, patience: float = 60.0) -> Ranges:
    client = ControlClient.connect(f"unix:{daemon.data}")
    return Ranges(client, patience=patience, clock=time.clock, pause=time.pause)


def test_a_stream_of_messages_goes_on_after_a_restart(daemon: Daemon) -> None:
    time = Restarting(daemon, after=2)
    with ranges(daemon, time) as reading:
        there = reading.arrivals(ORDERS)
        assert (there.count, there.manager) == (COUNT, str(daemon.id))
        labels: list[str] = []
        batches = 0
        for batch in reading.read(ORDERS, there.first, there.next, ["label", "body"]):
            assert batch.schema.names == ["label", "body"]
            labels += batch.column("label").to_pylist()
            if batches == 0:
                daemon.kill()
            batches += 1
        assert labels == [str(number) for number in range(COUNT)]
    assert batches > 2
    assert time.pauses >= 2


def test_what_is_away_too_long_is_an_error(daemon: Daemon, tmp_path: Path) -> None:
    time = Restarting(daemon, after=0)
    client = ControlClient.connect(f"unix:{tmp_path}")
    with Ranges(client, patience=5, clock=time.clock, pause=time.pause) as reading:
        with pytest.raises(UnreachableError, match="no service is running"):
            reading.arrivals(ORDERS)
        assert 5 <= time.now < 7
        with pytest.raises(UnreachableError):
            list(reading.read(ORDERS, 0, 10))


def test_refusals_are_not_tried_again(daemon: Daemon) -> None:
    time = Restarting(daemon, after=0)
    with ranges(daemon, time) as reading:
        with pytest.raises(ServiceError) as refused:
            reading.arrivals(path("nobody"))
        assert refused.value.status is MqStatus.QUEUE_NOT_FOUND
        with pytest.raises(ServiceError):
            list(reading.read(path("nobody"), 0, 10))
        assert time.pauses == 0


def test_plans_know_bytes_only_if_they_are_limited(daemon: Daemon) -> None:
    with ranges(daemon, Restarting(daemon, after=0)) as reading:
        there = reading.arrivals(ORDERS)
        plan = reading.plan(ORDERS, there.first, there.next, messages=50, parts=3)
        assert plan.count == 50
        assert sum(part.count for part in plan.parts) == 50
        assert [part.start for part in plan.parts[1:]] == [part.stop for part in plan.parts[:-1]]
        few = reading.plan(ORDERS, there.first, bytes=250_000)
        assert few.count == 2
        assert few.bytes is not None
        assert few.bytes <= 250_000
