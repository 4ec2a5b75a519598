"""Browsing over HTTP: pages, single messages, deleting and moving them."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from falconmq import Message, aio
from falconmq.body import BodyType
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.positions import START
from falconmq.message import Acknowledge, MessageClass
from falconmq.service.api.browse import delete_message
from falconmq.service.api.context import Control
from falconmq.service.requests import browsing
from falconmq.service.requests.finding import find_local
from tests.embedded.helpers import Background, GatedStore, threaded_engine, wait_until
from tests.service.asking import LEDGER, ORDERS, Api, queue_path, texts
from tests.service.control import ControlledManager
from tests.service.services import run, serving, until

MESSAGES = queue_path(ORDERS, "/messages")
RECEIVE = queue_path(ORDERS, "/receive")
MOVE = queue_path(ORDERS, "/messages/move")
ACKS = r".\private$\acks"
OTHER = r".\private$\other"


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def fill(controlled: ControlledManager, *bodies: str) -> list[str]:
    """Send messages; their lookup ids."""
    queue = controlled.blocking.queue(ORDERS)
    queue.send_many(Message(body) for body in bodies)
    return [str(message.lookup_id) for message in queue]


def in_orders(controlled: ControlledManager) -> list[str]:
    return [message.text for message in controlled.blocking.queue(ORDERS)]


def page(api: Api, query: str = "") -> Any:
    return api.get(MESSAGES + query)


# Pages


def test_a_queue_is_read_page_by_page_forward_and_back(
    controlled: ControlledManager, api: Api
) -> None:
    ids = fill(controlled, *"abcdefg")
    first = page(api, "?count=3")
    second = page(api, f"?count=3&after={first['next']}")
    third = page(api, f"?count=3&after={second['next']}")
    assert [texts(each) for each in (first, second, third)] == [[*"abc"], [*"def"], ["g"]]
    assert [each["next"] for each in (first, second, third)] == [ids[2], ids[5], None]
    assert [each["previous"] for each in (first, second, third)] == [None, ids[3], ids[6]]
    back = page(api, f"?count=2&before={third['previous']}")
    assert (texts(back), back["next"], back["previous"]) == (["e", "f"], ids[5], ids[4])
    front = page(api, f"?count=9&before={back['previous']}")
    assert (texts(front), front["next"], front["previous"]) == ([*"abcd"], ids[3], None)
    assert in_orders(controlled) == [*"abcdefg"]


def test_a_page_goes_on_where_a_message_was_that_is_gone(
    controlled: ControlledManager, api: Api
) -> None:
    ids = fill(controlled, *"abcd")
    api.post(RECEIVE, {"lookup_id": ids[1]})
    assert texts(page(api, f"?after={ids[1]}")) == ["c", "d"]
    assert texts(page(api, f"?before={ids[1]}")) == ["a"]


def test_an_empty_page_shows_the_way_back(controlled: ControlledManager, api: Api) -> None:
    assert page(api) == {"messages": [], "next": None, "previous": None, "held": 0}
    ids = fill(controlled, "a", "b")
    behind = page(api, f"?after={ids[1]}")
    assert (behind["messages"], behind["next"], behind["previous"]) == ([], None, ids[1])
    ahead = page(api, f"?before={ids[0]}")
    assert (ahead["messages"], ahead["next"], ahead["previous"]) == ([], ids[0], None)


def test_fifty_messages_are_a_page(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *[str(number) for number in range(60)])
    assert len(page(api)["messages"]) == 50


@pytest.mark.parametrize(
    "query", ["?count=0", "?count=1001", "?after=x", "?before=x", "?after=1&before=2", "?body=all"]
)
def test_a_wrong_question_is_refused(api: Api, query: str) -> None:
    assert api.refused("GET", MESSAGES + query)[0] == 422


def test_what_others_hold_is_counted_and_not_shown(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    lease = api.post(RECEIVE, {"lease": 60, "count": 2})["lease"]
    shown = page(api)
    assert (texts(shown), shown["held"]) == (["c"], 2)
    api.post(f"/leases/{lease}/abort")
    assert page(api)["held"] == 0


def test_journals_subqueues_and_dead_letters_are_browsed(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(ORDERS).update(journaling=True)
    ids = fill(controlled, "a", "b")
    api.post(RECEIVE, {})
    assert texts(api.get(queue_path(ORDERS + ";journal", "/messages"))) == ["a"]
    api.post(MOVE, {"lookup_ids": [ids[1]], "target": ORDERS + ";late"})
    assert texts(api.get(queue_path(ORDERS + ";late", "/messages"))) == ["b"]
    assert texts(api.get(queue_path(r".\system$;deadletter", "/messages"))) == []


def test_what_cannot_be_browsed_is_refused(controlled: ControlledManager, api: Api) -> None:
    remote = queue_path(r"DIRECT=OS:sales02\private$\orders", "/messages")
    assert api.refused("GET", remote)[1] == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert api.refused("GET", queue_path(r".\private$\nothing", "/messages"))[0] == 404
    internal = queue_path(r".\private$\order_queue$", "/messages")
    assert api.refused("GET", internal)[:2] == (403, "MQ_ERROR_ACCESS_DENIED")
    assert not controlled.engine.core.outgoing


def test_a_page_is_shown_when_its_messages_are_durable() -> None:
    async def main() -> None:
        store = GatedStore()
        engine = threaded_engine(store)
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(ORDERS)
        store.gate.clear()
        sending = asyncio.ensure_future(queue.send(Message("a")))
        await until(lambda: queue.count == 1)
        looking = asyncio.ensure_future(browsing.page_of(engine, ORDERS, 10))
        showing = asyncio.ensure_future(
            browsing.message_at(engine, ORDERS, engine.look(_first_place, ORDERS))
        )
        done, _ = await asyncio.wait({looking, showing}, timeout=0.05)
        assert not done
        store.gate.set()
        assert len((await looking).positions) == 1
        await showing
        await sending
        await manager.close()

    run(main())


def _first_place(core: QueueManagerCore, name: str) -> int:
    found = find_local(core, name).positions.after(START, peek=True)
    assert found is not None
    return found


def test_large_messages_make_smaller_pages(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "ANSWER_BYTES", 1000)
    ids = fill(controlled, *["x" * 400] * 5)
    found = page(api)
    assert (len(found["messages"]), found["next"]) == (2, ids[1])


# Bodies


def test_a_body_is_shown_whole_in_part_or_not(controlled: ControlledManager, api: Api) -> None:
    text = "ä" * 1000
    controlled.blocking.queue(ORDERS).send(Message(text))
    size = 2 * len(text)
    preview = page(api)["messages"][0]
    assert preview["body_size"] == size
    assert len(base64.b64decode(preview["body"])) == 512
    assert preview["text"] == "ä" * 256
    full = page(api, "?body=full")["messages"][0]
    assert (full["text"], len(base64.b64decode(full["body"]))) == (text, size)
    none = page(api, "?body=none")["messages"][0]
    assert (none["text"], none["body"], none["body_size"]) == (None, "", size)
    assert full["summary"] == preview["summary"] == none["summary"]


@pytest.mark.parametrize(
    ("body", "body_type", "text"),
    [
        ("x" + "é" * 600, BodyType.VT_EMPTY, "x" + "é" * 255),  # the cut goes through a character
        ("x" + "\U0001f600" * 300, BodyType.VT_BSTR, "x" + "\U0001f600" * 127),
        ("x" + "\U0001f600" * 300, BodyType.VT_EMPTY, "x" + "\U0001f600" * 127),
        ("short", BodyType.VT_BSTR, "short"),
    ],
)
def test_a_preview_ends_with_a_whole_character(
    controlled: ControlledManager, api: Api, body: str, body_type: BodyType, text: str
) -> None:
    data: str | bytes = body.encode() if body_type is BodyType.VT_EMPTY else body
    controlled.blocking.queue(ORDERS).send(Message(data, body_type=body_type))
    assert page(api)["messages"][0]["text"] == text


def test_a_body_that_is_no_text_has_a_preview_of_bytes(
    controlled: ControlledManager, api: Api
) -> None:
    data = b"\xff" * 600
    controlled.blocking.queue(ORDERS).send(Message(data))
    shown = page(api)["messages"][0]
    assert (shown["text"], base64.b64decode(shown["body"])) == (None, data[:512])


# One message


def test_one_message_is_shown_whole(controlled: ControlledManager, api: Api) -> None:
    ids = fill(controlled, "a", "x" * 2000)
    shown = api.get(f"{MESSAGES}/{ids[1]}")
    assert (shown["text"], shown["lookup_id"]) == ("x" * 2000, ids[1])
    assert api.refused("GET", f"{MESSAGES}/1")[:2] == (404, "MQ_ERROR_MESSAGE_NOT_FOUND")
    assert api.refused("GET", f"{MESSAGES}/x")[0] == 422
    api.post(RECEIVE, {"lease": 60})
    assert api.refused("GET", f"{MESSAGES}/{ids[0]}")[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")


def test_a_deleted_message_leaves_as_if_it_were_purged(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(ORDERS).update(journaling=True)
    reasons = []
    controlled.engine.core.deleted_subscribers.append(
        lambda _queue, _position, reason: reasons.append(reason)
    )
    ids = fill(controlled, *"abc")
    assert api.ask("DELETE", f"{MESSAGES}/{ids[1]}").status == 204
    assert in_orders(controlled) == ["a", "c"]
    assert reasons == [MessageClass.NACK_Q_PURGED]
    assert controlled.blocking.queue(ORDERS).journal.count == 0
    assert api.refused("DELETE", f"{MESSAGES}/{ids[1]}")[0] == 404


def test_a_message_that_somebody_holds_is_not_deleted(
    controlled: ControlledManager, api: Api
) -> None:
    ids = fill(controlled, "a")
    lease = api.post(RECEIVE, {"lease": 60})["lease"]
    refusal = api.refused("DELETE", f"{MESSAGES}/{ids[0]}")
    assert refusal[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")
    assert api.post(f"/leases/{lease}/commit")["state"] == "committed"


def test_a_deletion_is_durable_when_the_answer_comes(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        ids = fill(controlled, "a")
        store.gate.clear()
        api = Api(controlled.path)
        deleting = Background(lambda: api.ask("DELETE", f"{MESSAGES}/{ids[0]}"))
        wait_until(lambda: controlled.blocking.queue(ORDERS).count == 0)
        assert not deleting.is_done
        store.gate.set()
        assert deleting.result().status == 204


# Moving


def test_messages_are_moved_to_a_subqueue_and_back(controlled: ControlledManager, api: Api) -> None:
    ids = fill(controlled, *"abc")
    late = ORDERS + ";late"
    assert api.post(MOVE, {"lookup_ids": [ids[0], ids[2]], "target": late}) == {"moved": 2}
    assert in_orders(controlled) == ["b"]
    moved = api.get(queue_path(late, "/messages"))["messages"]
    assert [each["lookup_id"] for each in moved] == [ids[0], ids[2]]
    assert [each["move_count"] for each in moved] == [1, 1]
    api.post(queue_path(late, "/messages/move"), {"lookup_ids": [ids[0]], "target": ORDERS})
    assert in_orders(controlled) == ["a", "b"]


def test_all_messages_are_moved_or_none(controlled: ControlledManager, api: Api) -> None:
    controlled.blocking.create_queue(OTHER)
    controlled.blocking.create_queue(LEDGER, transactional=True)
    ids = fill(controlled, *"abc")
    for lookup_ids, target, code in (
        ([ids[0], "1"], OTHER, 404),
        ([ids[0]], LEDGER, 409),
        ([ids[0]], r".\private$\nothing", 404),
        ([ids[0]], r"DIRECT=OS:sales02\private$\orders", 400),
        ([ids[0]], r".\private$\order_queue$", 403),
        ([], OTHER, 422),
    ):
        wanted = {"lookup_ids": lookup_ids, "target": target}
        assert api.refused("POST", MOVE, wanted)[0] == code
    api.post(RECEIVE, {"lease": 60, "seek": "last"})
    wanted = {"lookup_ids": ids, "target": OTHER}
    assert api.refused("POST", MOVE, wanted)[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")
    assert in_orders(controlled) == ["a", "b"]
    assert api.post(MOVE, {"lookup_ids": [ids[1], ids[1]], "target": OTHER}) == {"moved": 1}
    assert api.post(MOVE, {"lookup_ids": [ids[0]], "target": ORDERS}) == {"moved": 0}


# Size


@pytest.mark.slow
def test_a_page_of_many_messages_costs_what_one_of_few_does(
    controlled: ControlledManager, api: Api
) -> None:
    queue = controlled.blocking.queue(ORDERS)
    for _ in range(20):
        queue.send_many(Message("x", recoverable=False) for _ in range(5_000))
    last = api.post(RECEIVE, {"peek": True, "seek": "last"})["messages"][0]["lookup_id"]

    def seconds(query: str) -> float:
        start = time.perf_counter()
        assert len(page(api, query)["messages"]) == 10
        return time.perf_counter() - start

    first = min(seconds("?count=10") for _ in range(5))
    at_the_end = min(seconds(f"?count=10&before={last}") for _ in range(5))
    assert at_the_end < 10 * first + 0.01


async def _delete_one_that_asked_for_news() -> int:
    async with serving() as service:
        manager = service.manager
        acks = await manager.create_queue(ACKS)
        orders = await manager.create_queue(ORDERS)
        message = Message(
            "a",
            acknowledgements=Acknowledge.FULL_RECEIVE,
            administration_queue=acks.opened.format_name,  # type: ignore[arg-type]  # one queue
        )
        await orders.send(message)
        found = await orders.peek(timeout=0)
        await delete_message(Control(manager), ORDERS, str(found.lookup_id))
        told = await acks.receive(timeout=30)
        assert told.correlation_id == message.id
        return told.message_class


def test_the_sender_of_a_deleted_message_is_told_that_it_was_purged() -> None:
    assert run(_delete_one_that_asked_for_news()) == MessageClass.NACK_Q_PURGED
