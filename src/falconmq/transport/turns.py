"""What the transport may tell only when the batch of a turn is durable.

A turn is one event and all that came of it. Turns become durable in any order that the host likes,
but are let go in the order in which they were taken: what a later one says may rest on what an
earlier one wrote.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from falconmq.manager.positions import MessagePosition
    from falconmq.transport.incoming_streams import IncomingStream
    from falconmq.transport.outgoing import OutgoingTable
    from falconmq.transport.session import Session


@dataclass(slots=True, eq=False)
class Turn:
    """What may be told when the batch of a turn is durable."""

    received: dict[Session, int] = field(default_factory=dict)  # messages to acknowledge
    fresh: list[tuple[OutgoingTable, MessagePosition]] = field(default_factory=list)
    streams: list[tuple[IncomingStream, int, int]] = field(default_factory=list)
    releases: bool = False  # sending was held until this is durable
    is_done: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.received or self.fresh or self.streams or self.releases)


class Turns:
    """The turn that runs, and those that wait for the disk."""

    def __init__(self) -> None:
        self.current = Turn()
        self._pending: deque[Turn] = deque()

    def count_received(self, session: Session) -> None:
        """Acknowledge one more message of a session when this turn is durable."""
        received = self.current.received
        received[session] = received.get(session, 0) + 1

    def end(self) -> Turn | None:
        """The turn that ends here, which waits from now on; None if it has nothing to tell."""
        turn = self.current
        if turn.is_empty:
            return None
        self.current = Turn()
        self._pending.append(turn)
        return turn

    def done(self, turn: Turn) -> Iterator[Turn]:
        """One of them is durable: those that can be let go now, in their order."""
        turn.is_done = True
        while self._pending and self._pending[0].is_done:
            yield self._pending.popleft()

    def forget(self) -> None:
        """What they wanted to tell did not happen."""
        self.current = Turn()
        self._pending.clear()
