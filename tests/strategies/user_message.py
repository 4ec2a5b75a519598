"""Strategies for every header of a user message and for whole packets in every variant."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire import multi_queue_format_header as mqf
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    MQFAddressHeader,
    MQFFormatNameElement,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.queue_name import PrivateQueueFormatName, QueueName
from falconmq.wire.security_header import ProviderInfo, SecurityHeader
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.headers import session_headers
from tests.strategies.wire import guids, texts, u8, u16, u32, u64

NULL = bytes(16)
blobs = st.binary(max_size=21)

message_classes = u16.map(lambda value: value & 0xE1FF)
"""What may be sent: no bit of 0x1E00."""

private_queue_format_names = st.builds(
    PrivateQueueFormatName, source_queue_manager=guids, private_queue_identifier=u32
)


def queue_names(queue_type: int) -> st.SearchStrategy[QueueName]:
    """Names of one of the types 0 to 7."""
    names: list[st.SearchStrategy[QueueName]] = [
        st.none(),
        st.none(),
        u32,
        u32,
        u32,
        guids,
        private_queue_format_names,
        texts(),
    ]
    return names[queue_type]


@st.composite
def user_headers(draw: st.DrawFn, *, delivery_modes: tuple[int, ...] = (0, 1)) -> UserHeader:
    """Headers with every type of name; no bit of another header but the one that is always set."""
    destination_type = draw(st.sampled_from((0, 3, 5, 7)))
    admin_type = draw(st.sampled_from((0, 2, 3, 5, 6, 7)))
    response_type = draw(st.integers(0, 7))
    connector_type = draw(st.none() | guids)
    flags = (
        draw(st.integers(0, 0x1D))
        | draw(st.sampled_from(delivery_modes)) << 5
        | draw(u32) & 0xED000380  # both journaling bits and all reserved ones
        | destination_type << 10
        | admin_type << 13
        | response_type << 16
        | 0x00200000
        | (0 if connector_type is None else 0x00400000)
    )
    return UserHeader(
        source_queue_manager=draw(guids),
        queue_manager_address=NULL if destination_type == 7 else draw(guids),
        time_to_be_received=draw(u32),
        sent_time=draw(u32),
        message_id=draw(u32),
        flags=flags,
        destination_queue=draw(queue_names(destination_type)),
        admin_queue=draw(queue_names(admin_type)),
        response_queue=draw(queue_names(response_type)),
        connector_type=connector_type,
    )


@st.composite
def transaction_headers(draw: st.DrawFn) -> TransactionHeader:
    connector = draw(st.none() | guids)
    return TransactionHeader(
        flags=draw(u32) & ~1 | (connector is not None),
        tx_sequence_id=draw(u64),
        tx_sequence_number=draw(st.integers(1, 0xFFFFFFFF)),
        previous_tx_sequence_number=draw(st.integers(0, 0xFFFFFFFE)),
        connector_qm_guid=connector,
    )


provider_infos = st.builds(
    ProviderInfo,
    provider_type=u32,
    provider_name=texts(),
    extra=st.binary(max_size=5),
)


@st.composite
def security_headers(draw: st.DrawFn) -> SecurityHeader:
    sender_id_type = draw(st.integers(0, 2))
    security_id = draw((st.just(b""), st.binary(min_size=1, max_size=30), guids)[sender_id_type])
    key, signature, cert = draw(blobs), draw(blobs), draw(blobs)
    is_default = draw(st.booleans())
    info = None
    if not is_default and (signature or not (security_id or key or cert) or draw(st.booleans())):
        info = draw(provider_infos)
    elif not (security_id or key or signature or cert):
        cert = b"certificate"  # a header without any data is never sent
    flags = draw(u16) & 0xF0A0 | sender_id_type | (0x40 if is_default else 0)
    return SecurityHeader(flags, security_id, key, signature, cert, info)


@st.composite
def message_properties_headers(draw: st.DrawFn) -> MessagePropertiesHeader:
    body = draw(blobs)
    privacy_level, encryption_algorithm = draw(
        st.sampled_from([(0, 0x6801), (0, 0x6610), (1, 0x6602), (3, 0x6801), (5, 0x660E)])
    )
    return MessagePropertiesHeader(
        flags=draw(u8),
        message_class=draw(message_classes),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        body_type=draw(u32),
        application_tag=draw(u32),
        privacy_level=privacy_level,
        hash_algorithm=draw(u32),
        encryption_algorithm=encryption_algorithm,
        label=draw(texts(max_size=249)),
        extension_data=draw(blobs),
        message_body=body,
        allocation_body_size=draw(st.integers(len(body), 0x00400000)),
    )


@st.composite
def debug_headers(draw: st.DrawFn) -> DebugHeader:
    queue = draw(st.none() | guids)
    flags = draw(u16) & ~3 | (queue is not None)
    return DebugHeader(flags=flags, queue_identifier=queue, reserved=draw(u16))


soap_headers = st.builds(
    SoapHeader,
    header=st.none() | texts(),
    body=st.none() | texts(),
    reserved=u16,
    reserved1=u16,
)

format_name_elements = (
    st.builds(MQFFormatNameElement, st.sampled_from((1, 6)), guids)
    | st.builds(MQFFormatNameElement, st.just(2), private_queue_format_names)
    | st.builds(MQFFormatNameElement, st.just(3), texts())
)


def address_headers(header_id: int) -> st.SearchStrategy[MQFAddressHeader]:
    elements = st.lists(format_name_elements, max_size=6).map(tuple)
    return st.builds(
        MQFAddressHeader, header_id=st.just(header_id), format_name_list=elements, reserved=u16
    )


signature_headers = st.builds(MQFSignatureHeader, signature=blobs, reserved=u16)
multi_queue_format_headers = st.builds(
    MultiQueueFormatHeader,
    destination=address_headers(mqf.DESTINATION_ID),
    administration=address_headers(mqf.ADMINISTRATION_ID),
    response=address_headers(mqf.RESPONSE_ID),
    signature=signature_headers,
)


@st.composite
def user_messages(draw: st.DrawFn) -> UserMessage:
    """Whole packets, each header there or not, with the bits and PacketSize a decode would show."""
    transaction = draw(st.none() | transaction_headers())
    security = draw(st.none() | security_headers())
    debug = draw(st.none() | debug_headers())
    soap = draw(st.none() | soap_headers)
    multi_queue_format = draw(st.none() | multi_queue_format_headers)
    session = draw(st.none() | session_headers)
    extra = draw(st.just(b"") | blobs)
    user = draw(user_headers(delivery_modes=(0, 1) if transaction is None else (1,)))
    user.flags |= (
        (security is not None) << 19
        | (transaction is not None) << 20
        | (multi_queue_format is not None) << 23
        | (soap is not None) << 28
    )
    base_flags = draw(u16) & 0xFEC0 | (session is not None) << 4 | (debug is not None) << 5
    if transaction is None:
        base_flags |= draw(st.integers(0, 7))
    if debug is not None and draw(st.booleans()):
        base_flags |= 0x0100
    message = UserMessage(
        base=BaseHeader(base_flags, 0, draw(u32), draw(u8)),
        user=user,
        properties=draw(message_properties_headers()),
        transaction=transaction,
        security=security,
        debug=debug,
        soap=soap,
        multi_queue_format=multi_queue_format,
        session=session,
        extra=extra,
    )
    message.base.packet_size = len(message.encode()) - (0 if session is None else 16)
    return message


def mutated(data: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Valid bytes with a few of them changed, cut or repeated: what a broken peer sends."""
    return st.builds(_mutate, data, st.lists(st.tuples(u16, u8), max_size=4), st.integers(0, 8))


def _mutate(data: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(data)
    for index, value in changes:
        if changed:
            changed[index % len(changed)] = value
    return bytes(changed[: len(changed) - cut] if cut < 5 else changed + changed[:cut])
