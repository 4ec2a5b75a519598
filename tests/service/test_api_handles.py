"""Handles and cursors over HTTP: what stays open between requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from falconmq import Message
from falconmq.client.packets import from_packets
from falconmq.clock import VirtualClock
from falconmq.service.requests import handles
from tests.embedded.helpers import Background, threaded_engine, wait_until, waiting_reads
from tests.service.asking import LEDGER, ORDERS, PACKETS, Api, clocked_engine, queue_path, texts
from tests.service.control import ControlledManager

RECEIVE = queue_path(ORDERS, "/receive")
HANDLES = queue_path(ORDERS, "/handles")
CURSORS = queue_path(ORDERS, "/cursors")


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path, clocked_engine()[0]) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def clock_of(controlled: ControlledManager) -> VirtualClock:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    return clock


def fill(controlled: ControlledManager, *bodies: str) -> None:
    controlled.blocking.queue(ORDERS).send_many(Message(body) for body in bodies)


def in_orders(controlled: ControlledManager) -> list[str]:
    return [message.text for message in controlled.blocking.queue(ORDERS)]


def step(api: Api, cursor: str, **wanted: object) -> Any:
    return texts(api.post(RECEIVE, {"cursor": cursor, **wanted}))


# Handles


def test_an_exclusive_handle_keeps_others_from_receiving(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "a", "b")
    opened = api.post(HANDLES, {"exclusive": True})
    assert opened == {
        "id": opened["id"],
        "queue": ORDERS,
        "exclusive": True,
        "timeout": 300.0,
        "expires_at": "2023-11-14T22:18:20.000+00:00",
    }
    refusal = api.refused("POST", RECEIVE, {})
    assert refusal[:2] == (409, "MQ_ERROR_SHARING_VIOLATION")
    assert api.refused("POST", HANDLES)[0] == 409
    assert texts(api.post(RECEIVE, {"peek": True})) == ["a"]
    assert texts(api.post(RECEIVE, {"handle": opened["id"]})) == ["a"]
    assert api.ask("DELETE", f"/handles/{opened['id']}").status == 204
    assert texts(api.post(RECEIVE, {})) == ["b"]
    assert not controlled.engine.core.descriptors


def test_handles_that_deny_nothing_go_together(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a", "b", "c")
    first, second = api.post(HANDLES), api.post(HANDLES, {"timeout": 10})
    assert (first["exclusive"], second["timeout"]) == (False, 10)
    assert texts(api.post(RECEIVE, {"handle": first["id"]})) == ["a"]
    assert texts(api.post(RECEIVE, {"handle": second["id"]})) == ["b"]
    assert api.refused("POST", HANDLES, {"exclusive": True})[0] == 409
    assert texts(api.post(RECEIVE, {"handle": first["id"], "peek": True})) == ["c"]


def test_a_handle_that_nobody_uses_is_closed(controlled: ControlledManager, api: Api) -> None:
    id = api.post(HANDLES, {"exclusive": True, "timeout": 30})["id"]
    clock_of(controlled).advance(29)
    api.post(RECEIVE, {"handle": id})  # that is use
    clock_of(controlled).advance(29)
    extended = api.post(f"/handles/{id}/extend", {"timeout": 100})
    assert extended["expires_at"] == "2023-11-14T22:15:58.000+00:00"
    clock_of(controlled).advance(99)
    api.post(f"/handles/{id}/extend")
    clock_of(controlled).advance(100)
    answer = api.ask("POST", RECEIVE, {"handle": id})
    assert (answer.status, answer.json["error"]) == (404, "MQ_ERROR_INVALID_HANDLE")
    assert "nobody used it" in answer.json["hint"]
    assert texts(api.post(RECEIVE, {})) == []  # others may again


def test_a_handle_is_closed_although_nobody_asks(tmp_path: Path) -> None:
    with ControlledManager(tmp_path, threaded_engine()) as controlled:
        controlled.blocking.create_queue(ORDERS)
        Api(controlled.path).post(HANDLES, {"exclusive": True, "timeout": 1})
        wait_until(lambda: not controlled.engine.core.descriptors)


def test_a_read_that_waits_keeps_its_handle_open(controlled: ControlledManager, api: Api) -> None:
    id = api.post(HANDLES, {"timeout": 30})["id"]
    waiting = Background(lambda: texts(api.post(RECEIVE, {"handle": id, "timeout": 3600})))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    clock_of(controlled).advance(1000)
    api.get("/leases")  # somebody looks at the clock
    fill(controlled, "a")
    assert waiting.result() == ["a"]
    api.post(f"/handles/{id}/extend")


def test_closing_a_handle_ends_the_reads_that_wait(controlled: ControlledManager, api: Api) -> None:
    id = api.post(HANDLES)["id"]
    wanted = {"handle": id, "timeout": 600}
    waiting = Background(lambda: api.refused("POST", RECEIVE, wanted))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    assert api.ask("DELETE", f"/handles/{id}").status == 204
    assert waiting.result()[1] == "MQ_ERROR_OPERATION_CANCELLED"
    assert api.refused("DELETE", f"/handles/{id}")[0] == 404


def test_closing_a_handle_gives_back_what_was_leased_through_it(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "a")
    id = api.post(HANDLES, {"exclusive": True})["id"]
    lease = api.post(RECEIVE, {"handle": id, "lease": 60})["lease"]
    assert in_orders(controlled) == []
    api.ask("DELETE", f"/handles/{id}")
    assert in_orders(controlled) == ["a"]
    _, _, detail = api.refused("POST", f"/leases/{lease}/commit")
    assert detail.endswith("was aborted: its handle or cursor was closed")


def test_a_lease_through_a_handle_is_committed(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a", "b")
    id = api.post(HANDLES, {"exclusive": True})["id"]
    lease = api.post(RECEIVE, {"handle": id, "lease": 60})["lease"]
    assert api.post(f"/leases/{lease}/commit")["state"] == "committed"
    assert texts(api.post(RECEIVE, {"handle": id})) == ["b"]  # it is still open


def test_a_handle_goes_with_its_own_queue(api: Api) -> None:
    id = api.post(HANDLES)["id"]
    refusal = api.refused("POST", queue_path(LEDGER, "/receive"), {"handle": id})
    assert refusal[1] == "MQ_ERROR_INVALID_HANDLE"
    named = r"DIRECT=OS:.\private$\orders"
    assert texts(api.post(queue_path(named, "/receive"), {"handle": id})) == []


def test_a_remote_or_unknown_queue_is_not_opened(controlled: ControlledManager, api: Api) -> None:
    remote = r"DIRECT=OS:sales02\private$\orders"
    for tail in ("/handles", "/cursors", "/receive"):
        refusal = api.refused("POST", queue_path(remote, tail), {})
        assert refusal[:2] == (400, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION")
        assert api.refused("POST", queue_path(r".\private$\nothing", tail), {})[0] == 404
        here = r"DIRECT=OS:.\private$\nothing"
        assert api.refused("POST", queue_path(here, tail), {})[0] == 404
    assert not controlled.engine.core.outgoing


def test_a_handle_on_a_queue_that_was_deleted(controlled: ControlledManager, api: Api) -> None:
    id = api.post(HANDLES)["id"]
    controlled.blocking.delete_queue(ORDERS)
    assert api.refused("POST", RECEIVE, {"handle": id})[0] == 410
    assert api.ask("DELETE", f"/handles/{id}").status == 204


def test_no_more_than_ten_thousand_are_open(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "OPEN_MAX", 1)
    api.post(HANDLES)
    assert api.refused("POST", HANDLES)[0] == 507
    api.post(CURSORS)
    assert api.refused("POST", CURSORS)[0] == 507


# Cursors


def test_a_cursor_walks_along_a_queue(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    opened = api.post(CURSORS)
    assert opened == {
        "id": opened["id"],
        "queue": ORDERS,
        "peek": False,
        "timeout": 300.0,
        "expires_at": "2023-11-14T22:18:20.000+00:00",
    }
    id = opened["id"]
    assert step(api, id, peek=True) == ["a"]
    assert step(api, id, peek=True) == ["a"]
    assert step(api, id, peek=True, next=True) == ["b"]
    assert step(api, id) == ["b"]
    assert in_orders(controlled) == ["a", "c"]
    assert step(api, id, peek=True) == ["c"]
    assert step(api, id, peek=True, next=True) == []
    assert api.ask("DELETE", f"/cursors/{id}").status == 204
    assert api.refused("POST", RECEIVE, {"cursor": id})[:2] == (404, "MQ_ERROR_INVALID_HANDLE")
    assert not controlled.engine.core.cursors
    assert not controlled.engine.core.descriptors


def test_a_cursor_says_what_the_core_says(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    id = api.post(CURSORS)["id"]
    refusal = api.refused("POST", RECEIVE, {"cursor": id, "peek": True, "next": True})
    assert refusal[1] == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    step(api, id, peek=True)
    api.post(RECEIVE, {})
    refusal = api.refused("POST", RECEIVE, {"cursor": id})
    assert refusal[:2] == (409, "MQ_ERROR_MESSAGE_ALREADY_RECEIVED")


def test_a_cursor_waits_at_the_end_of_the_queue(controlled: ControlledManager, api: Api) -> None:
    id = api.post(CURSORS)["id"]
    waiting = Background(lambda: step(api, id, peek=True, timeout=600))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    fill(controlled, "a")
    assert waiting.result() == ["a"]
    assert step(api, id) == ["a"]
    waiting = Background(lambda: step(api, id, timeout=600))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    fill(controlled, "b")
    assert waiting.result() == ["b"]


def test_a_cursor_reads_in_transactions_and_with_leases(
    controlled: ControlledManager, api: Api
) -> None:
    queue = controlled.blocking.queue(LEDGER)
    with controlled.blocking.transaction() as own:
        queue.send_many([Message(body) for body in "abc"], own)
    id = api.post(queue_path(LEDGER, "/cursors"))["id"]
    transaction = api.post("/transactions", {})["id"]
    receive = queue_path(LEDGER, "/receive")
    assert texts(api.post(receive, {"cursor": id, "peek": True})) == ["a"]
    assert texts(api.post(receive, {"cursor": id, "transaction": transaction})) == ["a"]
    leased = api.post(receive, {"cursor": id, "lease": 60})
    assert texts(leased) == ["b"]
    api.post(f"/transactions/{transaction}/abort")
    api.post(f"/leases/{leased['lease']}/commit")
    assert [message.text for message in queue] == ["a", "c"]


def test_a_cursor_gives_packets(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a", "b")
    id = api.post(CURSORS)["id"]
    for wanted, text in (({"peek": True}, "a"), ({"peek": True, "next": True}, "b"), ({}, "b")):
        answer = api.ask("POST", RECEIVE, {"cursor": id, **wanted}, {"Accept": PACKETS})
        assert [message.text for message in from_packets(answer.content)] == [text]


def test_a_cursor_for_peeking_does_not_receive(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    handle = api.post(HANDLES, {"exclusive": True})["id"]
    id = api.post(CURSORS, {"peek": True})["id"]  # an exclusive reader does not mind
    assert step(api, id, peek=True) == ["a"]
    assert api.refused("POST", RECEIVE, {"cursor": id})[:2] == (403, "MQ_ERROR_ACCESS_DENIED")
    assert api.refused("POST", CURSORS)[:2] == (409, "MQ_ERROR_SHARING_VIOLATION")
    through = api.post(CURSORS, {"handle": handle})["id"]
    assert step(api, through) == ["a"]


def test_a_cursor_closes_with_its_handle_and_keeps_it_open(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "a")
    handle = api.post(HANDLES, {"timeout": 30})["id"]
    id = api.post(CURSORS, {"handle": handle})["id"]
    clock_of(controlled).advance(29)
    assert step(api, id, peek=True) == ["a"]
    clock_of(controlled).advance(29)
    assert step(api, id, peek=True) == ["a"]
    api.ask("DELETE", f"/handles/{handle}")
    assert not controlled.engine.core.cursors
    assert api.refused("POST", RECEIVE, {"cursor": id, "peek": True})[0] == 404


def test_a_cursor_that_nobody_uses_is_closed(controlled: ControlledManager, api: Api) -> None:
    id = api.post(CURSORS, {"timeout": 30})["id"]
    clock_of(controlled).advance(30)
    assert api.refused("POST", RECEIVE, {"cursor": id, "peek": True})[0] == 404
    wait_until(lambda: not controlled.engine.core.cursors)


@pytest.mark.parametrize(
    "wanted",
    [
        {"next": True},
        {"cursor": str(uuid4()), "next": True},
        {"cursor": str(uuid4()), "count": 2},
        {"cursor": str(uuid4()), "lookup_id": "5"},
        {"cursor": str(uuid4()), "handle": str(uuid4())},
        {"seek": "next"},
        {"lease": 0.5},
        {"lease": 3601},
    ],
)
def test_what_does_not_go_together_is_refused(api: Api, wanted: dict[str, object]) -> None:
    assert api.refused("POST", RECEIVE, wanted)[0] == 422


# Seeking


def test_messages_are_found_from_a_lookup_id(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abcd")
    ids = [each["lookup_id"] for each in api.post(RECEIVE, {"peek": True, "count": 4})["messages"]]
    for wanted, text in (
        ({"lookup_id": ids[1]}, "b"),
        ({"lookup_id": ids[1], "seek": "current"}, "b"),
        ({"lookup_id": ids[1], "seek": "next"}, "c"),
        ({"lookup_id": ids[1], "seek": "previous"}, "a"),
        ({"seek": "first"}, "a"),
        ({"seek": "last"}, "d"),
    ):
        assert texts(api.post(RECEIVE, {"peek": True, **wanted})) == [text]
    assert texts(api.post(RECEIVE, {"seek": "last"})) == ["d"]
    assert texts(api.post(RECEIVE, {"lookup_id": ids[1], "seek": "previous"})) == ["a"]
    answer = api.ask("POST", RECEIVE, {"seek": "first", "peek": True}, {"Accept": PACKETS})
    assert [message.text for message in from_packets(answer.content)] == ["b"]
    refusal = api.refused("POST", RECEIVE, {"lookup_id": ids[2], "seek": "next"})
    assert refusal[:2] == (404, "MQ_ERROR_MESSAGE_NOT_FOUND")


def test_a_subqueue_comes_to_be_when_it_is_read(api: Api) -> None:
    late = ORDERS + ";late"
    assert api.refused("GET", queue_path(late))[0] == 404
    assert texts(api.post(queue_path(late, "/receive"), {})) == []
    assert api.get(queue_path(late))["name"] == late
