"""Where the fuzzer starts: the specification's frames, and examples drawn from the strategies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hypothesis.strategies import SearchStrategy

from falconmq.body import encode_xml
from falconmq.wire.sddl import format_sddl
from falconmq.wire.ta_address import encode_ta_addresses
from fuzz.conversations import conversations
from fuzz.examples import encoded, examples
from tests.strategies import (
    captures,
    keys,
    names,
    notifications,
    packets,
    properties,
    replication,
    security,
    user_message,
)

VECTORS: Final = Path(__file__).parent.parent / "tests" / "vectors"


def frames() -> list[bytes]:
    """The frames of MS-MQQB section 4.1; the damaged one as far as it is published."""
    document = json.loads((VECTORS / "mqqb-frames.json").read_text(encoding="utf-8"))
    return [bytes.fromhex(frame["hex"]) for frame in document["frames"]]


def _capture(stream: bytes) -> bytes:
    client, server = ("127.0.0.2", 40000), ("127.0.0.3", 1801)
    return captures.pcap([(0, captures.ethernet(captures.tcp(client, server, 1, stream)))])


_TEXTS: Final[dict[str, list[str]]] = {
    "sddl": ["O:BAG:SYD:PAI(A;CI;GA;;;SY)(D;;0x2;;;WD)S:(AU;SAFA;GA;;;AN)"],
    "queue-name": [r".\private$\orders", r"DIRECT=TCP:10.0.0.7\private$\q;journal", "A,B"],
    "xml-body": ["<?xml version='1.0'?><int>7</int>", "<!DOCTYPE a><string/>"],
}


def _strategies() -> dict[str, tuple[SearchStrategy[Any], Callable[[Any], bytes]]]:
    return {
        "packet": (packets.packets, encoded),
        "splitter": (packets.packets, lambda packet: b"\x07" + encoded(packet) * 2),
        "user-header": (user_message.user_headers(), encoded),
        "security-header": (user_message.security_headers(), encoded),
        "message-properties": (user_message.message_properties_headers(), encoded),
        "soap-header": (user_message.soap_headers, encoded),
        "multi-queue-format": (user_message.multi_queue_format_headers, encoded),
        "session-ack": (packets.session_acks, encoded),
        "ping": (packets.pings, encoded),
        "change-notification": (notifications.change_notifications, encoded),
        "notification-update": (notifications.notification_updates, encoded),
        "directory-change": (replication.directory_changes, encoded),
        "replication": (replication.replication_messages, encoded),
        "prop-variant": (properties.prop_variants, encoded),
        "public-keys": (keys.public_key_lists, encoded),
        "public-key-blob": (keys.public_key_blobs(), encoded),
        "simple-blob": (keys.simple_blobs, encoded),
        "user-sign-certs": (keys.user_sign_cert_lists, encoded),
        "addresses": (keys.ta_addresses, lambda address: encode_ta_addresses([address] * 2)),
        "security-descriptor": (security.security_descriptors, encoded),
        "sddl": (security.spellable_security_descriptors, lambda d: format_sddl(d).encode()),
        "queue-name": (names.format_names, lambda name: str(name).encode()),
        "capture": (packets.packets, lambda packet: _capture(encoded(packet))),
    }


def seeds(target: str) -> list[bytes]:
    """The seeds of one target."""
    found = [text.encode() for text in _TEXTS.get(target, [])]
    if target == "packet":
        found += frames()[2:]
    elif target == "ping":
        found += frames()[:2]
    elif target == "splitter":
        found.append(b"\x10" + b"".join(frames()[2:6]))
    elif target == "capture":
        found.append(_capture(b"".join(frames()[2:6])))
    elif target == "conversation":
        found += conversations()
    elif target == "xml-body":
        found += [encode_xml(value) for value in ("hello", 1, 2.5, True, b"bytes")]
    if target in (strategies := _strategies()):
        found += examples(*strategies[target])
    return found
