"""What is fuzzed: each decoder of untrusted input, with the promise it must keep.

Binary structures: any bytes decode or raise WireError; what decodes encodes again, or is refused
by name, and comes back equal. Texts: any text parses or raises FalconMQError; what parses prints
and parses back equal. A broken promise is an exception here, and so a finding for the fuzzer.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from falconmq.body import decode_xml
from falconmq.capture.packets import CaptureReader
from falconmq.errors import FalconMQError, WireError
from falconmq.names import DirectFormatName, parse_queue_name
from falconmq.serialization import from_user_message
from falconmq.wire import rules
from falconmq.wire.change_notification import ChangeNotificationMessage
from falconmq.wire.directory_change import DirectoryChange, NotificationUpdate
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import MultiQueueFormatHeader
from falconmq.wire.ordering_acks import from_user_message as ordering_ack
from falconmq.wire.packet import decode_packet, read_packet
from falconmq.wire.ping import Ping
from falconmq.wire.public_key_blob import PublicKeyBlob
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.reader import Structure
from falconmq.wire.replication_messages import decode_replication_message
from falconmq.wire.sddl import format_sddl, parse_sddl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.simple_blob import SimpleBlob
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.ta_address import decode_ta_addresses, encode_ta_addresses
from falconmq.wire.tracing import TracingReader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage
from falconmq.wire.user_sign_certs import UserSignCerts
from falconmq.wire.variant import PropVariant
from fuzz.conversations import check_conversation


@dataclass(frozen=True)
class Target:
    check: Callable[[bytes], None]
    max_input: int = 1024


def structure(kind: type[Structure], max_input: int = 1024) -> Target:
    def check(data: bytes) -> None:
        try:
            value = kind.decode(data)
        except WireError:
            return
        try:
            encoded = value.encode()
        except WireError:
            return  # a receiver takes more than a sender may send
        assert kind.decode(encoded) == value, "decode(encode(value)) is another value"

    return Target(check, max_input)


def check_packet(data: bytes) -> None:
    """Plain and traced reading agree; rules, message view and ordering acks cope with anything."""
    reader = TracingReader(data)
    try:
        packet = decode_packet(data)
    except WireError as error:
        try:
            read_packet(reader)
        except WireError as traced:
            assert str(traced) == str(error), "the traced reader sees another fault"
            return
        raise AssertionError("the traced reader sees no fault") from error
    assert read_packet(reader) == packet, "the traced reader sees another packet"
    rules.check(packet)
    if isinstance(packet, UserMessage):
        ordering_ack(packet)
        with contextlib.suppress(FalconMQError):
            from_user_message(packet)


def check_splitter(data: bytes) -> None:
    """However the stream is cut, the same packets come out and the same fault ends it."""
    if not data:
        return
    step, stream = data[0] % 40 + 1, data[1:]
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    assert _split([stream]) == _split(pieces), "the cuts changed the packets"


def _split(segments: list[bytes]) -> tuple[list[bytes], str]:
    splitter, packets = PacketSplitter(), []
    try:
        for segment in segments:
            splitter.feed(segment)
            for packet in splitter:
                packets.append(bytes(packet))  # noqa: PERF401  # keeps those in front of a fault
    except WireError as error:
        return packets, str(error)
    return packets, f"{splitter.pending} bytes pending"


def check_replication(data: bytes) -> None:
    try:
        message = decode_replication_message(data)
        encoded = message.encode()
    except WireError:
        return
    assert decode_replication_message(encoded) == message


def check_addresses(data: bytes) -> None:
    try:
        addresses = decode_ta_addresses(data)
    except WireError:
        return
    assert decode_ta_addresses(encode_ta_addresses(addresses)) == addresses


def check_queue_name(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    DirectFormatName.from_wire(text)  # holds any text a peer may send
    try:
        name = parse_queue_name(text)
    except FalconMQError:
        return
    assert parse_queue_name(str(name)) == name, "the printed name is another name"


def check_sddl(data: bytes) -> None:
    try:
        descriptor = parse_sddl(data.decode("utf-8", "replace"))
        text = format_sddl(descriptor)
    except FalconMQError:
        return
    assert format_sddl(parse_sddl(text)) == text


def check_xml(data: bytes) -> None:
    with contextlib.suppress(FalconMQError):
        decode_xml(data)


def check_capture(data: bytes) -> None:
    with contextlib.suppress(FalconMQError):
        for _ in CaptureReader(io.BytesIO(data)).packets():
            pass


TARGETS: Final[dict[str, Target]] = {
    "packet": Target(check_packet, 4096),
    "splitter": Target(check_splitter, 4096),
    "user-header": structure(UserHeader),
    "security-header": structure(SecurityHeader),
    "message-properties": structure(MessagePropertiesHeader),
    "soap-header": structure(SoapHeader),
    "multi-queue-format": structure(MultiQueueFormatHeader),
    "session-ack": structure(SessionAck, 64),
    "ping": structure(Ping, 64),
    "change-notification": structure(ChangeNotificationMessage, 4096),
    "notification-update": structure(NotificationUpdate),
    "directory-change": structure(DirectoryChange),
    "replication": Target(check_replication, 4096),
    "prop-variant": structure(PropVariant),
    "public-keys": structure(PublicKeys),
    "public-key-blob": structure(PublicKeyBlob),
    "simple-blob": structure(SimpleBlob),
    "user-sign-certs": structure(UserSignCerts),
    "addresses": Target(check_addresses),
    "security-descriptor": structure(SecurityDescriptor),
    "sddl": Target(check_sddl),
    "queue-name": Target(check_queue_name),
    "xml-body": Target(check_xml),
    "capture": Target(check_capture, 4096),
    "conversation": Target(check_conversation, 2048),
}
