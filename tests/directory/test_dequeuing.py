"""The loop that takes what comes into a queue of the queue manager's own."""

from __future__ import annotations

from falconmq.directory.dequeuing import DequeueLoop
from falconmq.directory.notification import notify_queue
from falconmq.manager.creation import NOTIFY_QUEUE_NUMBER
from falconmq.manager.storing import enqueue_message
from tests.manager.helpers import IDENTIFIER, make_core, message


def test_what_waits_is_taken_then_what_comes_until_it_is_closed() -> None:
    # given a queue with a message in it
    core = make_core()
    queue = core.private_numbers[NOTIFY_QUEUE_NUMBER]
    taken: list[bytes] = []
    loop = DequeueLoop(
        core,
        notify_queue(IDENTIFIER),
        lambda stored: taken.append(bytes(stored.packet.properties.message_body)),
        tag="a test",
    )
    enqueue_message(core, queue, message(b"1"))
    # when the loop is open, then it takes that one, and each that comes
    loop.open()
    assert taken == []
    loop.receive()
    for body in (b"2", b"3"):
        enqueue_message(core, queue, message(body))
        core.run_timers()
    assert taken == [b"1", b"2", b"3"]
    # when it is closed, then nothing is left of it at the queue, and nothing is taken
    loop.close()
    loop.close()
    assert not loop.is_open
    assert (queue.arrival_watchers, queue.descriptors, len(queue.waiting)) == ([], [], 0)
    enqueue_message(core, queue, message(b"4"))
    core.run_timers()
    assert len(taken) == 3
    # and it can be opened again
    loop.open()
    loop.receive()
    assert taken[3:] == [b"4"]


def test_a_message_is_taken_after_the_event_that_brought_it() -> None:
    core = make_core()
    queue = core.private_numbers[NOTIFY_QUEUE_NUMBER]
    taken: list[object] = []
    loop = DequeueLoop(core, notify_queue(IDENTIFIER), taken.append, tag="a test")
    loop.open()
    loop.receive()
    assert loop.is_open
    enqueue_message(core, queue, message(b"1"))
    assert taken == []
    core.run_timers()
    assert len(taken) == 1
