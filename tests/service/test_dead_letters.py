"""Dead letters over HTTP: look, filter, send again, delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from falconmq import Message, MessageId, MqStatus, ResourceError
from falconmq.clock import VirtualClock
from falconmq.message import Journal, MessageClass
from falconmq.store import MemoryStore, WriteBatch
from tests.embedded.helpers import COMPUTER
from tests.service.asking import LEDGER, ORDERS, Api, clocked_engine
from tests.service.control import ControlledManager

DEADLETTER = r".\system$;deadletter"
DEADXACT = r".\system$;deadxact"
OTHER = r".\private$\other"
FAR = r"DIRECT=OS:far\private$\orders"


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    engine, _ = clocked_engine()
    with ControlledManager(tmp_path, engine) as controlled:
        assert controlled.control.events is not None
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        controlled.blocking.create_queue(OTHER)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def advance(controlled: ControlledManager, seconds: float) -> None:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(seconds)
    controlled.engine.run_timers()


def kill(controlled: ControlledManager, *bodies: str, **properties: Any) -> list[str]:
    """Messages that expire at once; their ids."""
    queue = controlled.blocking.queue(ORDERS)
    ids = [
        queue.send(Message(body, time_to_be_received=1, journal=Journal.DEAD_LETTER, **properties))
        for body in bodies
    ]
    advance(controlled, 2)
    return [str(id) for id in ids]


def kill_in_transaction(controlled: ControlledManager, *bodies: str, **properties: Any) -> None:
    queue = controlled.blocking.queue(LEDGER)
    with controlled.blocking.transaction() as transaction:
        for body in bodies:
            message = Message(
                body, time_to_be_received=1, journal=Journal.DEAD_LETTER, **properties
            )
            queue.send(message, transaction)
    advance(controlled, 2)


def letters(api: Api, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/dead-letters?{urlencode(filters)}")["letters"]
    return found


def redrive(api: Api, **asked: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.post("/dead-letters/redrive", asked)
    return answer


def texts(controlled: ControlledManager, name: str) -> list[str]:
    return [message.text for message in controlled.blocking.queue(name)]


# Looking


def test_a_dead_letter_says_what_it_is_and_why(controlled: ControlledManager, api: Api) -> None:
    (id,) = kill(controlled, "a", label="the label")
    advance(controlled, 10)
    (letter,) = letters(api)
    assert letter["id"] == id
    assert letter["queue"] == DEADLETTER
    assert (letter["reason"], letter["reason_text"]) == ("NACK_RECEIVE_TIMEOUT", "not read in time")
    assert letter["label"] == "the label"
    assert letter["age_seconds"] == 10
    assert letter["source"] == str(controlled.blocking.id)
    assert letter["transactional"] is False
    assert letter["destination"].startswith("PRIVATE=")
    assert letter["size_bytes"] > 0


def test_both_system_queues_are_listed_and_paged(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a", "b", "c")
    kill_in_transaction(controlled, "d", "e")
    found: list[dict[str, Any]] = []
    after: str | None = "0:-1"  # before everything
    pages = 0
    while after is not None:
        query = {"count": 2, "after": after}
        page = api.get(f"/dead-letters?{urlencode(query)}")
        found += page["letters"]
        after, pages = page["next"], pages + 1
    assert [letter["queue"] for letter in found] == [DEADLETTER] * 3 + [DEADXACT] * 2
    assert len({letter["lookup_id"] for letter in found}) == 5
    assert pages in (3, 4)
    assert [letter["transactional"] for letter in found] == [False] * 3 + [True] * 2
    assert len(letters(api, queue="deadxact")) == 2
    assert len(letters(api, queue=DEADLETTER)) == 3


def test_filters_narrow_the_list(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a", label="old Apple")
    advance(controlled, 100)
    (id,) = kill(controlled, "b", label="new pear")
    source = str(controlled.blocking.id)
    both = letters(api)
    assert [letter["label"] for letter in both] == ["old Apple", "new pear"]
    assert letters(api, contains="APPLE") == both[:1]
    assert letters(api, contains=id) == both[1:]
    assert letters(api, contains="PRIVATE=") == both
    assert letters(api, id=id) == both[1:]
    assert letters(api, older_than=50) == both[:1]
    assert letters(api, newer_than=50) == both[1:]
    assert letters(api, until=both[0]["died_at"]) == both[:1]
    assert letters(api, reason="nack_receive_timeout") == both
    assert letters(api, reason="NACK_Q_PURGED") == []
    assert letters(api, source=source) == both
    assert letters(api, source="11111111-2222-3333-4444-555555555555") == []


@pytest.mark.parametrize(
    ("filters", "word"),
    [
        ({"reason": "NOTHING"}, "no class of messages"),
        ({"source": "nobody"}, "no queue manager id"),
        ({"until": "yesterday"}, "no time"),
        ({"after": "here"}, "no place"),
        ({"id": "x"}, "no message id"),
        ({"older_than": -1}, "older_than"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    api: Api, filters: dict[str, Any], word: str
) -> None:
    status, _, detail = api.refused("GET", f"/dead-letters?{urlencode(filters)}")
    assert status in (400, 422)
    assert word in detail


def test_the_whole_message_can_be_seen(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "hello")
    (letter,) = letters(api)
    query = urlencode({"queue": "deadletter", "lookup_id": letter["lookup_id"]})
    found = api.get(f"/dead-letters/message?{query}")
    assert found["letter"] == letter
    assert found["message"]["text"] == "hello"
    assert found["message"]["message_class"] == "NACK_RECEIVE_TIMEOUT"
    gone = urlencode({"queue": "deadletter", "lookup_id": "7"})
    assert api.refused("GET", f"/dead-letters/message?{gone}")[0] == 404


# Sending again


def test_a_letter_goes_to_where_it_wanted_as_a_new_message(
    controlled: ControlledManager, api: Api
) -> None:
    correlation = MessageId.of(controlled.blocking.id, 4711)
    (id,) = kill(
        controlled, "a", label="x", priority=5, application_tag=7, correlation_id=correlation
    )
    answer = redrive(api)
    assert (answer["done"], answer["stayed"], answer["next"]) == (1, 0, None)
    (outcome,) = answer["letters"]
    assert (outcome["outcome"], outcome["id"]) == ("redriven", id)
    (message,) = controlled.blocking.queue(ORDERS)
    assert str(message.id) == outcome["new_id"] != id
    assert (message.text, message.label, message.priority) == ("a", "x", 5)
    assert (message.application_tag, message.correlation_id) == (7, correlation)
    assert message.message_class == 0
    assert message.recoverable is True
    assert message.time_to_be_received == 1  # from now on
    assert letters(api) == []
    # and the old message says where it went
    found = api.get(f"/why?{urlencode({'subject': id})}")
    assert found["causes"][0]["code"] == "moved"
    assert outcome["new_id"] in found["summary"]


def test_only_an_applications_own_class_is_kept(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a", message_class=0x0100)
    kill(controlled, "b", message_class=MessageClass.REPORT)
    assert redrive(api, target=OTHER)["done"] == 2
    found = [message.message_class for message in controlled.blocking.queue(OTHER)]
    assert found == [0x0100, MessageClass.NORMAL]


def test_a_transactional_letter_goes_in_a_transaction(
    controlled: ControlledManager, api: Api
) -> None:
    kill_in_transaction(controlled, "a", "b")
    assert redrive(api)["done"] == 2
    assert texts(controlled, LEDGER) == ["a", "b"]
    message = controlled.blocking.queue(LEDGER).peek(timeout=0)
    assert message.transaction is not None
    assert message.transaction.is_first
    assert letters(api) == []


def test_a_queue_of_another_computer_gets_it_in_its_outgoing_queue(
    controlled: ControlledManager, api: Api
) -> None:
    queue = controlled.blocking.queue(FAR)
    queue.send(Message("a", time_to_reach_queue=1, journal=Journal.DEAD_LETTER))
    with controlled.blocking.transaction() as transaction:
        message = Message("b", time_to_reach_queue=1, journal=Journal.DEAD_LETTER)
        queue.send(message, transaction)
    advance(controlled, 3)
    assert [letter["reason"] for letter in letters(api)] == ["NACK_REACH_QUEUE_TIMEOUT"] * 2
    assert redrive(api)["done"] == 2
    (outgoing,) = api.get("/outgoing")["outgoing"]
    assert (outgoing["destination"].lower(), outgoing["messages"]) == (FAR.lower(), 2)
    core = controlled.engine.core
    (far,) = core.outgoing.values()
    stored = [far.positions.find(number) for number in far.positions.lookup_ids()]
    assert [found.message.transaction is not None for found in stored if found] == [False, True]


def test_a_letter_may_go_elsewhere_and_as_that_queue_needs_it(
    controlled: ControlledManager, api: Api
) -> None:
    kill(controlled, "a", "b")
    lookup_id = letters(api)[0]["lookup_id"]
    assert redrive(api, target=OTHER, lookup_ids=[lookup_id], queue="deadletter")["done"] == 1
    assert texts(controlled, OTHER) == ["a"]
    assert redrive(api, target=LEDGER)["done"] == 1
    assert texts(controlled, LEDGER) == ["b"]


def test_a_destination_that_is_gone_keeps_the_letter(
    controlled: ControlledManager, api: Api
) -> None:
    kill(controlled, "a")
    controlled.blocking.delete_queue(ORDERS)
    before = letters(api)
    for dry_run in (True, False):
        answer = redrive(api, dry_run=dry_run)
        assert (answer["done"], answer["stayed"]) == (0, 1)
        (outcome,) = answer["letters"]
        assert outcome["outcome"] == "stays"
        assert "no queue" in outcome["problem"]
    assert letters(api) == before


def test_a_queue_of_the_other_kind_keeps_the_letter(
    controlled: ControlledManager, api: Api
) -> None:
    # given a letter to a queue that was made anew, transactional
    queue = controlled.blocking.queue(rf"DIRECT=OS:{COMPUTER}\private$\orders")
    queue.send(Message("a", time_to_be_received=1, journal=Journal.DEAD_LETTER))
    advance(controlled, 2)
    controlled.blocking.delete_queue(ORDERS)
    controlled.blocking.create_queue(ORDERS, transactional=True)
    # then it stays, unless somebody says that it shall go there
    for dry_run in (True, False):
        (outcome,) = redrive(api, dry_run=dry_run)["letters"]
        assert outcome["problem"] == f"{ORDERS} is transactional, and the message is not"
    assert redrive(api, target=ORDERS)["done"] == 1
    assert texts(controlled, ORDERS) == ["a"]


def test_a_full_queue_keeps_the_letter(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a")
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=0)
    for dry_run in (True, False):
        (outcome,) = redrive(api, dry_run=dry_run)["letters"]
        assert outcome["outcome"] == "stays"
        assert "full" in outcome["problem"]
    assert len(letters(api)) == 1


def test_a_dry_run_changes_nothing(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a")
    controlled.blocking.queue(FAR)
    before = letters(api)
    queues = len(controlled.engine.core.outgoing)
    (outcome,) = redrive(api, dry_run=True)["letters"]
    assert (outcome["outcome"], outcome["new_id"]) == ("would-go", None)
    (outcome,) = redrive(api, dry_run=True, target=r"DIRECT=OS:new\private$\x")["letters"]
    assert outcome["outcome"] == "would-go"
    assert letters(api) == before
    assert texts(controlled, ORDERS) == []
    assert len(controlled.engine.core.outgoing) == queues


def test_a_letter_that_a_reader_holds_stays(controlled: ControlledManager, api: Api) -> None:
    kill_in_transaction(controlled, "a", "b")
    reader = controlled.blocking.transaction()
    controlled.blocking.transactional_dead_letter.receive(reader, timeout=0)
    held = [letter["is_held"] for letter in letters(api)]
    assert held == [True, False]
    answer = redrive(api)
    assert [letter["outcome"] for letter in answer["letters"]] == ["stays", "redriven"]
    assert answer["letters"][0]["problem"] == "a reader holds it"
    assert api.post("/dead-letters/delete", {})["stayed"] == 1
    reader.abort()
    assert redrive(api)["done"] == 1


def test_limits_and_places_let_a_long_run_go_on(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, *"abcde")
    first = redrive(api, limit=2)
    assert (first["done"], texts(controlled, ORDERS)) == (2, ["a", "b"])
    second = redrive(api, limit=2, after=first["next"])
    third = redrive(api, limit=2, after=second["next"])
    assert (second["done"], third["done"]) == (2, 1)
    assert texts(controlled, ORDERS) == list("abcde")


def test_a_long_run_does_not_meet_its_own_letters(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a")
    until = api.get("/dead-letters")["as_of"]
    assert redrive(api, until=until)["done"] == 1
    advance(controlled, 5)  # it dies again
    assert redrive(api, until=until)["done"] == 0
    assert redrive(api)["done"] == 1


def test_an_application_may_have_letters_of_its_own(
    controlled: ControlledManager, api: Api
) -> None:
    kill(controlled, "a", dead_letter_queue=OTHER)
    controlled.blocking.queue(OTHER).send(Message("no letter"))
    assert letters(api) == []
    assert [letter["reason"] for letter in letters(api, queue=OTHER)] == [
        "NACK_RECEIVE_TIMEOUT",
        "",
    ]
    answer = redrive(api, queue=OTHER)
    assert [letter["outcome"] for letter in answer["letters"]] == ["redriven", "stays"]
    assert texts(controlled, ORDERS) == ["a"]
    assert texts(controlled, OTHER) == ["no letter"]


def test_letters_are_deleted_for_good(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, "a", label="one")
    kill(controlled, "b", label="two")
    answer = api.post("/dead-letters/delete", {"contains": "one"})
    assert (answer["done"], answer["letters"][0]["outcome"]) == (1, "deleted")
    assert [letter["label"] for letter in letters(api)] == ["two"]


def test_a_thousand_letters_are_walked_in_pages(controlled: ControlledManager, api: Api) -> None:
    kill(controlled, *map(str, range(1000)))
    found = letters(api, contains="no such label", count=10)
    assert found == []
    answer = redrive(api, limit=1000)
    assert (answer["done"], answer["next"]) == (1000, None)
    assert texts(controlled, ORDERS) == [str(number) for number in range(1000)]


# What must not go wrong


class BrokenStore(MemoryStore):
    """A store whose disk fails while `is_broken`."""

    is_broken = False

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        if self.is_broken:
            raise ResourceError("the disk is broken", status=MqStatus.MESSAGE_STORAGE_FAILED)
        super().commit(batches)


def given_letter(tmp_path: Path, store: MemoryStore) -> None:
    engine, _ = clocked_engine(store)
    with ControlledManager(tmp_path, engine) as controlled:
        controlled.blocking.create_queue(ORDERS)
        kill(controlled, "a")
    store.crash()


def test_a_disk_that_fails_leaves_the_letter_and_sends_nothing(tmp_path: Path) -> None:
    store = BrokenStore()
    given_letter(tmp_path, store)
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        api = Api(controlled.path)
        store.is_broken = True
        assert api.refused("POST", "/dead-letters/redrive", {})[0] == 507
        store.is_broken = False
        assert texts(controlled, ORDERS) == []
        assert len(letters(api)) == 1
        assert redrive(api)["done"] == 1
    store.crash()
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as again:
        assert again.blocking.dead_letter.count == 0
        assert texts(again, ORDERS) == ["a"]


def test_send_and_removal_are_one_write(tmp_path: Path) -> None:
    class Counting(MemoryStore):
        batches: list[WriteBatch]

        def commit(self, batches: Sequence[WriteBatch]) -> None:
            self.batches = [*getattr(self, "batches", []), *batches]
            super().commit(batches)

    store = Counting()
    given_letter(tmp_path, store)
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        store.batches = []
        assert redrive(Api(controlled.path))["done"] == 1
        writing = [batch for batch in store.batches if "messages" in str(batch.operations)]
        assert len(writing) == 1
