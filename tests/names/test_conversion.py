"""Format names as QUEUE_FORMAT and back: the guide's section 5.3."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given

from falconmq.errors import MqStatus, NameSyntaxError, WireError
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MachineFormatName,
    MultipleElementFormatName,
    PublicFormatName,
    SingleFormatName,
    from_queue_format,
    from_queue_formats,
    parse_format_name,
    to_queue_format,
    to_queue_formats,
)
from falconmq.wire.queue_format import (
    Arm,
    DlId,
    MulticastId,
    ObjectId,
    QueueFormat,
    QueueFormatType,
    QueueSuffixType,
)
from tests.strategies.names import format_names, spelling

G = "AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE"
GUID = UUID(G)
WIRE = bytes.fromhex("aaaaaaaabbbbccccddddeeeeeeeeeeee")


def requires(*rows: str) -> pytest.MarkDecorator:
    return pytest.mark.requirement(*rows)


def single(text: str) -> SingleFormatName:
    name = parse_format_name(text)
    assert not isinstance(name, MultipleElementFormatName)
    return name


# guide, section 5.3 row by row: text, m_qft, suffix byte, union arm; and section 20, scenario 20
@pytest.mark.parametrize(
    ("text", "qft", "suffix_byte", "arm", "queue"),
    [
        pytest.param(
            f"PUBLIC={G}",
            1,
            0x00,
            "m_gPublicID",
            WIRE,
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-13", "MQ-2.2.6-02", "MQ-2.2.11-01"),
        ),
        pytest.param(
            f"PUBLIC={G};JOURNAL",
            1,
            0x81,
            "m_gPublicID",
            WIRE,
            marks=requires("MQ-2.1.3-06", "MQ-2.2.7-03", "MQ-2.2.11-02", "MQ-2.2.11-07"),
        ),
        pytest.param(
            f"PRIVATE={G}\\0000001a",
            2,
            0x00,
            "m_oPrivateID",
            ObjectId(WIRE, 0x1A),
            marks=requires(
                "MQ-2.2.7-01",
                "MQ-2.2.7-14",
                "MQ-2.2.6-03",
                "MQ-2.2.8-01",
                "MQ-2.1.4-02",
            ),
        ),
        pytest.param(
            f"PRIVATE={G}\\0000001a;JOURNAL",
            2,
            0x81,
            "m_oPrivateID",
            ObjectId(WIRE, 0x1A),
            marks=requires("MQ-2.2.11-02"),
        ),
        pytest.param(
            "DIRECT=TCP:1.2.3.4\\q",
            3,
            0x00,
            "m_pDirectID",
            "TCP:1.2.3.4\\q",
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-15", "MQ-2.2.6-04", "MQ-2.1.2-16"),
        ),
        pytest.param(
            "DIRECT=OS:host\\private$\\q",
            3,
            0x00,
            "m_pDirectID",
            "OS:host\\private$\\q",
            marks=requires("MQ-2.2.7-15", "MQ-2.1.2-16"),
        ),
        (
            "DIRECT=IPX:00000012:00a0234f7500\\q",
            3,
            0x00,
            "m_pDirectID",
            "IPX:00000012:00a0234f7500\\q",
        ),
        (
            "DIRECT=HTTP://host:80/msmq/q",
            3,
            0x00,
            "m_pDirectID",
            "HTTP://host:80/msmq/q",
        ),
        ("DIRECT=HTTPS://host/msmq/q", 3, 0x00, "m_pDirectID", "HTTPS://host/msmq/q"),
        pytest.param(
            "DIRECT=OS:host\\q;JOURNAL",
            3,
            0x81,
            "m_pDirectID",
            "OS:host\\q;JOURNAL",
            marks=requires("MQ-2.2.11-02", "MQ-2.2.11-07"),
        ),
        ("DIRECT=OS:h\\SYSTEM$;JOURNAL", 3, 0x81, "m_pDirectID", "OS:h\\SYSTEM$;JOURNAL"),
        pytest.param(
            "DIRECT=OS:h\\SYSTEM$;DEADLETTER",
            3,
            0x82,
            "m_pDirectID",
            "OS:h\\SYSTEM$;DEADLETTER",
            marks=requires("MQ-2.2.11-03", "MQ-2.2.11-07"),
        ),
        pytest.param(
            "DIRECT=OS:h\\SYSTEM$;DEADXACT",
            3,
            0x83,
            "m_pDirectID",
            "OS:h\\SYSTEM$;DEADXACT",
            marks=requires("MQ-2.2.11-04", "MQ-2.2.11-07"),
        ),
        pytest.param(
            f"MACHINE={G};JOURNAL",
            4,
            0x81,
            "m_gMachineID",
            WIRE,
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-16", "MQ-2.2.6-05", "MQ-2.1.6-07"),
        ),
        pytest.param(
            f"MACHINE={G};DEADLETTER",
            4,
            0x82,
            "m_gMachineID",
            WIRE,
            marks=requires("MQ-2.2.11-03", "MQ-2.1.6-07"),
        ),
        pytest.param(
            f"MACHINE={G};DEADXACT",
            4,
            0x83,
            "m_gMachineID",
            WIRE,
            marks=requires("MQ-2.2.11-04", "MQ-2.1.6-07"),
        ),
        pytest.param(
            f"CONNECTOR={G}",
            5,
            0x00,
            "m_GConnectorID",
            WIRE,
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-17", "MQ-2.2.6-06"),
        ),
        pytest.param(
            f"CONNECTOR={G};XACTONLY",
            5,
            0x04,
            "m_GConnectorID",
            WIRE,
            marks=requires("MQ-2.1.6-08", "MQ-2.2.11-05", "MQ-2.2.11-07"),
        ),
        (f"DL={G}", 6, 0x00, "m_DlID", DlId(WIRE, "")),
        pytest.param(
            f"DL={G}@example.com",
            6,
            0x00,
            "m_DlID",
            DlId(WIRE, "example.com"),
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-18", "MQ-2.2.6-07", "MQ-2.2.9-01"),
        ),
        pytest.param(
            "MULTICAST=224.1.2.3:8001",
            7,
            0x00,
            "m_MulticastID",
            MulticastId(0x030201E0, 8001),
            marks=requires("MQ-2.2.7-01", "MQ-2.2.7-19", "MQ-2.2.6-08"),
        ),
        pytest.param(
            "DIRECT=OS:host\\private$\\q;sub",
            8,
            0x05,
            "m_pDirectSubqueueID",
            "OS:host\\private$\\q;sub",
            marks=requires(
                "MQ-2.2.7-01", "MQ-2.2.7-20", "MQ-2.2.6-09", "MQ-2.2.11-06", "MQ-2.2.11-07"
            ),
        ),
    ],
)
def test_every_kind_of_name_has_its_queue_format(
    text: str, qft: int, suffix_byte: int, arm: str, queue: Arm
) -> None:
    name = single(text)
    made = to_queue_format(name)
    assert (made.qft, made.suffix_and_flags, made.arm) == (qft, suffix_byte, arm)
    assert made.queue == queue
    given_by_a_peer = QueueFormat(QueueFormatType(qft), suffix_byte, queue)
    assert from_queue_format(given_by_a_peer) == name
    assert str(from_queue_format(given_by_a_peer)) == text


@pytest.mark.requirement("MQ-2.2.7-11")
def test_the_reserved_field_is_sent_as_0() -> None:
    assert to_queue_format(PublicFormatName(GUID)).reserved == 0


@pytest.mark.requirement("MQ-2.2.7-12")
def test_the_reserved_field_is_not_looked_at() -> None:
    queue_format = QueueFormat(QueueFormatType.PUBLIC, 0, WIRE, reserved=0xFFFF)
    assert from_queue_format(queue_format) == PublicFormatName(GUID)


@pytest.mark.requirement("MQ-2.2.7-05")
def test_a_machine_name_without_a_suffix_has_no_queue_format() -> None:
    with pytest.raises(NameSyntaxError) as caught:
        to_queue_format(MachineFormatName(GUID))
    assert caught.value.status == MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    assert caught.value.position == len(f"MACHINE={G}")


@pytest.mark.requirement("MQ-2.2.7-09")
def test_either_flag_is_accepted_beside_a_transactional_connector() -> None:
    for flags in (0x00, 0x80):
        name = from_queue_format(QueueFormat(QueueFormatType.CONNECTOR, flags | 0x04, WIRE))
        assert str(name) == f"CONNECTOR={G};XACTONLY"


@pytest.mark.requirement("MQ-2.2.7-20")
@pytest.mark.parametrize("text", ["OS:h\\q", "OS:h\\q;journal", "OS:h\\q;", "no direct name", ""])
def test_a_subqueue_queue_format_must_spell_a_subqueue(text: str) -> None:
    queue_format = QueueFormat.make(QueueFormatType.SUBQUEUE, QueueSuffixType.SUBQUEUE, text)
    with pytest.raises(WireError) as caught:
        from_queue_format(queue_format)
    assert caught.value.field == "m_pDirectSubqueueID"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (QueueSuffixType.NONE, "OS:h\\q;sub"),
        (QueueSuffixType.NONE, "OS:h\\q;journal"),
        (QueueSuffixType.JOURNAL, "OS:h\\q"),
        (QueueSuffixType.JOURNAL, "OS:h\\system$;deadletter"),
        (QueueSuffixType.DEADLETTER, "OS:h\\q;journal"),
        (QueueSuffixType.DEADXACT, "OS:h\\system$;deadletter"),
    ],
)
def test_a_direct_name_that_contradicts_its_suffix_is_refused(
    suffix: QueueSuffixType, text: str
) -> None:
    with pytest.raises(WireError) as caught:
        from_queue_format(QueueFormat.make(QueueFormatType.DIRECT, suffix, text))
    assert caught.value.field == "m_pDirectID"


def test_a_direct_name_nobody_understands_is_carried_as_it_is() -> None:
    name = DirectFormatName.from_wire("carrier pigeon")
    assert from_queue_format(to_queue_format(name)) == name


@pytest.mark.requirement("MQ-2.2.7-21", "MQ-2.2.6-01")
def test_an_unknown_queue_has_no_name() -> None:
    with pytest.raises(WireError) as caught:
        from_queue_format(QueueFormat(QueueFormatType.UNKNOWN, 0, None))
    assert caught.value.field == "m_qft"


@pytest.mark.parametrize(
    ("qft", "queue"),
    [
        (QueueFormatType.DL, DlId(WIRE, "a b")),
        (QueueFormatType.MULTICAST, MulticastId(0x010000DF, 1)),
        (QueueFormatType.MULTICAST, MulticastId(0x010000E0, 65536)),
    ],
)
def test_a_part_that_breaks_the_grammar_is_refused(qft: QueueFormatType, queue: Arm) -> None:
    with pytest.raises(NameSyntaxError):
        from_queue_format(QueueFormat.make(qft, QueueSuffixType.NONE, queue))


def test_a_multiple_element_name_is_an_array() -> None:
    name = parse_format_name(f"PUBLIC={G},DIRECT=OS:h\\q,MULTICAST=224.0.0.1:1")
    array = to_queue_formats(name)
    assert [queue_format.qft for queue_format in array] == [1, 3, 7]
    assert from_queue_formats(array) == name
    with pytest.raises(NameSyntaxError):
        from_queue_formats([])


@given(format_names)
def test_round_trip(name: FormatName) -> None:
    if isinstance(name, MachineFormatName) and not name.suffix.value:
        return
    again = from_queue_formats(to_queue_formats(name))
    assert again == name
    assert spelling(again) == spelling(name)
