"""One suite for every interface: embedded and remote, for threads and for asyncio.

Whoever writes a program for one of them can move it to another. The objects for asyncio are wrapped
(`tests.client.kinds`), so the texts below are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from falconmq import (
    INFINITE,
    Acknowledge,
    Delivery,
    DirectoryError,
    FalconMQError,
    Journal,
    Message,
    MessageError,
    MqStatus,
    NameSyntaxError,
    PathName,
    QueueError,
    QueuePrivacy,
    ReadError,
    ResourceError,
    SeekAction,
    TransactionError,
    parse_format_name,
)
from tests.client.kinds import KINDS, REMOTE, Doors, opened
from tests.embedded.helpers import ORDERS, Background, threaded_engine, wait_until

LEDGER = r".\private$\ledger"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Services that the tests share: a web application takes a while to make."""
    with Doors(tmp_path_factory.mktemp("doors")) as doors:
        yield doors


@pytest.fixture
def manager(kind: str, tmp_path: Path, doors: Doors) -> Iterator[Any]:
    """A queue manager without queues."""
    if kind in REMOTE:
        with doors.reached(kind) as manager:
            yield manager
    else:
        with opened(kind, tmp_path) as manager:
            yield manager


def texts(queue: Any) -> list[str]:
    return [message.text for message in queue]


# Sending and receiving


