"""One peer of the daemon: what it says, what it hears, what it has counted."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID, uuid4

from falconmq.transport.settings import PORT
from falconmq.wire.packet import Packet, decode_packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.stage import Stage

# Seconds until something that must come is missed. Shorter than the 10 after which the daemon
# acknowledges whatever it has: an answer that only its timer brings comes too late.
PATIENCE: Final = 60.0
ACK_BITS: Final = 32  # of a SessionHeader
QUICK: Final = 2  # a window so small that the daemon acknowledges every message: QB-A31
_HEADER: Final = 16


class Play:
    """A peer with an address of its own. It connects, or it listens and is called."""

    def __init__(self, stage: Stage, *, address: str = "", guid: bytes = b"") -> None:
        self.stage = stage
        self.address = address or stage.address()
        self.guid = guid or uuid4().bytes_le
        self.socket: socket.socket | None = None
        self.heard: list[Packet] = []  # every packet that came, of all connections
        self._queues: dict[str, str] = {}
        self._message_ids = itertools.count(1)
        self._listener: socket.socket | None = None
        self._forget()

    @classmethod
    def calling(cls, stage: Stage) -> Self:
        """A peer that has just connected."""
        play = cls(stage)
        play.connect()
        return play

    def _forget(self) -> None:
        """A new connection counts from the beginning."""
        self.sent = self.recoverable_sent = 0
        self.received = self.recoverable_received = 0
        self.acknowledged_recoverable = 0
        self._buffer = bytearray()

    # Connections

    def connect(self) -> None:
        self.hang_up()
        daemon = self.stage.daemon.address
        self.socket = socket.create_connection((daemon, PORT), PATIENCE, (self.address, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def listen(self) -> None:
        """Be there for a daemon that calls."""
        self._listener = socket.create_server((self.address, PORT), reuse_port=False)
        self._listener.settimeout(PATIENCE)

    def answer(self) -> None:
        """Wait until the daemon calls."""
        self.hang_up()
        assert self._listener is not None
        self.socket, _ = self._listener.accept()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def hang_up(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self._forget()

    def half_close(self) -> None:
        """Say that nothing more comes."""
        assert self.socket is not None
        self.socket.shutdown(socket.SHUT_WR)

    # Bytes

    def write(self, data: bytes) -> None:
        assert self.socket is not None
        self.socket.settimeout(PATIENCE)
        # A daemon that has closed in the middle of what we say: the next step sees that.
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def read(self, seconds: float = PATIENCE) -> bytes | None:
        """The bytes of the next packet; b"" if the daemon has closed, None if nothing comes."""
        deadline = time.monotonic() + seconds
        while (size := self._packet_size()) is None:
            data = self._receive(deadline)
            if not data:
                return data
            self._buffer += data
        packet, self._buffer = bytes(self._buffer[:size]), self._buffer[size:]
        self._count(packet)
        return packet

    def _receive(self, deadline: float) -> bytes | None:
        assert self.socket is not None
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        self.socket.settimeout(left)
        try:
            return self.socket.recv(1 << 16)
        except TimeoutError:
            return None
        except ConnectionError:  # cut off with bytes of ours still unread
            return b""

    def _packet_size(self) -> int | None:
        """PacketSize, and 16 bytes more behind a user message with a SessionHeader: QB-A09."""
        if len(self._buffer) < _HEADER:
            return None
        flags, size = self._buffer[2], int.from_bytes(self._buffer[8:12], "little")
        if flags & packets.WITH_SESSION_HEADER and not flags & packets.INTERNAL:
            size += 16
        return size if len(self._buffer) >= size else None

    def _count(self, packet: bytes) -> None:
        decoded = decode_packet(packet)
        self.heard.append(decoded)
        if isinstance(decoded, UserMessage):
            self.received += 1
            self.recoverable_received += decoded.user.delivery_mode

    # What it says

    def queue(self, kind: str) -> str:
        """The queue of this kind that only this conversation uses."""
        if kind not in self._queues:
            self._queues[kind] = self.stage.new_queue(kind)
        return self._queues[kind]

    def private_number(self, kind: str) -> int:
        """The number under which a packet names a private queue."""
        name: str = self.stage.client.queue(self.stage.path(self.queue(kind)))["format_name"]
        return int(name.rsplit("\\", 1)[1], 16)

    def message(self, to: str = "plain", **fields: Any) -> packets.Headers:
        """A message to a queue of this conversation, counted as sent."""
        recoverable = fields.pop("recoverable", False) or fields.get("transaction") is not None
        name = rf"TCP:{self.stage.daemon.address}\private$\{self.queue(to)}"
        flags = packets.MESSAGE_PROPERTIES | packets.DIRECT << 10 | recoverable << 5
        flags |= fields.pop("flags", 0)
        if fields.pop("asks", False):
            flags |= 7 << 13
            fields["admin"] = packets.direct_name(rf"TCP:{self.address}\private$\admin")
        age = fields.pop("age", 0)
        given = {
            "source": self.guid,
            "destination": packets.direct_name(name),
            "message_id": next(self._message_ids),
            "sent_time": int(time.time()) - age,
            "flags": flags,
        }
        self.sent += 1
        self.recoverable_sent += recoverable
        return packets.Headers(**(given | fields))

    def header(self, window: int = QUICK) -> bytes:
        """A SessionHeader that is right, and acknowledges all that came (32 bits at most)."""
        first = self.acknowledged_recoverable + 1
        bits = min(self.recoverable_received - self.acknowledged_recoverable, ACK_BITS)
        self.acknowledged_recoverable += bits
        return packets.session_header(
            self.received & 0xFFFF,
            first & 0xFFFF if bits else 0,
            (1 << bits) - 1,
            self.sent & 0xFFFF,
            self.recoverable_sent & 0xFFFF,
            window,
        )

    @property
    def last(self) -> Any:
        """The packet that came last."""
        return self.heard[-1]

    @property
    def messages(self) -> list[UserMessage]:
        return [packet for packet in self.heard if isinstance(packet, UserMessage)]

    @property
    def acks(self) -> list[SessionAck]:
        return [packet for packet in self.heard if isinstance(packet, SessionAck)]

    @property
    def uuid(self) -> UUID:
        return UUID(bytes_le=self.guid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.socket is not None and self.received:
            # so that the daemon has nothing left for somebody who never comes back
            for _ in range(0, self.recoverable_received + 1, ACK_BITS):
                self.write(packets.session_ack(self.header()))
        self.hang_up()
        if self._listener is not None:
            self._listener.close()
            self._let_rest()

    def _let_rest(self) -> None:
        """What is left for us waits; the daemon need not call somebody who is gone."""
        for queue in self.stage.client.outgoing():
            if self.address in queue["destination"] and queue["messages"]:
                self.stage.client.pause(queue["number"])
