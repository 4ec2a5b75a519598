"""A million queued messages: how long opening takes, and how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import falconmq
from falconmq import Message
from falconmq.manager.core import message_key
from falconmq.store import Durability, WriteBatch, open_data_directory

MESSAGES = 1_000_000
PIECE = 50_000
GIBIBYTE = 1 << 30

OPEN = """
import json, resource, sys, time
import falconmq
from falconmq.store import open_data_directory

started = time.perf_counter()
store = open_data_directory(sys.argv[1])
scanned = sum(1 for _ in store.scan("messages"))
scan = time.perf_counter() - started
store.close()
started = time.perf_counter()
manager = falconmq.open(sys.argv[1])
opening = time.perf_counter() - started
queue = manager.queue(r".\\private$\\orders")
started = time.perf_counter()
for _ in range(20):
    queue.receive(timeout=0)
head = (time.perf_counter() - started) / 20
count = queue.count
manager.close()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(dict(scanned=scanned, scan=scan, opening=opening, head=head,
                      count=count, memory=memory)))
"""


def fill(path: Path) -> None:
    """A queue with a million messages of 100 bytes, written straight into the store."""
    with falconmq.open(path, durability=Durability.RELAXED) as manager:
        orders = manager.create_queue(r".\private$\orders")
        orders.send(Message(bytes(100)))
    with open_data_directory(path, durability=Durability.RELAXED) as store:
        key, record = next(iter(store.scan("messages")))
        queue_number, first = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        for start in range(0, MESSAGES, PIECE):
            batch = WriteBatch()
            for number in range(start, start + PIECE):
                batch.put("messages", message_key(queue_number, first + number), record)
            batch.put("meta", b"sequential_id", (start + 2 * PIECE).to_bytes(8, "big"))
            store.commit([batch])


@pytest.mark.slow
def test_a_million_messages_open_soon_and_in_little_memory(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    # given a million messages of 100 bytes
    fill(tmp_path)
    # when another process opens them
    command = [sys.executable, "-c", OPEN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    figures = json.loads(done.stdout)
    record_property("figures", figures)
    print(figures)
    # then they are all there
    assert figures["scanned"] == MESSAGES
    assert figures["count"] == MESSAGES - 20
    # in less than 1 GiB, the pages of the mapped file included
    assert figures["memory"] < GIBIBYTE
    # soon: within a few times of what it takes to look at every record once
    assert figures["opening"] < 6 * figures["scan"] + 1