def test_a_message_comes_back_with_what_the_queue_manager_filled_in(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    sent = Message("hello", label="greeting", priority=5, application_tag=7, extension=b"more")
    id = orders.send(sent)
    received = orders.receive(timeout=0)
    assert (received.text, received.label, received.priority) == ("hello", "greeting", 5)
    assert (received.application_tag, received.extension) == (7, b"more")
    assert received.id == id == sent.id
    assert received.source_queue_manager == manager.id
    assert received.arrived_at is not None
    assert received.lookup_id is not None
    assert str(received.destination) == str(sent.destination) == orders.format_name


def test_every_property_of_a_message_travels(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    answers = parse_format_name(r"DIRECT=OS:web\private$\answers")
    private = parse_format_name(f"PRIVATE={manager.id}\\00000010")
    properties: dict[str, Any] = {
        "label": "äöü €",
        "priority": 1,
        "recoverable": False,
        "time_to_reach_queue": 77,
        "time_to_be_received": INFINITE,
        "acknowledgements": Acknowledge.POSITIVE_RECEIVE,
        "journal": Journal.JOURNAL,
        "administration_queue": private,
        "response_queue": answers,
        "correlation_id": Message("x").correlation_id,
        "application_tag": 0xFFFFFFFF,
        "extension": bytes(range(256)),
        "trace": True,
        "report_queue": uuid4(),
        "connector_type": uuid4(),
    }
    orders.send(Message(b"\0\xff", **properties))
    seen = orders.peek(timeout=0)
    assert seen.body == b"\0\xff"
    for name, value in properties.items():
        if name != "recoverable":
            assert getattr(seen, name) == value, name
    assert seen.delivery is Delivery.EXPRESS


def test_what_no_packet_carries_travels_too(manager: Any) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    lost = manager.create_queue(r".\private$\lost", transactional=True)
    with manager.transaction() as transaction:
        message = Message(
            "a",
            label="äöü",
            priority=0,
            dead_letter_queue=lost.format_name,
            allow_peek_when_locked=True,
            journal=Journal.DEAD_LETTER,
            extension=b"\0\1",
            response_queue=ledger.format_name,
            time_to_be_received=INFINITE,
        )
        id = ledger.send(message, transaction)
    seen = ledger.peek(timeout=0)
    assert (seen.id, seen.text, seen.label, seen.extension) == (id, "a", "äöü", b"\0\1")
    assert seen.dead_letter_queue == lost.format_name
    assert seen.allow_peek_when_locked
    assert (seen.journal, seen.time_to_be_received) == (Journal.DEAD_LETTER, INFINITE)
    assert str(seen.response_queue) == ledger.format_name
    assert str(message.destination) == ledger.format_name


def test_messages_are_recoverable_unless_the_sender_says_otherwise(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    for chosen in (None, True, False):
        orders.send(Message("x", recoverable=chosen))
    deliveries = [message.delivery for message in orders]
    assert deliveries == [Delivery.RECOVERABLE, Delivery.RECOVERABLE, Delivery.EXPRESS]


def test_higher_priority_comes_first_and_equals_in_order(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    for text, priority in (("a", 3), ("b", 7), ("c", 3), ("d", 0)):
        orders.send(Message(text, priority=priority))
    assert texts(orders) == ["b", "a", "c", "d"]
    assert [orders.receive(timeout=0).text for _ in range(4)] == ["b", "a", "c", "d"]


def test_iterating_and_peeking_remove_nothing(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    assert texts(orders) == texts(orders) == ["a", "b"]
    assert orders.peek(timeout=0).text == "a"
    assert orders.count == 2


def test_many_messages_keep_their_order(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    ids = orders.send_many(Message(str(number)) for number in range(2500))
    assert len(set(ids)) == 2500
    assert texts(orders) == [str(number) for number in range(2500)]
    assert orders.purge() == 2500


def test_the_largest_messages_pass(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    body = bytes(range(256)) * (4 * 1024 * 4 - 8)
    orders.send_many([Message(body), Message(body), Message("small")])
    assert [len(message.body) for message in orders] == [len(body), len(body), 10]
    assert orders.receive(timeout=0).body == body


def test_of_many_messages_those_before_a_refused_one_are_sent(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    wrong = Message("c")
    wrong.priority = 9
    with pytest.raises(MessageError, match="priority") as raised:
        orders.send_many([Message("a"), Message("b"), wrong, Message("d")])
    assert raised.value.field == "priority"
    assert texts(orders) == ["a", "b"]


def test_of_many_messages_those_that_fit_a_quota_are_sent(manager: Any) -> None:
    orders = manager.create_queue(ORDERS, quota_kilobytes=10)
    with pytest.raises(ResourceError, match="its quota is 10 KiB"):
        orders.send_many([Message(bytes(900), label=str(number)) for number in range(20)])
    assert [message.label for message in orders] == [str(number) for number in range(orders.count)]
    assert 8 <= orders.count < 11


def test_a_message_that_must_not_be_sent_is_refused_and_not_sent(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    message = Message("x")
    message.priority = 9
    with pytest.raises(MessageError, match="priority"):
        orders.send(message)
    assert orders.count == 0


def test_a_full_queue_refuses_with_its_limit_and_takes_messages_again(manager: Any) -> None:
    orders = manager.create_queue(ORDERS, quota_kilobytes=2)
    orders.send(Message(bytes(1500)))
    with pytest.raises(ResourceError, match="quota is 2 KiB") as raised:
        orders.send(Message(bytes(1500)))
    assert raised.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert "quota_kilobytes" in raised.value.hint
    assert orders.count == 1
    orders.receive(timeout=0)
    orders.send(Message(bytes(1500)))


def test_a_full_manager_refuses_with_its_limit(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path, threaded_engine(quota_kilobytes=1)) as manager:
        orders = manager.create_queue(ORDERS)
        with pytest.raises(ResourceError, match="the queue manager is full: 0 of its 1 KiB"):
            orders.send(Message(bytes(2000)))


def test_a_message_to_several_queues_reaches_each(manager: Any) -> None:
    first = manager.create_queue(r".\private$\first")
    second = manager.create_queue(r".\private$\second")
    names = [first.format_name, second.format_name, r"DIRECT=OS:sales02\private$\third"]
    everywhere = manager.queue(",".join(names))
    assert not everywhere.is_local
    news = Message("news")
    assert everywhere.send(news) == news.id
    for queue in (first, second):
        message = queue.receive(timeout=0)
        assert message.text == "news"
        assert str(message.destination) == queue.format_name
        assert len(message.destinations) == 3
    assert manager.queue(names[2]).count == 1
    first.send(news)
    assert first.receive(timeout=0).destinations == ()


def test_a_queue_elsewhere_can_be_sent_to_but_not_read(manager: Any) -> None:
    remote = manager.queue(r"DIRECT=OS:sales02\private$\orders")
    remote.send(Message("over there"))
    assert not remote.is_local
    assert (remote.count, remote.name) == (1, remote.format_name)
    assert remote.size_bytes > 0
    for use in (remote.purge, lambda: remote.receive(timeout=0), lambda: remote.label):
        with pytest.raises(QueueError):
            use()


# Waiting


def test_receiving_from_an_empty_queue_without_waiting_is_a_read_error(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(ReadError, match=r"no message came to \.\\private\$\\orders") as raised:
        orders.receive(timeout=0)
    assert raised.value.status is MqStatus.IO_TIMEOUT
    assert "timeout=5" in raised.value.hint


@pytest.mark.parametrize("name", ["receive", "peek"])
def test_a_wait_ends_with_its_time(manager: Any, name: str) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(ReadError, match=r"within 0\.05 seconds") as raised:
        getattr(orders, name)(timeout=0.05)
    assert raised.value.status is MqStatus.IO_TIMEOUT


@pytest.mark.parametrize("timeout", [None, 30])
@pytest.mark.parametrize("name", ["receive", "peek"])
def test_a_read_waits_for_a_message(manager: Any, name: str, timeout: float | None) -> None:
    orders = manager.create_queue(ORDERS)
    waiting = Background(lambda: getattr(manager.queue(ORDERS), name)(timeout=timeout))
    orders.send(Message("at last"))
    assert waiting.result().text == "at last"
    assert orders.count == (0 if name == "receive" else 1)


def test_closing_a_queue_ends_its_own_waits_only(kind: str, tmp_path: Path) -> None:
    engine = threaded_engine()
    with opened(kind, tmp_path, engine) as manager:
        manager.create_queue(ORDERS)
        mine, other = manager.queue(ORDERS), manager.queue(ORDERS)
        reads = [Background(queue.receive) for queue in (mine, other)]
        queue = next(
            each for each in engine.core.queues.values() if each.path_name.name == "orders"
        )
        wait_until(lambda: len(queue.waiting) == 2)
        mine.close()
        with pytest.raises(ReadError) as raised:
            reads[0].result()
        assert raised.value.status is MqStatus.OPERATION_CANCELLED
        other.send(Message("x"))
        assert reads[1].result().text == "x"


def test_closing_the_manager_ends_all_waits(kind: str, tmp_path: Path) -> None:
    engine = threaded_engine()
    with opened(kind, tmp_path, engine) as manager:
        orders = manager.create_queue(ORDERS)
        read = Background(orders.receive)
        queue = next(
            each for each in engine.core.queues.values() if each.path_name.name == "orders"
        )
        wait_until(lambda: bool(queue.waiting))
        manager.close()
        with pytest.raises(FalconMQError) as raised:
            read.result()
        assert raised.value.status in (
            MqStatus.OPERATION_CANCELLED,
            MqStatus.SERVICE_NOT_AVAILABLE,
        )
        uses: list[Callable[[], object]] = [
            lambda: orders.send(Message("x")),
            lambda: orders.receive(timeout=0),
            lambda: manager.create_queue(LEDGER),
        ]
        for use in uses:
            with pytest.raises(QueueError, match="was closed") as refused:
                use()
            assert refused.value.status is MqStatus.SERVICE_NOT_AVAILABLE
        assert manager.is_closed


# Places


def test_messages_by_lookup_id(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b"), Message("c")])
    ids = [message.lookup_id or 0 for message in orders]
    assert orders.peek_by_lookup_id(ids[1]).text == "b"
    assert orders.peek_by_lookup_id(ids[1], seek=SeekAction.NEXT).text == "c"
    assert orders.peek_by_lookup_id(ids[1], seek=SeekAction.PREVIOUS).text == "a"
    assert orders.peek_by_lookup_id(0, seek=SeekAction.LAST).text == "c"
    assert orders.peek_by_lookup_id(0, seek=SeekAction.FIRST).text == "a"
    assert orders.receive_by_lookup_id(ids[1]).text == "b"
    assert texts(orders) == ["a", "c"]
    with pytest.raises(ReadError) as raised:
        orders.receive_by_lookup_id(ids[1])
    assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
    assert raised.value.hint
    assert orders.receive_by_lookup_id(0, seek=SeekAction.LAST).text == "c"


def test_moving_to_a_subqueue_and_back_keeps_the_place(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b"), Message("c")])
    late = orders.subqueue("late")
    middle = list(orders)[1]
    orders.move(middle, late)
    assert (texts(orders), texts(late)) == (["a", "c"], ["b"])
    assert late.peek(timeout=0).move_count == 1
    assert late.name == ORDERS + ";late"
    assert orders.subqueue("LATE").count == 1
    late.move(middle.lookup_id, orders)
    assert texts(orders) == ["a", "b", "c"]


def test_a_subqueue_takes_messages_by_moves_alone(manager: Any) -> None:
    late = manager.create_queue(ORDERS).subqueue("late")
    with pytest.raises(QueueError, match="moved into a subqueue") as raised:
        late.send(Message("x"))
    assert raised.value.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION


def test_moving_what_is_not_there_is_refused(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(ReadError) as raised:
        orders.move(5, orders.subqueue("late"))
    assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
    with pytest.raises(MessageError, match="lookup_id"):
        orders.move(Message("never sent"), orders)


def test_moving_between_kinds_of_queues_is_refused(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    ledger = manager.create_queue(LEDGER, transactional=True)
    orders.send(Message("x"))
    with pytest.raises(TransactionError):
        orders.move(orders.peek(timeout=0), ledger)
    assert orders.count == 1


def test_a_cursor_walks_and_takes_what_it_looks_for(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b"), Message("c"), Message("d")])
    with orders.cursor() as cursor:
        seen = [cursor.peek(timeout=0).text, cursor.peek_next(timeout=0).text]
        assert seen == ["a", "b"]
        assert cursor.receive(timeout=0).text == "b"
        assert cursor.peek(timeout=0).text == "c"
        assert texts(cursor) == ["c", "d"]
    assert texts(orders) == ["a", "c", "d"]


def test_a_cursor_that_steps_beyond_the_end_waits_for_the_next_message(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("a"))
    with orders.cursor() as cursor:
        cursor.peek(timeout=0)
        with pytest.raises(ReadError) as raised:
            cursor.peek_next(timeout=0)
        assert raised.value.status is MqStatus.IO_TIMEOUT
        orders.send(Message("b"))
        assert cursor.peek(timeout=0).text == "b"


def test_the_statuses_of_a_cursor_are_read_errors_with_hints(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    with orders.cursor() as cursor:
        with pytest.raises(ReadError) as raised:
            cursor.peek_next(timeout=0)
        assert raised.value.status is MqStatus.ILLEGAL_CURSOR_ACTION
        assert "peek()" in raised.value.hint
        cursor.peek(timeout=0)
        orders.receive(timeout=0)
        with pytest.raises(ReadError) as raised:
            cursor.peek(timeout=0)
        assert raised.value.status is MqStatus.MESSAGE_ALREADY_RECEIVED
        assert "peek_next()" in raised.value.hint
        assert texts(cursor) == ["b"]


def test_a_cursor_receives_in_a_transaction(manager: Any) -> None:
    ledger = manager.create_queue(LEDGER, transactional=True)
    with manager.transaction() as transaction:
        ledger.send_many([Message("a"), Message("b")], transaction)
    with ledger.cursor() as cursor, manager.transaction() as transaction:
        cursor.peek(timeout=0)
        cursor.peek_next(timeout=0)
        assert cursor.receive(transaction, timeout=0).text == "b"
        transaction.abort()
    assert texts(ledger) == ["a", "b"]


# Queues


def test_queues_are_listed_by_name_without_those_of_the_manager(manager: Any) -> None:
    for name in ("b", "a", "c"):
        manager.create_queue(rf".\private$\{name}")
    assert [queue.name for queue in manager.queues()] == [
        rf".\private$\{name}" for name in ("a", "b", "c")
    ]


def test_a_queue_can_be_created_once(manager: Any) -> None:
    manager.create_queue(ORDERS)
    with pytest.raises(QueueError, match="already") as raised:
        manager.create_queue(ORDERS.upper())
    assert raised.value.status is MqStatus.QUEUE_EXISTS


def test_a_queue_is_found_by_any_of_its_names(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    for name in (
        ORDERS.upper(),
        PathName.parse(ORDERS),
        orders.format_name,
        parse_format_name(orders.format_name),
        rf"DIRECT=OS:{manager.computer_name}\private$\orders",
        rf"{manager.computer_name}\private$\orders",
    ):
        found = manager.queue(name)
        assert (found.name.lower(), found.is_local) == (ORDERS, True)
        found.send(Message("x"))
    assert orders.count == 6


def test_a_misspelt_queue_is_refused_with_the_nearest_name(manager: Any) -> None:
    manager.create_queue(ORDERS)
    with pytest.raises(QueueError, match="no queue") as raised:
        manager.queue(r".\private$\ordres")
    assert raised.value.status is MqStatus.QUEUE_NOT_FOUND
    assert "did you mean" in raised.value.hint


def test_a_path_on_another_computer_is_refused_with_the_name_to_use(manager: Any) -> None:
    with pytest.raises(QueueError, match="another computer") as raised:
        manager.queue(r"sales02\private$\orders")
    assert r"DIRECT=OS:sales02\private$\orders" in raised.value.hint


def test_a_public_queue_needs_a_directory(manager: Any) -> None:
    with pytest.raises(DirectoryError) as raised:
        manager.create_queue(r".\orders")
    assert raised.value.status is MqStatus.UNSUPPORTED_OPERATION


@pytest.mark.parametrize("name", ["orders", "PRIVATE=nonsense", r".\private$\a\b"])
def test_a_name_that_breaks_the_grammar_is_refused(manager: Any, name: str) -> None:
    with pytest.raises(NameSyntaxError):
        manager.queue(name)
    with pytest.raises(NameSyntaxError):
        manager.create_queue(name)


def test_properties_can_be_changed_and_are_kept(manager: Any) -> None:
    orders = manager.create_queue(
        ORDERS,
        label="first",
        quota_kilobytes=10,
        base_priority=-3,
        privacy_level=QueuePrivacy.BODY,
        authentication=True,
        journal_quota_kilobytes=5,
    )
    assert (orders.label, orders.quota_kilobytes, orders.journaling) == ("first", 10, False)
    assert (orders.base_priority, orders.privacy_level) == (-3, QueuePrivacy.BODY)
    assert (orders.authentication, orders.journal_quota_kilobytes) == (True, 5)
    orders.update(label="second", quota_kilobytes=0xFFFFFFFF, journaling=True)
    again = manager.queue(ORDERS)
    assert (again.label, again.quota_kilobytes, again.journaling) == ("second", 0xFFFFFFFF, True)
    assert not again.is_transactional
    assert again.modified_at >= again.created_at
    orders.update(privacy_level=QueuePrivacy.NONE, quota_kilobytes=7)
    assert (orders.privacy_level, orders.quota_kilobytes) == (QueuePrivacy.NONE, 7)


def test_a_property_that_there_is_not_is_refused(manager: Any) -> None:
    with pytest.raises(TypeError):
        manager.create_queue(ORDERS, colour="red")
    with pytest.raises(QueueError, match="no property colour") as raised:
        manager.create_queue(ORDERS).update(colour="red")
    assert raised.value.status is MqStatus.ILLEGAL_PROPID
    with pytest.raises(FalconMQError):
        manager.queue(ORDERS).update(label="x" * 200)


def test_received_messages_leave_a_copy_if_the_queue_keeps_a_journal(manager: Any) -> None:
    orders = manager.create_queue(ORDERS, journaling=True)
    orders.send(Message("a"))
    orders.receive(timeout=0)
    journal = orders.journal
    assert texts(journal) == ["a"]
    assert journal.name == ORDERS + ";journal"
    assert journal.format_name == orders.format_name + ";JOURNAL"
    assert journal.receive(timeout=0).text == "a"
    assert journal.count == 0
    with pytest.raises(QueueError, match="has no journal") as raised:
        _ = manager.dead_letter.journal
    assert raised.value.status is MqStatus.QUEUE_NOT_FOUND


def test_the_dead_letter_queues_and_the_journal_can_be_read(manager: Any) -> None:
    queues = (manager.dead_letter, manager.transactional_dead_letter, manager.journal)
    names = [rf".\system$;{name}" for name in ("deadletter", "deadxact", "journal")]
    assert [queue.name for queue in queues] == names
    for queue in queues:
        assert list(queue) == []
        assert (queue.is_local, queue.count) == (True, 0)
        assert manager.queue(queue.format_name).name == queue.name
        with pytest.raises(QueueError, match="only the queue manager"):
            queue.send(Message("x"))


def test_an_exclusive_reader_keeps_others_out_until_it_closes(manager: Any) -> None:
    manager.create_queue(ORDERS).send(Message("x"))
    with manager.queue(ORDERS, exclusive=True) as mine:
        assert mine.receive(timeout=0).text == "x"
        with pytest.raises(QueueError) as raised:
            manager.queue(ORDERS).receive(timeout=0)
        assert raised.value.status is MqStatus.SHARING_VIOLATION
        mine.send(Message("z"))
        with mine.cursor() as cursor:
            assert cursor.receive(timeout=0).text == "z"
    manager.queue(ORDERS).send(Message("y"))
    assert manager.queue(ORDERS).receive(timeout=0).text == "y"
    with pytest.raises(QueueError, match="was closed here"):
        mine.receive(timeout=0)


def test_a_deleted_queue_says_so_to_those_who_hold_it(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("x"))
    orders.peek(timeout=0)
    manager.delete_queue(ORDERS)
    for use in (
        lambda: orders.send(Message("y")),
        lambda: orders.receive(timeout=0),
        lambda: orders.peek(timeout=0),
        lambda: orders.count,
        orders.purge,
    ):
        with pytest.raises(QueueError, match=r"deleted|no queue"):
            use()
    for look in (lambda: orders.count, orders.purge):
        with pytest.raises(QueueError, match="was deleted") as raised:
            look()
        assert raised.value.status is MqStatus.QUEUE_DELETED
    # and a new one under the old name is another one
    manager.create_queue(ORDERS)
    with pytest.raises(QueueError, match=r"deleted|no queue"):
        orders.send(Message("y"))


def test_purge_says_how_many_it_deleted(manager: Any) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many(Message(str(number)) for number in range(5))
    assert orders.purge() == 5
    assert (orders.count, orders.size_bytes) == (0, 0)


def test_status_shows_who_it_is_and_what_it_holds(manager: Any) -> None:
    manager.create_queue(ORDERS).send_many([Message("a"), Message("b")])
    manager.create_queue(LEDGER, transactional=True)
    status = manager.status()
    assert (status.id, status.computer_name) == (manager.id, manager.computer_name)
    assert [(queue.name, queue.messages) for queue in status.queues] == [(LEDGER, 0), (ORDERS, 2)]
    assert [queue.is_transactional for queue in status.queues] == [True, False]
    assert status.messages == 2


# Transactions


@pytest.fixture
def ledger(manager: Any) -> Any:
    return manager.create_queue(LEDGER, transactional=True)


def test_messages_are_there_when_the_block_ends_and_not_before(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send_many([Message("a"), Message("b")], transaction)
        assert texts(ledger) == []
        assert transaction.is_active
    assert texts(ledger) == ["a", "b"]
    assert not transaction.is_active


def test_an_exception_takes_back_what_was_sent_and_received(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send(Message("a"), transaction)

    def fail() -> None:
        with manager.transaction() as transaction:
            assert ledger.receive(transaction, timeout=0).text == "a"
            ledger.send(Message("b"), transaction)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert texts(ledger) == ["a"]
    assert ledger.peek(timeout=0).abort_count == 1


def test_a_transaction_can_be_used_once(manager: Any, ledger: Any) -> None:
    for end in ("commit", "abort"):
        transaction = manager.transaction()
        ledger.send(Message("a"), transaction)
        getattr(transaction, end)()
        assert end in repr(transaction)
        for use in (
            transaction.commit,
            transaction.abort,
            transaction.prepare,
            partial(ledger.send, Message("b"), transaction),
            partial(ledger.receive, transaction, timeout=0),
        ):
            with pytest.raises(TransactionError, match=f"was {end}") as raised:
                use()
            assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert texts(ledger) == ["a"]


def test_an_empty_transaction_ends_well(manager: Any) -> None:
    with manager.transaction():
        pass
    manager.transaction().abort()
    with manager.transaction() as transaction:
        transaction.commit()


def test_a_transaction_of_another_manager_is_refused(
    manager: Any, ledger: Any, kind: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    with opened(kind, elsewhere) as other, other.transaction() as transaction:
        with pytest.raises(TransactionError, match="another queue manager") as raised:
            ledger.send(Message("x"), transaction)
        assert raised.value.status is MqStatus.TRANSACTION_ENLIST


def test_each_kind_of_queue_wants_its_kind_of_use(manager: Any, ledger: Any) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(TransactionError, match="transactional") as raised:
        ledger.send(Message("x"))
    assert raised.value.status is MqStatus.TRANSACTION_USAGE
    assert "with manager.transaction() as transaction" in raised.value.hint
    with manager.transaction() as transaction:
        for use in (
            partial(orders.send, Message("x"), transaction),
            partial(orders.receive, transaction, timeout=0),
        ):
            with pytest.raises(TransactionError) as raised:
                use()
            assert raised.value.status is MqStatus.TRANSACTION_USAGE
        ledger.send(Message("y"), transaction)  # it goes on
    assert (orders.count, ledger.count) == (0, 1)


def test_a_message_of_a_transactional_queue_can_be_received_without_one(
    manager: Any, ledger: Any
) -> None:
    with manager.transaction() as transaction:
        ledger.send(Message("a"), transaction)
    assert ledger.receive(timeout=0).text == "a"


def test_a_locked_message_is_passed_by(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send_many([Message("a"), Message("b")], transaction)
    with manager.transaction() as transaction:
        first = ledger.receive(transaction, timeout=0)
        assert texts(ledger) == ["b"]
        assert ledger.count == 2
        with pytest.raises(ReadError) as raised:
            ledger.peek_by_lookup_id(first.lookup_id)
        assert raised.value.status is MqStatus.TRANSACTION_USAGE
    assert texts(ledger) == ["b"]


def test_a_move_is_part_of_the_transaction(manager: Any, ledger: Any) -> None:
    with manager.transaction() as transaction:
        ledger.send(Message("a"), transaction)
    late = ledger.subqueue("late")
    transaction = manager.transaction()
    ledger.move(ledger.peek(timeout=0), late, transaction)
    transaction.abort()
    assert (texts(ledger), texts(late)) == (["a"], [])
    with manager.transaction() as transaction:
        ledger.move(ledger.peek(timeout=0), late, transaction)
    assert (texts(ledger), texts(late)) == ([], ["a"])


def test_a_prepared_transaction_keeps_its_messages_locked_and_takes_no_more(
    manager: Any, ledger: Any
) -> None:
    id = uuid4()
    transaction = manager.transaction(id)
    ledger.send(Message("a"), transaction)
    with transaction:
        transaction.prepare()
    assert (transaction.is_prepared, transaction.is_active) == (True, True)
    with pytest.raises(TransactionError):
        ledger.send(Message("b"), transaction)
    assert texts(ledger) == []
    (doubted,) = manager.in_doubt()
    assert (doubted.id, doubted.is_prepared) == (id, True)
    doubted.commit()
    assert manager.in_doubt() == []
    assert texts(ledger) == ["a"]


def test_a_transaction_may_be_named_once(manager: Any, ledger: Any) -> None:
    id = uuid4()
    first = manager.transaction(id)
    ledger.send(Message("a"), first)
    assert first.id == id
    with pytest.raises(TransactionError, match="already") as raised:
        ledger.send(Message("b"), manager.transaction(id))
    assert raised.value.status is MqStatus.TRANSACTION_ENLIST
    first.commit()
    assert texts(ledger) == ["a"]


def test_messages_to_elsewhere_take_part_in_a_transaction(manager: Any) -> None:
    remote = manager.queue(r"DIRECT=OS:sales02\private$\ledger")
    transaction = manager.transaction()
    remote.send_many([Message("a"), Message("b")], transaction)
    transaction.abort()
    assert remote.count == 0
    with manager.transaction() as transaction:
        remote.send_many([Message("a"), Message("b")], transaction)
    assert remote.count == 2
