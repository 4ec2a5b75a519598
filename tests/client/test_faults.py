"""Broken connections: nothing is lost, nothing is done twice, and what cannot be known is said."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import falconmq
from falconmq import Message, MqStatus, ReadError, TransactionError, UnreachableError
from falconmq.client import reading
from tests.client.faults import HALF_ANSWER, LOSE_ANSWER, LOSE_REQUEST, PASS, BreakingProxy, Request
from tests.client.kinds import reached
from tests.embedded.helpers import ORDERS, wait_until
from tests.service.ports import HttpManager

LEDGER = r".\private$\ledger"
FAULTS = [LOSE_REQUEST, LOSE_ANSWER, HALF_ANSWER]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    with HttpManager(tmp_path_factory.mktemp("port")) as port:
        yield port


@pytest.fixture
def proxy(port: HttpManager) -> Iterator[BreakingProxy]:
    with BreakingProxy(port.address) as proxy:
        yield proxy


@pytest.fixture
def token(port: HttpManager, request: pytest.FixtureRequest) -> str:
    return port.token(name=f"token{len(list(port.tokens.all()))}")


@pytest.fixture(params=["http", "aio-http"])
def manager(
    request: pytest.FixtureRequest, proxy: BreakingProxy, port: HttpManager, token: str
) -> Iterator[Any]:
    with reached(request.param, proxy.url, token, retry_seconds=10) as manager:
        yield manager
        proxy.plan = lambda _: PASS
        for queue in manager.queues():
            manager.delete_queue(queue)


def texts(queue: Any) -> list[str]:
    return [message.text for message in queue]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_send_whose_connection_breaks_sends_once(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    orders = manager.create_queue(ORDERS)
    proxy.once("/packets", fault)
    message = Message("a")
    id = orders.send(message)
    assert proxy.paths().count("packets") == 2
    assert [(seen.text, seen.id) for seen in orders] == [("a", id)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_send_as_json_whose_connection_breaks_sends_once(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    first, second = manager.create_queue(ORDERS), manager.create_queue(r".\private$\second")
    proxy.once("/messages", fault)
    manager.queue(f"{first.format_name},{second.format_name}").send(Message("a"))
    assert (texts(first), texts(second)) == (["a"], ["a"])


@pytest.mark.parametrize("part", ["/receive", "/commit"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_receive_whose_connection_breaks_gives_the_first_message_once(
    manager: Any, proxy: BreakingProxy, part: str, fault: str
) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    proxy.once(part, fault)
    assert orders.receive(timeout=0).text == "a"
    assert texts(orders) == ["b"]
    assert orders.receive(timeout=0).text == "b"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_look_is_repeated(manager: Any, proxy: BreakingProxy, fault: str) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("a"))
    proxy.once("/receive", fault)
    assert orders.peek(timeout=0).text == "a"
    proxy.once("/receive", fault)
    assert texts(orders) == ["a"]
    proxy.once("/queues/", fault)
    assert orders.count == 1
    proxy.once("/manager", fault)
    assert manager.status().messages >= 1


@pytest.mark.parametrize("fault", FAULTS)
def test_queues_are_made_and_deleted_through_faults(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    proxy.once("/queues", fault)
    orders = manager.create_queue(ORDERS, label="x")
    proxy.once("/queues", fault)
    late = orders.subqueue("late")
    proxy.once("/queues", fault)
    orders.update(label="y")
    assert (orders.label, late.count) == ("y", 0)
    proxy.once("/queues", fault)
    manager.delete_queue(orders)
    assert manager.queues() == []


@pytest.mark.parametrize("part", ["/transactions", "/packets", "/commit"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_transaction_that_sends_is_carried_through_faults(
    manager: Any, proxy: BreakingProxy, part: str, fault: str
) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    proxy.once(part, fault)
    with manager.transaction() as transaction:
        ledger.send_many([Message("a"), Message("b")], transaction)
    assert texts(ledger) == ["a", "b"]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, HALF_ANSWER])
def test_a_transaction_whose_read_broke_off_is_aborted(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    # given a transaction that has sent something
    ledger = manager.create_queue(LEDGER, transactional=True)
    with manager.transaction() as transaction:
        ledger.send(Message("a"), transaction)
    transaction = manager.transaction()
    ledger.send(Message("b"), transaction)
    # when the answer to a read in it is lost
    proxy.once("/receive", fault)
    with pytest.raises(UnreachableError):
        ledger.receive(transaction, timeout=0)
    # then it is over, all is as before, and nobody can commit what they have not seen
    assert texts(ledger) == ["a"]
    assert not transaction.is_active
    with pytest.raises(TransactionError, match="because a read in it broke off") as raised:
        transaction.commit()
    assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE


@pytest.mark.parametrize("fault", [LOSE_ANSWER, HALF_ANSWER])
def test_a_block_whose_transaction_was_aborted_does_not_end_well(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)

    def work() -> None:
        with manager.transaction() as transaction:
            ledger.send(Message("b"), transaction)
            proxy.once("/receive", fault)
            with pytest.raises(UnreachableError):
                ledger.receive(transaction, timeout=0)

    with pytest.raises(TransactionError, match="aborted"):
        work()
    assert ledger.count == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_prepared_transaction_is_carried_through_faults(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    transaction = manager.transaction()
    ledger.send(Message("a"), transaction)
    proxy.once("/prepare", fault)
    transaction.prepare()
    assert [each.id for each in manager.in_doubt()] == [transaction.id]
    proxy.once("/abort", fault)
    transaction.abort()
    assert (manager.in_doubt(), ledger.count) == ([], 0)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, HALF_ANSWER])
def test_a_cursor_whose_step_may_have_been_made_says_so(
    manager: Any, proxy: BreakingProxy, fault: str
) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    cursor = orders.cursor()
    proxy.once("/receive", fault)
    assert cursor.peek(timeout=0).text == "a"  # to look where it stands can be repeated
    proxy.once("/receive", fault)
    with pytest.raises(UnreachableError, match="did not answer"):
        cursor.peek_next(timeout=0)
    proxy.once("/receive", fault)
    with pytest.raises(UnreachableError, match="did not answer"):
        cursor.receive(timeout=0)
    wait_until(lambda: texts(orders) == ["a", "b"])  # it was given back


def test_a_purge_whose_answer_is_lost_is_not_repeated(manager: Any, proxy: BreakingProxy) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("a"))
    proxy.once("/purge", LOSE_ANSWER)
    with pytest.raises(UnreachableError, match="did not answer") as raised:
        orders.purge()
    assert "look before asking again" in raised.value.hint
    assert orders.count == 0


def test_a_message_whose_confirmation_comes_too_late_is_in_its_queue_again(
    manager: Any, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch, port: HttpManager
) -> None:
    # given a lease that is over before its commit comes
    monkeypatch.setattr(reading, "LEASE_SECONDS", 1.0)
    orders = manager.create_queue(ORDERS)
    orders.send(Message("a"))
    leases = port.app.state.control.leases

    def plan(request: Request) -> str:
        if "/commit" in request.path:
            wait_until(lambda: len(leases) == 0)
        return PASS

    proxy.plan = plan
    # when it is received
    with pytest.raises(UnreachableError, match="could not be confirmed") as raised:
        orders.receive(timeout=0)
    # then the caller is told that it did not happen, and it did not
    assert "receive once more" in raised.value.hint
    assert raised.value.messages == ()
    assert texts(orders) == ["a"]


def test_a_service_that_does_not_come_back_is_unreachable(port: HttpManager, token: str) -> None:
    with BreakingProxy(port.address) as proxy:
        manager = falconmq.connect(proxy.url, token, retry_seconds=0.2)
        orders = manager.create_queue(r".\private$\gone")
        proxy.close()
        for use in (lambda: orders.send(Message("a")), lambda: orders.peek(timeout=0)):
            with pytest.raises(UnreachableError) as raised:
                use()
            assert raised.value.status is MqStatus.SERVICE_NOT_AVAILABLE
    manager.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_numbered_messages_come_once_and_in_order_through_any_faults(
    manager: Any, proxy: BreakingProxy, seed: int
) -> None:
    # given a line that breaks at every fourth request
    orders = manager.create_queue(ORDERS)
    random = Random(seed)
    proxy.plan = lambda _: random.choice([*FAULTS, *[PASS] * 9])
    # when messages go through it, alone and many at once
    number, received = 0, []
    while number < 60:
        count = random.choice([1, 1, 5])
        orders.send_many([Message(str(number + index)) for index in range(count)])
        number += count
        if random.random() < 0.5:
            received.append(orders.receive(timeout=0).text)
    while True:
        try:
            received.append(orders.receive(timeout=0).text)
        except ReadError:
            break
    # then each came once, in order
    assert received == [str(index) for index in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_transactions_happen_once_or_not_at_all_through_any_faults(
    manager: Any, proxy: BreakingProxy, seed: int
) -> None:
    # given messages in one queue, and a line that breaks
    ledger = manager.create_queue(LEDGER, transactional=True)
    done = manager.create_queue(r".\private$\done", transactional=True)
    with manager.transaction() as transaction:
        ledger.send_many([Message(str(number)) for number in range(20)], transaction)
    random = Random(seed)
    proxy.plan = lambda _: random.choice([*FAULTS, *[PASS] * 12])
    # when they are moved by transactions, each begun again when it breaks
    while True:
        try:
            with manager.transaction() as transaction:
                order = ledger.receive(transaction, timeout=0)
                done.send(Message(order.body, body_type=order.body_type), transaction)
        except ReadError:
            break
        except (UnreachableError, TransactionError):
            continue
    # then each was moved once, in order
    proxy.plan = lambda _: PASS
    assert texts(done) == [str(number) for number in range(20)]
