"""One packet under the glass: its tree, what it says in a line, the rules it breaks, its fault.

`inspect` runs the decoders over a tracing reader. The body of a message to one of the queue
manager's own queues (notifications, replication, ordering acks) is decoded inside the tree.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from falconmq.errors import WireError
from falconmq.wire.annotate import Annotation, annotate
from falconmq.wire.base_header import DEFAULT_PRIORITY, PRIORITY
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.change_notification import ChangeNotificationMessage, NotificationBody
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import FinalAckBody, OrderAckBody
from falconmq.wire.packet import read_packet
from falconmq.wire.ping import Ping
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.queue_name import PrivateQueueFormatName, QueueName
from falconmq.wire.reader import Buffer, Reader, decode_utf16
from falconmq.wire.replication_messages import read_replication_message
from falconmq.wire.rules import Finding, check, is_ordering_ack
from falconmq.wire.sddl import format_sddl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.security_header import ENCRYPTED_BODY
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.sid import Sid
from falconmq.wire.ta_address import TaAddress
from falconmq.wire.tracing import Node, TracingReader
from falconmq.wire.user_header import RECOVERABLE, UserHeader
from falconmq.wire.user_message import UserMessage
from falconmq.wire.user_sign_certs import UserSignCerts
from falconmq.wire.words import (
    body_type_name,
    byte_size,
    count_of,
    message_class_name,
    printable,
    quoted,
)


class Kind(StrEnum):
    """What bytes are taken for."""

    PACKET = "packet"
    PING = "ping"
    NOTIFICATION = "notification"
    REPLICATION = "replication"
    SECURITY_DESCRIPTOR = "security-descriptor"
    SID = "sid"
    PUBLIC_KEYS = "public-keys"
    CERTIFICATES = "certificates"
    ADDRESS = "address"


_READERS: Final[Mapping[Kind, Callable[[Reader], object]]] = {
    Kind.PACKET: read_packet,
    Kind.PING: Ping.read,
    Kind.NOTIFICATION: ChangeNotificationMessage.read,
    Kind.REPLICATION: read_replication_message,
    Kind.SECURITY_DESCRIPTOR: SecurityDescriptor.read,
    Kind.SID: Sid.read,
    Kind.PUBLIC_KEYS: PublicKeys.read,
    Kind.CERTIFICATES: UserSignCerts.read,
    Kind.ADDRESS: TaAddress.read,
}
_SYSTEM_QUEUES: Final = {1: "mqis_queue$", 3: "notify_queue$", 4: "order_queue$"}


@dataclass(slots=True)
class Inspection:
    """What the bytes of one packet hold. With `error` set, the tree ends at the fault."""

    name: str  # EstablishConnection, UserMessage, OrderAck ...
    size: int
    tree: Node
    summary: str = ""
    value: object = None  # what was decoded; None if it could not be
    findings: list[Finding] = field(default_factory=list)
    error: WireError | None = None


class Line(NamedTuple):
    """A node of the tree with how deep it stands and what it means."""

    depth: int
    node: Node
    annotation: Annotation


def inspect(
    data: Buffer, kind: Kind = Kind.PACKET, *, is_response: bool | None = None
) -> Inspection:
    """Decode the bytes of one packet, or of another structure, and explain them.

    `is_response` says whether it goes from the acceptor to the initiator, if anybody knows.
    """
    reader = TracingReader(data)
    inspection = Inspection(kind.value, len(data), reader.root)
    try:
        value = _READERS[kind](reader)
    except WireError as error:
        inspection.error = error
    else:
        inspection.value = value
        inspection.findings = check(value, is_response=is_response)
        inspection.summary = summary(value, is_response=is_response)
        if reader.remaining:
            rest = reader.buffer[reader.position : reader.end]
            reader.root.children.append(Node("(not read)", reader.offset, len(rest), rest))
    _close_sizes(inspection.tree)
    if inspection.tree.children:
        inspection.name = inspection.tree.children[0].name
    if len(data) >= BASE_HEADER_SIZE and _is_foreign(inspection.error):
        inspection.name = "no MSMQ packet"  # whatever its other bits seem to say
    if isinstance(inspection.value, UserMessage):
        _look_into_body(inspection, inspection.value, data)
    return inspection


def _is_foreign(error: WireError | None) -> bool:
    return error is not None and error.field in ("VersionNumber", "Signature")


def lines(tree: Node, data: Buffer) -> Iterator[Line]:
    """The tree from top to bottom; the root and the packet itself are left out."""
    for child in tree.children:
        yield from _lines(child, 0, data) if not child.is_structure else _below(child, 0, data)


def _below(node: Node, depth: int, data: Buffer) -> Iterator[Line]:
    siblings: dict[str, object] = {}
    for child in node.children:
        if child.is_structure:
            yield from _lines(child, depth, data)
            continue
        siblings[child.name] = child.value
        words = annotate(node.name, child.name, child.value, child.size, siblings)
        yield Line(depth, child, words)
        yield from _below(child, depth + 1, data)  # a body that was looked into


def _lines(node: Node, depth: int, data: Buffer) -> Iterator[Line]:
    words = _structure_words(node, data) if node.is_structure else Annotation("")
    yield Line(depth, node, words)
    yield from _below(node, depth + 1, data)


def _structure_words(node: Node, data: Buffer) -> Annotation:
    """What a structure stands for as a whole, where that can be said in a word or two."""
    for child in node.children:
        if child.name == "DirectFormatName":
            text = child.value if isinstance(child.value, str) else decode_utf16(child.value)
            return Annotation(f"DIRECT={printable(text.removesuffix(chr(0)))}")
    if node.name == "SID":
        with contextlib.suppress(WireError):
            return Annotation(str(Sid.decode(data, node.offset)))
    return Annotation("")


def _close_sizes(node: Node) -> int:
    """Give structures that were never left the size of what they hold; returns where it ends."""
    end = node.offset + node.size
    for child in node.children:
        end = max(end, _close_sizes(child))
    node.size = end - node.offset
    return end


# Bodies


def _look_into_body(inspection: Inspection, message: UserMessage, data: Buffer) -> None:
    """Decode the body of a message between queue managers into the tree."""
    name, read = _body_reader(message)
    if read is None:
        return
    node = _find(inspection.tree, "MessageBody")
    if node is None:
        return
    inspection.name = name or inspection.name
    reader = TracingReader(data, node.offset, node.offset + node.size)
    reader.origin = 0  # offsets count from the start of the packet
    try:
        body = read(reader)
    except WireError as error:
        inspection.error = error
    else:
        inspection.summary = _body_summary(body, message)
    _close_sizes_of(reader.root)
    node.children = reader.root.children


def _close_sizes_of(root: Node) -> None:
    for child in root.children:
        _close_sizes(child)


def _body_reader(message: UserMessage) -> tuple[str, Callable[[Reader], object] | None]:
    """The name of the message for people and the reader of its body, if that is known."""
    if is_ordering_ack(message):
        if message.properties.message_class == MessageClass.ORDER_ACK:
            return "OrderAck", OrderAckBody.read
        return "FinalAck", FinalAckBody.read
    if message.security is not None and message.security.flags & ENCRYPTED_BODY:
        return "", None
    queue = system_queue(message.user.destination_queue)
    if queue == "notify_queue$" and message.properties.message_class == MessageClass.NORMAL:
        return "", ChangeNotificationMessage.read
    if queue == "mqis_queue$" and len(message.properties.message_body):
        return "", read_replication_message
    return "", None


def system_queue(name: QueueName) -> str:
    """The queue manager's own queue that a destination names; "" if it is any other."""
    if isinstance(name, PrivateQueueFormatName):
        name = name.private_queue_identifier
    if isinstance(name, int):
        return _SYSTEM_QUEUES.get(name, "")
    if isinstance(name, str):
        path = name.lower()
        for queue in _SYSTEM_QUEUES.values():
            if path.endswith(f"\\private$\\{queue}"):
                return queue
    return ""


