"""Which acknowledgements a sender gets for what it asked (MQDMPR 3.1.1.12, MQQB 3.1.7.2.1)."""

from __future__ import annotations

from typing import Final

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.queues import purge_queue
from falconmq.message import Acknowledge
from falconmq.wire.message_class import MessageClass
from tests.transport.estate import Estate, Node, direct
from tests.transport.raw_peer import read

REACHED: Final = MessageClass.ACK_REACH_QUEUE
RECEIVED: Final = MessageClass.ACK_RECEIVE
REFUSED: Final = MessageClass.NACK_Q_EXCEED_QUOTA
PURGED: Final = MessageClass.NACK_Q_PURGED

# What is asked; what is told when the message is read, when it is refused, when it is purged.
KINDS: Final = {
    0x00: ("DM-3.1.1.12-74", [], [], []),
    0x01: ("DM-3.1.1.12-75 MQ-2.2.19.3-03", [REACHED], [], [REACHED]),
    0x02: ("DM-3.1.1.12-76 MQ-2.2.19.3-04", [RECEIVED], [], []),
    0x04: ("DM-3.1.1.12-79 MQ-2.2.19.3-05", [], [REFUSED], []),
    0x08: ("DM-3.1.1.12-78 MQ-2.2.19.3-06", [], [], [PURGED]),
    0x05: ("DM-3.1.1.12-80", [REACHED], [REFUSED], [REACHED]),
    0x0C: ("DM-3.1.1.12-81", [], [REFUSED], [PURGED]),
    0x0E: ("DM-3.1.1.12-82", [RECEIVED], [REFUSED], [PURGED]),
}


class Sender:
    """A queue manager with an administration queue, and another one with a queue."""

    def __init__(self, asked: int, *, quota_kilobytes: int) -> None:
        self.estate = Estate()
        self.here, self.there = self.estate.node("A", 1), self.estate.node("B", 2)
        self.acks = self.here.queue("acks")
        self.orders = self.there.queue("orders", quota_kilobytes=quota_kilobytes)
        self.here.send(
            direct(self.there, "orders"),
            b"x" * 2000,
            acknowledgements=Acknowledge(asked),
            administration_queue=direct(self.here, "acks") if asked else None,
        )
        self.estate.advance(30.0)

    @property
    def told(self) -> list[int]:
        self.estate.advance(30.0)
        return _classes(self.acks)


def _classes(queue: Queue) -> list[int]:
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.available]
    return [p.message.packet.properties.message_class for p in found if p is not None]


def _purge(node: Node, queue: Queue) -> None:
    node.run(purge_queue, node.core, queue)


@pytest.mark.parametrize(
    ("asked", "read_", "refused", "purged"),
    [
        pytest.param(asked, *told, marks=pytest.mark.requirement(*rows.split()), id=f"{asked:#04x}")
        for asked, (rows, *told) in KINDS.items()
    ],
)
def test_a_sender_hears_what_it_asked_for_and_nothing_else(
    asked: int, read_: list[int], refused: list[int], purged: list[int]
) -> None:
    sender = Sender(asked, quota_kilobytes=100)
    read(sender.there, sender.orders)
    assert sender.told == read_
    assert Sender(asked, quota_kilobytes=1).told == refused
    sender = Sender(asked, quota_kilobytes=100)
    _purge(sender.there, sender.orders)
    assert sender.told == purged
