"""Microseconds per message to encode, decode and split user messages; share of time in our code.

Each figure is the best of several rounds: the machine's noise only ever adds. Two rows serve as a
measure of the machine itself, so that runs can be compared as ratios: filling a slotted dataclass
with ten fields, and copying the packet's bytes once.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sys
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import falconmq
from falconmq.wire import base_header, transaction_header, user_header
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.packet import decode_packet
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage

PACKAGE = str(Path(falconmq.__file__).parent)
SEGMENT = 64 * 1024  # what one read of a busy socket gives
BODY_SIZES = {"100 B": 100, "1 KiB": 1024, "64 KiB": 64 * 1024}


@dataclass(slots=True)
class Ten:
    """A yardstick: what the cheapest value of this size costs."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int
    j: int


@dataclass
class Row:
    message: str
    body: str
    operation: str
    microseconds: float
    our_share: float | None = None  # of the time, as cProfile sees it


def make_message(body_size: int, *, transactional: bool) -> UserMessage:
    """A message as an application sends it: direct destination, label, body."""
    direct = 7 << user_header.DESTINATION_QUEUE_TYPE_SHIFT
    flags = user_header.MESSAGE_PROPERTIES_HEADER | direct
    transaction = None
    priority = base_header.DEFAULT_PRIORITY
    if transactional:
        priority = 0
        flags |= 1 << user_header.DELIVERY_MODE_SHIFT
        first_and_last = transaction_header.FIRST_MESSAGE | transaction_header.LAST_MESSAGE
        transaction = TransactionHeader(first_and_last, 0x65000000_00000001, 7, 6)
    return UserMessage(
        BaseHeader(priority, base_header.PACKET_SIZE_MIN, 345600),
        UserHeader(
            source_queue_manager=bytes(range(16)),
            queue_manager_address=bytes(16),
            time_to_be_received=base_header.INFINITE,
            sent_time=1_700_000_000,
            message_id=42,
            flags=flags,
            destination_queue="TCP:10.0.0.7\\private$\\orders",
        ),
        MessagePropertiesHeader(label="order 4711", message_body=bytes(body_size)),
        transaction=transaction,
    )


def best(operation: Callable[[], object], seconds: float) -> float:
    """Seconds of one call: the best of five rounds."""
    timer = timeit.Timer(operation)
    number, taken = timer.autorange()
    number = max(1, int(number * seconds / 5 / taken))
    return min(timer.repeat(5, number)) / number


def share_in_our_code(operation: Callable[[], object]) -> float:
    """Part of the time inside falconmq's own functions; the rest is struct, slicing, joining."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(2000):
        operation()
    profile.disable()
    times = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # missing in typeshed
    ours = sum(row[2] for (file, _, _), row in times.items() if file.startswith(PACKAGE))
    everything = sum(row[2] for (file, _, _), row in times.items() if file != __file__)
    return float(ours / everything)


def split_stream(stream: list[bytes]) -> None:
    splitter = PacketSplitter()
    for segment in stream:
        splitter.feed(segment)
        while splitter.take() is not None:
            pass


def measure(seconds: float) -> list[Row]:
    rows = []
    for kind, transactional in (("express", False), ("transactional", True)):
        for body, size in BODY_SIZES.items():
            message = make_message(size, transactional=transactional)
            packet = message.encode()
            operations: dict[str, Callable[[], object]] = {
                "encode": message.encode,
                "decode": partial(decode_packet, packet),
            }
            for name, operation in operations.items():
                taken = best(operation, seconds) * 1e6
                rows.append(Row(kind, body, name, taken, share_in_our_code(operation)))
            count = max(2, (1 << 20) // len(packet))
            whole = packet * count
            stream = [whole[at : at + SEGMENT] for at in range(0, len(whole), SEGMENT)]
            taken = best(partial(split_stream, stream), seconds) / count * 1e6
            rows.append(Row(kind, body, "split", taken))
    packet = make_message(1024, transactional=False).encode()
    rows.append(
        Row("yardstick", "-", "ten-field dataclass", best(lambda: Ten(*range(10)), seconds) * 1e6)
    )
    rows.append(Row("yardstick", "1 KiB", "copy", best(lambda: bytearray(packet), seconds) * 1e6))
    return rows


def print_table(rows: list[Row]) -> None:
    table = Table(title="codec, microseconds per message (best of five)")
    for column in ("message", "body", "operation"):
        table.add_column(column)
    table.add_column("microseconds", justify="right")
    table.add_column("in our code", justify="right")
    for row in rows:
        share = "" if row.our_share is None else f"{row.our_share:.0%}"
        table.add_row(row.message, row.body, row.operation, f"{row.microseconds:.2f}", share)
    Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.codec", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="per figure (0.5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    rows = measure(options.seconds)
    if options.json:
        print(json.dumps([row.__dict__ for row in rows], indent=1))
    else:
        print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
