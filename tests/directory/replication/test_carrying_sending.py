"""How replication messages go out: properties, signature, destination (scenario 52, guide 5)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.replication.carrying_sending import OPEN_MAX
from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.replication_queue import (
    REPLICATION_QUEUE_NUMBER,
    machine_of,
    replication_queue_of,
)
from falconmq.message import Acknowledge, Delivery, Journal, PrivacyLevel
from falconmq.names import parse_format_name
from falconmq.security.keys import public_keys
from falconmq.security.manager_signatures import signing_manager, verify_manager
from falconmq.security.signature_input import SignatureVersion
from falconmq.serialization import from_user_message
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import HASH_MD5
from falconmq.wire.replication_messages import ReplicationMessage
from falconmq.wire.security_header import SENDER_ID_QUEUE_MANAGER, SENDER_ID_TYPE
from falconmq.wire.user_message import UserMessage
from tests.directory.replication.carried import Server, make_server, purged, two_servers
from tests.transport.estate import Estate
from tests.transport.protected import PUBLIC
from tests.wire.test_replication_messages import (
    BSC_ACK,
    PROPAGATION,
    PSC_ACK,
    PURGED_MESSAGE,
    REPLY,
    REQUEST,
    SYNC_REPLY,
    SYNC_REQUEST,
)

# what the engine says, message, seconds, priority, whether nacks are wanted: guide 5
TABLE: list[tuple[Profile, ReplicationMessage, int, int, bool]] = [
    (Profile.QUIET, PROPAGATION, 1200, 3, False),
    (Profile.URGENT, REQUEST, 10, 7, True),
    (Profile.WATCHED, SYNC_REQUEST, 1200, 3, True),
    (Profile.QUIET, SYNC_REPLY, 1200, 3, False),
    (Profile.URGENT, REPLY, 10, 7, True),
    (Profile.QUIET, PURGED_MESSAGE, 1200, 3, False),
    (Profile.WATCHED, PSC_ACK, 1200, 3, True),
    (Profile.WATCHED, BSC_ACK, 1200, 3, True),
]
IDS = [type(message).__name__ for _, message, *_ in TABLE]


def sent_packet(
    server: Server, message: ReplicationMessage, profile: Profile = Profile.WATCHED
) -> UserMessage:
    server.send("PSC1", message, profile)
    (stored,) = server.waiting("PSC1")
    return stored.packet


@pytest.mark.requirement(
    "RP-3.1.7.2.1-03",
    "RP-3.1.7.2.1-04",
    "RP-3.1.7.2.1-06",
    "RP-3.1.7.2.1-08",
    "RP-3.1.7.2.1-09",
    "RP-3.1.7.2.1-10",
    "RP-1.9-02",
)
@pytest.mark.parametrize(
    ("profile", "message", "seconds", "priority", "wants_nacks"), TABLE, ids=IDS
)
def test_each_kind_of_message_has_its_profile(
    profile: Profile, message: ReplicationMessage, seconds: int, priority: int, wants_nacks: bool
) -> None:
    server = make_server(Estate(), "PEC0", 1)
    sent = from_user_message(sent_packet(server, message, profile))
    own = parse_format_name(rf"PRIVATE={server.node.identifier}\{REPLICATION_QUEUE_NUMBER}")
    assert sent.time_to_reach_queue == seconds
    assert sent.time_to_be_received == seconds
    assert sent.priority == priority
    assert sent.acknowledgements == (Acknowledge.NEGATIVE_ARRIVAL if wants_nacks else 0)
    assert sent.administration_queue == (own if wants_nacks else None)
    assert sent.response_queue == (own if wants_nacks else None)
    assert bytes(sent.body) == message.encode()


@pytest.mark.requirement(
    "RP-3.1.7.2.1-02",
    "RP-3.1.7.2.1-05",
    "RP-3.1.7.2.1-13",
    "RP-3.1.7.2.1-14",
    "RP-1.9-01",
    "RP-1.9-03",
)
def test_a_replication_message_is_an_express_message_and_otherwise_plain() -> None:
    packet = sent_packet(make_server(Estate(), "PEC0", 1), purged())
    sent = from_user_message(packet)
    assert sent.message_class == MessageClass.NORMAL
    assert sent.delivery is Delivery.EXPRESS
    assert packet.transaction is None
    assert sent.destination == parse_format_name(r"DIRECT=OS:PSC1\private$\mqis_queue$")
    assert (sent.label, sent.journal, sent.application_tag, bytes(sent.extension)) == (
        "",
        Journal.NONE,
        0,
        b"",
    )
    assert sent.privacy_level == PrivacyLevel.NONE
    assert not sent.correlation_id


@pytest.mark.requirement("RP-5.1-01")
@pytest.mark.requirement("RP-3.1.7.2.1-11", "RP-3.1.7.2.1-12")
def test_the_queue_manager_signs_as_msmq_1_0_did() -> None:
    server = make_server(Estate(), "PEC0", 1)
    packet = sent_packet(server, REQUEST)
    assert packet.security is not None
    assert packet.security.flags & SENDER_ID_TYPE == SENDER_ID_QUEUE_MANAGER
    assert signing_manager(packet) == server.node.identifier
    assert packet.properties.hash_algorithm == HASH_MD5
    fits = verify_manager(packet, public_keys(PUBLIC), allow_weak=True)
    assert fits is SignatureVersion.MSMQ_1_0


@pytest.mark.requirement("RP-3.1.7.2.1-15", "RP-3.1.7.2.1-16", "RP-3.1.7.2.1-17")
def test_the_queue_to_a_server_is_opened_once_whatever_the_case_of_its_name() -> None:
    server = make_server(Estate(), "PEC0", 1)
    for machine in ("PSC1", "psc1", "PSC1"):
        server.send(machine, purged())
    assert len(server.waiting("PSC1")) == 3
    (queue,) = server.node.core.outgoing.values()
    assert len(queue.descriptors) == 1
    # and closed when the server stops; what waits is sent all the same
    server.node.run(server.carrier.stop)
    assert queue.descriptors == []
    assert len(server.waiting("PSC1")) == 3


def test_queues_are_kept_open_to_so_many_servers_and_no_more() -> None:
    server = make_server(Estate(), "PEC0", 1)
    for number in range(OPEN_MAX + 2):
        server.send(f"S{number}", purged())
    outgoing = server.node.core.outgoing.values()
    assert [len(queue.descriptors) for queue in outgoing] == [0, 0] + [1] * OPEN_MAX


def test_what_cannot_be_sent_is_counted_and_the_rest_goes_out() -> None:
    server = make_server(Estate(), "PEC0", 1)
    sends = [Send("no such\\name", purged(), Profile.QUIET), Send("PSC1", purged(), Profile.QUIET)]
    server.node.run(server.carrier.ask, lambda: sends)
    assert server.carrier.counters["not sent"] == 1
    assert len(server.waiting("PSC1")) == 1


@pytest.mark.requirement("RP-2.1-01")
def test_a_message_travels_to_the_other_server_and_says_who_signed_it() -> None:
    estate, one, two = two_servers()
    for profile, message, *_ in TABLE:
        one.send("PSC1", message, profile)
    estate.advance(1)
    sender: UUID = one.node.identifier
    # in the order of their priorities
    writes = [(REQUEST, sender), (REPLY, sender)]
    others = [(message, sender) for _, message, _, priority, _ in TABLE if priority == 3]
    assert two.engine.received == writes + others
    assert two.drops == {}


def test_only_direct_names_of_replication_queues_name_a_machine() -> None:
    assert machine_of(replication_queue_of("PSC1")) == "PSC1"
    for text in (
        r"DIRECT=OS:PSC1\private$\orders",
        r"DIRECT=OS:PSC1\mqis_queue$",
        r"DIRECT=TCP:10.0.0.1\private$\mqis_queue$",
        r"DIRECT=OS:PSC1\private$\mqis_queue$;sub",
        r"PRIVATE=00000000-0000-4000-8000-000000002222\1",
    ):
        name = parse_format_name(text)
        assert machine_of(name) is None  # type: ignore[arg-type]  # none of several
    assert machine_of(None) is None
