"""Exactly once, in order: daemons are killed and lines cut while messages flow.

How to think about it. A thread sends numbered batches. The test counts what was sent, and at chosen
numbers kills a daemon or cuts the line, while the thread goes on. A call that a kill broke off may
have been obeyed or not; such a batch is in doubt: it may arrive once, or not at all, but not in
part, and not twice. All others must arrive, once; the transactional ones in their order.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from falconmq.client import CONTROL_SOCKET, ControlClient, UnreachableError
from tests.e2e.estate import PATIENCE, Daemon, Estate, wait_until

BATCH = 20
QUEUES = (("recoverable", False), ("transactional", True))


@dataclass
class Sender:
    """Sends batches to both queues until `count` messages are certain for each."""

    daemon: Daemon
    destinations: dict[str, str]
    count: int
    sent: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name, _ in QUEUES})
    in_doubt: dict[str, list[int]] = field(default_factory=lambda: {n: [] for n, _ in QUEUES})
    problem: BaseException | None = None

    def __post_init__(self) -> None:
        self._is_up = threading.Event()
        self._is_up.set()
        self._progress = threading.Condition()
        self._client = ControlClient(self.daemon.data / CONTROL_SOCKET)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Kill the daemon that it sends with, whatever it is doing."""
        self._is_up.clear()
        self.daemon.restart()
        self._is_up.set()

    def wait_for(self, number: int) -> None:
        """Until so many messages were sent to each queue."""
        with self._progress:
            assert self._progress.wait_for(
                lambda: self.problem is not None or self._least() >= number, PATIENCE
            ), f"{self._least()} of {number} messages were sent"
        if self.problem is not None:
            raise self.problem

    def finish(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the sender hangs"
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        try:
            with self._client:
                self._send_all()
        except BaseException as error:  # noqa: BLE001  # raised again by the test
            self.problem = error
            with self._progress:
                self._progress.notify_all()

    def _least(self) -> int:
        return min(len(numbers) for numbers in self.sent.values())

    def _send_all(self) -> None:
        number = 0
        while self._least() < self.count:
            for name, transactional in QUEUES:
                self._send(name, list(range(number, number + BATCH)), transactional)
            number += BATCH

    def _send(self, name: str, numbers: list[int], transactional: bool) -> None:
        assert self._is_up.wait(PATIENCE)
        messages = [{"text": str(number)} for number in numbers]
        try:
            self._client.send(self.destinations[name], messages, transactional)
        except UnreachableError:
            self.in_doubt[name] += numbers
        else:
            with self._progress:
                self.sent[name] += numbers
                self._progress.notify_all()


def receive_all(daemon: Daemon, queue: str, wanted: set[int]) -> list[int]:
    """Take messages until all that must come have come."""
    came: list[int] = []
    missing = set(wanted)
    while missing:
        new = [int(message["text"]) for message in daemon.take(queue, 1)]
        new += [int(m["text"]) for m in daemon.client.receive(rf".\private$\{queue}", count=1000)]
        came += new
        missing.difference_update(new)
    return came


def check(sender: Sender, receiver: Daemon) -> None:
    for name, transactional in QUEUES:
        sent, in_doubt = set(sender.sent[name]), set(sender.in_doubt[name])
        came = receive_all(receiver, name, sent)
        wait_until(lambda: sender.daemon.waiting() == 0, "everything is acknowledged")
        came += [int(message["text"]) for message in receiver.look(name)]
        extra = set(came) - sent
        assert len(came) == len(set(came)), f"{name}: doubled"
        assert extra <= in_doubt, f"{name}: never sent"
        if transactional:
            assert came == sorted(came), "out of order"
            starts = {number - number % BATCH for number in extra}
            assert extra == {n for start in starts for n in range(start, start + BATCH)}


def flow(estate: Estate, count: int, faults: int, seed: int) -> None:
    """Send `count` messages to each queue, with so many faults in between, in a random order."""
    chance = random.Random(seed)
    a, b = estate.manager("A"), estate.manager("B")
    link = estate.link(a, b)
    estate.start()
    for name, transactional in QUEUES:
        b.create_queue(name, transactional=transactional)
    sender = Sender(a, {name: b.direct(name, link.to_b) for name, _ in QUEUES}, count)

    def cut() -> None:
        link.cut()
        link.heal()

    kinds: list[Callable[[], None]] = [sender.kill, b.restart, cut]
    chosen = (kinds * faults)[:faults]
    chance.shuffle(chosen)
    moments = sorted(chance.sample(range(BATCH, count, BATCH), faults))
    for moment, fault in zip(moments, chosen, strict=True):
        sender.wait_for(moment)
        fault()
    sender.finish()
    a.restart()  # while the rest is on its way
    check(sender, b)


@pytest.mark.requirement("QB-A39-01")
def test_a_thousand_messages_survive_three_faults(estate: Estate) -> None:
    flow(estate, count=500, faults=3, seed=1)


@pytest.mark.slow
def test_ten_thousand_messages_survive_twelve_faults(estate: Estate) -> None:
    flow(estate, count=5000, faults=12, seed=2)


def test_messages_over_a_hub_survive_its_death(estate: Estate) -> None:
    # given transactional and recoverable messages whose way leads over a hub
    shop, hub, warehouse = (estate.manager(name) for name in ("shop", "hub", "warehouse"))
    estate.introduce([shop, hub, warehouse])
    shop.routes[warehouse] = hub
    warehouse.routes[shop] = hub
    estate.start()
    for name, transactional in QUEUES:
        warehouse.create_queue(name, transactional=transactional)
    sender = Sender(shop, {name: warehouse.private(name) for name, _ in QUEUES}, 400)
    # when the hub is killed in the middle, and again when the sender is done
    sender.wait_for(200)
    hub.restart()
    sender.finish()
    hub.restart()
    # then nothing is lost or doubled
    check(sender, warehouse)


def test_express_messages_that_wait_die_with_their_daemon(estate: Estate) -> None:
    # given an express and a recoverable message that wait for a peer
    a, b = estate.manager("A"), estate.manager("B")
    b.start().create_queue("orders")
    b.stop()
    a.start()
    for kind in (False, True):
        a.client.send(b.direct("orders"), [{"text": str(kind), "recoverable": kind}])
    # when the sender is killed before the peer comes back
    a.restart()
    b.start()
    # then only the recoverable one arrives
    assert [message["text"] for message in b.take("orders", 1)] == ["True"]
    wait_until(lambda: a.waiting() == 0, "nothing else waits")
    assert b.count("orders") == 0
