"""What senders are told: administration acknowledgements, journals, dead letters, reports."""

from __future__ import annotations

import base64
import re
from uuid import uuid4

import pytest

from tests.e2e.conftest import GHOST, REPORTS, Company
from tests.e2e.estate import Daemon, Estate, Json, path, wait_until

JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadletter"
DEAD_TRANSACTIONAL = r".\system$;deadxact"
LABEL = re.compile(
    r"(?P<start>[0-9A-F]{4}):(?P<message>[0-9A-F]{8}:[0-9A-F]{2}) received by "
    r"(?P<source>[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}) at "
    r"\d\d:\d\d:\d\d [AP]M [A-Z][a-z]{2},[A-Z][a-z]{2} \d\d \d\d"
)
NACKS_OF_ARRIVAL = [
    pytest.param(
        None,
        False,
        "NACK_BAD_DST_Q",
        id="no such queue",
        marks=pytest.mark.requirement("QB-3.1.5.8.2-11", "QB-3.1.5.8.2-12", "QB-3.1.5.8.2-14"),
    ),
    pytest.param({"quota_kilobytes": 1}, False, "NACK_Q_EXCEED_QUOTA", id="queue full"),
    pytest.param({"authentication": True}, False, "NACK_BAD_SIGNATURE", id="not signed"),
    pytest.param({"privacy_level": "BODY"}, False, "NACK_BAD_ENCRYPTION", id="not encrypted"),
    pytest.param(
        {},
        True,
        "NACK_NOT_TRANSACTIONAL_Q",
        id="transactional",
        marks=pytest.mark.requirement("QB-3.1.5.8.2-15", "QB-3.1.5.8.2-16", "QB-3.1.5.8.2-18"),
    ),
    pytest.param(
        {"transactional": True},
        False,
        "NACK_NOT_TRANSACTIONAL_MSG",
        id="not transactional",
        marks=pytest.mark.requirement("QB-3.1.5.8.2-19", "QB-3.1.5.8.2-20"),
    ),
]


def new_name() -> str:
    return f"q{uuid4().hex[:12]}"


def asking(daemon: Daemon, *kinds: str, **properties: object) -> tuple[str, Json]:
    """A new queue for answers, and a message that asks for them."""
    name = new_name()
    daemon.create_queue(name)
    message: Json = {
        "text": "order",
        "label": new_name(),
        "acknowledgements": list(kinds),
        "administration_queue": daemon.direct(name),
        **properties,
    }
    return name, message


def with_label(daemon: Daemon, queue: str, label: object) -> list[Json]:
    return [message for message in daemon.look(queue) if message["label"] == label]


def test_arrival_and_receipt_are_acknowledged(company: Company) -> None:
    # given a message that asks for both
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name)
    answers, message = asking(shop, "full-reach-queue", "full-receive")
    [id] = shop.client.send(warehouse.direct(name), [message])
    # when it has arrived
    [arrived] = shop.take(answers, 1)
    # then the sender knows, without getting the body back
    assert arrived["message_class"] == "ACK_REACH_QUEUE"
    assert (arrived["correlation_id"], arrived["body"]) == (id, "")
    assert arrived["response_queue"] == warehouse.direct(name)
    # and when it was received, that too
    warehouse.take(name, 1)
    [received] = shop.take(answers, 1)
    assert received["message_class"] == "ACK_RECEIVE"
    assert (received["correlation_id"], received["body"]) == (id, "")


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "over the hub"])
@pytest.mark.parametrize(("properties", "transaction", "expected"), NACKS_OF_ARRIVAL)
def test_a_message_that_cannot_be_taken_comes_back(
    company: Company,
    properties: Json | None,
    transaction: bool,
    expected: str,
    is_direct: bool,
) -> None:
    # given a queue that does not take the message, or none at all
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    destination = warehouse.direct(name)
    if properties is not None:
        warehouse.create_queue(name, **properties)
        destination = destination if is_direct else warehouse.private(name)
    elif not is_direct:
        destination = f"PRIVATE={str(warehouse.id).upper()}\\0000FFFF"
    body = base64.b64encode(bytes(2000)).decode()
    answers, message = asking(shop, "negative-arrival")
    del message["text"]
    # when it is sent
    [id] = shop.client.send(destination, [{**message, "body": body}], transaction)
    # then the sender is told why, and has the body again
    [nack] = shop.take(answers, 1)
    assert nack["message_class"] == expected
    assert (nack["correlation_id"], nack["body"]) == (id, body)
    assert properties is None or warehouse.count(name) == 0
    wait_until(lambda: shop.waiting(destination) == 0, "the message is not sent again")