def _find(node: Node, name: str) -> Node | None:
    for child in node.children:
        if child.name == name:
            return child
        found = _find(child, name)
        if found is not None:
            return found
    return None


# One line


def summary(value: object, *, is_response: bool | None = None) -> str:
    """What a packet says, in one line."""
    if isinstance(value, EstablishConnection):
        return _establish_words(value, is_response)
    if isinstance(value, ConnectionParameters):
        waits = f"{value.recoverable_ack_timeout / 1000:g} s / {value.ack_timeout / 1000:g} s"
        refused = "refused, " if value.refused else ""
        return f"{refused}window {value.window_size}, acks {waits}"
    if isinstance(value, SessionAck):
        return _session_words(value.session)
    if isinstance(value, Ping):
        what = {None: "ping", False: "request", True: "answer"}[is_response]
        refused = ", would refuse" if value.refused else ""
        return f"{what} {value.cookie} from {guid_text(value.qm_guid)}{refused}"
    if isinstance(value, UserMessage):
        return _message_words(value)
    if isinstance(value, SecurityDescriptor):
        return format_sddl(value)
    if isinstance(value, ChangeNotificationMessage):
        return _notification_words(value)
    return str(value) if isinstance(value, Sid) else ""


def _establish_words(packet: EstablishConnection, is_response: bool | None) -> str:
    client, server = guid_text(packet.client_guid), guid_text(packet.server_guid)
    if packet.server_guid == NULL_GUID:
        server = "whoever is there"
    if packet.refused:
        return f"{server} refuses {client}"
    return f"{server} accepts {client}" if is_response else f"{client} calls {server}"


