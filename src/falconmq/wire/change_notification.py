"""Change Notification Message: "the directory changed, look again" (MQCN 2.2.4 to 2.2.6).

It is the body of an ordinary message to private queue 3 of the queue manager that owns the object.
A directory service sends version 1, binary updates that carry the data; a queue manager sends
version 2, a text that carries none. Behind both, senders leave one byte that means nothing.

A receiver drops what it cannot use and goes on: a version other than 1 and 2 or an event other than
1 to 4 is a WireError like any other fault, its `field` says which, for the counters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self
from uuid import UUID

from falconmq.errors import WireError
from falconmq.wire.directory_change import SIZE_MIN, NotificationUpdate
from falconmq.wire.guid import encode_guid, guid_bytes, guid_text
from falconmq.wire.reader import Layout, Reader, Structure, decode_utf16, encode_utf16

VERSION_DIRECTORY_SERVICE: Final = 0x01
VERSION_QUEUE_MANAGER: Final = 0x02
TEXT_SIZE_MAX: Final = 4096  # bytes; the longest legal text has under 1000

_HEADER: Final = Layout("ChangeNotificationMessage", "BB", "Version", "NumberOfUpdateNotifications")
_TRAILER: Final = b"\0"

_TEMPLATE: Final = (
    "<Notification><Event>{}</Event><ObjectGuid>{}</ObjectGuid>"
    "<DomainController>{}</DomainController></Notification>"
)
# The grammar itself and nothing else: no general parser ever sees a stranger's text. Blanks before
# ">" are taken because the ABNF prints "</ObjectGuid >" (CN-2.2.5-14).
_TEXT: Final = re.compile(
    _TEMPLATE.replace(">", " *>").format("([^<]*)", "([^<]*)", "(.*)"), re.DOTALL
)
_EVENT: Final = re.compile(r"[1-4]")
_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SERVER: Final = re.compile(r"[\x21-\x7e]{1,256}")


class NotificationEvent(IntEnum):
    """What happened to the object (MQCN 2.2.5)."""

    QUEUE_CREATED = 1
    QUEUE_CHANGED = 2
    QUEUE_DELETED = 3
    MACHINE_CHANGED = 4


@dataclass(slots=True)
class NotificationBody(Structure):
    """The text of version 2: which object changed, and the directory server to ask about it."""

    event: NotificationEvent
    object_guid: bytes
    domain_controller: str  # the ABNF calls it DirectoryServiceServer

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the text up to the end of the message, with the zero bytes behind it."""
        outer = reader.enter("NotificationBody")
        size = reader.remaining
        if size > TEXT_SIZE_MAX + 1:
            raise reader.error("NotificationBody", f"{size} bytes are more than 4 KB")
        # One byte behind the text is normal, so the whole has an odd length; zero bytes may follow.
        even = reader.buffer[reader.position : reader.position + size // 2 * 2]
        match = _TEXT.fullmatch(decode_utf16(even).rstrip("\0"))
        if match is None:
            raise reader.error("NotificationBody", "no <Notification> of MQCN 2.2.5")
        event = _take_field(reader, match, 1, "Event", _EVENT)  # CN-2.2.5-04
        guid = _take_field(reader, match, 2, "ObjectGuid", _GUID)  # CN-2.2.5-15
        server = _take_field(reader, match, 3, "DomainController", _SERVER)  # CN-2.2.5-16
        reader.skip(reader.remaining, "Markup")
        reader.leave(outer)
        return cls(NotificationEvent(int(event)), guid_bytes(UUID(guid)), server)

    def encode(self) -> bytes:
        if self.event not in set(NotificationEvent):
            raise WireError("NotificationBody", "Event", f"{self.event} is not in 1..4")
        guid = guid_text(encode_guid(self.object_guid, "NotificationBody", "ObjectGuid"))
        if not _SERVER.fullmatch(self.domain_controller):
            problem = "not 1 to 256 characters of 0x21 to 0x7E"
            raise WireError("NotificationBody", "DomainController", problem)
        return encode_utf16(_TEMPLATE.format(int(self.event), guid, self.domain_controller))


@dataclass(slots=True)
class ChangeNotificationMessage(Structure):
    """One text of a queue manager (version 2) or 1 to 255 updates of a directory service (1)."""

    data: list[NotificationUpdate] | NotificationBody

    @property
    def version(self) -> int:
        if isinstance(self.data, NotificationBody):
            return VERSION_QUEUE_MANAGER
        return VERSION_DIRECTORY_SERVICE

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ChangeNotificationMessage")
        version, count = reader.fixed(_HEADER)
        data: list[NotificationUpdate] | NotificationBody
        if version == VERSION_QUEUE_MANAGER:
            data = NotificationBody.read(reader)  # whatever the count says: A19
        elif version == VERSION_DIRECTORY_SERVICE:
            data = _read_updates(reader, count)
            reader.skip(reader.remaining, "Trailer")
        else:
            raise reader.refuse(_HEADER, "Version", f"{version} is neither 1 nor 2")
        reader.leave(outer)
        return cls(data)

    def encode(self) -> bytes:
        if isinstance(self.data, NotificationBody):
            return _HEADER.pack(self.version, 1) + self.data.encode() + _TRAILER
        count = len(self.data)
        if not 1 <= count <= 0xFF:
            problem = f"{count} is not in 1..255"
            raise WireError("ChangeNotificationMessage", "NumberOfUpdateNotifications", problem)
        updates = b"".join([update.encode() for update in self.data])
        return _HEADER.pack(self.version, count) + updates + _TRAILER


def _read_updates(reader: Reader, count: int) -> list[NotificationUpdate]:
    # Counted, not read to the end of the body: the byte behind the last one is no update.
    if count == 0 or count * SIZE_MIN > reader.remaining:
        problem = f"{count} updates in {reader.remaining} bytes"
        raise reader.refuse(_HEADER, "NumberOfUpdateNotifications", problem)
    return [NotificationUpdate.read(reader) for _ in range(count)]


def _take_field(
    reader: Reader, match: re.Match[str], group: int, field: str, pattern: re.Pattern[str]
) -> str:
    """Step over the tags in front of a field, then over the field, so that a trace shows both."""
    before = 0 if group == 1 else match.end(group - 1)
    reader.skip(2 * (match.start(group) - before), "Markup")
    text = match[group]
    if not pattern.fullmatch(text):
        raise reader.error(field, f"{text[:40]!r} does not match {pattern.pattern}")
    reader.take(2 * len(text), field)
    return text
