"""MessagePropertiesHeader: what the application says, label, extension, body (MQMQ 2.2.19.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import MqStatus, WireError
from falconmq.wire.base_header import PACKET_SIZE_MAX
from falconmq.wire.counted_text import encode_counted_text, read_counted_text
from falconmq.wire.message_class import CUSTOM_MASK
from falconmq.wire.reader import Buffer, Layout, Reader, Structure, padding

# Flags: the acknowledgments asked for. Bits 4 to 7 are reserved: sent as 0, ignored, kept.
POSITIVE_ARRIVAL: Final = 0x01  # PA
POSITIVE_RECEIVE: Final = 0x02  # PR
NEGATIVE_ARRIVAL: Final = 0x04  # NA
NEGATIVE_RECEIVE: Final = 0x08  # NR
RESERVED_FLAGS: Final = 0xF0

PRIVACY_NONE: Final = 0
PRIVACY_BASE: Final = 1  # 40 bit
PRIVACY_ENHANCED: Final = 3  # 128 bit
PRIVACY_ADVANCED: Final = 5  # AES

HASH_MD2: Final = 0x8001
HASH_MD4: Final = 0x8002
HASH_MD5: Final = 0x8003
HASH_SHA1: Final = 0x8004
HASH_SHA256: Final = 0x800C
HASH_SHA512: Final = 0x800E

ENCRYPTION_RC2: Final = 0x6602
ENCRYPTION_RC4: Final = 0x6801
ENCRYPTION_AES128: Final = 0x660E
ENCRYPTION_AES192: Final = 0x660F
ENCRYPTION_AES256: Final = 0x6610

LABEL_LENGTH_MAX: Final = 0xFA  # characters of 16 bits, the NUL counted
CORRELATION_ID_SIZE: Final = 20
NO_CORRELATION_ID: Final = bytes(CORRELATION_ID_SIZE)

FIXED_SIZE: Final = 56
_LAYOUT: Final = Layout(
    "MessagePropertiesHeader",
    "BBH20sIIIIIIII",
    "Flags",
    "LabelLength",
    "MessageClass",
    "CorrelationID",
    "BodyType",
    "ApplicationTag",
    "MessageSize",
    "AllocationBodySize",
    "PrivacyLevel",
    "HashAlgorithm",
    "EncryptionAlgorithm",
    "ExtensionSize",
)

_WEAK: Final = frozenset({ENCRYPTION_RC2, ENCRYPTION_RC4})
_AES: Final = frozenset({ENCRYPTION_AES128, ENCRYPTION_AES192, ENCRYPTION_AES256})
# Which algorithm may stand beside which level; both are filled in even if nothing is encrypted.
_ENCRYPTION_ALGORITHMS: Final[Mapping[int, frozenset[int]]] = {
    PRIVACY_NONE: _WEAK | _AES,  # MQ-2.2.19.3-38
    PRIVACY_BASE: _WEAK,  # MQ-2.2.19.3-40
    PRIVACY_ENHANCED: _WEAK,  # MQ-2.2.19.3-41
    PRIVACY_ADVANCED: _AES,  # MQ-2.2.19.3-42
}


@dataclass(slots=True)
class MessagePropertiesHeader(Structure):
    """56 bytes, then label, extension and body with nothing between them."""

    flags: int = 0
    message_class: int = 0
    correlation_id: bytes = NO_CORRELATION_ID
    body_type: int = 0  # any number: real messages use types that no list has, MQ-2.2.19.3-20
    application_tag: int = 0
    privacy_level: int = PRIVACY_NONE
    hash_algorithm: int = HASH_SHA512  # MQ-2.2.19.3-34
    encryption_algorithm: int = ENCRYPTION_RC4  # what Windows writes where nothing is encrypted
    label: str = ""
    extension_data: Buffer = b""
    message_body: Buffer = b""
    allocation_body_size: int | None = None  # None: the size of the body

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MessagePropertiesHeader")
        (
            flags,
            label_length,
            message_class,
            correlation_id,
            body_type,
            application_tag,
            message_size,
            allocation_body_size,
            privacy_level,
            hash_algorithm,
            encryption_algorithm,
            extension_size,
        ) = reader.fixed(_LAYOUT)
        if label_length > LABEL_LENGTH_MAX:  # MQ-2.2.19.3-12
            raise reader.refuse(_LAYOUT, "LabelLength", f"{label_length} is over 250")
        label = read_counted_text(reader, 2 * label_length, "Label") if label_length else ""
        extension = reader.take(extension_size, "ExtensionData") if extension_size else b""
        body = reader.take(message_size, "MessageBody") if message_size else b""
        reader.align(4)  # MQ-2.2.19.3-55
        reader.leave(outer)
        return cls(
            flags,
            message_class,
            correlation_id,
            body_type,
            application_tag,
            privacy_level,
            hash_algorithm,
            encryption_algorithm,
            label,
            extension,
            body,
            allocation_body_size,
        )

    def encode(self) -> bytes:
        parts: list[Buffer] = []
        self.append_to(parts)
        return b"".join(parts)

    def append_to(self, parts: list[Buffer]) -> None:
        """Add the bytes piece by piece: a large body is copied once, by whoever joins them."""
        self._check()
        label = self._label_bytes()
        extension, body = self.extension_data, self.message_body
        extension_size, body_size = len(extension), len(body)
        allocation = self._allocation(body_size)
        parts.append(
            _LAYOUT.pack(
                self.flags,
                len(label) >> 1,
                self.message_class,
                self.correlation_id,
                self.body_type,
                self.application_tag,
                body_size,
                allocation,
                self.privacy_level,
                self.hash_algorithm,
                self.encryption_algorithm,
                extension_size,
            )
        )
        if label:
            parts.append(label)
        if extension_size:
            parts.append(extension)
        parts.append(body)
        parts.append(padding(len(label) + extension_size + body_size))  # MQ-2.2.19.3-54

    def _label_bytes(self) -> bytes:
        if not self.label:  # MQ-2.2.19.3-11
            return b""
        label = encode_counted_text(self.label, "MessagePropertiesHeader", "Label")
        if len(label) > 2 * LABEL_LENGTH_MAX:  # MQ-2.2.19.3-48
            error = _refusal("LabelLength", f"{len(label) // 2 - 1} characters, 249 fit")
            error.status = MqStatus.LABEL_TOO_LONG
            raise error
        return label

    def _allocation(self, body_size: int) -> int:
        allocation = self.allocation_body_size
        if allocation is None:
            return body_size
        if not body_size <= allocation <= PACKET_SIZE_MAX:  # MQ-2.2.19.3-26
            problem = f"{allocation} is not in {body_size}..{PACKET_SIZE_MAX}"
            raise _refusal("AllocationBodySize", problem)
        return allocation

    def _check(self) -> None:
        """Refuse what a sender must not send. A receiver takes it: it may be of a later version."""
        if self.message_class & ~CUSTOM_MASK:  # MQ-2.2.18.1.6-22, MQ-2.2.19.3-14
            raise _refusal("MessageClass", f"{self.message_class:#06x} has bits outside 0xe1ff")
        algorithms = _ENCRYPTION_ALGORITHMS.get(self.privacy_level)
        if algorithms is None:  # MQ-2.2.19.3-28
            raise _refusal("PrivacyLevel", f"{self.privacy_level} is not 0, 1, 3 or 5")
        if self.encryption_algorithm not in algorithms:
            problem = f"{self.encryption_algorithm:#06x} does not go with privacy level "
            raise _refusal("EncryptionAlgorithm", f"{problem}{self.privacy_level}")


def _refusal(field: str, problem: str) -> WireError:
    return WireError("MessagePropertiesHeader", field, problem)
