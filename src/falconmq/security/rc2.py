"""RC2 (RFC 2268), a cipher of 1987 that no library has any more with the keys MSMQ uses.

Weak, slow, and only for peers that know nothing better: callers ask whether weak algorithms are
allowed. A block has 8 bytes, four words of 16 bits with the low byte first.
"""

from __future__ import annotations

import struct
from typing import Final

BLOCK_SIZE: Final = 8

_PI: Final = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_KEY_BYTES: Final = 128
_MASHES: Final = frozenset({4, 10})  # the rounds behind which a round of mashing comes
_WORDS: Final = struct.Struct("<4H")


class Rc2:
    """The cipher with one key; `effective_bits` is how many of its bits count."""

    def __init__(self, key: bytes, effective_bits: int) -> None:
        if not 1 <= len(key) <= _KEY_BYTES or not 1 <= effective_bits <= 8 * _KEY_BYTES:
            raise ValueError("an RC2 key has 1 to 128 bytes, 1 to 1024 of its bits count")
        self._key = _expanded(key, effective_bits)
        fours = [self._key[start : start + 4] for start in range(0, len(self._key), 4)]
        self._rounds = list(enumerate(fours))
        self._rounds_back = self._rounds[::-1]

    def encrypt_cbc(self, data: bytes) -> bytes:
        """Whole blocks, each mixed with the one before; the first with zeros."""
        previous, made = 0, bytearray()
        for start in range(0, len(data), BLOCK_SIZE):
            block = int.from_bytes(data[start : start + BLOCK_SIZE], "little") ^ previous
            sealed = self.encrypt_block(block.to_bytes(BLOCK_SIZE, "little"))
            previous = int.from_bytes(sealed, "little")
            made += sealed
        return bytes(made)

    def decrypt_cbc(self, data: bytes) -> bytes:
        previous, made = 0, bytearray()
        for start in range(0, len(data), BLOCK_SIZE):
            sealed = data[start : start + BLOCK_SIZE]
            block = int.from_bytes(self.decrypt_block(sealed), "little") ^ previous
            previous = int.from_bytes(sealed, "little")
            made += block.to_bytes(BLOCK_SIZE, "little")
        return bytes(made)

    def encrypt_block(self, block: bytes) -> bytes:
        a, b, c, d = _WORDS.unpack(block)
        for turn, (k, m, n, o) in self._rounds:
            a = a + k + (d & c) + (~d & b) & 0xFFFF
            a = (a << 1 | a >> 15) & 0xFFFF
            b = b + m + (a & d) + (~a & c) & 0xFFFF
            b = (b << 2 | b >> 14) & 0xFFFF
            c = c + n + (b & a) + (~b & d) & 0xFFFF
            c = (c << 3 | c >> 13) & 0xFFFF
            d = d + o + (c & b) + (~c & a) & 0xFFFF
            d = (d << 5 | d >> 11) & 0xFFFF
            if turn in _MASHES:
                a = a + self._key[d & 63] & 0xFFFF
                b = b + self._key[a & 63] & 0xFFFF
                c = c + self._key[b & 63] & 0xFFFF
                d = d + self._key[c & 63] & 0xFFFF
        return _WORDS.pack(a, b, c, d)

    def decrypt_block(self, block: bytes) -> bytes:
        a, b, c, d = _WORDS.unpack(block)
        for turn, (k, m, n, o) in self._rounds_back:
            if turn in _MASHES:
                d = d - self._key[c & 63] & 0xFFFF
                c = c - self._key[b & 63] & 0xFFFF
                b = b - self._key[a & 63] & 0xFFFF
                a = a - self._key[d & 63] & 0xFFFF
            d = (d >> 5 | d << 11) - o - (c & b) - (~c & a) & 0xFFFF
            c = (c >> 3 | c << 13) - n - (b & a) - (~b & d) & 0xFFFF
            b = (b >> 2 | b << 14) - m - (a & d) - (~a & c) & 0xFFFF
            a = (a >> 1 | a << 15) - k - (d & c) - (~d & b) & 0xFFFF
        return _WORDS.pack(a, b, c, d)


def _expanded(key: bytes, effective_bits: int) -> tuple[int, ...]:
    """64 words of key, of which no more than the effective bits matter (RFC 2268 2)."""
    made = bytearray(key)
    for i in range(len(key), _KEY_BYTES):
        made.append(_PI[made[i - 1] + made[i - len(key)] & 0xFF])
    count = (effective_bits + 7) // 8
    mask = 0xFF >> 8 * count - effective_bits
    first = _KEY_BYTES - count
    made[first] = _PI[made[first] & mask]
    for i in reversed(range(first)):
        made[i] = _PI[made[i + 1] ^ made[i + count]]
    return struct.unpack("<64H", made)
