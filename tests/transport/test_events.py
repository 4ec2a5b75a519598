"""What is remembered of messages that travel."""

from __future__ import annotations

from falconmq.manager.events import EventKind, EventLog, MessageEvent
from falconmq.manager.queues import purge_queue
from falconmq.message import Acknowledge, Journal
from falconmq.wire.message_class import MessageClass
from tests.transport.estate import Estate, Node, direct
from tests.transport.raw_peer import ADDRESS, RawPeer, read, routed_estate


def given_log(node: Node) -> EventLog:
    node.core.events = EventLog(node.core.clock.time)
    return node.core.events


def given_two() -> tuple[Estate, Node, EventLog, Node, EventLog]:
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    return estate, here, given_log(here), there, given_log(there)


def kinds(log: EventLog) -> list[EventKind]:
    return [event.kind for event in log.after(0)]


def only(log: EventLog, kind: EventKind) -> MessageEvent:
    (event,) = (event for event in log.after(0) if event.kind is kind)
    return event


def test_a_message_is_queued_here_delivered_and_arrives_there() -> None:
    estate, here, log, there, far = given_two()
    orders = there.queue("orders")
    sent = here.send(direct(there, "orders"), b"1")
    estate.advance(30.0)  # the receiver may wait with its acknowledgement
    assert kinds(log) == [EventKind.QUEUED, EventKind.DELIVERED]
    delivered = only(log, EventKind.DELIVERED)
    assert delivered.detail == there.address
    assert (delivered.source, delivered.message_id) == sent.identity
    assert delivered.queue is here.outgoing(direct(there, "orders"))
    arrived = only(far, EventKind.ARRIVED)
    assert (arrived.source, arrived.message_id) == sent.identity
    assert arrived.queue is orders


def test_a_transactional_message_tells_its_end_by_its_final_ack() -> None:
    estate, here, log, there, _ = given_two()
    orders = there.queue("orders", transactional=True)
    here.send_transaction(direct(there, "orders"), b"1", journal=Journal.JOURNAL)
    estate.advance(2.0)
    assert EventKind.TOLD not in kinds(log)
    read(there, orders)
    estate.advance(2.0)
    assert kinds(log)[-2:] == [EventKind.TOLD, EventKind.JOURNALED]
    assert only(log, EventKind.TOLD).reason == MessageClass.ACK_RECEIVE
    assert only(log, EventKind.TOLD).queue is here.outgoing(direct(there, "orders"))


def test_a_refusal_names_the_queue_that_refused() -> None:
    estate, here, log, there, far = given_two()
    orders = there.queue("orders", transactional=True)
    sent = here.send(direct(there, "orders"), b"1")
    here.send(direct(there, "nowhere"), b"2")
    estate.advance(1.0)
    wrong, missing = (event for event in far.after(0) if event.kind is EventKind.REFUSED)
    assert (wrong.reason, wrong.queue) == (MessageClass.NACK_NOT_TRANSACTIONAL_MSG, orders)
    assert (wrong.source, wrong.message_id) == sent.identity
    assert wrong.detail == direct(there, "orders")
    assert (missing.reason, missing.queue) == (MessageClass.NACK_BAD_DST_Q, None)
    assert there.transport.refusals[MessageClass.NACK_BAD_DST_Q] == 1
    assert EventKind.REFUSED not in kinds(log)


def test_a_full_queue_refuses_by_name() -> None:
    estate, here, _, there, far = given_two()
    orders = there.queue("orders", quota_kilobytes=0)
    here.send(direct(there, "orders"), b"1")
    estate.advance(1.0)
    refused = only(far, EventKind.REFUSED)
    assert (refused.reason, refused.queue) == (MessageClass.NACK_Q_EXCEED_QUOTA, orders)


def test_an_acknowledgement_that_comes_back_tells_of_the_message_it_is_about() -> None:
    estate, here, log, there, _ = given_two()
    here.queue("acks")
    there.queue("orders", quota_kilobytes=0)
    sent = here.send(
        direct(there, "orders"),
        b"1",
        administration_queue=direct(here, "acks"),
        acknowledgements=Acknowledge.FULL_REACH_QUEUE,
    )
    estate.advance(1.0)
    told = only(log, EventKind.TOLD)
    assert (told.source, told.message_id) == sent.identity
    assert told.reason == MessageClass.NACK_Q_EXCEED_QUOTA


def test_a_message_of_an_application_tells_of_no_other() -> None:
    estate, here, log, there, far = given_two()
    there.queue("orders")
    here.send(direct(there, "orders"), b"1", correlation_id=b"x" * 20)
    here.send(direct(there, "orders"), b"1", correlation_id=b"x" * 20, message_class=0x0100)
    estate.advance(1.0)
    assert kinds(far) == [EventKind.ARRIVED, EventKind.ARRIVED]
    assert EventKind.TOLD not in kinds(log)


def test_a_duplicate_is_recorded_with_its_sender() -> None:
    estate = routed_estate()
    node = estate.node("B", 2)
    log = given_log(node)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for _ in range(2):
        peer.send(queue, message_id=5)
    assert kinds(log) == [EventKind.ARRIVED, EventKind.DUPLICATE]
    assert only(log, EventKind.DUPLICATE).detail == ADDRESS
    assert only(log, EventKind.DUPLICATE).message_id == 5


def test_what_waits_for_a_peer_expires_or_is_purged() -> None:
    estate, here, log, there, _ = given_two()
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    here.send(name, b"1", time_to_reach_queue=5)
    here.send(name, b"2", journal=Journal.DEAD_LETTER)
    estate.advance(10.0)
    here.run(purge_queue, here.core, here.outgoing(name))
    assert only(log, EventKind.EXPIRED).reason == MessageClass.NACK_REACH_QUEUE_TIMEOUT
    assert only(log, EventKind.PURGED).queue is here.outgoing(name)
    assert only(log, EventKind.DEAD_LETTERED).reason == MessageClass.NACK_DELETED
