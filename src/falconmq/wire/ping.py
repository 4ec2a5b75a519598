"""Ping: is a queue manager there, and would it take a session (MQQB 2.2.7)? One UDP datagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.reader import Buffer, Layout, Reader, Structure

SIGNATURE: Final = 0x5548  # the bytes 48 55

# Flags. Bits 2 to 15 hold garbage in Windows: we send 0, ignore them, keep them.
NOT_SERVER_CLASS: Final = 0x0001  # RC
REFUSED: Final = 0x0002  # RF
UNUSED_FLAGS: Final = 0xFFFC

SIZE: Final = 24
_LAYOUT: Final = Layout("Ping", "HHI16s", "Flags", "Signature", "Cookie", "QMGuid")


@dataclass(slots=True)
class Ping(Structure):
    """A ping, request or response alike; only the direction tells them apart."""

    flags: int
    cookie: int
    qm_guid: bytes  # of the queue manager that made this packet, QB-2.2.7-14

    @classmethod
    def request(cls, cookie: int, queue_manager: bytes, *, server_class: bool = True) -> Self:
        """What an initiator sends; each request needs a cookie of its own (QB-2.2.7-11)."""
        return cls(0 if server_class else NOT_SERVER_CLASS, cookie, queue_manager)

    def response(self, queue_manager: bytes, *, refused: bool) -> Ping:
        """What the acceptor `queue_manager` answers; `refused`: it would take no session now."""
        flags = self.flags & NOT_SERVER_CLASS  # QB-2.2.7-04
        return Ping(flags | (REFUSED if refused else 0), self.cookie, queue_manager)

    @property
    def refused(self) -> bool:
        return bool(self.flags & REFUSED)

    @property
    def server_class(self) -> bool:
        """Whether the initiator runs a server-class operating system."""
        return not self.flags & NOT_SERVER_CLASS

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("Ping")
        flags, signature, cookie, qm_guid = reader.fixed(_LAYOUT)
        if signature != SIGNATURE:  # QB-2.2.7-10
            raise reader.refuse(_LAYOUT, "Signature", f"{signature:#06x} instead of 0x5548")
        reader.leave(outer)
        return cls(flags, cookie, qm_guid)

    def encode(self) -> bytes:
        return _LAYOUT.pack(self.flags, SIGNATURE, self.cookie, self.qm_guid)


class PingCookies:
    """Gives every Ping Request of a queue manager a cookie of its own (QB-2.2.7-11, QB-A46).

    One per start of the queue manager; after 2^32 requests the numbers begin again.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest = 0

    def next(self) -> int:
        self._latest = (self._latest + 1) & 0xFFFFFFFF
        return self._latest


def received_ping(datagram: Buffer) -> Ping | None:
    """The ping in a datagram; None if it is none, for such a datagram is ignored (QB-2.2.7-10)."""
    if len(datagram) != SIZE:
        return None
    try:
        return Ping.decode(datagram)
    except WireError:
        return None


def received_answer(datagram: Buffer, latest: Ping) -> Ping | None:
    """The answer to the latest ping sent; None for anything else (QB-2.2.7-13)."""
    answer = received_ping(datagram)
    return answer if answer is not None and answer.cookie == latest.cookie else None
