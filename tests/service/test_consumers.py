"""Consumers: claims, fences, leases and acknowledgements, over HTTP and through crashes."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from falconmq import Message
from falconmq.client import CONTROL_SOCKET
from falconmq.client.arrow import MEDIA_TYPE
from falconmq.clock import VirtualClock
from falconmq.errors import ResourceError
from falconmq.service.access import Role
from falconmq.service.requests import acknowledging
from falconmq.service.requests.consumer_records import TABLE
from falconmq.store import MemoryStore, WriteBatch
from falconmq.wire.message_class import MessageClass
from tests.cli.commands import start
from tests.embedded.helpers import Background
from tests.service.asking import LEDGER, ORDERS, Api, clocked_engine, queue_path, texts
from tests.service.control import ControlledManager
from tests.service.services import loopback
from tests.service.test_api_roles import ask
from tests.service.why.situations import lately

RECEIVE = queue_path(ORDERS, "/receive")
ARCHIVE = "/consumers/archive"
JOURNALED = r".\private$\journaled"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def controlled(tmp_path: Path, store: MemoryStore) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        controlled.blocking.create_queue(JOURNALED, journaling=True)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def fill(controlled: ControlledManager, *bodies: str, queue: str = ORDERS) -> None:
    controlled.blocking.queue(queue).send_many(Message(body) for body in bodies)


def in_queue(controlled: ControlledManager, queue: str = ORDERS) -> list[str]:
    return [message.text for message in controlled.blocking.queue(queue)]


def claim(api: Api, *queues: str, name: str = "archive", seconds: float = 60) -> Any:
    wanted = {"queues": queues or (ORDERS,), "seconds": seconds}
    return api.post(f"/consumers/{name}/claim", wanted)


def acknowledge(api: Api, fence: int, below: int, queue: str = ORDERS, **more: Any) -> Any:
    return api.post(f"{ARCHIVE}/acknowledge", {"fence": fence, "queues": {queue: below}, **more})


def advance(controlled: ControlledManager, seconds: float) -> None:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(seconds)
    Api(controlled.path).get("/consumers")  # who looks sees to what is over


# Claims


def test_a_claim_gives_a_fence_and_a_place(controlled: ControlledManager, api: Api) -> None:
    first = claim(api, ORDERS, LEDGER)
    assert first == {
        "consumer": "archive",
        "fence": 1,
        "expires_at": "2023-11-14T22:14:20.000+00:00",
        "queues": {ORDERS: {"next": 0}, LEDGER: {"next": 0}},
    }
    fill(controlled, *"abc")
    acknowledge(api, 1, 3)
    assert claim(api)["queues"] == {ORDERS: {"next": 3}}


def test_the_same_name_takes_over_at_once(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    old = claim(api, ORDERS, LEDGER)["fence"]
    new = claim(api)["fence"]
    assert new == old + 1
    status, error, detail = api.refused(
        "POST", f"{ARCHIVE}/acknowledge", {"fence": old, "queues": {ORDERS: 4}}
    )
    assert (status, error) == (409, "MQ_ERROR_STALE_HANDLE")
    assert "another run of consumer archive took over" in detail
    assert api.refused("POST", f"{ARCHIVE}/renew", {"fence": old})[0] == 409
    assert api.refused("POST", f"{ARCHIVE}/release", {"fence": old})[0] == 409
    assert in_queue(controlled) == ["a", "b", "c"]
    assert acknowledge(api, new, 4)["removed"] == 3
    claim(api, LEDGER, name="other")  # which the new run did not want
    assert len(controlled.engine.core.descriptors) == 2


def test_another_consumer_is_refused_while_the_lease_lives(
    controlled: ControlledManager, api: Api
) -> None:
    claim(api)
    wanted = {"queues": [LEDGER, ORDERS]}
    status, error, detail = api.refused("POST", "/consumers/other/claim", wanted)
    assert (status, error) == (409, "MQ_ERROR_SHARING_VIOLATION")
    assert detail == (
        f"consumer archive has {ORDERS} for itself until 2023-11-14T22:14:20.000+00:00"
    )
    assert len(controlled.engine.core.descriptors) == 1, "all queues or none"
    advance(controlled, 61)
    assert claim(api, name="other")["fence"] == 1
    # and the first one cannot come back to what another one has
    assert api.refused("POST", f"{ARCHIVE}/renew", {"fence": 1})[0] == 409


def test_nobody_else_may_receive_while_the_lease_lives(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *"ab")
    fence = claim(api)["fence"]
    assert api.refused("POST", RECEIVE, {})[:2] == (409, "MQ_ERROR_SHARING_VIOLATION")
    assert texts(api.post(RECEIVE, {"peek": True})) == ["a"]
    fill(controlled, "c")
    assert api.ask("POST", f"{ARCHIVE}/release", {"fence": fence}).status == 204
    assert texts(api.post(RECEIVE, {})) == ["a"]
    assert controlled.engine.core.descriptors == {}


def test_a_queue_that_others_receive_from_cannot_be_claimed(
    controlled: ControlledManager, api: Api
) -> None:
    handle = api.post(queue_path(ORDERS, "/handles"))
    status, error, detail = api.refused("POST", f"{ARCHIVE}/claim", {"queues": [LEDGER, ORDERS]})
    assert (status, error) == (409, "MQ_ERROR_SHARING_VIOLATION")
    assert detail == f"{ORDERS} is open to receive elsewhere"
    assert api.get("/consumers")["consumers"] == []
    assert len(controlled.engine.core.descriptors) == 1
    api.ask("DELETE", f"/handles/{handle['id']}")
    assert claim(api)["fence"] == 1


def test_a_lease_that_is_over_is_taken_again_by_the_newest_fence(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *"abc")
    fence = claim(api, seconds=5)["fence"]
    advance(controlled, 6)
    assert texts(api.post(RECEIVE, {})) == ["a"]
    # when nobody has the queue, who was late goes on
    assert acknowledge(api, fence, 3, seconds=5)["removed"] == 1
    assert api.refused("POST", RECEIVE, {})[0] == 409
    advance(controlled, 6)
    handle = api.post(queue_path(ORDERS, "/handles"))
    wanted = {"fence": fence, "queues": {ORDERS: 4}}
    assert api.refused("POST", f"{ARCHIVE}/acknowledge", wanted)[0] == 409
    assert in_queue(controlled) == ["c"]
    api.ask("DELETE", f"/handles/{handle['id']}")
    assert api.post(f"{ARCHIVE}/renew", {"fence": fence, "seconds": 100}) == {
        "expires_at": "2023-11-14T22:15:12.000+00:00"
    }
    advance(controlled, 90)
    assert api.refused("POST", RECEIVE, {})[0] == 409
    advance(controlled, 11)
    assert texts(api.post(RECEIVE, {})) == ["c"]


def test_a_lease_is_renewed_while_it_lives(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    fence = claim(api, seconds=5)["fence"]
    api.post(f"{ARCHIVE}/renew", {"fence": fence, "seconds": 100})
    advance(controlled, 90)
    assert api.refused("POST", RECEIVE, {})[0] == 409
    advance(controlled, 11)
    assert texts(api.post(RECEIVE, {})) == ["a"]


# Acknowledgements


def test_everything_below_a_number_is_removed_as_received(
    controlled: ControlledManager, api: Api
) -> None:
    reasons: list[int] = []
    controlled.engine.core.deleted_subscribers.append(lambda _, __, reason: reasons.append(reason))
    fill(controlled, *"abcd", queue=JOURNALED)
    fence = claim(api, JOURNALED)["fence"]
    done = acknowledge(api, fence, 3, JOURNALED)
    assert done == {"removed": 2, "locked": 0, "expires_at": "2023-11-14T22:14:20.000+00:00"}
    assert in_queue(controlled, JOURNALED) == ["c", "d"]
    assert in_queue(controlled, JOURNALED + ";journal") == ["a", "b"]
    assert reasons == [MessageClass.ACK_RECEIVE] * 2
    # again, and less: nothing
    assert acknowledge(api, fence, 3, JOURNALED)["removed"] == 0
    assert acknowledge(api, fence, 1, JOURNALED)["removed"] == 0
    (place,) = api.get("/consumers")["consumers"][0]["queues"]
    assert (place["next"], place["behind"]) == (3, 2)


def test_an_acknowledgement_that_changes_nothing_writes_nothing(
    controlled: ControlledManager, api: Api, store: MemoryStore
) -> None:
    fill(controlled, "a")
    fence = claim(api)["fence"]
    acknowledge(api, fence, 2)
    commits = store.statistics().commits
    acknowledge(api, fence, 2)
    api.post(f"{ARCHIVE}/renew", {"fence": fence})
    assert store.statistics().commits == commits


def test_urgent_messages_that_came_later_stay(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    controlled.blocking.queue(ORDERS).send(Message("urgent", priority=7))
    fence = claim(api)["fence"]
    assert acknowledge(api, fence, 2)["removed"] == 1
    assert in_queue(controlled) == ["urgent"]


def test_many_are_removed_in_several_turns(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledging, "TURN_MESSAGES", 3)
    fill(controlled, *"abcdefghijk")
    fence = claim(api, ORDERS, LEDGER)["fence"]
    assert acknowledge(api, fence, 11)["removed"] == 10
    assert in_queue(controlled) == ["k"]


def test_messages_that_a_transaction_holds_stay_until_it_lets_go(
    controlled: ControlledManager, api: Api
) -> None:
    ledger = controlled.blocking.queue(LEDGER)
    with controlled.blocking.transaction() as transaction:
        ledger.send(Message("a"), transaction)
        ledger.send(Message("b"), transaction)
    with controlled.blocking.transaction() as holder:
        ledger.receive(transaction=holder)
        ledger.close()
        fence = claim(api, LEDGER)["fence"]
        done = acknowledge(api, fence, 5, LEDGER)
        assert (done["removed"], done["locked"]) == (1, 1)
        holder.abort()
    assert in_queue(controlled, LEDGER) == ["a"]
    # then it goes with the next word, and a smaller number takes nothing back
    assert acknowledge(api, fence, 4, LEDGER)["removed"] == 1
    assert api.get("/consumers")["consumers"][0]["queues"][0]["next"] == 5


@pytest.mark.parametrize(
    ("queue", "below", "words"),
    [
        (ORDERS, 3, "arrival number 3 of"),
        (LEDGER, 1, "has not claimed"),
    ],
)
def test_what_cannot_be_is_refused(
    controlled: ControlledManager, api: Api, queue: str, below: int, words: str
) -> None:
    fill(controlled, "a")
    fence = claim(api)["fence"]
    wanted = {"fence": fence, "queues": {ORDERS: 2, queue: below}}
    status, error, detail = api.refused("POST", f"{ARCHIVE}/acknowledge", wanted)
    assert (status, error) == (400, "MQ_ERROR_INVALID_PARAMETER")
    assert words in detail
    assert in_queue(controlled) == ["a"]


def test_a_write_that_fails_removes_nothing(
    controlled: ControlledManager, api: Api, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(controlled, *"ab")
    fence = claim(api)["fence"]
    whole = store.commit

    def full(batches: list[WriteBatch]) -> None:
        raise ResourceError("the disk is full")

    monkeypatch.setattr(store, "commit", full)
    assert api.refused("POST", "/consumers/other/claim", {"queues": [LEDGER]})[0] >= 400
    assert len(controlled.engine.core.descriptors) == 1, "what was not claimed is not kept"
    assert api.refused("POST", f"{ARCHIVE}/claim", {"queues": [ORDERS]})[0] >= 400
    wanted = {"fence": fence, "queues": {ORDERS: 3}}
    assert api.refused("POST", f"{ARCHIVE}/acknowledge", wanted)[0] >= 400
    monkeypatch.setattr(store, "commit", whole)
    assert in_queue(controlled) == ["a", "b"]
    assert api.get("/consumers")["consumers"][0]["queues"][0]["next"] == 0
    assert acknowledge(api, fence, 3)["removed"] == 2, "no newer fence was given"


# What is known of them


def test_consumers_are_listed_and_forgotten(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    claim(api, ORDERS, LEDGER)
    acknowledge(api, 1, 2)
    claim(api, JOURNALED, name="billing", seconds=5)
    advance(controlled, 10)
    assert api.get("/consumers") == {
        "consumers": [
            {
                "name": "archive",
                "fence": 1,
                "is_live": True,
                "expires_at": "2023-11-14T22:14:20.000+00:00",
                "queues": [
                    {
                        "queue": ORDERS,
                        "next": 2,
                        "behind": 2,
                        "updated_at": "2023-11-14T22:13:20.000+00:00",
                    },
                    {"queue": LEDGER, "next": 0, "behind": 0, "updated_at": None},
                ],
            },
            {
                "name": "billing",
                "fence": 1,
                "is_live": False,
                "expires_at": None,
                "queues": [{"queue": JOURNALED, "next": 0, "behind": 0, "updated_at": None}],
            },
        ]
    }
    assert api.ask("DELETE", ARCHIVE).status == 204
    assert texts(api.post(RECEIVE, {})) == ["b"]
    wanted = {"fence": 1, "queues": {ORDERS: 2}}
    assert api.refused("POST", f"{ARCHIVE}/acknowledge", wanted)[0] == 404
    assert api.refused("DELETE", ARCHIVE)[0] == 404


def test_a_place_goes_with_its_queue(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    fence = claim(api, ORDERS, LEDGER)["fence"]
    acknowledge(api, fence, 2)
    assert api.ask("DELETE", queue_path(ORDERS)).status == 204
    controlled.blocking.create_queue(ORDERS)
    assert [q["queue"] for q in api.get("/consumers")["consumers"][0]["queues"]] == [LEDGER]
    assert claim(api)["queues"] == {ORDERS: {"next": 0}}


def test_metrics_and_why_tell_how_far_behind_it_is(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    claim(api, ORDERS, LEDGER)
    acknowledge(api, 1, 2)
    scraped = Api(controlled.path, "").ask("GET", "/metrics").content.decode()
    name = ORDERS.replace("\\", "\\\\")
    assert f'falconmq_consumer_behind_messages{{consumer="archive",queue="{name}"}} 2.0' in scraped
    facts = api.get("/why?" + urlencode({"subject": ORDERS}))["facts"]
    told = [fact["value"] for fact in facts if fact["label"] == "consumer"]
    assert [lately(text) for text in told] == ["archive: 2 messages behind, acknowledged just now"]
    facts = api.get("/why?" + urlencode({"subject": LEDGER}))["facts"]
    told = [fact["value"] for fact in facts if fact["label"] == "consumer"]
    assert told == ["archive: 0 messages behind, acknowledged never"]


@pytest.mark.parametrize("name", ["a" * 201, "%00", "%F0%9F%A6%85" * 150])
def test_a_bad_name_is_refused(api: Api, name: str) -> None:
    wanted = {"queues": [ORDERS]}
    assert api.refused("POST", f"/consumers/{name}/claim", wanted)[0] == 400


def test_a_damaged_record_is_told_and_can_be_deleted(
    controlled: ControlledManager, api: Api, store: MemoryStore
) -> None:
    batch = WriteBatch()
    batch.put(TABLE, b"archive", b'{"version": 9}')
    store.commit([batch])
    assert "archive cannot be read" in api.refused("GET", "/consumers")[2]
    assert api.ask("DELETE", ARCHIVE).status == 204
    assert api.get("/consumers") == {"consumers": []}


# Restarts


def test_a_restart_keeps_fences_and_places(tmp_path: Path, store: MemoryStore) -> None:
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        controlled.blocking.create_queue(ORDERS)
        fill(controlled, *"abc")
        api = Api(controlled.path)
        fence = claim(api)["fence"]
        acknowledge(api, fence, 2)
    store.crash()
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        api = Api(controlled.path)
        assert api.get("/consumers")["consumers"][0]["is_live"] is False
        assert acknowledge(api, fence, 3)["removed"] == 1
        assert api.refused("POST", RECEIVE, {})[0] == 409
        assert claim(api)["fence"] == fence + 1


class Daemon:
    """A service in a process of its own, and the API on its socket."""

    def __init__(self, data: Path, bind: str) -> None:
        self._process = start(
            "serve", "--data", str(data), "--bind", bind,
            environment={"FALCONMQ_HTTP_ENABLED": "false"},
        )  # fmt: skip
        assert self._process.stderr is not None
        while b"listening" not in (line := self._process.stderr.readline()):
            assert line, "it did not start"
        self.api = Api(data / CONTROL_SOCKET)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def numbers(api: Api, first: int, stop: int) -> list[int]:
    """The bodies of a range."""
    path = queue_path(ORDERS, f"/messages?from_arrival={first}&to_arrival={stop}&columns=body")
    answer = api.ask("GET", path, headers={"Accept": MEDIA_TYPE})
    with pa.ipc.open_stream(answer.content) as reader:
        return [int(body.decode("utf-16-le")) for body in reader.read_all()["body"].to_pylist()]


def test_a_kill_while_it_acknowledges_loses_and_doubles_nothing(tmp_path: Path) -> None:
    # given a consumer that keeps its offset and what it has done in one place
    total, step, offset, done = 3000, 1500, 0, list[int]()
    bind = loopback()
    daemon = Daemon(tmp_path, bind)
    try:
        daemon.api.post("/queues", {"name": ORDERS})
        for first in range(0, total, 1000):
            texts_ = [{"text": str(number)} for number in range(first, first + 1000)]
            daemon.api.post(queue_path(ORDERS, "/messages"), {"messages": texts_})
        while len(done) < total:
            api = daemon.api
            claimed = claim(api)
            fence, acknowledged = claimed["fence"], claimed["queues"][ORDERS]["next"]
            state = api.get(queue_path(ORDERS, "/arrivals"))
            # then what was acknowledged is gone, and what was not is there
            assert acknowledged <= offset
            assert state["first"] >= acknowledged
            assert len(numbers(api, offset, state["next"])) == total - len(done)
            end = api.get(queue_path(ORDERS, f"/arrivals/plan?from={offset}&messages={step}"))["to"]
            done += numbers(api, offset, end)
            offset = end
            # when the service is killed while it removes
            removing = Background(partial(acknowledge, api, fence, offset))
            count = state["count"]
            while (
                not removing.is_done and api.get(queue_path(ORDERS, "/arrivals"))["count"] == count
            ):
                pass
            daemon.kill()
            with contextlib.suppress(OSError, http.client.HTTPException):
                removing.result()
            daemon = Daemon(tmp_path, bind)
        # then all of it was done once, and what is left can be acknowledged
        assert done == list(range(total))
        fence = claim(daemon.api)["fence"]
        assert fence == total // step + 1
        acknowledge(daemon.api, fence, offset)
        assert daemon.api.get(queue_path(ORDERS, "/arrivals"))["count"] == 0
    finally:
        daemon.kill()


# Who may do what


@pytest.mark.parametrize(
    ("method", "path", "body", "role"),
    [
        ("GET", queue_path(ORDERS, "/arrivals"), None, Role.READ),
        ("GET", queue_path(ORDERS, "/arrivals/plan"), None, Role.READ),
        ("GET", "/consumers", None, Role.READ),
        ("POST", f"{ARCHIVE}/claim", {"queues": [ORDERS]}, Role.RECEIVE),
        ("POST", f"{ARCHIVE}/acknowledge", {"fence": 1, "queues": {}}, Role.RECEIVE),
        ("POST", f"{ARCHIVE}/renew", {"fence": 1}, Role.RECEIVE),
        ("POST", f"{ARCHIVE}/release", {"fence": 1}, Role.RECEIVE),
        ("DELETE", ARCHIVE, None, Role.MANAGE),
    ],
)
def test_every_route_asks_for_its_role(method: str, path: str, body: object, role: Role) -> None:
    others = tuple(other for other in Role if other not in (role, Role.MANAGE))
    assert ask(others, method, path, body, {}) == 403
    assert ask((role,), method, path, body, {}) in (200, 404)
