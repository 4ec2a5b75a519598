"""Damage to conversations: what makes an honest peer a hostile one.

A conversation that breaks at its first packet says little, so most of the damage keeps the length
of a packet: fields get other values, and the packets behind are still read. The rest cuts, joins
and mixes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

SIZE_AT: Final = 8  # PacketSize
_INTERESTING: Final = (0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF)
_HUGE: Final = (0x400000, 0x400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF)
_HOT: Final = (2, 4, 12, 32, 48, 52, 60, 62, 64, 66)  # fields that decide what the rest means


def damaged(random: Random, talk: list[bytes]) -> list[bytes]:
    """A conversation with something wrong in it; one in five is left as it is."""
    chance = random.random()
    if chance < 0.2:
        return talk
    if chance < 0.75:
        often = random.choice((0.02, 0.1, 0.3))
        return [_fields(random, packet) if random.random() < often else packet for packet in talk]
    if chance < 0.9:
        at = random.randrange(len(talk))
        return [*talk[:at], _bytes(random, talk[at]), *talk[at + 1 :]]
    return _order(random, talk)


def damaged_datagrams(random: Random, datagrams: list[bytes]) -> list[bytes]:
    return [_bytes(random, each) if random.random() < 0.5 else each for each in datagrams]


def _fields(random: Random, packet: bytes) -> bytes:
    """Other values in places where fields may be; the packet keeps its length."""
    data = bytearray(packet)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        width = random.choice((1, 2, 2, 4, 4))
        at = random.randrange(0, max(1, len(data) - width + 1), width)
        if random.random() < 0.3:
            at = random.choice(_HOT)
        if SIZE_AT - width < at < SIZE_AT + 4 or at + width > len(data):
            continue
        values = _INTERESTING if width < 4 else _INTERESTING + _HUGE
        value = random.choice(values)
        if random.random() < 0.4:  # one bit, or one more or less
            value = int.from_bytes(data[at : at + width], "little")
            value = random.choice((value ^ 1 << random.randrange(8 * width), value + 1, value - 1))
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(data)


def _flip(random: Random, data: bytearray) -> None:
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _cut(random: Random, data: bytearray) -> None:
    del data[random.randrange(len(data)) :]


def _drop(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    del data[at : at + random.randint(1, 32)]


def _put(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    data[at:at] = random.randbytes(random.randint(1, 32))


def _repeat(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    piece = bytes(data[at : at + random.randint(1, 64)])
    data[at:at] = piece * random.randint(1, 8)


def _resize(random: Random, data: bytearray) -> None:
    """Another PacketSize than the packet has."""
    near = max(0, random.choice((-16, -4, -1, 1, 4, 16)) + len(data))
    size = random.choice((*_HUGE, 0, 15, 16, 19, near))
    data[SIZE_AT : SIZE_AT + 4] = size.to_bytes(4, "little")


_DAMAGES: Final[tuple[Callable[[Random, bytearray], None], ...]] = (
    *(_flip, _cut, _drop, _put, _repeat, _resize),
)


def _bytes(random: Random, packet: bytes) -> bytes:
    data = bytearray(packet)
    for _ in range(random.randint(1, 3)):
        if len(data) > SIZE_AT + 4:
            random.choice(_DAMAGES)(random, data)
    return bytes(data)


def _order(random: Random, talk: list[bytes]) -> list[bytes]:
    """Packets repeated, left out, mixed up, or joined in the middle."""
    mixed = list(talk)
    match random.randrange(4):
        case 0:
            random.shuffle(mixed)
        case 1:
            behind = mixed[2:]
            random.shuffle(behind)
            mixed = mixed[:2] + behind + behind[: random.randint(0, 10)]
        case 2:
            del mixed[random.randrange(len(mixed))]
        case _:
            first, second = random.choice(talk), random.choice(talk)
            spliced = (
                first[: random.randrange(len(first))] + second[random.randrange(len(second)) :]
            )
            mixed.insert(random.randint(2, len(mixed)), spliced)
    return mixed
