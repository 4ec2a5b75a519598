"""MD2 and MD4 (RFC 1319, RFC 1320): hashes of old signatures, which no library has any more.

Both are broken: who has read a signed message can make another one that fits its signature. They
are here to verify what an old estate still signs with them, where an administrator allowed it.
Plain Python is slow, so what they may be given has a limit: nobody keeps the loop busy with them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

BYTES_MAX: Final = 8 << 10  # MD2 takes 60 milliseconds for that
_WORD: Final = 0xFFFFFFFF
_BLOCK2: Final = 16
_ROUNDS2: Final = 18
_ROUNDS4: Final[tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]] = (
    (0, tuple(range(16)), (3, 7, 11, 19)),
    (0x5A827999, tuple(4 * (i % 4) + i // 4 for i in range(16)), (3, 5, 9, 13)),
    (0x6ED9EBA1, (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), (3, 9, 11, 15)),
)
_MIX4: Final[tuple[Callable[[int, int, int], int], ...]] = (
    lambda x, y, z: x & y | ~x & z,
    lambda x, y, z: x & y | x & z | y & z,
    lambda x, y, z: x ^ y ^ z,
)


def md2(data: bytes) -> bytes:
    """Sixteen bytes; `data` is not longer than BYTES_MAX."""
    table = _pi_table()
    padding = _BLOCK2 - len(data) % _BLOCK2
    padded = data + bytes([padding]) * padding
    checksum, last = bytearray(_BLOCK2), 0
    for start in range(0, len(padded), _BLOCK2):
        for place in range(_BLOCK2):
            checksum[place] ^= table[padded[start + place] ^ last]
            last = checksum[place]
    padded += bytes(checksum)
    state = bytearray(_BLOCK2)
    for start in range(0, len(padded), _BLOCK2):
        block = padded[start : start + _BLOCK2]
        work = state + block + bytes(a ^ b for a, b in zip(state, block, strict=True))
        carry = 0
        for number in range(_ROUNDS2):
            for place in range(3 * _BLOCK2):
                carry = work[place] = work[place] ^ table[carry]
            carry = (carry + number) % 256
        state = work[:_BLOCK2]
    return bytes(state)


def md4(data: bytes) -> bytes:
    """Sixteen bytes; `data` is not longer than BYTES_MAX."""
    zeros = -(len(data) + 9) % 64
    padded = data + b"\x80" + bytes(zeros) + struct.pack("<Q", 8 * len(data))
    state = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]
    for start in range(0, len(padded), 64):
        words = struct.unpack_from("<16I", padded, start)
        a, b, c, d = state
        for mix, (constant, order, shifts) in zip(_MIX4, _ROUNDS4, strict=True):
            for step, word in enumerate(order):
                total = (a + mix(b, c, d) + words[word] + constant) & _WORD
                shift = shifts[step % 4]
                a, b, c, d = d, (total << shift | total >> 32 - shift) & _WORD, b, c
        state = [(x + y) & _WORD for x, y in zip(state, (a, b, c, d), strict=True)]
    return struct.pack("<4I", *state)


@cache
def _pi_table() -> bytes:
    """MD2's permutation of all bytes, which is shuffled by the digits of pi."""
    digits = _pi_digits()
    table = list(range(256))
    for size in range(2, 257):
        place = _below(size, digits)
        table[place], table[size - 1] = table[size - 1], table[place]
    return bytes(table)


def _below(limit: int, digits: Iterator[int]) -> int:
    """A number below a limit from the next digits; those that would favour some are passed over."""
    while True:
        value, span = next(digits), 10
        while span < limit:
            value, span = 10 * value + next(digits), 10 * span
        if value < span // limit * limit:
            return value % limit


def _pi_digits() -> Iterator[int]:
    """3, 1, 4, 1, 5, ...: Gibbons' spigot, with whole numbers only."""
    q, r, t, k, n, m = 1, 0, 1, 1, 3, 3
    while True:
        if 4 * q + r - t < n * t:
            yield n
            q, r, n = 10 * q, 10 * (r - n * t), 10 * (3 * q + r) // t - 10 * n
        else:
            n_next = (q * (7 * k + 2) + r * m) // (t * m)
            q, r, t, k, m, n = q * k, (2 * q + r) * m, t * m, k + 1, m + 2, n_next
