"""The route of a message, from records here and from the reports of others."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.manager.events import EventLog
from falconmq.manager.model import Queue
from falconmq.manager.queues import create_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.storing import enqueue_message
from falconmq.message import Delivery, Message, MessageId
from falconmq.names import PathName
from falconmq.serialization import to_user_message
from falconmq.service.operating.tracing import (
    newest_of,
    read_report,
    report_queues,
    route_json,
    route_of,
)
from falconmq.wire.message_class import MessageClass
from tests.transport.answers import PUBLIC_QUEUE
from tests.transport.estate import Node, direct
from tests.transport.raw_peer import read, routed_estate


def given_reports(node: Node) -> Queue:
    """The queue that reports go to."""
    node.core.events = EventLog(node.core.clock.time)
    queue: Queue = node.run(
        lambda: create_queue(
            node.core, PathName.parse(r".\reports"), skip_directory=True, identifier=PUBLIC_QUEUE
        )
    )
    return queue


def test_records_here_are_the_stops_of_this_queue_manager() -> None:
    # given a queue manager that has the report queue and reports itself
    estate = routed_estate()
    here, there = estate.node("A", 1, send_reports=True), estate.node("B", 2)
    reports = given_reports(here)
    there.queue("orders")
    sent = here.send(direct(there, "orders"), b"x", trace=True, report_queue=PUBLIC_QUEUE)
    estate.advance(30.0)
    assert len(reports.positions) == 1
    # then its own report tells nothing that its records do not
    id = MessageId.of(here.identifier, sent.identity[1])
    route = route_of(here.core, id)
    assert [stop.kind for stop in route.stops] == ["queued", "delivered"]
    # but after a restart, when the records are gone, it does
    here.core.events = EventLog(here.core.clock.time)
    (stop,) = route_of(here.core, id).stops
    assert (stop.kind, stop.text, stop.is_report) == (
        "sent-on",
        f"sent on to {there.address}",
        True,
    )
    assert stop.queue == direct(there, "orders")


def report(
    node: Node,
    ordinal: int,
    *,
    of: UUID,
    by: UUID,
    next_hop: str = "",
    label: str = "",
    message_class: int = MessageClass.REPORT,
) -> StoredMessage:
    """A report as another queue manager writes it (MQQB 3.1.5.8.9)."""
    source = str(of).upper()
    body = f"<MESSAGE ID>{ordinal:08X}</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT=OS:c\\q</TARGET QUEUE>"
    if next_hop:
        body += f"\r\n<NEXT HOP>{next_hop}</NEXT HOP>\r\n<HOP COUNT>01 </HOP COUNT>\r\n"
    text = label or (
        f"{source[:4]}:{ordinal:08X}:01 received by {source} at 22:13:25 PM Tue,Nov 14 23"
    )
    message = Message(
        body.encode("utf-16-le"),
        label=text,
        message_class=message_class,
        delivery=Delivery.EXPRESS,
        destination=r"DIRECT=OS:a\reports",
    )
    packet = to_user_message(
        message, source_queue_manager=by, message_id=1, sent_time=1_700_000_000
    )
    return StoredMessage.of(packet)


def test_a_report_is_read_as_it_was_written() -> None:
    node = routed_estate().node("A", 1)
    of, by = node.identifier, UUID(int=0xB0B, version=4)
    found = read_report(report(node, 31, of=of, by=by, next_hop="10.0.0.3"))
    assert found is not None
    assert (found.ordinal, found.source, found.manager) == (31, of, by)
    assert (found.hops, found.next_hop, found.target) == (1, "10.0.0.3", r"DIRECT=OS:c\q")
    assert found.time == 1_700_000_005.0  # 2023-11-14 22:13:25 UTC


@pytest.mark.parametrize(
    "changes",
    [
        {"message_class": MessageClass.NORMAL},
        {"label": "anything else"},
        {"label": "1111:0000001F:01 received by " + "-" * 36 + " at 22:13:25 PM Tue,Nov 14 23"},
    ],
)
def test_what_is_no_report_is_left_out(changes: dict[str, object]) -> None:
    node = routed_estate().node("A", 1)
    of = UUID("11111111-2222-4333-8444-555555555555")
    given = report(node, 31, of=of, by=of, **changes)  # type: ignore[arg-type]
    assert read_report(given) is None


def test_a_day_that_does_not_exist_is_when_the_report_came() -> None:
    node = routed_estate().node("A", 1)
    of = UUID("11111111-2222-4333-8444-555555555555")
    label = f"1111:0000001F:01 received by {of} at 22:13:25 PM Tue,Nov 31 23".upper().replace(
        "RECEIVED BY", "received by"
    )
    given = report(
        node, 31, of=of, by=of, label=label.replace(" AT ", " at ").replace("NOV", "Nov")
    )
    given.arrival_time = 7.0
    found = read_report(given)
    assert found is not None
    assert found.time == 7.0


def test_stops_of_other_queue_managers_make_edges() -> None:
    estate = routed_estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    reports = given_reports(here)
    there.queue("orders")
    sent = here.send(direct(there, "orders"), b"x")
    estate.advance(30.0)  # that it was delivered is known here after the reports were written
    ordinal, router = sent.identity[1], UUID(int=0xB0B, version=4)
    for hop in ("", "10.0.0.2"):
        stored = report(here, ordinal, of=here.identifier, by=router, next_hop=hop)
        here.run(enqueue_message, here.core, reports, stored)
    other = report(here, ordinal + 1, of=here.identifier, by=router)
    here.run(enqueue_message, here.core, reports, other)
    # the records here and the two reports, in the order of time
    id = MessageId.of(here.identifier, ordinal)
    found = route_json(here.core, route_of(here.core, id), {router: "ROUTER"})
    assert [(stop["name"], stop["kind"], stop["source"]) for stop in found["stops"]] == [
        ("A", "queued", "here"),
        ("A", "delivered", "here"),
        ("ROUTER", "received-by", "report"),
        ("ROUTER", "sent-on", "report"),
    ]
    (edge,) = found["edges"]
    assert edge == {"start": 1, "end": 2, "seconds": 5.0}
    assert found["summary"].startswith("Seen by 2 queue managers; ")


def test_reports_are_looked_for_where_they_may_be() -> None:
    node = routed_estate().node("A", 1)
    reports = given_reports(node)
    node.queue("orders")
    named = node.queue("my_reports")
    assert {queue.number for queue in report_queues(node.core)} == {reports.number, named.number}


def test_the_newest_messages_of_a_queue_are_named_once() -> None:
    estate = routed_estate()
    node = estate.node("A", 1)
    node.core.events = EventLog(node.core.clock.time)
    queue = node.queue("orders")
    ids = [
        MessageId.of(node.identifier, node.send(direct(node, "orders"), b"x").identity[1])
        for _ in range(3)
    ]
    read(node, queue)
    assert newest_of(node.core, queue, 2) == [ids[0], ids[2]]
    assert newest_of(node.core, queue, 10) == [ids[0], ids[2], ids[1]]


def test_nothing_is_known_of_a_stranger() -> None:
    node = routed_estate().node("A", 1)
    id = MessageId.of(UUID(int=7), 7)
    found = route_json(node.core, route_of(node.core, id), {})
    assert (found["stops"], found["edges"]) == ([], [])
    assert found["summary"] == "Nothing is known of this message here."
