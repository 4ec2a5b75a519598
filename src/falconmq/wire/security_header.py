"""SecurityHeader: who sent a message, its signature, its key (MQMQ 2.2.20.6).

The five sizes decide what is there. The flag AI claims the same, but real packets carry data with
AI = 0 (MQ-2.2.20.6-17), so nothing here looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.counted_text import encode_counted_text
from falconmq.wire.reader import Buffer, Layout, Reader, Structure, padding

# Flags. Bits 12 to 15 are reserved: sent as 0, ignored, kept when a packet is passed on.
SENDER_ID_TYPE: Final = 0x000F  # ST
AUTHENTICATED: Final = 0x0010  # AU, a receiver's own note
ENCRYPTED_BODY: Final = 0x0020  # EB
DEFAULT_PROVIDER: Final = 0x0040  # DE
SECURITY_DATA: Final = 0x0080  # AI
AUTHENTICATION_SIGNATURE: Final = 0x0F00  # AS, a receiver's own note
AUTHENTICATION_SIGNATURE_SHIFT: Final = 8
RESERVED_FLAGS: Final = 0xF000  # X12 to X15

SENDER_ID_NONE: Final = 0
SENDER_ID_SID: Final = 1
SENDER_ID_QUEUE_MANAGER: Final = 2

SENDER_CERT_SIZE_MAX: Final = 0xFFFF

_QUEUE_MANAGER_ID_SIZE: Final = 16
_LAYOUT: Final = Layout(
    "SecurityHeader",
    "HHHHII",
    "Flags",
    "SenderIdSize",
    "EncryptionKeySize",
    "SignatureSize",
    "SenderCertSize",
    "ProviderInfoSize",
)
_PROVIDER_TYPE: Final = Layout("ProviderInfo", "I", "ProviderType")


@dataclass(slots=True)
class ProviderInfo(Structure):
    """The cryptographic provider that signed, when it is not the default one."""

    provider_type: int
    provider_name: str
    extra: Buffer = b""  # bytes behind the name's NUL that ProviderInfoSize counts

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read to the end of the reader, which is a part of ProviderInfoSize bytes."""
        outer = reader.enter("ProviderInfo")
        provider_type = reader.u32("ProviderType")
        name = reader.text("ProviderName")
        rest = reader.remaining
        extra = reader.take(rest, "Extra") if rest else b""
        reader.leave(outer)
        return cls(provider_type, name, extra)

    def encode(self) -> bytes:
        name = encode_counted_text(self.provider_name, "ProviderInfo", "ProviderName")
        return b"".join((_PROVIDER_TYPE.pack(self.provider_type), name, self.extra))


@dataclass(slots=True)
class SecurityHeader(Structure):
    """Flags and SecurityData; an empty part is one of size 0, which takes no room."""

    flags: int
    security_id: Buffer = b""
    encryption_key: Buffer = b""
    signature: Buffer = b""
    sender_cert: Buffer = b""
    provider_info: ProviderInfo | None = None

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SecurityHeader")
        flags, id_size, key_size, signature_size, cert_size, info_size = reader.fixed(_LAYOUT)
        if cert_size > SENDER_CERT_SIZE_MAX:  # MQ-2.2.20.6-28
            raise reader.refuse(_LAYOUT, "SenderCertSize", f"{cert_size} is over 65535")
        security_id = _read_item(reader, id_size, "SecurityID")
        key = _read_item(reader, key_size, "EncryptionKey")
        signature = _read_item(reader, signature_size, "Signature")
        cert = _read_item(reader, cert_size, "SenderCert")
        info = None
        if info_size:
            info = ProviderInfo.read(reader.part(info_size, "ProviderInfo"))
            reader.align(4)
        reader.leave(outer)
        return cls(flags, security_id, key, signature, cert, info)

    def encode(self) -> bytes:
        info = b"" if self.provider_info is None else self.provider_info.encode()
        items = (self.security_id, self.encryption_key, self.signature, self.sender_cert, info)
        sizes = [len(item) for item in items]
        self._check(sizes)
        parts: list[Buffer] = [_LAYOUT.pack(self.flags, *sizes)]
        for item, size in zip(items, sizes, strict=True):
            parts += (item, padding(size))  # MQ-2.2.20.6-34
        return b"".join(parts)

    def _check(self, sizes: list[int]) -> None:
        """Refuse what a sender must not send."""
        flags = self.flags
        if flags & (AUTHENTICATED | AUTHENTICATION_SIGNATURE):  # MQ-2.2.20.6-09, MQ-2.2.20.6-19
            raise _refusal("Flags", "AU and AS are a receiver's notes, 0 on the wire")
        _check_sender_id(flags & SENDER_ID_TYPE, sizes[0])
        if sizes[3] > SENDER_CERT_SIZE_MAX:
            raise _refusal("SenderCertSize", f"{sizes[3]} is over {SENDER_CERT_SIZE_MAX}")
        if not any(sizes):  # MQ-2.2.20.6-32
            raise _refusal("SecurityData", "a SecurityHeader without any data is not sent")
        if flags & DEFAULT_PROVIDER:
            if self.provider_info is not None:  # MQ-2.2.20.6-51
                raise _refusal("ProviderInfo", "DE says the default provider signed")
        elif sizes[2] and self.provider_info is None:  # MQ-2.2.20.6-13
            raise _refusal("ProviderInfo", "a signature without DE needs its provider's name")


def _check_sender_id(sender_id_type: int, size: int) -> None:
    if sender_id_type == SENDER_ID_NONE:
        if size:  # MQ-2.2.20.6-05
            raise _refusal("SenderIdSize", f"{size}, but ST says there is no SecurityID")
    elif sender_id_type == SENDER_ID_SID:
        if not size:  # MQ-2.2.20.6-06
            raise _refusal("SecurityID", "ST says a SID, none is given")
    elif sender_id_type != SENDER_ID_QUEUE_MANAGER:  # MQ-2.2.20.6-04
        raise _refusal("Flags", f"ST {sender_id_type} is not 0, 1 or 2")
    elif size != _QUEUE_MANAGER_ID_SIZE:  # MQ-2.2.20.6-07
        raise _refusal("SecurityID", f"ST says a queue manager's GUID, {size} bytes are given")


def _read_item(reader: Reader, size: int, field: str) -> Buffer:
    if not size:  # MQ-2.2.20.6-35
        return b""
    item = reader.take(size, field)
    reader.align(4)
    return item


def _refusal(field: str, problem: str) -> WireError:
    return WireError("SecurityHeader", field, problem)