def _session_words(session: SessionHeader) -> str:
    stored = session.recoverable_msg_ack_flags.bit_count()
    disk = f", {stored} more on disk" if stored else ""
    sent = f"sent {session.user_msg_sequence_number}"
    return f"received {session.ack_sequence_number}{disk}, {sent}, window {session.window_size}"


def _message_words(message: UserMessage) -> str:
    properties = message.properties
    parts = []
    if properties.message_class != MessageClass.NORMAL:
        parts.append(message_class_name(properties.message_class))
    if properties.label:
        parts.append(quoted(properties.label))
    parts.append(f"to {destination_text(message.user)},")
    parts.append(f"{_delivery(message)},")
    parts.append(byte_size(len(properties.message_body)))
    if properties.body_type:
        parts.append(body_type_name(properties.body_type))
    if message.session is not None:
        parts.append(f"[ack: {_session_words(message.session)}]")
    return " ".join(parts)


def _delivery(message: UserMessage) -> str:
    if message.transaction is not None:
        return f"transactional #{message.transaction.tx_sequence_number}"
    mode = "recoverable" if message.user.delivery_mode == RECOVERABLE else "express"
    priority = message.base.flags & PRIORITY
    return mode if priority == DEFAULT_PRIORITY else f"{mode} priority {priority}"


def destination_text(user: UserHeader) -> str:
    """The destination as a format name."""
    name = user.destination_queue
    if name is None:
        return "nowhere"
    if isinstance(name, str):
        return f"DIRECT={printable(name)}"
    if isinstance(name, bytes):
        return f"PUBLIC={guid_text(name)}"
    if isinstance(name, PrivateQueueFormatName):
        host, number = name.source_queue_manager, name.private_queue_identifier
    else:
        host, number = user.queue_manager_address, name
    queue = system_queue(name)
    return f"PRIVATE={guid_text(host)}\\{number:x}{f' ({queue})' if queue else ''}"


def _body_summary(body: object, message: UserMessage) -> str:
    if isinstance(body, OrderAckBody):
        return f"up to {body.tx_sequence_number} of sequence {body.tx_sequence_id:#x}"
    if isinstance(body, FinalAckBody):
        fate = message_class_name(message.properties.message_class)
        about = f"message {body.message_id} ({body.tx_sequence_number} of its sequence)"
        return f"{fate} about {about} of {guid_text(body.source_guid)}"
    if isinstance(body, ChangeNotificationMessage):
        return f"change notification: {_notification_words(body)}"
    return f"replication: {type(body).__name__}, {_message_words(message)}"


def _notification_words(notification: ChangeNotificationMessage) -> str:
    data = notification.data
    if isinstance(data, NotificationBody):
        event = data.event.name.lower().replace("_", " ")
        return f"{event}, {guid_text(data.object_guid)}, ask {data.domain_controller}"
    return f"{count_of(len(data), 'update')} of a directory service"