@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
@pytest.mark.parametrize("end", ["purge", "delete", "expiry"])
def test_a_message_that_nobody_receives_is_reported(
    company: Company, end: str, transactional: bool
) -> None:
    # given a message in its queue
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name, transactional=transactional)
    more = {"time_to_be_received": 2} if end == "expiry" else {}
    answers, message = asking(
        shop, "full-reach-queue", "full-receive", journal=["dead-letter"], **more
    )
    [id] = shop.client.send(warehouse.direct(name), [message], transactional)
    [arrived] = shop.take(answers, 1)
    assert arrived["message_class"] == "ACK_REACH_QUEUE"
    # when it ends there without a reader
    if end == "purge":
        warehouse.client.purge_queue(path(name))
    elif end == "delete":
        warehouse.client.delete_queue(path(name))
    # then the sender is told how
    [nack] = shop.take(answers, 1)
    assert nack["correlation_id"] == id
    assert (
        nack["message_class"]
        == {
            "purge": "NACK_Q_PURGED",
            "delete": "NACK_Q_DELETED",
            "expiry": "NACK_RECEIVE_TIMEOUT",
        }[end]
    )
    # and a transactional one is in the dead letters of the computer that sent it
    if transactional:
        wait_until(
            lambda: bool(with_label(shop, DEAD_TRANSACTIONAL, message["label"])),
            "the FinalAck made it a dead letter",
        )


@pytest.mark.parametrize("transaction", [False, True], ids=["recoverable", "transactional"])
def test_a_message_that_goes_in_circles_is_reported(company: Company, transaction: bool) -> None:
    # given two queue managers that hold each other for the way to a third
    answers, message = asking(company.shop, "negative-arrival")
    destination = f"PRIVATE={str(GHOST).upper()}\\00000010"
    # when a message is sent to it
    [id] = company.shop.client.send(destination, [message], transaction)
    # then it ends after 29 hops, and the sender is told
    [nack] = company.shop.take(answers, 1)
    assert nack["message_class"] == "NACK_HOP_COUNT_EXCEEDED"
    assert nack["correlation_id"] == id


@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
def test_a_message_that_does_not_reach_its_queue_in_time_is_a_dead_letter(
    estate: Estate, transactional: bool
) -> None:
    # given a queue manager that nobody answers
    a, b = estate.manager("A"), estate.manager("B")
    a.start()
    answers, message = asking(a, "negative-arrival", time_to_reach_queue=1, journal=["dead-letter"])
    # when a message has waited longer than it may
    [id] = a.client.send(b.direct("orders"), [message], transactional)
    # then the sender is told, and the message is kept
    [nack] = a.take(answers, 1)
    assert (nack["message_class"], nack["correlation_id"]) == ("NACK_REACH_QUEUE_TIMEOUT", id)
    [letter] = a.look(DEAD_TRANSACTIONAL if transactional else DEAD_LETTER)
    assert letter["id"] == id
    assert a.waiting() == 0


def test_a_message_that_expires_on_its_way_is_reported_by_the_hub(estate: Estate) -> None:
    # given a hub that cannot reach the next queue manager
    shop, hub, warehouse = [estate.manager(name) for name in ("shop", "hub", "warehouse")]
    estate.introduce([shop, hub, warehouse])
    shop.routes[warehouse] = hub
    shop.start(), hub.start()
    answers, message = asking(shop, "negative-arrival", time_to_reach_queue=2)
    # when a message has waited there longer than it may
    destination = f"PRIVATE={str(warehouse.id).upper()}\\00000010"
    [id] = shop.client.send(destination, [message])
    wait_until(lambda: hub.waiting(destination) == 1, "the hub has it")
    # then the hub tells the sender, and forgets it
    [nack] = shop.take(answers, 1)
    assert (nack["message_class"], nack["correlation_id"]) == ("NACK_REACH_QUEUE_TIMEOUT", id)
    assert nack["source_queue_manager"] == str(hub.id)
    assert hub.waiting(destination) == 0


def test_a_message_that_expires_in_its_queue_is_gone(company: Company) -> None:
    # given a message that waits for a reader no longer than a second
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name)
    shop.client.send(warehouse.direct(name), [{"text": "old", "time_to_be_received": 1}])
    # when nobody reads it
    wait_until(lambda: warehouse.count(name) == 1, "it has arrived")
    wait_until(lambda: warehouse.count(name) == 0, "it has expired")
    # then a reader finds what came after it
    shop.client.send(warehouse.direct(name), [{"text": "new"}])
    assert [message["text"] for message in warehouse.take(name, 1)] == ["new"]


