"""What one side of a session counts: messages received, messages sent (MQQB 3.1.1.4, 3.1.1.6.1).

How to think about it. No packet carries a number. Both sides count the user messages that pass,
from 1 and apart for each direction, and count the recoverable ones a second time; TCP keeps the
order, so both come to the same numbers. A SessionHeader then says in 16 bytes what its sender has
received (`AckSequenceNumber`), which recoverable ones are on its disk (a first number and 32 bits),
and what it has sent itself, so that the other side can check its own counts.

Inside, the counts never wrap; only on the wire they are cut to 16 bits. A number that comes from
the wire is put back into its place by its distance from a count we know (QB-A28): less than 32768
ahead is ahead, anything else is behind.

A message that was received is not yet *settled*: its turn has not been written to disk. The counts
that check the peer are those of received messages, the counts that acknowledge are those of settled
ones. They settle in the order they came, so the bits of a header are always a run of ones.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from falconmq.errors import WireError
from falconmq.wire.session_header import SessionHeader

ACK_BITS: Final = 32  # of RecoverableMsgAckFlags
NUMBERS_MAX: Final = 0x7FFF  # more open numbers than this, and ahead and behind look alike: QB-A28
_WRAP: Final = 0xFFFF
_STORED: Final = object()  # stands in the place of an entry that was stored before those in front


def serial_distance(number: int, count: int) -> int:
    """How far a 16-bit number of the wire lies ahead of a count; negative if behind (QB-A28)."""
    return ((number - count + 0x8000) & _WRAP) - 0x8000


class ReceivedMessages:
    """The receiving half: what came, what is settled, what was acknowledged."""

    __slots__ = (
        "_unsettled",
        "acknowledged",
        "last_acked_recoverable",
        "received",
        "recoverable_received",
        "recoverable_settled",
        "settled",
    )

    def __init__(self) -> None:
        self.received = 0  # MessageReceivedCount, QB-3.1.3.2-03
        self.recoverable_received = 0  # QB-3.1.3.2-04
        self.settled = 0
        self.recoverable_settled = 0
        self.acknowledged = 0  # `settled` when the last SessionHeader left, QB-3.1.3.2-07
        self.last_acked_recoverable = 0  # QB-3.1.3.2-06; with it there are no bits: QB-3.1.3.2-05
        self._unsettled: deque[bool] = deque()  # the oldest first: is it recoverable?

    @property
    def unsettled(self) -> int:
        return self.received - self.settled

    @property
    def unacknowledged(self) -> int:
        """Received and not acknowledged (UnackedReceivedMsgCount), settled or not."""
        return self.received - self.acknowledged

    @property
    def settled_unacknowledged(self) -> int:
        """What a SessionHeader would acknowledge now by its AckSequenceNumber."""
        return self.settled - self.acknowledged

    @property
    def bits(self) -> int:
        """How many recoverable messages are on disk and not acknowledged as such."""
        return self.recoverable_settled - self.last_acked_recoverable

    @property
    def has_news(self) -> bool:
        """Would a SessionHeader tell the peer anything?"""
        return (
            self.settled != self.acknowledged
            or self.recoverable_settled != self.last_acked_recoverable
        )

    def add(self, recoverable: bool) -> None:
        """A user message came."""
        self.received += 1  # QB-3.1.5.8.2-02, QB-3.1.5.8.2-03
        if recoverable:
            self.recoverable_received += 1  # QB-3.1.5.8.7-12
        self._unsettled.append(recoverable)

    def settle(self, count: int) -> int:
        """Settle the oldest `count`, up to the one whose bit is the 33rd.

        Returns how many are left: acknowledge first, then settle those.
        """
        take = self._unsettled.popleft
        while count:
            count -= 1
            self.settled += 1
            if take():
                self.recoverable_settled += 1  # QB-3.1.5.8.7-14
                if self.bits > ACK_BITS:
                    break
        return count

    def acknowledge(self) -> tuple[int, int, int]:
        """Take what a SessionHeader says of our receipt: number, first recoverable one, its bits.

        The message with the 33rd bit is acknowledged by its number here and by its bit next time.
        """
        bits = min(self.bits, ACK_BITS)
        first = self.last_acked_recoverable + 1 if bits else 0  # QB-A23, QB-3.1.1.6.1-04
        self.acknowledged = self.settled
        self.last_acked_recoverable += bits  # QB-A24
        return self.settled & _WRAP, first & _WRAP, (1 << bits) - 1

    def check(self, header: SessionHeader) -> str:
        """What is wrong with what the peer says it has sent (MQQB 3.1.5.5.5); "" if nothing."""
        if header.user_msg_sequence_number != self.received & _WRAP:  # QB-3.1.5.5.5-01
            return (
                f"UserMsgSequenceNumber {header.user_msg_sequence_number}, "
                f"but {self.received & _WRAP} messages came"
            )
        if header.recoverable_msg_seq_number != self.recoverable_received & _WRAP:
            return (  # QB-3.1.5.5.5-02
                f"RecoverableMsgSeqNumber {header.recoverable_msg_seq_number}, "
                f"but {self.recoverable_received & _WRAP} recoverable messages came"
            )
        return ""


class SendWindow:
    """The sending half: what was sent, what is not acknowledged, how much more may be sent.

    Entries are whatever the caller wants back when the peer has acknowledged them.
    """

    __slots__ = (
        "_peer_window",
        "_unacked",
        "_unstored",
        "own_window",
        "recoverable_sent",
        "sent",
        "window",
    )

    def __init__(self, own_window: int) -> None:
        self.sent = 0  # MessageSentCount, QB-3.1.3.2-01
        self.recoverable_sent = 0  # QB-3.1.3.2-02
        self.own_window = min(max(own_window, 1), NUMBERS_MAX)
        self.window = self.own_window
        self._peer_window = self.own_window  # what the peer grants when it is not in trouble
        self._unacked: deque[Any] = deque()  # nothing at the start, whatever waits: QB-A29
        self._unstored: deque[Any] = deque()  # recoverable ones, by their number

    @property
    def unacked(self) -> int:
        """UnAckedMessageCount."""
        return len(self._unacked)

    @property
    def is_open(self) -> bool:
        return len(self._unacked) < self.window and len(self._unstored) < NUMBERS_MAX

    @property
    def is_shrunk(self) -> bool:
        """Did the peer ask for less than it usually takes?"""
        return self.window < min(self.own_window, self._peer_window)

    def add(self, entry: Any, recoverable: bool) -> None:
        """A user message goes out: number it (MQQB 3.1.7.1.3)."""
        self.sent += 1  # QB-3.1.7.1.3-09
        self._unacked.append(entry)  # QB-3.1.7.1.3-11, QB-3.1.7.1.3-19
        if recoverable:
            self.recoverable_sent += 1  # QB-3.1.7.1.3-10
            self._unstored.append(entry)

    def acknowledge(self, header: SessionHeader) -> tuple[list[Any], list[Any]]:
        """The entries that the peer has received, and those it has on disk; each is told once.

        Only sent entries are here, so no other can be touched (QB-A26). WireError if the header
        acknowledges what was never sent; then nothing has changed.
        """
        newly = serial_distance(header.ack_sequence_number, self.sent - len(self._unacked))
        if newly > len(self._unacked):
            raise _never_sent("AckSequenceNumber", header.ack_sequence_number, self.sent)
        stored: list[Any] = []
        if header.recoverable_msg_ack_flags:  # without a bit nothing is on disk: QB-A23
            stored = self._take_stored(
                header.recoverable_msg_ack_seq_number, header.recoverable_msg_ack_flags
            )
        take = self._unacked.popleft
        return [take() for _ in range(newly)], stored  # QB-3.1.5.5.1-01, QB-3.1.5.5.1-02

    def open(self, peer_window: int) -> None:
        """ReceivedWindowSize of the ConnectionParameters; 0 is taken as 1 (QB-A52)."""
        self._peer_window = max(peer_window, 1)
        self.window = min(self.own_window, self._peer_window)  # QB-A30

    def resize(self, peer_window: int) -> None:
        """The latest word of the peer, from a SessionHeader (QB-A30)."""
        peer_window = max(peer_window, 1)
        self._peer_window = max(self._peer_window, peer_window)
        self.window = min(self.own_window, peer_window)

    def grow(self) -> None:
        """Some time has passed since the window shrank: try twice as much (QB-A30)."""
        self.window = min(self.window * 2, self.own_window, self._peer_window)

    def _take_stored(self, number: int, flags: int) -> list[Any]:
        """The entries up to `number` and those whose bit is set (MQQB 3.1.5.5.3).

        `number` itself has a bit of its own. A peer that writes it down before the message is on
        disk leaves that bit clear, so the bit decides.
        """
        unstored = self._unstored
        first = self.recoverable_sent - len(unstored) + 1
        before = serial_distance(number, first)  # places in front of the first bit
        if before + flags.bit_length() > len(unstored):
            last = number + flags.bit_length() - 1
            raise _never_sent("RecoverableMsgAckFlags", last, self.recoverable_sent)
        if before < 0:  # told before; bits of entries that left long ago fall away
            flags >>= -before
            before = 0
        taken: list[Any] = []
        for index in range(before):  # QB-3.1.5.5.3-01
            taken.append(unstored[index])
            unstored[index] = _STORED
        index = before
        while flags:  # QB-3.1.5.5.3-02
            if flags & 1:
                taken.append(unstored[index])
                unstored[index] = _STORED
            flags >>= 1
            index += 1
        while unstored and unstored[0] is _STORED:
            unstored.popleft()
        return [entry for entry in taken if entry is not _STORED]


def _never_sent(field: str, number: int, sent: int) -> WireError:
    problem = f"message {number & _WRAP} is acknowledged, the last one sent is {sent & _WRAP}"
    return WireError("SessionHeader", field, problem)
