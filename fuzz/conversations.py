"""Whole conversations: what a peer says to a queue manager after the session is open.

Whatever it says, nothing is raised, the timers that it started end, and a neighbour is served.
"""

from __future__ import annotations

import logging

from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.transport.estate import Estate, bodies
from tests.transport.raw_peer import RawPeer

_SEQUENCE = 1 << 32 | 1
logging.getLogger("falconmq").setLevel(logging.CRITICAL)  # a fuzzer has much to be warned of


class Stage:
    """A queue manager with two queues, a message of its own on the way, and a peer."""

    def __init__(self) -> None:
        self.estate = Estate()
        self.node = self.estate.node("A", 2)
        self.orders = self.node.queue("orders")
        self.ledger = self.node.queue("ledger", transactional=True)
        self.peer = RawPeer(self.node).open()
        self.node.send_transaction(rf"DIRECT=TCP:{self.peer.address}\private$\far", b"1", b"2")
        self.estate.settle()


def check_conversation(data: bytes) -> None:
    """The first byte cuts the rest into segments."""
    stage = Stage()
    size = (data[0] if data else 0) * 4 + 1
    for start in range(1, len(data), size):
        if stage.peer.is_closed:
            break
        stage.peer.write(data[start : start + size])
    stage.estate.advance(10.0)
    before = bodies(stage.orders)
    neighbour = RawPeer(stage.node, address="10.0.0.98", guid=b"N" * 16).open()
    neighbour.send(stage.orders, b"neighbour")
    after = bodies(stage.orders)
    assert len(after) == len(before) + 1, "a neighbour is not served"
    stage.estate.advance(400.0)


def conversations() -> list[bytes]:
    """What an honest peer says, as a start for the dishonest."""
    peer = Stage().peer
    express = peer.message(r"TCP:10.0.0.2\private$\orders").encode()
    recoverable = peer.message(r"TCP:10.0.0.2\private$\orders", recoverable=True).encode()
    first = peer.message(r"TCP:10.0.0.2\private$\ledger", transaction=(_SEQUENCE, 1, 0)).encode()
    second = peer.message(r"TCP:10.0.0.2\private$\ledger", transaction=(_SEQUENCE, 2, 1)).encode()
    ack = SessionAck(SessionHeader(2, 1, 3, 0, 0, 64)).encode()
    talks = (express, recoverable + express, first + second, ack + first, second + first + ack)
    return [b"\xff" + talk for talk in talks] + [b"\x07" + first + second]