def test_a_recoverable_message_is_in_the_journal_when_it_has_arrived(company: Company) -> None:
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name)
    label = new_name()
    message = {"text": "keep me", "label": label, "journal": ["journal"]}
    [id] = shop.client.send(warehouse.direct(name), [message])
    warehouse.take(name, 1)
    wait_until(lambda: bool(with_label(shop, JOURNAL, label)), "it is in the journal")
    [kept] = with_label(shop, JOURNAL, label)
    assert (kept["id"], kept["text"]) == (id, "keep me")


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "over the hub"])
def test_a_transactional_message_is_in_the_journal_when_it_was_received(
    company: Company, is_direct: bool
) -> None:
    # given a transactional message that has arrived
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name, transactional=True)
    destination = warehouse.direct(name) if is_direct else warehouse.private(name)
    label = new_name()
    message = {"text": "keep me", "label": label, "journal": ["journal"]}
    [id] = shop.client.send(destination, [message], transaction=True)
    wait_until(lambda: warehouse.count(name) == 1, "it has arrived")
    # when nobody has received it, it is not in the journal yet; when somebody has, it is
    assert with_label(shop, JOURNAL, label) == []
    warehouse.take(name, 1)
    wait_until(lambda: bool(with_label(shop, JOURNAL, label)), "the FinalAck came")
    [kept] = with_label(shop, JOURNAL, label)
    assert (kept["id"], kept["text"]) == (id, "keep me")
    wait_until(lambda: shop.waiting(destination) == 0, "nothing is left of it")


@pytest.mark.requirement("QB-3.1.5.8.2-13", "QB-3.1.5.8.2-17")
@pytest.mark.parametrize("exists", [True, False], ids=["not transactional", "no such queue"])
def test_a_refused_transactional_message_is_a_dead_letter_at_its_sender(
    company: Company, exists: bool
) -> None:
    # given a queue that is not transactional, or none
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    if exists:
        warehouse.create_queue(name)
    label = new_name()
    # when a transactional message is sent to it
    message = {"text": "no", "label": label, "journal": ["dead-letter"]}
    shop.client.send(warehouse.direct(name), [message], transaction=True)
    # then the negative FinalAck brings it into the dead letters
    wait_until(lambda: bool(with_label(shop, DEAD_TRANSACTIONAL, label)), "it is a dead letter")
    wait_until(lambda: shop.waiting(warehouse.direct(name)) == 0, "nothing is left of it")


def test_strangers_are_not_told_what_queues_there_are(estate: Estate) -> None:
    # given a queue manager with the settings it comes with
    a, b = estate.manager("A"), estate.manager("B")
    estate.start()
    b.create_queue("orders")
    answers, message = asking(a, "full-reach-queue")
    # when somebody tries a name, and then one that exists
    a.client.send(b.direct("guessed"), [message])
    [id] = a.client.send(b.direct("orders"), [message])
    # then only the second is answered
    [ack] = a.take(answers, 1)
    assert (ack["message_class"], ack["correlation_id"]) == ("ACK_REACH_QUEUE", id)
    wait_until(lambda: a.waiting() == 0, "the first is forgotten")
    assert a.count(answers) == 0


def test_every_hop_reports_a_traced_message(company: Company) -> None:
    # given a public queue for reports; without a directory everybody has its own of that name
    shop, hub, warehouse, name = company.shop, company.hub, company.warehouse, new_name()
    warehouse.create_queue(name)
    destination = warehouse.private(name)
    # when a traced message goes over the hub
    message = {"text": "follow me", "trace": True, "report_queue": str(REPORTS)}
    [id] = shop.client.send(destination, [message])
    [came] = warehouse.take(name, 1)
    assert (came["trace"], came["report_queue"]) == (True, str(REPORTS))
    # then each of them reports what it did: sent, received and sent, received
    number = int(id.split("\\")[1])
    received = (
        f"<MESSAGE ID>{number:08X}</MESSAGE ID>\r\n<TARGET QUEUE>{destination}</TARGET QUEUE>\r\n"
    )
    assert reports(shop, 1) == [
        (f"{number:08X}:00", f"{received}{next_hop(hub)}<HOP COUNT>00 </HOP COUNT>\r\n")
    ]
    assert reports(hub, 2) == [
        (f"{number:08X}:01", received),
        (f"{number:08X}:01", f"{received}{next_hop(warehouse)}<HOP COUNT>01 </HOP COUNT>\r\n"),
    ]
    assert reports(warehouse, 1) == [(f"{number:08X}:01", received)]


def next_hop(daemon: Daemon) -> str:
    return f"<NEXT HOP>{daemon.address}</NEXT HOP>\r\n"


def reports(daemon: Daemon, count: int) -> list[tuple[str, str]]:
    """Number and hops of the reports that a daemon made, and their bodies."""
    found = []
    for report in daemon.take(f"PUBLIC={REPORTS}", count):
        assert (report["message_class"], report["delivery"]) == ("REPORT", "EXPRESS")
        label = LABEL.fullmatch(report["label"])
        assert label is not None, report["label"]
        assert label["source"].startswith(label["start"])
        found.append((label["message"], base64.b64decode(report["body"]).decode("utf-16-le")))
    return found
