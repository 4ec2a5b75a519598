"""Strategies for messages: everything that a packet can carry, and how it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hypothesis import strategies as st

from falconmq.message import (
    Acknowledge,
    CryptographicProvider,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    MessageId,
    MessageTransaction,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import (
    DistributionListFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from tests.strategies.names import direct_names
from tests.strategies.wire import texts, u32, u64

blobs = st.binary(max_size=24)
message_ids = st.builds(MessageId, st.binary(min_size=20, max_size=20))
sids = st.integers(0, 4).flatmap(
    lambda count: st.binary(min_size=6 + 4 * count, max_size=6 + 4 * count).map(
        lambda rest: bytes((1, count)) + rest
    )
)
providers = st.builds(CryptographicProvider, texts(max_size=12), u32)
transactions = st.builds(
    MessageTransaction,
    sequence_id=u64,
    sequence_number=st.integers(1, 0xFFFFFFFF),
    previous_sequence_number=st.integers(0, 0xFFFFFFFE),
    id=st.integers(0, 0xFFFFF),
    is_first=st.booleans(),
    is_last=st.booleans(),
    final_ack_required=st.booleans(),
    connector_queue_manager=st.none() | st.uuids(),
)

# few computers, so that names often share a host
_computers = st.sampled_from([UUID(int=number) for number in range(1, 5)])
private_names = st.builds(PrivateFormatName, _computers, u32)
public_names = st.builds(PublicFormatName, st.uuids())
writable_direct_names = direct_names.filter(
    lambda name: not name.is_read_only and name.subqueue is None
)
queue_names: st.SearchStrategy[SingleFormatName] = st.one_of(
    private_names, public_names, writable_direct_names
)
element_names: st.SearchStrategy[SingleFormatName] = queue_names | st.builds(
    DistributionListFormatName, st.uuids()
)
_name_lists = st.lists(element_names, max_size=3).map(tuple)


@dataclass(frozen=True)
class Sending:
    """What the queue manager adds when it sends a message."""

    source_queue_manager: UUID
    destination_queue_manager: UUID
    message_id: int
    sent_time: int


sendings = st.builds(Sending, _computers, _computers, u32, u32)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Messages that a packet carries whole: what would be left out or filled in is as it arrives.

    An administration queue only with acknowledgements, a report queue only with tracing, priority 0
    and recoverable in a transaction, a time to reach the queue.
    """
    acknowledgements = Acknowledge(draw(st.integers(0, 15)))
    trace = draw(st.booleans())
    destination = draw(queue_names)
    destinations = draw(_name_lists)
    if destinations:
        destinations = (*destinations, destination)
    privacy_level = draw(st.sampled_from(PrivacyLevel))
    is_aes = privacy_level is PrivacyLevel.ADVANCED
    ciphers = [c for c in EncryptionAlgorithm if c.name.startswith("AES") == is_aes]
    sender_id_type = draw(st.sampled_from(SenderIdType))
    transaction = draw(st.none() | transactions)
    message = Message(
        draw(blobs),
        body_type=draw(u32),
        label=draw(texts(max_size=249)),
        priority=draw(st.integers(0, 7)),
        delivery=draw(st.sampled_from(Delivery)),
        time_to_reach_queue=draw(u32),
        time_to_be_received=draw(u32),
        acknowledgements=acknowledgements,
        journal=Journal(draw(st.integers(0, 3))),
        administration_queue=draw(queue_names) if acknowledgements else None,
        response_queue=draw(st.none() | queue_names),
        correlation_id=draw(message_ids),
        application_tag=draw(u32),
        extension=draw(blobs),
        message_class=draw(st.sampled_from(MessageClass) | st.sampled_from([0x21, 0xE1F0])),
        destination=destination,
        destinations=destinations,
        administration_queues=draw(_name_lists),
        response_queues=draw(_name_lists),
        trace=trace,
        report_queue=draw(st.none() | st.uuids()) if trace else None,
        connector_type=draw(st.none() | st.uuids()),
        privacy_level=privacy_level,
        encryption_algorithm=draw(st.sampled_from(ciphers)),
        hash_algorithm=draw(st.sampled_from(HashAlgorithm)),
        sender_id=draw(_sender_ids(sender_id_type)),
        sender_id_type=sender_id_type,
        sender_certificate=draw(blobs),
        signature=draw(blobs),
        multiple_destination_signature=draw(blobs),
        symmetric_key=draw(blobs.filter(bool) if privacy_level else blobs),
        provider=draw(st.none() | providers),
        soap_header=draw(st.none() | texts(max_size=5)),
        soap_body=draw(st.none() | texts(max_size=5)),
    )
    message.hop_count = draw(st.integers(0, 0x1D))
    if transaction is not None:
        message.transaction = transaction
        message.priority, message.delivery = 0, Delivery.RECOVERABLE
    return message


def _sender_ids(sender_id_type: SenderIdType) -> st.SearchStrategy[bytes]:
    if sender_id_type is SenderIdType.SID:
        return sids
    size = 16 if sender_id_type is SenderIdType.QUEUE_MANAGER else 0
    return st.binary(min_size=size, max_size=size)
