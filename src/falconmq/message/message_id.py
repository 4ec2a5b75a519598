"""MessageId: the name a message keeps for ever (MQMQ 2.2.18.1.3)."""

from __future__ import annotations

import re
import struct
from typing import Final, Self
from uuid import UUID

from falconmq.errors import MessageError, MqStatus

_LAYOUT: Final = struct.Struct("<16sI")
_ORDINAL_MAX: Final = 0xFFFFFFFF
_TEXT: Final = re.compile(
    r"(\{)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?(1)\})\\([0-9]{1,10})"
)


class MessageId(bytes):
    """Names one message for ever: the sending queue manager and its count, 20 bytes.

    People see `{5573...}\\2286`; `parse` reads that back. A `correlation_id` has the same form, so
    an answer says `correlation_id=question.id`. 20 zero bytes mean "none" and are false.
    """

    __slots__ = ()

    def __new__(cls, data: bytes = bytes(20)) -> Self:
        if len(data) != _LAYOUT.size:
            raise MessageError(
                "id",
                f"{len(data)} bytes instead of 20",
                status=MqStatus.ILLEGAL_PROPERTY_SIZE,
                hint="use the id of another message, or MessageId.parse(text)",
            )
        return super().__new__(cls, data)

    @classmethod
    def of(cls, queue_manager: UUID, ordinal: int) -> Self:
        """The id of the message that `queue_manager` counted as `ordinal`."""
        return cls(_LAYOUT.pack(queue_manager.bytes_le, ordinal))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `{guid}\\ordinal`, with the braces or, as .NET prints it, without."""
        found = _TEXT.fullmatch(text)
        if not found or int(found[3]) > _ORDINAL_MAX:
            raise MessageError(
                "id",
                f"{text[:80]!r} is no message id",
                hint=r"it looks like {55735802-9150-9595-4997-B6E611EA26C6}\2286",
            )
        return cls.of(UUID(found[2]), int(found[3]))

    @property
    def queue_manager(self) -> UUID:
        return UUID(bytes_le=self[:16])

    @property
    def ordinal(self) -> int:
        return int.from_bytes(self[16:], "little")

    def __bool__(self) -> bool:
        return any(self)

    def __str__(self) -> str:
        return f"{{{str(self.queue_manager).upper()}}}\\{self.ordinal}"

    def __repr__(self) -> str:
        return f"MessageId.parse({str(self)!r})"


NO_MESSAGE_ID: Final = MessageId()
