"""SEQUENCE_NUMBER: the counter of directory changes (MQDSRP 2.2.2).

Eight bytes with the most significant first, alone in a little-endian protocol. Here it is an int:
comparing two of them is comparing ints, and counting wraps at 2**64 (A-01, A-22).
"""

from __future__ import annotations

from typing import Final

from falconmq.errors import WireError
from falconmq.wire.reader import Buffer

SIZE: Final = 8
MIN_SEQ_NUMBER: Final = 0
MAX_SEQ_NUMBER: Final = 0xFFFFFFFFFFFFFFFF

_MODULUS: Final = 1 << 8 * SIZE


def decode_sequence_number(data: Buffer) -> int:
    """The number that eight bytes stand for; never byte-swapped (RP-2.2-01)."""
    return int.from_bytes(data, "big")


def encode_sequence_number(number: int, structure: str, field: str) -> bytes:
    """Eight bytes, most significant first; WireError that names the field if it does not fit."""
    if not MIN_SEQ_NUMBER <= number <= MAX_SEQ_NUMBER:
        raise WireError(structure, field, f"{number} is no SEQUENCE_NUMBER")
    return number.to_bytes(SIZE, "big")


def increment(number: int) -> int:
    """The next number; MIN_SEQ_NUMBER follows MAX_SEQ_NUMBER (RP-2.2.2-04, RP-2.2.2-06)."""
    return (number + 1) % _MODULUS


def decrement(number: int) -> int:
    """The number before; MAX_SEQ_NUMBER precedes MIN_SEQ_NUMBER (RP-2.2.2-05, RP-2.2.2-06)."""
    return (number - 1) % _MODULUS


def add(number: int, count: int) -> int:
    """`number` incremented `count` times (RP-2.2.2-07)."""
    return (number + count) % _MODULUS


def subtract(number: int, count: int) -> int:
    """`number` decremented `count` times (RP-2.2.2-08)."""
    return (number - count) % _MODULUS
