"""BaseReplicationHeader: how every replication message begins (MQDSRP 2.2.5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure

VERSION: Final = 0x00

# Operation
CHANGE_PROPAGATION: Final = 0x00
CHANGE_REQUEST: Final = 0x01
SYNC_REQUEST: Final = 0x02
SYNC_REPLY: Final = 0x03
CHANGE_REPLY: Final = 0x04
ALREADY_PURGED: Final = 0x05
PSC_ACK: Final = 0x06
BSC_ACK: Final = 0x07

SIZE: Final = 18
_LAYOUT: Final = Layout("BaseReplicationHeader", "B16sB", "Version", "SiteID", "Operation")


@dataclass(slots=True)
class BaseReplicationHeader(Structure):
    """18 bytes without padding: the GUID begins at the odd offset 1."""

    site_id: bytes  # site of the sender; a forwarded request keeps the first sender's, A-05
    operation: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("BaseReplicationHeader")
        version, site_id, operation = reader.fixed(_LAYOUT)
        if version != VERSION:  # RP-2.2.5.1-03
            raise reader.refuse(_LAYOUT, "Version", f"{version} instead of 0")
        if operation > BSC_ACK:  # RP-2.2.5.1-06
            raise reader.refuse(_LAYOUT, "Operation", f"{operation} is not in 0..7")
        reader.leave(outer)
        return cls(site_id, operation)

    @classmethod
    def expect(cls, reader: Reader, operation: int) -> bytes:
        """Read the header of a message of one kind; returns SiteID, the only thing it says."""
        header = cls.read(reader)
        if header.operation != operation:
            problem = f"{header.operation} instead of {operation}"
            raise reader.error("Operation", problem, reader.offset - 1)
        return header.site_id

    def encode(self) -> bytes:
        if not 0 <= self.operation <= BSC_ACK:
            problem = f"{self.operation} is not in 0..7"
            raise WireError("BaseReplicationHeader", "Operation", problem)
        site_id = encode_guid(self.site_id, "BaseReplicationHeader", "SiteID")
        return _LAYOUT.pack(VERSION, site_id, self.operation)
