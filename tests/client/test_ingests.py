"""The client of ingests: it asks again, and a service that is killed sends a batch once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from falconmq import Message, MqStatus, TransactionError, UnreachableError
from falconmq.client import ControlClient
from falconmq.client.ingests import Ingest
from falconmq.client.packets import destination_of, to_packets
from tests.client.faults import HALF_ANSWER, LOSE_ANSWER, LOSE_REQUEST, PASS, BreakingProxy, Request
from tests.e2e.estate import Daemon, Estate

HTTP_PORT = 8018
ORDERS, LEDGER = r".\private$\orders", r".\private$\ledger"
KEY = "query/7"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Estate(tmp_path_factory.mktemp("estate")) as estate:
        daemon = estate.manager("A")
        daemon.sections["http"] = {"loopback_role": "manage"}
        yield daemon.start()


@pytest.fixture
def proxy(daemon: Daemon) -> Iterator[BreakingProxy]:
    daemon.client.create_queue(ORDERS)
    daemon.client.create_queue(LEDGER, transactional=True)
    with BreakingProxy((daemon.address, HTTP_PORT)) as proxy:
        yield proxy
    daemon.client.delete_queue(ORDERS)
    daemon.client.delete_queue(LEDGER)
    for ingest in daemon.client.request("GET", "/ingests")["ingests"]:
        daemon.client.request("DELETE", f"/ingests/{ingest['key'].replace('/', '%2F')}")


@pytest.fixture
def ingest(proxy: BreakingProxy) -> Iterator[Ingest]:
    with ControlClient.connect(proxy.url) as client:
        yield Ingest(client, KEY)


def packets(format_name: str, *bodies: str, in_transaction: bool | None = False) -> bytes:
    destination = destination_of(format_name)
    messages = [Message(body) for body in bodies]
    return to_packets(messages, destination, in_transaction=bool(in_transaction))


def staged(ingest: Ingest, batch: int, *bodies: str, queue: str = ORDERS) -> UUID:
    stage = ingest.open(batch, queue)
    for sequence, body in enumerate(bodies, 1):
        content = packets(stage.format_name, body, in_transaction=stage.is_transactional)
        stage = ingest.add(batch, stage.id, sequence, content)
    return stage.id


def texts(daemon: Daemon, queue: str = "orders") -> list[str]:
    return [message["text"] for message in daemon.look(queue)]


def test_a_batch_from_the_first_stage_to_the_commit(ingest: Ingest, daemon: Daemon) -> None:
    assert ingest.last_batch() is None
    stage = ingest.open(4, LEDGER)
    assert (stage.is_transactional, stage.manager, stage.is_repeated) == (True, daemon.id, False)
    content = packets(stage.format_name, "a", "b", in_transaction=True)
    added = ingest.add(4, stage.id, 1, content)
    assert (added.count, added.bytes) == (2, len(content))
    done = ingest.commit(4, [stage.id])
    assert (done.count, done.is_repeated, ingest.last_batch()) == (2, False, 4)
    assert texts(daemon, "ledger") == ["a", "b"]
    assert ingest.open(4, LEDGER).is_repeated
    # and what is dropped, or was never there, is no error
    ingest.abort(5, [staged(ingest, 5, "c"), stage.id])
    with pytest.raises(TransactionError) as caught:
        ingest.add(5, stage.id, 1, content)
    assert caught.value.status is MqStatus.STALE_HANDLE


@pytest.mark.parametrize("fault", [LOSE_REQUEST, LOSE_ANSWER, HALF_ANSWER])
@pytest.mark.parametrize("part", ["stages?", "stages/", "commit"])
def test_requests_and_answers_that_get_lost_change_nothing(
    ingest: Ingest, proxy: BreakingProxy, daemon: Daemon, part: str, fault: str
) -> None:
    proxy.once(part, fault)
    first, second = staged(ingest, 0, "a", "b"), staged(ingest, 0, "c")
    done = ingest.commit(0, [first, second])
    assert done.is_repeated is (part == "commit" and fault != LOSE_REQUEST)
    assert texts(daemon) == ["a", "b", "c"]
    assert daemon.client.request("GET", "/ingests")["staged"]["stages"] == 0


def killing(daemon: Daemon, part: str, *, is_done_first: bool) -> tuple[Callable[..., str], ...]:
    """A plan that kills the service before or after it has done the next such request."""
    left = [part]

    def plan(request: Request) -> str:
        if not left or part not in request.path:
            return PASS
        left.pop()
        if is_done_first:
            return LOSE_ANSWER
        daemon.restart()
        return LOSE_REQUEST

    def passed_on(_: Request, fault: str) -> str:
        if fault == LOSE_ANSWER:
            daemon.restart()
        return fault

    return plan, passed_on


@pytest.mark.parametrize("is_done_first", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("part", ["stages?", "stages/", "commit"])
def test_a_service_that_is_killed_in_a_batch_sends_it_once(
    ingest: Ingest, proxy: BreakingProxy, daemon: Daemon, part: str, is_done_first: bool
) -> None:
    proxy.plan, proxy.passed_on = killing(daemon, part, is_done_first=is_done_first)  # type: ignore[assignment]
    # when a batch is made again and again until it is committed, as Spark does it
    for attempt in range(3):
        try:
            stages = [staged(ingest, 0, "a", "b"), staged(ingest, 0, "c", queue=LEDGER)]
            done = ingest.commit(0, stages)
            break
        except TransactionError as error:
            assert error.status is MqStatus.STALE_HANDLE, error
            assert attempt == 0
    # then it was sent once, and the commit that was done before the kill is known to be
    assert done.is_repeated is (part == "commit" and is_done_first)
    assert (texts(daemon), texts(daemon, "ledger")) == (["a", "b"], ["c"])


def test_nobody_waits_for_ever_for_a_service_that_is_gone(proxy: BreakingProxy) -> None:
    proxy.plan = lambda _: LOSE_REQUEST
    with ControlClient.connect(proxy.url) as client:
        ingest = Ingest(client, KEY, patience=0.1)
        with pytest.raises(UnreachableError):
            ingest.open(0, ORDERS)
        ingest.abort(0, [])  # which is only a kindness
