"""Outgoing queues and streams as operators read them."""

from __future__ import annotations

from falconmq.message import Journal
from falconmq.service import schemas
from falconmq.service.operating.outgoing import incoming_json, outgoing_json
from tests.transport.estate import Estate, direct


def test_the_stream_of_an_outgoing_queue_says_how_far_it_is() -> None:
    # given three transactional messages that arrived, one of them without a journal
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders", transactional=True)
    here.send_transaction(direct(there, "orders"), b"1", b"2", journal=Journal.JOURNAL)
    here.send_transaction(direct(there, "orders"), b"3")
    estate.advance(2.0)
    # when the sender looks
    (outgoing,) = outgoing_json(here.core, here.transport)
    # then two wait for the news of their reading, and the next sequence has begun
    found = schemas.OutgoingOut.model_validate(outgoing)
    assert found.stream is not None
    assert (found.stream.not_read, found.stream.not_acknowledged) == (2, 0)
    assert found.stream.next is not None
    assert found.stream.next.number == 1
    assert found.state == "connected"
    # and the receiver knows the number it came to
    (incoming,) = (schemas.IncomingStreamOut.model_validate(s) for s in incoming_json(orders))
    assert (incoming.sequence_number, incoming.reject_count) == (3, 0)
    assert incoming.sender == str(here.identifier)


def test_a_queue_that_cannot_be_delivered_says_why_and_when_it_is_tried_again() -> None:
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    estate.refusing.add(there.address)
    here.send(direct(there, "orders"), b"1")
    estate.advance(1.0)
    (outgoing,) = outgoing_json(here.core, here.transport)
    assert outgoing["problem"] == "connection refused"
    assert outgoing["next_try_seconds"] == here.settings.try_connect_interval - 1.0
    assert outgoing["stream"] is None
    assert [attempt["status"] for attempt in outgoing["connection_history"]] == [
        "connection refused"
    ]
