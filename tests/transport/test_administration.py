"""Send Administration Acknowledgment, MQQB 3.1.7.15."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from falconmq.manager.creation import ORDER_QUEUE_NUMBER
from falconmq.manager.directory_objects import QueueManager
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.queues import open_queue
from falconmq.manager.states import AccessType, ShareMode
from falconmq.message import (
    INFINITE,
    Acknowledge,
    AuthenticationLevel,
    Delivery,
    Journal,
    MessageId,
    PrivacyLevel,
)
from falconmq.names import PublicFormatName, parse_format_name
from falconmq.transport.administration import INSECURE_NACKS, send_administration_acknowledgment
from falconmq.transport.settings import TransportSettings
from falconmq.wire.message_class import MessageClass
from falconmq.wire.queue_name import PRIVATE_ON_DESTINATION
from falconmq.wire.security_header import ENCRYPTED_BODY, SecurityHeader
from falconmq.wire.user_message import UserMessage
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    START_TIME,
    STRANGER,
    bodies,
    commit,
    given_queue,
    make_core,
    restart,
)
from tests.transport.answers import (
    FAR_QUEUE,
    OPEN_HANDED,
    PUBLIC_QUEUE,
    SETTINGS,
    THIRD,
    arrived,
    assert_silence,
    given_public_queue,
    only_message,
    only_packet,
    packets_in,
)

REACHED = MessageClass.ACK_REACH_QUEUE
READ = MessageClass.ACK_RECEIVE
TIMEOUT = MessageClass.NACK_REACH_QUEUE_TIMEOUT
BAD_QUEUE = MessageClass.NACK_BAD_DST_Q
SECURE_NACKS = [
    member for member in MessageClass if member.is_negative and member not in INSECURE_NACKS
]


# Where it goes


@pytest.mark.requirement("QB-3.1.7.15-22", "QB-3.1.7.15-43")
@pytest.mark.parametrize(
    ("queue_type", "destination", "administration_queue"),
    [
        pytest.param(
            2,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            rf"PRIVATE={STRANGER}\0000001f",
            marks=pytest.mark.requirement("QB-3.1.7.15-23"),
            id="private, on the source",
        ),
        pytest.param(
            3,
            rf"PRIVATE={THIRD}\00000021",  # a message on its way: its destination is elsewhere
            rf"PRIVATE={THIRD}\00000022",
            marks=pytest.mark.requirement("QB-3.1.7.15-24"),
            id="private, on the destination",
        ),
        pytest.param(
            6,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            rf"PRIVATE={THIRD}\00abcdef",
            marks=pytest.mark.requirement("QB-3.1.7.15-26"),
            id="private, elsewhere",
        ),
        pytest.param(
            7,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            r"DIRECT=OS:sales09\private$\acks",
            marks=pytest.mark.requirement("QB-3.1.7.15-27"),
            id="direct",
        ),
    ],
)
def test_an_acknowledgement_waits_in_the_outgoing_queue_to_the_administration_queue(
    queue_type: int, destination: str, administration_queue: str
) -> None:
    # given a message whose administration queue is on another computer
    core = make_core()
    packet = arrived(destination=destination, administration_queue=administration_queue).packet
    assert packet.user.admin_queue_type == queue_type
    # when it is acknowledged
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    # then the acknowledgement is on its way there, and nowhere else
    ack = only_message(core, administration_queue)
    assert str(ack.destination) == str(parse_format_name(administration_queue))
    assert len(core.outgoing) == 1


@pytest.mark.requirement("QB-3.1.7.15-22", "QB-3.1.7.15-43")
@pytest.mark.parametrize(
    ("queue_type", "destination", "administration_queue"),
    [
        pytest.param(
            2,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            rf"PRIVATE={IDENTIFIER}\%08x",
            marks=pytest.mark.requirement("QB-3.1.7.15-23"),
            id="private, on the source: a message of our own",
        ),
        pytest.param(
            3,
            rf"PRIVATE={IDENTIFIER}\00000021",
            rf"PRIVATE={IDENTIFIER}\%08x",
            marks=pytest.mark.requirement("QB-3.1.7.15-24"),
            id="private, on the destination",
        ),
        pytest.param(
            6,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            rf"PRIVATE={IDENTIFIER}\%08x",
            marks=pytest.mark.requirement("QB-3.1.7.15-26"),
            id="private, elsewhere, which is here",
        ),
        pytest.param(
            7,
            rf"DIRECT=OS:{COMPUTER}\private$\orders",
            rf"DIRECT=OS:{COMPUTER}\private$\acks",
            marks=pytest.mark.requirement("QB-3.1.7.15-27"),
            id="direct",
        ),
    ],
)
def test_an_administration_queue_of_this_computer_has_the_acknowledgement_at_once(
    queue_type: int, destination: str, administration_queue: str
) -> None:
    # given a message whose administration queue is here
    core = make_core()
    acks = given_queue(core, "acks")
    if "%" in administration_queue:
        administration_queue %= acks.private_queue_number
    packet = arrived(
        source=IDENTIFIER if queue_type == 2 else STRANGER,
        destination=destination,
        administration_queue=administration_queue,
    ).packet
    assert packet.user.admin_queue_type == queue_type
    # when it is acknowledged
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    # then the acknowledgement is in that queue, and no outgoing queue was needed
    assert only_message(core, acks).message_class == READ
    assert not core.outgoing
    # and nobody has the queue open any more
    assert not acks.descriptors


@pytest.mark.requirement("QB-3.1.7.15-25", "QB-3.1.7.15-22")
def test_a_public_administration_queue_of_ours_has_the_acknowledgement_at_once() -> None:
    # given a message whose administration queue is a public queue here
    core = make_core()
    acks = given_public_queue(core)
    packet = arrived(administration_queue=f"PUBLIC={PUBLIC_QUEUE}").packet
    assert packet.user.admin_queue_type == 5
    # when it is acknowledged
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    # then the acknowledgement is there, addressed to this queue manager
    ack = only_message(core, acks)
    assert ack.destination == PublicFormatName(PUBLIC_QUEUE)
    assert ack.destination_queue_manager == IDENTIFIER


def test_a_public_queue_of_ours_is_ours_even_if_the_directory_lost_it() -> None:
    core, _, _ = make_integrated_core()
    acks = given_public_queue(core)
    packet = arrived(administration_queue=f"PUBLIC={PUBLIC_QUEUE}").packet
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert only_message(core, acks).destination_queue_manager == IDENTIFIER


@pytest.mark.requirement("QB-3.1.7.15-25")
def test_a_public_administration_queue_elsewhere_is_found_in_the_directory() -> None:
    # given a directory that knows the queue, and the computer it is on
    core, directory, _ = make_integrated_core()
    directory.create("QueueManager", QueueManager(THIRD, computer_name="SALES09").row())
    row = queue_row(given_queue(core))
    row.update(identifier=PUBLIC_QUEUE, computer_name="SALES09", path_name=r"SALES09\acks")
    directory.create("Queue", row)
    packet = arrived(administration_queue=f"PUBLIC={PUBLIC_QUEUE}").packet
    # when the message is acknowledged
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    # then the acknowledgement waits for that computer's queue manager
    assert only_message(core, f"PUBLIC={PUBLIC_QUEUE}").destination_queue_manager == THIRD


@pytest.mark.requirement("QB-3.1.7.15-02", "QB-3.1.7.15-03")
def test_without_an_administration_queue_nobody_is_told() -> None:
    # given a message that asks for all acknowledgements, but says not where to (FRAME 7)
    core = make_core()
    packet = arrived(administration_queue=None).packet
    packet.properties.flags = 0x0F
    # when it is acknowledged
    assert not send_administration_acknowledgment(core, OPEN_HANDED, packet, READ)
    # then nothing happens
    assert_silence(core)


@pytest.mark.requirement("QB-3.1.7.15-42")
@pytest.mark.parametrize(
    "administration_queue",
    [
        pytest.param(f"PUBLIC={PUBLIC_QUEUE}", id="public, and no directory"),
        pytest.param(rf"PRIVATE={IDENTIFIER}\00000fff", id="private, not here"),
        pytest.param(rf"DIRECT=OS:{COMPUTER}\private$\missing", id="direct, not here"),
    ],
)
def test_an_acknowledgement_to_a_queue_that_cannot_be_opened_is_discarded(
    administration_queue: str,
) -> None:
    core = make_core()
    packet = arrived(administration_queue=administration_queue).packet
    assert not send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert_silence(core)


@pytest.mark.parametrize(
    "text", ["OS:host", "garbage", "TCP:10.0.0.9\\q;journal", "OS:sales09\\q;sub", ""]
)
def test_a_peer_that_names_no_queue_for_its_acknowledgements_gets_none(text: str) -> None:
    core = make_core()
    packet = arrived().packet
    packet.user.admin_queue = text
    assert not send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert_silence(core)


def test_a_private_administration_queue_on_nobodys_computer_gets_nothing() -> None:
    # given a direct destination, which names no queue manager, and a queue "on the destination"
    core = make_core()
    packet = arrived(
        destination=rf"PRIVATE={UUID(int=0)}\00000021",
        administration_queue=rf"PRIVATE={UUID(int=0)}\00000022",
    ).packet
    packet.user.flags = packet.user.flags & ~0xE000 | PRIVATE_ON_DESTINATION << 13
    packet.user.admin_queue = 0x22
    # when it is acknowledged, then no queue waits for a computer that is nowhere
    assert not send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert_silence(core)


def test_an_acknowledgement_that_has_no_room_is_discarded() -> None:
    core = make_core()
    acks = given_queue(core, "acks", quota_kilobytes=0)
    packet = arrived(administration_queue=rf"DIRECT=OS:{COMPUTER}\private$\acks").packet
    assert not send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert bodies(acks) == []
    assert not acks.descriptors


def test_a_transactional_queue_takes_no_acknowledgement() -> None:
    core = make_core()
    acks = given_queue(core, "acks", transactional=True)
    packet = arrived(administration_queue=rf"DIRECT=OS:{COMPUTER}\private$\acks").packet
    assert not send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert bodies(acks) == []


@pytest.mark.requirement("QB-3.1.7.15-41")
def test_who_reads_alone_from_the_administration_queue_does_not_keep_acknowledgements_out() -> None:
    # given an administration queue that an application reads, with nobody else allowed to
    core = make_core()
    acks = given_queue(core, "acks")
    name = rf"DIRECT=OS:{COMPUTER}\private$\acks"
    open_queue(core, parse_format_name(name), AccessType.RECEIVE, ShareMode.DENY_RECEIVE)
    packet = arrived(administration_queue=name).packet
    # when a message is acknowledged, then the queue is opened to send, and shared
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert len(packets_in(acks)) == 1


# Which ones are sent


@pytest.mark.requirement("QB-3.1.7.15-05", "QB-3.1.5.11-01")
@pytest.mark.parametrize(
    ("message_class", "number"),
    [
        pytest.param(member, number, marks=pytest.mark.requirement(row))
        for member, number, row in (
            (MessageClass.ACK_REACH_QUEUE, 0x0002, "QB-3.1.7.15-06"),
            (MessageClass.ACK_RECEIVE, 0x4000, "QB-3.1.7.15-07"),
            (MessageClass.NACK_BAD_DST_Q, 0x8000, "QB-3.1.7.15-08"),
            (MessageClass.NACK_DELETED, 0x8001, "QB-3.1.7.15-09"),
            (MessageClass.NACK_REACH_QUEUE_TIMEOUT, 0x8002, "QB-3.1.7.15-10"),
            (MessageClass.NACK_Q_EXCEED_QUOTA, 0x8003, "QB-3.1.7.15-11"),
            (MessageClass.NACK_ACCESS_DENIED, 0x8004, "QB-3.1.7.15-12"),
            (MessageClass.NACK_HOP_COUNT_EXCEEDED, 0x8005, "QB-A41-01"),
            (MessageClass.NACK_BAD_SIGNATURE, 0x8006, "QB-3.1.7.15-13"),
            (MessageClass.NACK_BAD_ENCRYPTION, 0x8007, "QB-3.1.7.15-14"),
            (MessageClass.NACK_NOT_TRANSACTIONAL_Q, 0x8009, "QB-3.1.7.15-15"),
            (MessageClass.NACK_NOT_TRANSACTIONAL_MSG, 0x800A, "QB-3.1.7.15-16"),
            (MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER, 0x800B, "QB-3.1.7.15-17"),
            (MessageClass.NACK_Q_DELETED, 0xC000, "QB-3.1.7.15-18"),
            (MessageClass.NACK_Q_PURGED, 0xC001, "QB-3.1.7.15-19"),
            (MessageClass.NACK_RECEIVE_TIMEOUT, 0xC002, "QB-3.1.7.15-20"),
            (MessageClass.NACK_RECEIVE_REJECTED, 0xC004, "QB-3.1.7.15-21"),
        )
    ],
)
def test_the_class_of_the_acknowledgement_says_what_became_of_the_message(
    message_class: MessageClass, number: int
) -> None:
    core = make_core()
    assert send_administration_acknowledgment(core, OPEN_HANDED, arrived().packet, message_class)
    assert only_packet(core, FAR_QUEUE).properties.message_class == number


@pytest.mark.requirement("QB-5.1-01")
@pytest.mark.requirement("QB-3.1.7.15-04", "QB-3.1.1.3-24", "QB-3.1.1.3-26")
@pytest.mark.parametrize("number", [0x8000, 0x8004, 0x8006, 0x8007, 0x800B])
def test_by_default_no_stranger_learns_what_is_there_and_what_is_allowed(number: int) -> None:
    # given a queue manager with its default settings
    core = make_core()
    # when a message is refused for a reason that tells of queues, rights or keys
    assert not send_administration_acknowledgment(
        core, TransportSettings(), arrived().packet, number
    )
    # then nothing is sent
    assert_silence(core)
    # but an administrator may allow it
    allowed = TransportSettings(send_insecure_nacks=True)
    assert send_administration_acknowledgment(core, allowed, arrived().packet, number)
    assert only_message(core, FAR_QUEUE).message_class == number


@pytest.mark.requirement("QB-3.1.7.15-04")
@pytest.mark.parametrize("message_class", [REACHED, READ, *SECURE_NACKS])
def test_all_other_acknowledgements_are_sent_by_default(message_class: MessageClass) -> None:
    core = make_core()
    assert send_administration_acknowledgment(core, SETTINGS, arrived().packet, message_class)


@pytest.mark.requirement("QB-3.1.7.15-34")
@pytest.mark.parametrize(
    "message_class", [member for member in MessageClass if member is not MessageClass.NORMAL]
)
def test_an_answer_is_never_answered(message_class: MessageClass) -> None:
    # given an acknowledgement of a careless peer, which asks to be acknowledged
    core = make_core()
    packet = arrived(message_class=message_class).packet
    # when it is to be acknowledged, then it is not: this would never end
    assert not send_administration_acknowledgment(core, OPEN_HANDED, packet, READ)
    assert_silence(core)


def test_a_class_of_the_applications_own_is_acknowledged_as_usual() -> None:
    core = make_core()
    packet = arrived(message_class=0x0123).packet
    assert send_administration_acknowledgment(core, SETTINGS, packet, READ)


@pytest.mark.requirement("QB-3.1.5.8.10-02")
@pytest.mark.parametrize(
    "destination",
    [
        rf"PRIVATE={IDENTIFIER}\{ORDER_QUEUE_NUMBER:08x}",
        rf"DIRECT=OS:{COMPUTER}\private$\order_queue$",
        rf"DIRECT=OS:{COMPUTER}\private$\notify_queue$",
    ],
)
def test_messages_to_the_queue_managers_own_queues_are_not_acknowledged(destination: str) -> None:
    core = make_core()
    packet = arrived(destination=destination).packet
    assert not send_administration_acknowledgment(core, SETTINGS, packet, REACHED)
    assert_silence(core)


# What it says


@pytest.mark.requirement("MQ-2.2.19.3-17")
@pytest.mark.requirement("QB-3.1.7.15-28")
def test_the_correlation_identifier_names_the_message() -> None:
    core = make_core()
    packet = arrived().packet
    send_administration_acknowledgment(core, SETTINGS, packet, READ)
    ack = only_message(core, FAR_QUEUE)
    assert ack.correlation_id == MessageId.of(STRANGER, packet.user.message_id)
    # and the acknowledgement has an identifier of its own
    assert ack.source_queue_manager == IDENTIFIER
    assert ack.sent_time == START_TIME


@pytest.mark.requirement("QB-3.1.7.15-29")
@pytest.mark.parametrize(
    "destination",
    [
        pytest.param(
            rf"PRIVATE={IDENTIFIER}\00000021",
            marks=pytest.mark.requirement("QB-3.1.7.15-30"),
            id="private, here",
        ),
        pytest.param(
            rf"PRIVATE={THIRD}\00000021",
            marks=pytest.mark.requirement("QB-3.1.7.15-30"),
            id="private, elsewhere",
        ),
        pytest.param(
            r"DIRECT=TCP:10.0.0.7\Private$\Orders",
            marks=pytest.mark.requirement("QB-3.1.7.15-32"),
            id="direct",
        ),
    ],
)
def test_the_response_queue_is_where_the_message_was_sent_to(destination: str) -> None:
    core = make_core()
    packet = arrived(destination=destination).packet
    send_administration_acknowledgment(core, SETTINGS, packet, READ)
    ack = only_message(core, FAR_QUEUE)
    assert str(ack.response_queue) == str(parse_format_name(destination))


@pytest.mark.requirement("QB-3.1.7.15-29", "QB-3.1.7.15-31")
def test_the_response_queue_may_be_a_public_one() -> None:
    core = make_core()
    packet = to_public_queue(arrived().packet)
    send_administration_acknowledgment(core, SETTINGS, packet, READ)
    assert only_message(core, FAR_QUEUE).response_queue == PublicFormatName(PUBLIC_QUEUE)


def test_a_destination_that_cannot_be_answered_to_is_left_out() -> None:
    core = make_core()
    packet = arrived().packet
    packet.user.destination_queue = rf"OS:{COMPUTER}\private$\orders;sub"
    assert send_administration_acknowledgment(core, SETTINGS, packet, TIMEOUT)
    assert only_message(core, FAR_QUEUE).response_queue is None


@pytest.mark.requirement("QB-1.3.5.2-02")
@pytest.mark.requirement("QB-3.1.7.15-33", "QB-3.1.7.2.1-01")
@pytest.mark.parametrize("recoverable", [True, False])
def test_the_acknowledgement_is_as_durable_as_the_message(recoverable: bool) -> None:
    # given a message, recoverable or express
    core = make_core()
    packet = arrived(recoverable=recoverable).packet
    # when it is acknowledged
    send_administration_acknowledgment(core, SETTINGS, packet, READ)
    expected = Delivery.RECOVERABLE if recoverable else Delivery.EXPRESS
    assert only_message(core, FAR_QUEUE).delivery is expected
    # then the acknowledgement outlives a restart, or not, as the message would
    commit(core)
    again = restart(core)
    waiting = [packet for queue in again.outgoing.values() for packet in packets_in(queue)]
    assert len(waiting) == recoverable


@pytest.mark.requirement(
    "QB-3.1.7.15-34", "QB-3.1.7.15-35", "QB-3.1.7.15-36", "QB-3.1.7.15-37", "QB-3.1.7.15-38"
)
def test_nothing_is_asked_for_in_an_acknowledgement() -> None:
    # given a message that asks for everything there is
    core = make_core()
    packet = arrived(
        ttrq=60,
        ttbr=90,
        journal=Journal.DEAD_LETTER | Journal.JOURNAL,
        label="secret",
        extension=b"more",
        priority=7,
        trace=True,
        report_queue=THIRD,
        sender_id=bytes.fromhex("010100000000000512000000"),
        privacy_level=PrivacyLevel.ENHANCED,
        symmetric_key=b"key",
    ).packet
    # when it is acknowledged
    send_administration_acknowledgment(core, SETTINGS, packet, TIMEOUT)
    # then the acknowledgement asks for nothing, and may take its time
    ack, sent = only_message(core, FAR_QUEUE), only_packet(core, FAR_QUEUE)
    assert ack.acknowledgements == Acknowledge.NONE
    assert sent.user.admin_queue_type == 0
    assert (ack.time_to_reach_queue, ack.time_to_be_received) == (INFINITE, INFINITE)
    assert ack.journal == Journal.NONE
    assert ack.privacy_level == PrivacyLevel.NONE
    assert ack.authentication_level == AuthenticationLevel.NONE
    assert (sent.security, sent.debug, sent.transaction) == (None, None, None)
    assert (ack.label, ack.extension, ack.trace) == ("", b"", False)


@pytest.mark.requirement("QB-3.1.7.15-39", "QB-3.1.7.15-40")
@pytest.mark.parametrize("message_class", SECURE_NACKS)
def test_a_nack_returns_the_body(message_class: MessageClass) -> None:
    core = make_core()
    send_administration_acknowledgment(core, SETTINGS, arrived(b"order 7").packet, message_class)
    assert only_message(core, FAR_QUEUE).body == b"order 7"


@pytest.mark.requirement("QB-3.1.7.15-39", "QB-3.1.7.15-40", "QB-A41-01")
@pytest.mark.parametrize("message_class", [REACHED, READ])
def test_a_positive_acknowledgement_returns_no_body(message_class: MessageClass) -> None:
    core = make_core()
    send_administration_acknowledgment(core, SETTINGS, arrived(b"order 7").packet, message_class)
    assert only_message(core, FAR_QUEUE).body == b""


@pytest.mark.requirement("QB-3.1.7.15-39")
def test_a_body_that_was_meant_to_be_private_is_not_returned() -> None:
    core = make_core()
    packet = arrived(b"order 7").packet
    packet.properties.privacy_level = PrivacyLevel.ENHANCED
    assert send_administration_acknowledgment(core, SETTINGS, packet, TIMEOUT)
    assert only_message(core, FAR_QUEUE).body == b""


@pytest.mark.requirement("QB-3.1.7.15-40")
@pytest.mark.parametrize(("flags", "body"), [(ENCRYPTED_BODY, b""), (0, b"order 7")])
def test_an_encrypted_body_is_not_returned(flags: int, body: bytes) -> None:
    core = make_core()
    packet = replace(arrived(b"order 7").packet, security=SecurityHeader(flags))
    assert send_administration_acknowledgment(core, SETTINGS, packet, TIMEOUT)
    assert only_message(core, FAR_QUEUE).body == body


def test_the_largest_body_there_is_can_be_returned() -> None:
    core = make_core()
    body = bytes(0x00400000 - 1024)
    assert send_administration_acknowledgment(core, SETTINGS, arrived(body).packet, TIMEOUT)
    assert len(only_message(core, FAR_QUEUE).body) == len(body)


def to_public_queue(packet: UserMessage) -> UserMessage:
    """The same message, sent to the public queue of this computer."""
    user = packet.user
    flags = user.flags & ~0x1C00 | 5 << 10
    changes: dict[str, Any] = {
        "destination_queue": PUBLIC_QUEUE.bytes_le,
        "queue_manager_address": IDENTIFIER.bytes_le,
    }
    return replace(packet, user=replace(user, flags=flags, **changes))
