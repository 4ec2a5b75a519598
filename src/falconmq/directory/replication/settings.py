"""Who a directory server is, and how long it waits for what (MQDSRP guide 1, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID


class Role(Enum):
    """What a directory server decides: the enterprise and its site, its site, or nothing."""

    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """This server, and whom it knows before the directory tells it.

    `trusted` are servers that whoever set this one up vouches for, GUID and computer name: without
    it nothing can be believed before the first copy of the directory is here.
    """

    role: Role
    machine_name: str
    queue_manager: UUID
    site: UUID
    pec_name: str = ""  # for the first start of a PSC or BSC (RP-3.1.3.1-04)
    psc_name: str = ""  # BSC: its PSC, until the directory says it (RP-3.1.3.1-10)
    trusted: Mapping[UUID, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """Intervals and limits; the defaults are those of MSMQ."""

    intersite_seconds: float = 10.0  # how long changes are collected for another PSC
    intrasite_seconds: float = 2.0  # and for a BSC
    hello_seconds: float = 1200.0
    first_bsc_ack_seconds: float = 5.0
    bsc_ack_seconds: float = 43200.0
    missed_bsc_acks_max: int = 14
    sync_resend_seconds: float = 1200.0
    reset_retry_seconds: float = 5.0
    authority_wait_seconds: float = 10.0  # for a reply, when the next server decides
    forwarded_wait_seconds: float = 20.0  # when it has to ask another one
    pending_changes_max: int = 100
    purge_step: int = 256
    purge_buffer: int = 1024  # deletions are remembered at least this long, in numbers
    message_changes_max: int = 1000
    message_bytes_max: int = 2_000_000  # a message has at most 4 MB
    requires_sender: bool = True  # what nobody verified is not believed
    # Properties that MSMQ 1.0 does not know follow those that it does. Off: next to such servers.
    has_later_properties: bool = True
