"""What the transport counts for metrics: messages sent again, failures, bytes."""

from __future__ import annotations

from falconmq.manager.queues import purge_queue
from tests.transport.estate import Estate, bodies, direct
from tests.transport.test_routing_estate import given_three
from tests.transport.test_sending import given_two, send_numbered

AGAIN = "messages to send again"


def test_what_a_lost_session_had_not_acknowledged_counts_as_sent_again() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    there.holds_commits = True
    send_numbered(here, direct(there, "orders"), 0, 4, recoverable=True)
    estate.settle()
    assert AGAIN not in here.transport.counters
    estate.cut(here.lines[0])
    there.release_commits()
    estate.advance(25.0)
    assert here.transport.counters[AGAIN] == 4


def test_what_the_timer_sends_again_counts_too() -> None:
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    estate.refusing.add(there.address)
    here.send_transaction(there.private_name(orders), b"1", b"2")
    estate.advance(1.0)
    for queue in list(router.core.outgoing.values()):
        router.run(purge_queue, router.core, queue)
    estate.refusing.clear()
    estate.advance(60.0)
    assert bodies(orders) == [b"1", b"2"]
    assert here.transport.counters[AGAIN] == 2


def test_tries_that_failed_are_counted_beyond_the_history() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    orders = there.queue("orders")
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.settle()
    assert here.outgoing(name).connection_failures == 1
    estate.advance(3600.0)
    failures = here.outgoing(name).connection_failures
    assert failures > len(here.outgoing(name).connection_history)
    estate.refusing.clear()
    estate.advance(60.0)
    assert bodies(orders) == [b"one"]
    assert here.outgoing(name).connection_failures == failures  # progress is no failure
