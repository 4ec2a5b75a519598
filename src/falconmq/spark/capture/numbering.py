"""Which message of its session a packet is, and how many of the other side's it acknowledges.

Both sides of a session count the user messages they send, and a SessionHeader says the count and
the one it acknowledges, in 16 bits that wrap. Here they are unwrapped, so that a message and the
acknowledgement that covers it can be found by comparing numbers. Where a capture holds the start
of a session, counting from 1 gives the number. Where it does not, and behind bytes that are lost or
broken, nobody knows how many messages there were, so the number is not known until the next
SessionHeader says it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from falconmq.spark.capture.streams import Direction
from falconmq.spark.capture.views import Flags, Ints, ints, numbers_at
from falconmq.wire.base_header import INTERNAL, SESSION_HEADER
from falconmq.wire.session_header import SIZE as SESSION_HEADER_SIZE

UNKNOWN: Final = -1
_WRAP: Final = 1 << 16
_HALF: Final = 1 << 15


def _nearest(distance: Ints | int) -> Ints | int:
    """The smallest step, forward or back, that 16 bits may stand for."""
    return (distance + _HALF) % _WRAP - _HALF


def number_messages(
    data: bytes,
    starts: Ints,
    lengths: Ints,
    owners: Ints,
    directions: list[Direction],
    behind_trouble: Flags,
) -> tuple[Ints, Ints]:
    """Message number and acknowledged number of each packet, UNKNOWN where there is none.

    `owners` says to which direction each belongs; those of one direction are in order.
    `behind_trouble` are those before which bytes are lost or broken. What the directions need to go
    on from here is kept in them.
    """
    words = numbers_at(memoryview(data), "<u2")
    flags = words[starts + 2].astype(np.int64)
    is_message = flags & INTERNAL == 0
    has_session = (flags & SESSION_HEADER != 0) & (lengths >= SESSION_HEADER_SIZE + 20)
    sessions = np.where(has_session, starts + lengths - SESSION_HEADER_SIZE, starts)
    sent, acknowledged = words[sessions + 8].astype(np.int64), words[sessions].astype(np.int64)
    order = np.argsort(owners, kind="stable")
    numbers = np.full(len(starts), UNKNOWN)
    acks = np.full(len(starts), UNKNOWN)
    edges = np.searchsorted(owners[order], np.arange(len(directions) + 1)).tolist()
    for direction, begin, end in zip(directions, edges[:-1], edges[1:], strict=True):
        rows = order[begin:end]
        if len(rows):
            doubts = np.flatnonzero(behind_trouble[rows])
            claims = np.flatnonzero(has_session[rows])
            numbers[rows] = _number(direction, is_message[rows], claims, sent[rows], doubts)
            acks[rows] = _acknowledge(direction, has_session[rows], acknowledged[rows])
    return numbers, acks


def _number(
    direction: Direction, is_message: Flags, claims: Ints, sent: Ints, doubts: Ints
) -> Ints:
    if direction.offset is None and direction.flow.conversation.is_whole:
        direction.offset, direction.is_offset_known = 0, True
    counts = direction.messages + np.cumsum(is_message)
    direction.messages = int(counts[-1])
    if direction.is_offset_known and not len(doubts):
        numbers = counts + (direction.offset or 0)
        if ((numbers - sent)[claims] % _WRAP == 0).all():
            return np.where(is_message, numbers, UNKNOWN)
    return np.where(is_message, _number_by_claims(direction, counts, claims, sent, doubts), UNKNOWN)


def _number_by_claims(
    direction: Direction, counts: Ints, claims: Ints, sent: Ints, doubts: Ints
) -> Ints:
    """Where messages may be lost: what a SessionHeader claims holds until the next doubt."""
    numbers = np.full(len(counts), UNKNOWN)
    turns = sorted([*((place, False) for place in doubts.tolist()),
                    *((place, True) for place in claims.tolist())])  # fmt: skip
    begin, offset, is_known = 0, direction.offset, direction.is_offset_known
    for place, is_claim in [*turns, (len(counts), False)]:
        if is_known and offset is not None:
            numbers[begin:place] = counts[begin:place] + offset
        if is_claim:
            step = int(sent[place] - counts[place])
            offset = step % _WRAP if offset is None else offset + int(_nearest(step - offset))
        is_known = is_claim or (is_known and place == len(counts))
        begin = place
    direction.offset, direction.is_offset_known = offset, is_known
    return numbers


def _acknowledge(direction: Direction, has_session: Flags, acknowledged: Ints) -> Ints:
    numbers = np.full(len(has_session), UNKNOWN)
    claims = acknowledged[has_session]
    if len(claims):
        before = direction.acknowledged
        if before is None:
            before = 0 if direction.flow.conversation.is_whole else int(claims[0])
        steps = np.diff(claims, prepend=before)
        unwrapped = before + np.cumsum(ints(_nearest(steps)))
        direction.acknowledged = int(unwrapped[-1])
        numbers[has_session] = unwrapped
    return numbers
