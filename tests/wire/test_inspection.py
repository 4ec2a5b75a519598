"""A packet under the glass: tree, summary, findings, fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.cli.examples import Example, examples, session_frames
from falconmq.wire.inspection import Inspection, Kind, inspect, lines, system_queue
from falconmq.wire.queue_name import PrivateQueueFormatName
from falconmq.wire.tracing import Node

EXAMPLES = {example.name: example for example in examples()}
FRAMES = session_frames()


def leaves(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.children:
            yield from leaves(child)
        elif not child.is_structure:
            yield child


def names(node: Node) -> set[str]:
    found = {node.name}
    for child in node.children:
        found |= names(child)
    return found


def run(name: str) -> Inspection:
    return inspect(EXAMPLES[name].message.encode())


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_leaves_of_a_tree_cover_every_byte_once(example: Example) -> None:
    data = example.message.encode()
    inspection = inspect(data)
    assert inspection.error is None
    position = 0
    for leaf in leaves(inspection.tree):
        if leaf.size:
            assert leaf.offset == position, leaf
            position += leaf.size
    assert position == len(data)


@pytest.mark.parametrize(
    ("name", "kind", "structure"),
    [
        ("order ack", "OrderAck", "OrderAckBody"),
        ("final ack", "FinalAck", "FinalAckBody"),
        ("change notification v1", "UserMessage", "NotificationUpdate"),
        ("change notification v2", "UserMessage", "NotificationBody"),
        ("directory replication", "UserMessage", "DirectoryChange"),
        ("express", "UserMessage", "MessagePropertiesHeader"),
    ],
)
def test_bodies_between_queue_managers_are_decoded_inside_the_tree(
    name: str, kind: str, structure: str
) -> None:
    inspection = run(name)
    assert inspection.name == kind
    assert structure in names(inspection.tree)


def test_a_broken_body_is_an_error_at_its_place_in_the_packet() -> None:
    message = EXAMPLES["change notification v2"].message
    body = bytes(message.properties.message_body)
    data = message.encode().replace(body, b"\x07" + body[1:])
    inspection = inspect(data)
    assert inspection.value is not None
    assert inspection.error is not None
    assert inspection.error.field == "Version"
    assert inspection.error.offset == data.index(b"\x07" + body[1:10])


def test_an_encrypted_body_is_left_alone() -> None:
    message = EXAMPLES["change notification v2"].message
    secured = EXAMPLES["with security header"].message.security
    assert secured is not None
    secured.flags |= 0x20
    message.security = secured
    inspection = inspect(message.encode())
    message.security = None
    assert inspection.error is None
    assert "NotificationBody" not in names(inspection.tree)


def test_a_packet_cut_short_shows_what_there_is_of_it() -> None:
    inspection = inspect(FRAMES[6].data[:1650])
    assert inspection.error is not None
    assert inspection.error.offset == 222
    assert "needs 2000 bytes, 1428 are left" in str(inspection.error)
    assert "Label" in names(inspection.tree)


def test_fixed_fields_before_the_cut_are_shown() -> None:
    inspection = inspect(FRAMES[6].data[:57])
    found = [leaf.name for leaf in leaves(inspection.tree)]
    assert found[-2:] == ["TimeToBeReceived", "SentTime"]  # MessageID is cut in two
    assert [leaf.value for leaf in leaves(inspection.tree)][-1] == 0x524F494C


@given(cut=st.integers(0, 400), name=st.sampled_from(sorted(EXAMPLES)))
def test_every_cut_gives_an_error_and_a_tree_within_the_bytes(cut: int, name: str) -> None:
    data = EXAMPLES[name].message.encode()
    data = data[: min(cut, len(data) - 1)]
    inspection = inspect(data)
    assert inspection.error is not None
    for line in lines(inspection.tree, data):
        assert line.node.offset + line.node.size <= len(data)


@given(data=st.binary(max_size=200), kind=st.sampled_from(list(Kind)))
def test_any_bytes_can_be_inspected(data: bytes, kind: Kind) -> None:
    inspection = inspect(data, kind)
    assert (inspection.error is None) == (inspection.value is not None)
    list(lines(inspection.tree, data))


@given(place=st.integers(0, 500), byte=st.integers(0, 255), name=st.sampled_from(sorted(EXAMPLES)))
def test_a_damaged_packet_can_be_inspected(place: int, byte: int, name: str) -> None:
    data = bytearray(EXAMPLES[name].message.encode())
    data[place % len(data)] = byte
    inspection = inspect(data)
    assert inspection.summary.isprintable()
    for line in lines(inspection.tree, data):
        assert (line.annotation.value + line.annotation.meaning).isprintable()


def test_bytes_behind_a_structure_are_shown() -> None:
    inspection = inspect(FRAMES[0].data + b"more", Kind.PING)
    assert inspection.tree.children[-1].name == "(not read)"
    assert list(lines(inspection.tree, FRAMES[0].data + b"more"))[-1].node.size == 4


def test_foreign_bytes_are_not_given_the_name_of_a_packet() -> None:
    assert inspect(b"GET / HTTP/1.1\r\nHost: x\r\n").name == "no MSMQ packet"


@pytest.mark.parametrize(
    ("number", "is_response", "summary"),
    [
        (0, False, "request 4 from 557358D1-9150-9595-4997-B6E611EA26C6"),
        (1, True, "answer 4 from 43CD8907-394C-8F11-4445-9078909EA0FC"),
        (
            2,
            False,
            "557358D1-9150-9595-4997-B6E611EA26C6 calls 43CD8907-394C-8F11-4445-9078909EA0FC",
        ),
        (
            3,
            True,
            "3C3A6AEB-F567-4143-87D3-85CF4D68CEB4 accepts 1F742305-BE5E-4177-BC77-C4DD7719E474",
        ),
        (4, False, "window 64, acks 1.496 s / 120 s"),
        (6, False, '"mqsender label" to DIRECT=OS:a04bm02\\q, express, 2000 bytes VT_BSTR'),
        (7, True, "received 1, sent 0, window 64"),
    ],
)
def test_the_published_session_in_one_line_each(
    number: int, is_response: bool, summary: str
) -> None:
    frame = FRAMES[number]
    kind = Kind.PING if frame.is_ping else Kind.PACKET
    assert inspect(frame.data, kind, is_response=is_response).summary == summary


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("transactional", "transactional #1"),
        ("administration ack", "ACK_REACH_QUEUE to PRIVATE=11111111-2222-4333-8444-555555555555"),
        ("order ack", "up to 1 of sequence 0x6553f10000000007"),
        ("final ack", "ACK_RECEIVE about message 2 (1 of its sequence)"),
        ("change notification v1", "1 update of a directory service"),
        ("change notification v2", "queue created, 99999999-8888-4777-8666-000000000002"),
        ("directory replication", "replication: ChangePropagationMessage"),
    ],
)
def test_messages_in_one_line(name: str, summary: str) -> None:
    assert summary in run(name).summary


def test_the_queue_managers_own_queues_are_known_by_number_and_by_name() -> None:
    assert [system_queue(n) for n in (1, 2, 3, 4)] == [
        "mqis_queue$",
        "",
        "notify_queue$",
        "order_queue$",
    ]
    assert system_queue(PrivateQueueFormatName(bytes(16), 3)) == "notify_queue$"
    assert system_queue("OS:psc\\PRIVATE$\\Mqis_Queue$") == "mqis_queue$"
    assert system_queue("OS:psc\\private$\\notify_queue$x") == ""
    assert system_queue(None) == ""
    assert system_queue(bytes(16)) == ""


def test_a_security_descriptor_is_summed_up_as_sddl() -> None:
    data = bytes.fromhex(
        "01000480140000000000000000000000200000000101000000000001000000000200080000000000"
    )
    inspection = inspect(data, Kind.SECURITY_DESCRIPTOR)
    assert inspection.error is None
    assert inspection.summary.startswith("O:WD")
    sids = [line for line in lines(inspection.tree, data) if line.node.name == "SID"]
    assert sids[0].annotation.value == "S-1-1-0"
