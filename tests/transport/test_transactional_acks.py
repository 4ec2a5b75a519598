"""Send Transactional Acknowledgment, MQQB 3.1.7.17, and the packets of 2.2.4 and 2.2.5."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import ORDER_QUEUE_NUMBER
from falconmq.manager.registry import unregister
from falconmq.message import INFINITE, Journal
from falconmq.transport.transactional_acks import send_final_ack, send_order_ack
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import (
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    from_user_message,
)
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.manager.helpers import IDENTIFIER, START_TIME, STRANGER, commit, make_core, restart
from tests.transport.answers import arrived, assert_silence, only_packet, packets_in

SEQUENCE = 0x0000_0002_0000_0007
SOURCE = STRANGER.bytes_le
ORDER_QUEUE = rf"PRIVATE={STRANGER}\00000004"
READ = MessageClass.ACK_RECEIVE


def transactional(source: bytes = SOURCE) -> UserMessage:
    """The 9th message of a sequence; the 8th was given up by its sender."""
    packet = arrived(transactional=True, journal=Journal.JOURNAL).packet
    user = replace(packet.user, source_queue_manager=source)
    return replace(packet, user=user, transaction=TransactionHeader(0, SEQUENCE, 9, 7))


def acknowledge(
    core: QueueManagerCore, kind: str, reply_address: str = "", source: bytes = SOURCE
) -> bool:
    """Send the acknowledgement that is called for, an OrderAck or a FinalAck."""
    if kind == "final":
        return send_final_ack(core, transactional(source), READ, reply_address=reply_address)
    return send_order_ack(
        core,
        source=source,
        reply_address=reply_address,
        tx_sequence_id=SEQUENCE,
        tx_sequence_number=9,
    )


both_kinds = pytest.mark.parametrize("kind", ["order", "final"])


# Where they go


@pytest.mark.requirement("MQ-2.2.18.1.6-21")
@pytest.mark.requirement("QB-3.1.7.17-37", "QB-A57-01", "QB-3.1.7.17-40")
@pytest.mark.requirement("QB-2.2.4-06", "QB-2.2.4-07", "QB-2.2.5-07", "QB-2.2.5-08")
@both_kinds
def test_the_first_sender_of_a_routed_message_is_told_at_its_order_queue(kind: str) -> None:
    # given a message that came by a private or public name, perhaps from a router
    core = make_core()
    # when it is acknowledged
    assert acknowledge(core, kind)
    # then the acknowledgement waits for the queue manager that sent the message first
    user = only_packet(core, ORDER_QUEUE).user
    assert (user.destination_queue_type, user.destination_queue) == (3, 4)
    assert user.queue_manager_address == SOURCE
    assert len(core.outgoing) == 1


@pytest.mark.requirement("QB-3.1.7.17-35", "QB-3.1.7.17-40")
@pytest.mark.requirement("QB-2.2.4-06", "QB-2.2.4-08", "QB-2.2.4-09")
@pytest.mark.requirement("QB-2.2.5-07", "QB-2.2.5-09", "QB-2.2.5-10")
@both_kinds
@pytest.mark.parametrize("address", ["10.0.0.9", "2001:db8::9"])
def test_the_sender_of_a_direct_message_is_told_at_the_address_it_came_from(
    kind: str, address: str
) -> None:
    core = make_core()
    assert acknowledge(core, kind, address)
    user = only_packet(core, rf"DIRECT=TCP:{address}\PRIVATE$\order_queue$").user
    assert user.destination_queue_type == 7
    assert user.destination_queue == rf"TCP:{address}\PRIVATE$\order_queue$"
    assert user.queue_manager_address == NULL_GUID
    assert len(core.outgoing) == 1


@pytest.mark.requirement("QB-3.1.7.17-36")
@both_kinds
def test_the_order_queue_at_an_spx_address_has_an_spx_name(kind: str) -> None:
    core = make_core()
    assert acknowledge(core, kind, "00000001.0123456789AB")
    user = only_packet(core, r"DIRECT=SPX:00000001.0123456789AB\PRIVATE$\order_queue$").user
    assert user.destination_queue == r"SPX:00000001.0123456789AB\PRIVATE$\order_queue$"


@both_kinds
@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="another queue manager on this computer"),
        pytest.param("10.0.0.1", id="the same, by our own address"),
        pytest.param("fe80::1%eth0", id="an address that means something here only"),
    ],
)
def test_a_sender_whose_address_cannot_be_named_is_told_by_its_guid(
    kind: str, address: str
) -> None:
    # given a queue manager at 10.0.0.1 and a peer at an address that would not lead to the peer
    core = make_core(local_names=frozenset({"10.0.0.1", "127.0.0.1"}))
    # when a message of the peer's is acknowledged
    assert acknowledge(core, kind, address)
    # then the acknowledgement is not in our own order queue, but waits for the peer
    assert len(packets_in(core.private_numbers[ORDER_QUEUE_NUMBER])) == 0
    assert only_packet(core, ORDER_QUEUE).user.queue_manager_address == SOURCE


@pytest.mark.requirement("QB-3.1.7.17-39")
@both_kinds
def test_an_acknowledgement_is_discarded_if_the_order_queue_cannot_be_opened(kind: str) -> None:
    # given a queue manager that lost its order queue, and a message it sent itself
    core = make_core()
    unregister(core, core.private_numbers[ORDER_QUEUE_NUMBER])
    # when the message is acknowledged, then nothing happens
    assert not acknowledge(core, kind, source=IDENTIFIER.bytes_le)
    assert_silence(core)


@both_kinds
def test_our_own_order_queue_can_be_told_though_no_application_may(kind: str) -> None:
    core = make_core()
    assert acknowledge(core, kind, source=IDENTIFIER.bytes_le)
    assert len(packets_in(core.private_numbers[ORDER_QUEUE_NUMBER])) == 1
    assert not core.outgoing


def test_no_acknowledgement_has_the_number_that_means_none() -> None:
    # given a queue manager that has counted 2^32 - 1 messages
    core = make_core()
    core.message_id.value = 0xFFFFFFFE
    # when it sends two more
    for _ in range(2):
        acknowledge(core, "order")
    # then 0 is left out
    (queue,) = core.outgoing.values()
    assert [packet.user.message_id for packet in packets_in(queue)] == [0xFFFFFFFF, 1]


@both_kinds
def test_a_message_of_nobody_is_not_acknowledged(kind: str) -> None:
    core = make_core()
    assert not acknowledge(core, kind, source=NULL_GUID)
    assert_silence(core)


# What they say


@pytest.mark.requirement(
    "QB-3.1.7.17-20",
    "QB-3.1.7.17-21",
    "QB-3.1.7.17-23",
    "QB-3.1.7.17-24",
    "QB-3.1.7.17-25",
    "QB-3.1.7.17-26",
    "QB-3.1.7.17-27",
    *(f"QB-2.2.4-{row}" for row in ("03", "04", "05", "10", "11", "12", "14")),
    *(f"QB-2.2.5-{row}" for row in ("03", "04", "06", "11", "12", "13", "16")),
)
@both_kinds
@pytest.mark.parametrize(("address", "queue_type"), [("", 3), ("10.0.0.9", 7)])
def test_an_acknowledgement_asks_for_nothing(kind: str, address: str, queue_type: int) -> None:
    # given the acknowledgement of a message that asks for acknowledgements and journals
    core = make_core()
    acknowledge(core, kind, address)
    # when the packet is decoded from the bytes that wait to be sent
    name = ORDER_QUEUE if not address else r"DIRECT=TCP:10.0.0.9\PRIVATE$\order_queue$"
    packet = only_packet(core, name)
    # then it has the label, the size and the flags that mark an acknowledgement, and no others
    delivery_mode = 1 if kind == "final" else 0
    assert packet.base.flags == 0
    assert packet.user.flags == 0x00200000 | delivery_mode << 5 | queue_type << 10
    assert (packet.user.admin_queue, packet.user.response_queue) == (None, None)
    properties = packet.properties
    assert (properties.flags, properties.label) == (0, "QM Ordering Ack")
    assert (properties.body_type, properties.privacy_level) == (0, 0)
    assert len(properties.message_body) == 36
    assert (packet.security, packet.transaction, packet.debug) == (None, None, None)
    # and it is ours, of now, and may take its time
    assert packet.user.source_queue_manager == IDENTIFIER.bytes_le
    assert packet.user.sent_time == START_TIME
    assert packet.user.message_id != 0
    assert (packet.base.time_to_reach_queue, packet.user.time_to_be_received) == (INFINITE,) * 2


@pytest.mark.requirement("QB-3.1.7.17-22", "QB-A35-01", "QB-2.2.5-05")
@both_kinds
def test_a_final_ack_outlives_a_restart_and_an_order_ack_does_not(kind: str) -> None:
    # given an acknowledgement that waits to be sent
    core = make_core()
    acknowledge(core, kind)
    commit(core)
    # when the power fails
    again = restart(core)
    # then the FinalAck is still there; of OrderAcks the next one says more
    waiting = [packet for queue in again.outgoing.values() for packet in packets_in(queue)]
    assert len(waiting) == (1 if kind == "final" else 0)


@pytest.mark.requirement(
    "QB-3.1.7.17-02",
    "QB-3.1.7.17-03",
    "QB-3.1.7.17-28",
    "QB-3.1.7.17-29",
    "QB-3.1.7.17-30",
    "QB-2.2.4-13",
    "QB-2.2.4-15",
)
def test_an_order_ack_says_how_far_the_sequence_came() -> None:
    core = make_core()
    acknowledge(core, "order")
    packet = only_packet(core, ORDER_QUEUE)
    assert packet.properties.message_class == 0x00FF
    assert from_user_message(packet) == OrderAck(OrderAckBody(SEQUENCE, 9, 8))


def test_before_the_first_message_there_is_nothing_to_acknowledge() -> None:
    core = make_core()
    sent = send_order_ack(
        core, source=SOURCE, reply_address="", tx_sequence_id=0, tx_sequence_number=0
    )
    assert not sent
    assert_silence(core)


@pytest.mark.requirement("QB-3.1.7.17-33", "QB-3.1.7.17-34", "QB-2.2.5-17", "QB-2.2.5-14")
def test_a_final_ack_names_the_message() -> None:
    core = make_core()
    message = transactional()
    assert send_final_ack(core, message, READ, reply_address="")
    body = FinalAckBody(SEQUENCE, 9, 7, SOURCE, message.user.message_id)
    packet = only_packet(core, ORDER_QUEUE)
    assert packet.properties.message_class == 0x4000
    assert from_user_message(packet) == FinalAck(body, READ)


@pytest.mark.requirement("QB-3.1.7.17-02", "QB-A35-01")
@pytest.mark.parametrize(
    ("message_class", "number"),
    [
        pytest.param(member, number, marks=pytest.mark.requirement(row))
        for member, number, row in (
            (MessageClass.ACK_RECEIVE, 0x4000, "QB-3.1.7.17-04"),
            (MessageClass.NACK_BAD_DST_Q, 0x8000, "QB-3.1.7.17-05"),
            (MessageClass.NACK_DELETED, 0x8001, "QB-3.1.7.17-06"),
            (MessageClass.NACK_REACH_QUEUE_TIMEOUT, 0x8002, "QB-3.1.7.17-07"),
            (MessageClass.NACK_Q_EXCEED_QUOTA, 0x8003, "QB-3.1.7.17-08"),
            (MessageClass.NACK_ACCESS_DENIED, 0x8004, "QB-3.1.7.17-09"),
            (MessageClass.NACK_HOP_COUNT_EXCEEDED, 0x8005, "QB-3.1.7.17-10"),
            (MessageClass.NACK_BAD_SIGNATURE, 0x8006, "QB-3.1.7.17-11"),
            (MessageClass.NACK_BAD_ENCRYPTION, 0x8007, "QB-3.1.7.17-12"),
            (MessageClass.NACK_NOT_TRANSACTIONAL_Q, 0x8009, "QB-3.1.7.17-13"),
            (MessageClass.NACK_NOT_TRANSACTIONAL_MSG, 0x800A, "QB-3.1.7.17-14"),
            (MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER, 0x800B, "QB-3.1.7.17-15"),
            (MessageClass.NACK_Q_DELETED, 0xC000, "QB-3.1.7.17-16"),
            (MessageClass.NACK_Q_PURGED, 0xC001, "QB-3.1.7.17-17"),
            (MessageClass.NACK_RECEIVE_TIMEOUT, 0xC002, "QB-3.1.7.17-18"),
            (MessageClass.NACK_RECEIVE_REJECTED, 0xC004, "QB-3.1.7.17-19"),
        )
    ],
)
def test_the_class_of_a_final_ack_says_how_the_message_ended(
    message_class: MessageClass, number: int
) -> None:
    core = make_core()
    assert send_final_ack(core, transactional(), message_class, reply_address="")
    packet = only_packet(core, ORDER_QUEUE)
    assert packet.properties.message_class == number
    assert isinstance(from_user_message(packet), FinalAck)


@pytest.mark.requirement("QB-A40-01")
def test_only_transactional_messages_get_a_final_ack() -> None:
    core = make_core()
    packet = arrived(journal=Journal.JOURNAL | Journal.DEAD_LETTER).packet
    assert not send_final_ack(core, packet, READ, reply_address="")
    assert_silence(core)
