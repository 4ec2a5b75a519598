"""Messages of peers about which nothing can be decided before a directory has answered.

A message that is signed by somebody new, or that goes on to a queue of which nobody has heard yet,
waits here, and behind it whatever else comes over its session: so the order stays what it was.
None of them is acknowledged before it is decided about. A session that ends takes its messages
with it: the peer has them, and sends them again.

A peer sends no more than its window before it is answered. Who does not care is sent away.
"""

from __future__ import annotations

from typing import Final

from falconmq.transport.session import Session
from falconmq.transport.turns import Turns
from falconmq.wire.reader import Buffer
from falconmq.wire.user_message import UserMessage

MESSAGES_MAX: Final = 256  # of one session; the window of a peer is 64
BYTES_MAX: Final = 64 << 20  # of all sessions

Arrived = tuple[UserMessage, Buffer]


class Undecided:
    """The messages that wait, by the session that they came over."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: dict[Session, list[Arrived]] = {}
        self._bytes = 0

    def __contains__(self, session: Session) -> bool:
        return session in self._waiting

    def put(self, session: Session, packet: UserMessage, data: Buffer) -> bool:
        """Let a message wait that was counted in this turn; False if too many do."""
        waiting = self._waiting.setdefault(session, [])
        size = len(data)
        if len(waiting) >= MESSAGES_MAX or self._bytes + size > BYTES_MAX:
            return False
        waiting.append((packet, data))
        self._bytes += size
        self._turns.current.received[session] -= 1  # it is not acknowledged with this turn
        return True

    def take(self) -> list[tuple[Session, list[Arrived]]]:
        """All that wait, to be decided about now; whose session has ended is to be dropped."""
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        return list(waiting.items())
