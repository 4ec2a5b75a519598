"""A real service that is killed in the middle of a request, and comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from falconmq import Message, MqStatus, ReadError, TransactionError, UnreachableError
from tests.client.faults import LOSE_ANSWER, LOSE_REQUEST, PASS, BreakingProxy, Request
from tests.client.kinds import reached
from tests.e2e.estate import Daemon, Estate
from tests.embedded.helpers import ORDERS, Background

LEDGER = r".\private$\ledger"
HTTP_PORT = 8018
BEFORE, AFTER = "before it is carried out", "after it was carried out"

pytestmark = pytest.mark.slow


class Mortal:
    """A service behind a proxy, which is killed when a request of this kind comes."""

    def __init__(self, daemon: Daemon, proxy: BreakingProxy) -> None:
        self.daemon = daemon
        self.proxy = proxy

    def dies_once(self, part: str, moment: str) -> None:
        """Kill it before or after it has done the next such request; it comes back at once."""
        left = [moment]

        def plan(request: Request) -> str:
            if not left or part not in request.path:
                return PASS
            if left.pop() == BEFORE:
                self.daemon.restart()
                return LOSE_REQUEST
            return LOSE_ANSWER

        def passed_on(request: Request, fault: str) -> None:
            if fault == LOSE_ANSWER:
                self.daemon.restart()

        self.proxy.plan, self.proxy.passed_on = plan, passed_on


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Estate(tmp_path_factory.mktemp("estate")) as estate:
        daemon = estate.manager("A")
        daemon.sections["http"] = {"loopback_role": "manage"}
        yield daemon.start()


@pytest.fixture
def mortal(daemon: Daemon) -> Iterator[Mortal]:
    with BreakingProxy((daemon.address, HTTP_PORT)) as proxy:
        yield Mortal(daemon, proxy)


@pytest.fixture(params=["http", "aio-http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def direct(kind: str, daemon: Daemon) -> Iterator[Any]:
    """A client that sees at once that its service has died."""
    with reached(kind, f"http://{daemon.address}:{HTTP_PORT}", None) as manager:
        yield manager
        _clear(manager)


@pytest.fixture
def manager(kind: str, mortal: Mortal) -> Iterator[Any]:
    """A client behind the proxy."""
    with reached(kind, mortal.proxy.url, None) as manager:
        yield manager
        mortal.proxy.plan = lambda _: PASS
        _clear(manager)


def _clear(manager: Any) -> None:
    for transaction in manager.in_doubt():
        transaction.abort()
    for queue in manager.queues():
        manager.delete_queue(queue)


def texts(queue: Any) -> list[str]:
    return [message.text for message in queue]


def test_a_send_that_a_restart_came_before_is_sent(direct: Any, daemon: Daemon) -> None:
    orders = direct.create_queue(ORDERS)
    daemon.restart()
    orders.send(Message("a"))  # nothing of it was sent before: the new run takes it
    assert texts(orders) == ["a"]


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_send_in_the_moment_of_a_restart_is_told_to_be_unknown(
    manager: Any, mortal: Mortal, moment: str
) -> None:
    orders = manager.create_queue(ORDERS)
    mortal.dies_once("/packets", moment)
    with pytest.raises(UnreachableError, match="was restarted") as raised:
        orders.send(Message("a"))
    assert "it may have been sent; look before sending again" in raised.value.hint
    assert texts(orders) == (["a"] if moment == AFTER else [])
    orders.send(Message("b"))
    assert texts(orders)[-1] == "b"


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_receive_in_the_moment_of_a_restart_gives_the_message(
    manager: Any, mortal: Mortal, moment: str
) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    mortal.dies_once("/receive", moment)
    assert orders.receive(timeout=0).text == "a"
    assert texts(orders) == ["b"]


def test_a_confirmation_that_a_restart_came_before_leaves_the_message_in_its_queue(
    manager: Any, mortal: Mortal
) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    mortal.dies_once("/commit", BEFORE)
    with pytest.raises(UnreachableError, match="could not be confirmed") as raised:
        orders.receive(timeout=0)
    assert (raised.value.messages, texts(orders)) == ((), ["a", "b"])
    assert orders.receive(timeout=0).text == "a"


def test_a_message_whose_confirmation_a_restart_came_behind_is_in_the_error(
    manager: Any, mortal: Mortal
) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    mortal.dies_once("/commit", AFTER)
    with pytest.raises(UnreachableError, match="restarted while a message was confirmed") as raised:
        orders.receive(timeout=0)
    (message,) = raised.value.messages
    assert (message.text, texts(orders)) == ("a", ["b"])


def test_a_transaction_that_a_restart_came_into_is_aborted(direct: Any, daemon: Daemon) -> None:
    ledger = direct.create_queue(LEDGER, transactional=True)
    uses: list[Callable[[Any], object]] = [
        lambda ended: ledger.send(Message("b"), ended),
        lambda ended: ledger.receive(ended, timeout=0),
        lambda ended: ended.commit(),
        lambda ended: ended.prepare(),
    ]
    for use in uses:
        transaction = direct.transaction()
        ledger.send(Message("a"), transaction)
        daemon.restart()
        with pytest.raises(TransactionError, match="restarted") as raised:
            use(transaction)
        assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE
        assert not transaction.is_active
        assert texts(ledger) == []


def test_an_abort_that_a_restart_came_before_is_done(direct: Any, daemon: Daemon) -> None:
    ledger = direct.create_queue(LEDGER, transactional=True)
    transaction = direct.transaction()
    ledger.send(Message("a"), transaction)
    daemon.restart()
    transaction.abort()
    assert texts(ledger) == []


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_commit_in_the_moment_of_a_restart_is_told_to_be_unknown(
    manager: Any, mortal: Mortal, moment: str
) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    transaction = manager.transaction()
    ledger.send(Message("a"), transaction)
    mortal.dies_once("/commit", moment)
    with pytest.raises(TransactionError, match="outcome is not known") as raised:
        transaction.commit()
    assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert texts(ledger) == (["a"] if moment == AFTER else [])


def test_a_prepared_transaction_survives(manager: Any, mortal: Mortal) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    transaction = manager.transaction()
    ledger.send(Message("a"), transaction)
    transaction.prepare()
    mortal.daemon.restart()
    assert [each.id for each in manager.in_doubt()] == [transaction.id]
    mortal.dies_once("/commit", BEFORE)
    transaction.commit()
    assert (manager.in_doubt(), texts(ledger)) == ([], ["a"])


def test_a_read_that_waits_goes_on_over_a_restart(direct: Any, daemon: Daemon) -> None:
    orders = direct.create_queue(ORDERS)
    reading = Background(lambda: direct.queue(ORDERS).receive(timeout=60))
    daemon.restart()
    daemon.stop()
    daemon.start()
    orders.send(Message("at last"))
    assert reading.result().text == "at last"


def test_an_exclusive_reader_opens_the_queue_again(direct: Any, daemon: Daemon) -> None:
    direct.create_queue(ORDERS).send_many([Message("a"), Message("b")])
    with direct.queue(ORDERS, exclusive=True) as mine:
        assert mine.receive(timeout=0).text == "a"
        daemon.restart()
        assert mine.receive(timeout=0).text == "b"


def test_numbered_messages_come_once_while_the_service_is_killed_again_and_again(
    direct: Any, daemon: Daemon
) -> None:
    # given a queue, and somebody who kills the service four times, at any moment
    orders = direct.create_queue(ORDERS)
    random, chance = Random(0), Random(100)
    pause = threading.Event()

    def kill() -> None:
        for _ in range(4):
            pause.wait(random.uniform(0.2, 1.0))
            daemon.restart()

    # when numbered messages are sent; if it is not known whether one was, somebody looks
    killing = Background(kill)
    received: list[int] = []
    number = 0
    while not killing.is_done:
        _send_surely(orders, number, received)
        number += 1
        if chance.random() < 0.5:
            received += _receive_surely(orders)
    killing.result()
    while got := _receive_surely(orders):
        received += got
    # then each has come once, in order
    assert received == list(range(number))


def _send_surely(orders: Any, number: int, received: list[int]) -> None:
    while True:
        try:
            orders.send(Message(str(number)))
        except UnreachableError as error:
            assert "look before" in error.hint, error
            if number in received or str(number) in texts(orders):
                return
        else:
            return


def _receive_surely(orders: Any) -> list[int]:
    while True:
        try:
            return [int(orders.receive(timeout=0).text)]
        except UnreachableError as error:
            if error.messages:  # it has left the queue, and nobody else receives here
                return [int(message.text) for message in error.messages]
        except ReadError:
            return []
