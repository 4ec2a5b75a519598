"""Connecting to a service: tokens, certificates, waiting over many requests, time-outs, threads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

import falconmq
from falconmq import FalconMQError, Message, MqStatus, ReadError, TransactionError, UnreachableError
from falconmq.client import ControlClient, QueueManager, ServiceError, reading
from falconmq.service.access import Role
from tests.client.faults import BreakingProxy
from tests.client.kinds import Doors, reached
from tests.embedded.helpers import ORDERS, Background, wait_until
from tests.service.ports import HttpManager
from tests.service.test_http_tls import write_pair

LEDGER = r".\private$\ledger"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with Doors(tmp_path_factory.mktemp("doors")) as doors:
        yield doors


@pytest.fixture(params=["unix", "aio-unix"])
def manager(doors: Doors, request: pytest.FixtureRequest) -> Iterator[Any]:
    with doors.reached(request.param) as manager:
        yield manager


@pytest.fixture(params=["http", "aio-http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


# Who is there, and who asks


def test_nobody_there_is_told_at_once(kind: str) -> None:
    with (
        pytest.raises(UnreachableError, match="no service answers at http://127") as raised,
        reached(kind, f"http://127.0.0.1:{free_port()}", None),
    ):
        pass
    assert raised.value.status is MqStatus.SERVICE_NOT_AVAILABLE
    assert "is it running there?" in raised.value.hint


@pytest.mark.parametrize("kind", ["unix", "aio-unix"])
def test_a_directory_that_is_not_served_is_told_at_once(kind: str, tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / ("x" * 120), tmp_path / "not" / "there"):
        with (
            pytest.raises(UnreachableError, match="no service is running") as raised,
            reached(kind, f"unix:{directory}", None),
        ):
            pass
        assert f"falconmq serve --data {directory}" in raised.value.hint


@pytest.mark.parametrize("token", [None, "fmq_0000000000000000_wrong"])
def test_without_the_right_token_nobody_gets_in(
    kind: str, tmp_path: Path, token: str | None
) -> None:
    with (
        HttpManager(tmp_path) as port,
        pytest.raises(FalconMQError) as raised,
        reached(kind, port.url, token),
    ):
        pass
    assert raised.value.status is MqStatus.ACCESS_DENIED
    assert "falconmq token create" in raised.value.hint


def test_a_token_allows_what_its_roles_do(kind: str, tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port:
        roles = {role: port.token(Role.READ, role, name=role.value) for role in Role}
        with reached(kind, port.url, roles[Role.MANAGE]) as manager:
            manager.create_queue(ORDERS).send(Message("a"))
        with reached(kind, port.url, roles[Role.SEND]) as sender:
            orders = sender.queue(ORDERS)
            orders.send(Message("b"))
            with pytest.raises(FalconMQError, match="role") as raised:
                orders.receive(timeout=0)
            assert raised.value.status is MqStatus.ACCESS_DENIED
        with reached(kind, port.url, roles[Role.RECEIVE]) as receiver:
            orders = receiver.queue(ORDERS)
            assert orders.receive(timeout=0).text == "a"
            with pytest.raises(FalconMQError, match="role"):
                orders.send(Message("c"))


def test_the_environment_names_service_and_token(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpManager(tmp_path) as port:
        monkeypatch.setenv("FALCONMQ_URL", port.url)
        monkeypatch.setenv("FALCONMQ_TOKEN", port.token())
        with reached(kind, "", None) as manager:
            assert manager.computer_name == "SALES01"


def test_a_certificate_is_checked(kind: str, tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "queues")
    with HttpManager(tmp_path, certificate=certificate, key=key) as port:
        token = port.token()
        with reached(kind, port.url, token, ca_file=certificate) as manager:
            orders = manager.create_queue(ORDERS)
            orders.send(Message("a"))
            assert orders.receive(timeout=0).text == "a"
        with (
            pytest.raises(UnreachableError, match="is not trusted") as raised,
            reached(kind, port.url, token),
        ):
            pass
        assert raised.value.status is MqStatus.INVALID_CERTIFICATE
        assert "ca_file" in raised.value.hint


def test_the_bare_client_speaks_to_the_port_too(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port:
        with ControlClient.connect(port.url, port.token()) as client:
            client.create_queue(ORDERS)
            client.send_packets(ORDERS, [Message("a")])
            assert [row["name"] for row in client.queues()] == [ORDERS]
            assert client.request("GET", "/manager")["computer_name"] == "SALES01"
        with (
            ControlClient.connect(port.url) as stranger,
            pytest.raises(ServiceError) as raised,
        ):
            stranger.status()
        assert raised.value.http_status == 401


def test_a_lease_may_be_named_once(doors: Doors) -> None:
    with doors.reached("unix") as manager:
        manager.create_queue(ORDERS).send_many([Message("a"), Message("b")])
        client = ControlClient(manager.session.door.socket)
        id, path = str(uuid4()), f"/queues/{quote(ORDERS, safe='')}/receive"
        answer = client.request("POST", path, {"lease": 30, "lease_id": id})
        assert answer["lease"] == id
        with pytest.raises(ServiceError, match="already") as raised:
            client.request("POST", path, {"lease": 30, "lease_id": id})
        assert (raised.value.status, raised.value.http_status) == (
            MqStatus.TRANSACTION_ENLIST,
            409,
        )
        client.request("POST", f"/leases/{id}/abort")
        with pytest.raises(ServiceError, match="lease_id names a lease"):
            client.request("POST", path, {"lease_id": id})
        assert manager.queue(ORDERS).receive(timeout=0).text == "a"
        client.close()


# Waiting over many requests


@pytest.mark.parametrize("name", ["receive", "peek"])
def test_a_long_wait_is_many_requests(
    manager: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "POLL_SECONDS", 0.02)
    orders = manager.create_queue(ORDERS)
    start = time.monotonic()
    with pytest.raises(ReadError, match=r"within 0\.2 seconds") as raised:
        getattr(orders, name)(timeout=0.2)
    assert raised.value.status is MqStatus.IO_TIMEOUT
    assert time.monotonic() - start >= 0.2
    waiting = Background(getattr(manager.queue(ORDERS), name))
    threading.Event().wait(0.1)  # some rounds
    assert not waiting.is_done
    orders.send(Message("at last"))
    assert waiting.result().text == "at last"


def test_a_cursor_waits_at_the_end_over_many_requests(
    manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "POLL_SECONDS", 0.02)
    orders = manager.create_queue(ORDERS)
    orders.send(Message("a"))
    with orders.cursor() as cursor:
        cursor.peek()
        waiting = Background(cursor.peek_next)
        threading.Event().wait(0.1)  # some rounds
        orders.send_many([Message("b"), Message("c")])
        assert waiting.result().text == "b"
        assert cursor.receive().text == "b"
        assert cursor.peek().text == "c"


def test_a_read_in_a_transaction_waits_over_many_requests(
    manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "POLL_SECONDS", 0.02)
    ledger = manager.create_queue(LEDGER, transactional=True)
    with manager.transaction() as transaction:
        waiting = Background(lambda: ledger.receive(transaction))
        threading.Event().wait(0.1)  # some rounds
        with manager.transaction() as other:
            manager.queue(LEDGER).send(Message("a"), other)
        assert waiting.result().text == "a"
    assert ledger.count == 0


# Transactions and time


def test_a_transaction_that_nobody_uses_is_aborted(doors: Doors) -> None:
    with doors.reached("unix", transaction_timeout=1) as manager:
        ledger = manager.create_queue(LEDGER, transactional=True)
        transaction = manager.transaction()
        ledger.send(Message("a"), transaction)
        wait_until(lambda: manager.status().transactions == 0)
        with pytest.raises(TransactionError, match="within 1 seconds") as raised:
            transaction.commit()
        assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE
        assert not transaction.is_active
        assert ledger.count == 0


def test_a_transaction_is_extended_when_half_of_its_time_is_over(tmp_path: Path) -> None:
    # given a client whose clock the test sets
    with (
        HttpManager(tmp_path) as port,
        BreakingProxy(port.address) as proxy,
        falconmq.connect(proxy.url, port.token(), transaction_timeout=60) as manager,
    ):
        now = [1000.0]
        manager.session.clock = lambda: now[0]
        ledger = manager.create_queue(LEDGER, transactional=True)
        with manager.transaction() as transaction:
            # when less than half of the time is over, nothing is to be done
            now[0] += 29
            ledger.send(Message("a"), transaction)
            assert "extend" not in proxy.paths()
            # and later it is extended, once
            now[0] += 2
            ledger.send(Message("b"), transaction)
            ledger.send(Message("c"), transaction)
            assert proxy.paths().count("extend") == 1
        assert ledger.count == 3


# Threads


def test_threads_share_a_manager(doors: Doors) -> None:
    with doors.reached("http") as manager:
        orders = manager.create_queue(ORDERS)
        senders = [
            Background(lambda number=number: _send(orders, number))  # type: ignore[misc]
            for number in range(4)
        ]
        receivers = [Background(lambda: _receive(orders, 25)) for _ in range(4)]
        for sender in senders:
            sender.result()
        received = [text for each in receivers for text in each.result()]
        expected = [f"{thread}.{number}" for thread in range(4) for number in range(25)]
        assert sorted(received) == sorted(expected)


def _send(orders: Any, thread: int) -> None:
    for number in range(25):
        orders.send(Message(f"{thread}.{number}"))


def _receive(orders: Any, count: int) -> list[str]:
    return [orders.receive(timeout=10).text for _ in range(count)]


def test_closing_twice_is_fine_and_the_service_goes_on(doors: Doors) -> None:
    with doors.reached("unix") as manager:
        assert isinstance(manager, QueueManager)
        manager.create_queue(ORDERS)
        manager.close()
        manager.close()
        assert "closed" in repr(manager)
        assert manager.is_closed
        with doors.reached("unix") as other:
            assert [queue.name for queue in other.queues()] == [ORDERS]
