"""A message becomes a packet: Construct and Serialize (MQDMPR 3.1.7.1.30, .32)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import MessageError, MqStatus, WireError
from falconmq.message import (
    DEFAULT_TIME_TO_REACH_QUEUE,
    Delivery,
    Message,
    MessageTransaction,
    PrivacyLevel,
    refuse_size,
)
from falconmq.names import (
    DirectFormatName,
    DistributionListFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from falconmq.wire.base_header import (
    DEBUG_HEADER,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    TRACE,
    BaseHeader,
)
from falconmq.wire.debug_header import QUEUE_TYPE_NONE, QUEUE_TYPE_PUBLIC, DebugHeader
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    ADMINISTRATION_ID,
    DESTINATION_ID,
    DISTRIBUTION_LIST,
    RESPONSE_ID,
    MQFAddressHeader,
    MQFFormatNameElement,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.multi_queue_format_header import DIRECT as MQF_DIRECT
from falconmq.wire.multi_queue_format_header import PRIVATE as MQF_PRIVATE
from falconmq.wire.multi_queue_format_header import PUBLIC as MQF_PUBLIC
from falconmq.wire.queue_name import (
    ADMIN_QUEUE,
    DIRECT,
    NONE,
    PRIVATE,
    PRIVATE_ON_ADMIN,
    PRIVATE_ON_DESTINATION,
    PRIVATE_ON_SOURCE,
    PUBLIC,
    PrivateQueueFormatName,
    QueueName,
)
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    ENCRYPTED_BODY,
    SECURITY_DATA,
    SENDER_ID_NONE,
    ProviderInfo,
    SecurityHeader,
)
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.transaction_header import (
    CONNECTOR_GUID,
    FINAL_ACK_REQUIRED,
    FIRST_MESSAGE,
    LAST_MESSAGE,
    TRANSACTION_ID_SHIFT,
    TransactionHeader,
)
from falconmq.wire.user_header import (
    ADMIN_QUEUE_TYPE_SHIFT,
    CONNECTOR_TYPE,
    DELIVERY_MODE_SHIFT,
    DESTINATION_QUEUE_TYPE_SHIFT,
    MESSAGE_PROPERTIES_HEADER,
    MULTI_QUEUE_FORMAT_HEADER,
    RESPONSE_QUEUE_TYPE_SHIFT,
    SECURITY_HEADER,
    SOAP_HEADER,
    TRANSACTION_HEADER,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

_JOURNAL_SHIFT: Final = 8  # DEAD_LETTER is JN, JOURNAL is JP
_RECOVERABLE: Final = int(Delivery.RECOVERABLE) << DELIVERY_MODE_SHIFT
_SMALL: Final = PACKET_SIZE_MAX // 2  # bodies up to here leave room for any headers we send
_SECURITY_ITEM_MAX: Final = 0xFFFF


def to_user_message(
    message: Message,
    *,
    source_queue_manager: UUID,
    message_id: int,
    sent_time: int,
    destination_queue_manager: UUID | None = None,
    default_time_to_reach_queue: int = DEFAULT_TIME_TO_REACH_QUEUE,
) -> UserMessage:
    """The packet of a message that `source_queue_manager` sends as its number `message_id`.

    `destination_queue_manager` is the host of a public destination; the other kinds of names say it
    themselves. `sent_time` is in seconds since 1970. MessageError if the message must not be sent.

    An administration queue is left out when no acknowledgement is asked for (MQ-2.2.19.2-47).
    """
    message.check()
    source = source_queue_manager.bytes_le
    destination_type, destination, address = _destination(message, destination_queue_manager)
    admin_type, admin = NONE, None
    acknowledgements = int(message.acknowledgements)
    if acknowledgements:
        if message.administration_queue is None:
            raise _no_administration_queue()
        admin_type, admin = _admin_queue(message.administration_queue, source, address)
    response_type, response = NONE, None
    if message.response_queue is not None:
        response_type, response = _response_queue(message, source, address, admin_type)
    user_flags = (
        message.hop_count
        | message.delivery << DELIVERY_MODE_SHIFT
        | message.journal << _JOURNAL_SHIFT
        | destination_type << DESTINATION_QUEUE_TYPE_SHIFT
        | admin_type << ADMIN_QUEUE_TYPE_SHIFT
        | response_type << RESPONSE_QUEUE_TYPE_SHIFT
        | MESSAGE_PROPERTIES_HEADER
    )
    base_flags = message.priority
    transaction = debug = connector_type = None
    if message.transaction is not None:
        transaction = _transaction_header(message.transaction)
        user_flags |= TRANSACTION_HEADER | _RECOVERABLE  # MQ-2.2.19.2-21
        base_flags = 0  # MQ-2.2.19.1-10
    if message.trace:
        base_flags |= TRACE | DEBUG_HEADER  # MQ-2.2.19.1-23
        debug = _debug_header(message.report_queue)
    if message.connector_type is not None:
        connector_type = message.connector_type.bytes_le
        user_flags |= CONNECTOR_TYPE
    security = _security_header(message)
    soap = _soap_header(message)
    multi_queue_format = _multi_queue_format_header(message)
    if security is not None:
        user_flags |= SECURITY_HEADER
    if soap is not None:
        user_flags |= SOAP_HEADER
    if multi_queue_format is not None:
        user_flags |= MULTI_QUEUE_FORMAT_HEADER
    time_to_reach_queue = message.time_to_reach_queue
    if time_to_reach_queue is None:
        time_to_reach_queue = default_time_to_reach_queue
    packet = UserMessage(
        BaseHeader(base_flags, PACKET_SIZE_MIN, time_to_reach_queue),  # encode knows the size
        UserHeader(
            source,
            address,
            message.time_to_be_received,
            sent_time,
            message_id,
            user_flags,
            destination,
            admin,
            response,
            connector_type,
        ),
        MessagePropertiesHeader(
            acknowledgements,
            int(message.message_class),
            bytes(message.correlation_id),
            int(message.body_type),
            message.application_tag,
            int(message.privacy_level),
            int(message.hash_algorithm),
            int(message.encryption_algorithm),
            message.label,
            message.extension,
            message.body,
        ),
        transaction,
        security,
        debug,
        soap,
        multi_queue_format,
    )
    if len(message.body) + len(message.extension) > _SMALL:
        _check_size(packet)
    return packet


def _destination(message: Message, host: UUID | None) -> tuple[int, QueueName, bytes]:
    """Type and name of the destination, and QueueManagerAddress."""
    name = message.destination
    if name is None:
        raise MessageError(
            "destination",
            "the message has none",
            status=MqStatus.INSUFFICIENT_PROPERTIES,
            hint="send it through a queue, or set message.destination",
        )
    _check_sendable("destination", name)
    if isinstance(name, DirectFormatName):
        return DIRECT, name.wire_text, NULL_GUID  # MQ-2.2.19.2-06
    if isinstance(name, PrivateFormatName):
        return PRIVATE_ON_DESTINATION, name.number, name.computer.bytes_le  # MQ-2.2.19.2-05
    if not isinstance(name, PublicFormatName):
        raise _unsupported("destination", name)
    if host is None:
        raise MessageError(
            "destination",
            f"which queue manager hosts {name}?",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="look the queue up in the directory, or use its DIRECT= name",
        )
    return PUBLIC, name.queue.bytes_le, host.bytes_le  # MQ-2.2.19.2-05


def _admin_queue(name: SingleFormatName, source: bytes, address: bytes) -> tuple[int, QueueName]:
    _check_sendable("administration_queue", name)
    return _named("administration_queue", name, source, address)


def _response_queue(
    message: Message, source: bytes, address: bytes, admin_type: int
) -> tuple[int, QueueName]:
    name, admin = message.response_queue, message.administration_queue
    assert name is not None
    _check_sendable("response_queue", name)
    # Direct names are equal in any spelling, but the spelling is what goes out.
    if admin_type and name == admin and str(name) == str(admin):
        return ADMIN_QUEUE, None
    queue_type, queue = _named("response_queue", name, source, address)
    if queue_type == PRIVATE and admin_type == PRIVATE:
        assert isinstance(name, PrivateFormatName)
        assert isinstance(admin, PrivateFormatName)
        if name.computer == admin.computer:  # MQ-2.2.19.2-56
            return PRIVATE_ON_ADMIN, name.number
    return queue_type, queue


def _named(
    field: str, name: SingleFormatName, source: bytes, address: bytes
) -> tuple[int, QueueName]:
    """Type and name of an administration or response queue (guide to MQMQ, 5.2)."""
    if isinstance(name, DirectFormatName):
        return DIRECT, name.wire_text
    if isinstance(name, PublicFormatName):
        return PUBLIC, name.queue.bytes_le
    if not isinstance(name, PrivateFormatName):
        raise _unsupported(field, name)
    computer = name.computer.bytes_le
    if computer == source:
        return PRIVATE_ON_SOURCE, name.number
    if computer == address and address != NULL_GUID:
        return PRIVATE_ON_DESTINATION, name.number
    return PRIVATE, PrivateQueueFormatName(computer, name.number)


def _check_sendable(field: str, name: SingleFormatName) -> None:
    if name.is_read_only:
        problem, hint = "only the queue manager writes there", "name the queue itself"
    elif isinstance(name, DirectFormatName) and name.subqueue is not None:
        problem, hint = "messages reach a subqueue only by moving", "name the queue itself"
    else:
        return
    raise MessageError(
        field,
        f"{name}: {problem}",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        hint=hint,
    )


def _unsupported(field: str, name: object) -> MessageError:
    return MessageError(
        field,
        f"a packet cannot name {name}",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        hint="packets name public, private and direct queues",
    )


def _no_administration_queue() -> MessageError:
    return MessageError(  # MQ-2.2.19.2-47
        "acknowledgements",
        "asked for, but there is no administration queue to send them to",
        status=MqStatus.INSUFFICIENT_PROPERTIES,
        hint="set administration_queue, or acknowledgements=Acknowledge.NONE",
    )


def _transaction_header(transaction: MessageTransaction) -> TransactionHeader:
    flags = transaction.id << TRANSACTION_ID_SHIFT
    if transaction.final_ack_required:
        flags |= FINAL_ACK_REQUIRED
    if transaction.is_first:
        flags |= FIRST_MESSAGE
    if transaction.is_last:
        flags |= LAST_MESSAGE
    connector = transaction.connector_queue_manager
    if connector is not None:
        flags |= CONNECTOR_GUID
    return TransactionHeader(
        flags,
        transaction.sequence_id,
        transaction.sequence_number,
        transaction.previous_sequence_number,
        None if connector is None else connector.bytes_le,
    )


def _debug_header(report_queue: UUID | None) -> DebugHeader:
    if report_queue is None:
        return DebugHeader(QUEUE_TYPE_NONE)
    return DebugHeader(QUEUE_TYPE_PUBLIC, report_queue.bytes_le)


def _security_header(message: Message) -> SecurityHeader | None:
    """The header if it has anything to carry: senders are named in unsigned messages too."""
    provider = message.provider
    has_more = (
        message.symmetric_key
        or message.signature
        or message.sender_certificate
        or provider is not None
    )
    if not has_more and not message.sender_id:
        return None
    flags = int(message.sender_id_type) if message.sender_id else SENDER_ID_NONE
    if message.symmetric_key and message.privacy_level != PrivacyLevel.NONE:
        flags |= ENCRYPTED_BODY  # without a key it is to be encrypted when it leaves
    if has_more:
        flags |= SECURITY_DATA  # DM-A46; a plain SID goes without, as Windows does it
    info = None
    if provider is not None:
        info = ProviderInfo(provider.type, provider.name)
    elif message.signature or message.multiple_destination_signature:
        flags |= DEFAULT_PROVIDER
    _check_item("sender_id", message.sender_id)
    _check_item("symmetric_key", message.symmetric_key)
    _check_item("signature", message.signature)
    _check_item("sender_certificate", message.sender_certificate)
    return SecurityHeader(
        flags,
        message.sender_id,
        message.symmetric_key,
        message.signature,
        message.sender_certificate,
        info,
    )


def _check_item(field: str, item: bytes) -> None:
    if len(item) > _SECURITY_ITEM_MAX:
        raise MessageError(field, f"{len(item)} bytes, a packet holds {_SECURITY_ITEM_MAX}")


def _soap_header(message: Message) -> SoapHeader | None:
    if message.soap_header is None and message.soap_body is None:
        return None
    return SoapHeader(message.soap_header, message.soap_body)


def _multi_queue_format_header(message: Message) -> MultiQueueFormatHeader | None:
    destinations, signature = message.destinations, message.multiple_destination_signature
    lists = (destinations, message.administration_queues, message.response_queues)
    if not any(lists) and not signature:
        return None
    if destinations and message.destination not in destinations:
        _check_expanded(destinations)
    return MultiQueueFormatHeader(
        MQFAddressHeader(DESTINATION_ID, _elements("destinations", lists[0])),
        MQFAddressHeader(ADMINISTRATION_ID, _elements("administration_queues", lists[1])),
        MQFAddressHeader(RESPONSE_ID, _elements("response_queues", lists[2])),
        MQFSignatureHeader(signature),
    )


def _check_expanded(destinations: tuple[SingleFormatName, ...]) -> None:
    """A destination that is not in the list can only be a member of a distribution list in it."""
    if not any(isinstance(name, DistributionListFormatName) for name in destinations):
        raise MessageError(  # DM-3.1.1.12-62
            "destination",
            "it is none of the destinations",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="each copy of a message to several queues goes to one of them",
        )


def _elements(field: str, names: tuple[SingleFormatName, ...]) -> tuple[MQFFormatNameElement, ...]:
    return tuple([_element(field, name) for name in names])


def _element(field: str, name: SingleFormatName) -> MQFFormatNameElement:
    _check_sendable(field, name)
    if isinstance(name, DirectFormatName):
        return MQFFormatNameElement(MQF_DIRECT, name.wire_text)
    if isinstance(name, PublicFormatName):
        return MQFFormatNameElement(MQF_PUBLIC, name.queue.bytes_le)
    if isinstance(name, PrivateFormatName):
        queue = PrivateQueueFormatName(name.computer.bytes_le, name.number)
        return MQFFormatNameElement(MQF_PRIVATE, queue)
    if isinstance(name, DistributionListFormatName):
        return MQFFormatNameElement(DISTRIBUTION_LIST, name.guid.bytes_le)
    raise _unsupported(field, name)


def _check_size(packet: UserMessage) -> None:
    """Only a large message pays for this: encode it and see whether it fits."""
    try:
        packet.encode()
    except WireError as error:
        if error.field != "PacketSize":
            raise
        size = len(packet.properties.message_body) + len(packet.properties.extension_data)
        refuse_size(size)
