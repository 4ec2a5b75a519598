"""A packet becomes a message: Deserialize (MQDMPR 3.1.7.1.31).

Names and GUIDs repeat from message to message, so each is made once and remembered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

from falconmq.message import (
    Acknowledge,
    AuthenticationLevel,
    CryptographicProvider,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageId,
    MessageTransaction,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import (
    DirectFormatName,
    DistributionListFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from falconmq.wire.base_header import (
    PRIORITY,
    TRACE,
)
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.multi_queue_format_header import (
    DISTRIBUTION_LIST,
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.queue_name import (
    PRIVATE_ON_ADMIN,
    PRIVATE_ON_DESTINATION,
    PRIVATE_ON_SOURCE,
    PrivateQueueFormatName,
    QueueName,
)
from falconmq.wire.security_header import (
    AUTHENTICATION_SIGNATURE,
    AUTHENTICATION_SIGNATURE_SHIFT,
    SENDER_ID_TYPE,
    SecurityHeader,
)
from falconmq.wire.transaction_header import (
    FINAL_ACK_REQUIRED,
    FIRST_MESSAGE,
    LAST_MESSAGE,
    TRANSACTION_ID,
    TRANSACTION_ID_SHIFT,
    TransactionHeader,
)
from falconmq.wire.tx_sequence_id import message_identifier
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    DELIVERY_MODE_SHIFT,
    HOP_COUNT,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

_JOURNAL_SHIFT: Final = 8  # DEAD_LETTER is JN, JOURNAL is JP
_CACHED_TEXT_MAX: Final = 512  # longer direct names come from nobody's configuration

# Numbers of the wire to the enums people see; unknown ones stay numbers (DM-A45).
_DELIVERIES: Final = (
    Delivery.EXPRESS,
    Delivery.RECOVERABLE,
    Delivery.RECOVERABLE,  # 2 and 3 mean nothing; any bit of DM asks for safety: QB-3.1.7.15-33
    Delivery.RECOVERABLE,
)
_ACKNOWLEDGEMENTS: Final = tuple(Acknowledge(number) for number in range(16))
_JOURNALS: Final = tuple(Journal(number) for number in range(4))
_CLASSES: Final[dict[int, int]] = {int(member): member for member in MessageClass}
_PRIVACY_LEVELS: Final[dict[int, int]] = {int(member): member for member in PrivacyLevel}
_HASHES: Final[dict[int, int]] = {int(member): member for member in HashAlgorithm}
_CIPHERS: Final[dict[int, int]] = {int(member): member for member in EncryptionAlgorithm}
_SENDER_ID_TYPES: Final[dict[int, int]] = {int(member): member for member in SenderIdType}
_LEVELS: Final[dict[int, int]] = {int(member): member for member in AuthenticationLevel}


def from_user_message(packet: UserMessage, *, is_verified_copy: bool = False) -> Message:
    """The message that a packet carries; nothing in it is refused.

    `is_verified_copy` says that this is our own copy, in which AS tells which signature was
    verified. On the wire AS means nothing, whatever a peer wrote there (MQ-2.2.20.6-19).
    """
    user, properties = packet.user, packet.properties
    user_flags, base_flags = user.flags, packet.base.flags
    source = user.source_queue_manager
    message = Message.__new__(Message)  # all fields are set here; __init__ would check them
    # The one copy: a message outlives the buffer that it came in.
    message.body = bytes(properties.message_body)
    message.body_type = properties.body_type
    message.label = properties.label
    message.delivery = _DELIVERIES[(user_flags & DELIVERY_MODE) >> DELIVERY_MODE_SHIFT]
    message.recoverable = message.delivery is Delivery.RECOVERABLE
    message.time_to_reach_queue = packet.base.time_to_reach_queue
    message.time_to_be_received = user.time_to_be_received
    message.acknowledgements = _ACKNOWLEDGEMENTS[properties.flags & 0x0F]
    message.journal = _JOURNALS[user_flags >> _JOURNAL_SHIFT & 0x03]
    message.correlation_id = MessageId(properties.correlation_id)
    message.application_tag = properties.application_tag
    message.extension = bytes(properties.extension_data)
    message.message_class = _CLASSES.get(properties.message_class, properties.message_class)
    message.privacy_level = _PRIVACY_LEVELS.get(properties.privacy_level, properties.privacy_level)
    cipher, hash_algorithm = properties.encryption_algorithm, properties.hash_algorithm
    message.encryption_algorithm = _CIPHERS.get(cipher, cipher)
    message.hash_algorithm = _HASHES.get(hash_algorithm, hash_algorithm)
    message.id = MessageId(message_identifier(source, user.message_id))
    message.sent_time = user.sent_time
    message.hop_count = user_flags & HOP_COUNT
    message.trace = bool(base_flags & TRACE)
    connector, address = user.connector_type, user.queue_manager_address
    message.connector_type = None if connector is None else _uuid(connector)
    message.destination_queue_manager = None if address == NULL_GUID else _uuid(address)
    if packet.transaction is None:
        message.priority = base_flags & PRIORITY
        message.transaction = None
    else:
        message.priority = 0  # DM-3.1.7.1.32-04
        message.transaction = _transaction(packet.transaction)
    debug = packet.debug
    queue = None if debug is None else debug.queue_identifier
    message.report_queue = None if queue is None else _uuid(queue)
    soap = packet.soap
    message.soap_header = None if soap is None else soap.header
    message.soap_body = None if soap is None else soap.body
    _read_names(message, user)
    _read_lists(message, packet.multi_queue_format)
    _read_security(message, packet.security, is_verified_copy)
    # Never on the wire (guide to MQDMPR, 8.11).
    message.dead_letter_queue = ""
    message.allow_peek_when_locked = False
    message.arrived_time = None
    message.lookup_id = None
    message.abort_count = 0
    message.move_count = 0
    message.transaction_status_queue = None
    message.soap_envelope = None
    message.soap_compound_message = None
    return message


@lru_cache(maxsize=1024)
def _uuid(guid: bytes) -> UUID:
    return UUID(bytes_le=guid)


@lru_cache(maxsize=1024)
def _public(guid: bytes) -> PublicFormatName:
    return PublicFormatName(UUID(bytes_le=guid))


@lru_cache(maxsize=1024)
def _private(computer: bytes, number: int) -> PrivateFormatName:
    return PrivateFormatName(UUID(bytes_le=computer), number)


@lru_cache(maxsize=1024)
def _short_direct(text: str) -> DirectFormatName:
    return DirectFormatName.from_wire(text)


def _direct(text: str) -> DirectFormatName:
    if len(text) <= _CACHED_TEXT_MAX:
        return _short_direct(text)
    return DirectFormatName.from_wire(text)


def _read_names(message: Message, user: UserHeader) -> None:
    destination_type, admin_type = user.destination_queue_type, user.admin_queue_type
    response_type, response = user.resolved_response_queue()
    admin_host = NULL_GUID
    if response_type == PRIVATE_ON_ADMIN:
        admin_host = _admin_host(user, admin_type)
    message.destination = _name(user, destination_type, user.destination_queue, NULL_GUID)
    message.administration_queue = _name(user, admin_type, user.admin_queue, NULL_GUID)
    message.response_queue = _name(user, response_type, response, admin_host)


def _name(
    user: UserHeader, queue_type: int, queue: QueueName, admin_host: bytes
) -> SingleFormatName | None:
    """The format name that a name of a packet stands for (MQQB 3.1.7.15)."""
    if isinstance(queue, str):
        return _direct(queue)
    if isinstance(queue, bytes):
        return _public(queue)
    if isinstance(queue, PrivateQueueFormatName):
        return _private(queue.source_queue_manager, queue.private_queue_identifier)
    if queue is None:
        return None
    if queue_type == PRIVATE_ON_SOURCE:
        return _private(user.source_queue_manager, queue)
    if queue_type == PRIVATE_ON_DESTINATION:
        return _private(user.queue_manager_address, queue)
    return _private(admin_host, queue)


def _admin_host(user: UserHeader, admin_type: int) -> bytes:
    """The queue manager of the administration queue; the null GUID if the packet does not say."""
    if admin_type == PRIVATE_ON_SOURCE:
        return user.source_queue_manager
    if admin_type == PRIVATE_ON_DESTINATION:
        return user.queue_manager_address
    if isinstance(user.admin_queue, PrivateQueueFormatName):
        return user.admin_queue.source_queue_manager
    return NULL_GUID


def _transaction(header: TransactionHeader) -> MessageTransaction:
    flags, connector = header.flags, header.connector_qm_guid
    return MessageTransaction(
        header.tx_sequence_id,
        header.tx_sequence_number,
        header.previous_tx_sequence_number,
        (flags & TRANSACTION_ID) >> TRANSACTION_ID_SHIFT,
        bool(flags & FIRST_MESSAGE),
        bool(flags & LAST_MESSAGE),
        bool(flags & FINAL_ACK_REQUIRED),
        None if connector is None else _uuid(connector),
    )


def _read_lists(message: Message, header: MultiQueueFormatHeader | None) -> None:
    if header is None:
        message.destinations = message.administration_queues = message.response_queues = ()
        message.multiple_destination_signature = b""
        return
    message.destinations = _element_names(header.destination)
    message.administration_queues = _element_names(header.administration)
    message.response_queues = _element_names(header.response)
    message.multiple_destination_signature = bytes(header.signature.signature)


def _element_names(header: MQFAddressHeader) -> tuple[SingleFormatName, ...]:
    return tuple([_element_name(element) for element in header.format_name_list])


def _element_name(element: MQFFormatNameElement) -> SingleFormatName:
    name = element.name
    if isinstance(name, str):
        return _direct(name)
    if isinstance(name, PrivateQueueFormatName):
        return _private(name.source_queue_manager, name.private_queue_identifier)
    if element.format_type == DISTRIBUTION_LIST:
        return DistributionListFormatName(_uuid(name))
    return _public(name)


def _read_security(message: Message, header: SecurityHeader | None, is_verified_copy: bool) -> None:
    message.authentication_level = AuthenticationLevel.NONE
    if header is None:
        message.sender_id_type = SenderIdType.NONE
        message.sender_id = message.symmetric_key = b""
        message.signature = message.sender_certificate = b""
        message.provider = None
        return
    sender_id_type = header.flags & SENDER_ID_TYPE
    message.sender_id_type = _SENDER_ID_TYPES.get(sender_id_type, sender_id_type)
    message.sender_id = bytes(header.security_id)
    message.symmetric_key = bytes(header.encryption_key)
    message.signature = bytes(header.signature)
    message.sender_certificate = bytes(header.sender_cert)
    info = header.provider_info
    message.provider = (
        None if info is None else CryptographicProvider(info.provider_name, info.provider_type)
    )
    if is_verified_copy:  # the table says AU, a single bit that is always 0: DM-A42
        level = (header.flags & AUTHENTICATION_SIGNATURE) >> AUTHENTICATION_SIGNATURE_SHIFT
        message.authentication_level = _LEVELS.get(level, level)
