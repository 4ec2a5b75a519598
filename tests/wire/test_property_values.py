"""What properties may hold, MQMQ 2.3, against the requirement catalogue."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, WireError
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.property_ids import (
    DIRECTORY_CLASSES,
    MANAGEMENT_CLASSES,
    ComputerProperty,
    EnterpriseProperty,
    MachineProperty,
    ManagementMachineProperty,
    ManagementQueueProperty,
    Property,
    QueueProperty,
    RoutingLinkProperty,
    SettingsProperty,
)
from falconmq.wire.property_values import (
    DEFAULTS,
    Authenticate,
    Cluster,
    ConnectionStatus,
    Foreign,
    Journal,
    Scope,
    Service,
    Transaction,
    validate,
)
from falconmq.wire.variant import (
    VT_BLOB,
    VT_CLSID,
    VT_I4,
    VT_LPWSTR,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_VECTOR,
    PropVariant,
    Value,
)
from tests.strategies.properties import VALUES
from tests.wire.property_catalogue import numbers_in, requirement

BY_NAME = {prop.name: prop for group in DIRECTORY_CLASSES + MANAGEMENT_CLASSES for prop in group}


def is_allowed(prop: Property, value: Value) -> bool:
    try:
        validate(prop, value)
    except WireError as error:
        assert error.structure == prop.name
        assert error.status is MqStatus.ILLEGAL_PROPERTY_VALUE
        return False
    return True


def _row(row: str, *values: Any) -> Any:
    return pytest.param(row, *values, marks=pytest.mark.requirement(row), id=row)


# Rows that list every allowed number. Their texts also hold numbers that are no values (of Windows
# versions, say), so the values are spelled here and each is looked for in the text.
NUMBERS = [
    _row("MQ-2.3.1.4-02", [0, 1]),
    _row("MQ-2.3.1.11-02", [0, 1]),
    _row("MQ-2.3.1.12-02", [0, 1, 2]),
    _row("MQ-2.3.1.13-02", [0, 1]),
    _row("MQ-2.3.1.14-02", [0, 1]),
    _row("MQ-2.3.2.18-02", [0, 1]),
    _row("MQ-2.3.2.19-02", [0, 0x100, 0x200, 0x300, 0x400, 0x500]),
    _row("MQ-2.3.2.24-02", [0, 1]),
    _row("MQ-2.3.2.35-02", [0, 1]),
    _row("MQ-2.3.3.10-02", [0, 1]),
    _row("MQ-2.3.3.11-02", [0, 1]),
    _row("MQ-2.3.4.1-02", [1, 3, 5]),
    _row("MQ-2.3.5.2-02", [0, 1, 2]),
    _row("MQ-2.3.8.2-02", [0, 1, 2, 4, 8]),
    _row("MQ-2.3.8.5-02", [0, 1]),
    _row("MQ-2.3.8.8-02", [0, 1]),
    _row("MQ-2.3.8.9-02", [0, 1]),
    _row("MQ-2.3.8.10-02", [0, 1]),
    _row("MQ-2.3.8.11-02", [0, 1, 2, 4, 8]),
    _row("MQ-2.3.13.3-02", [0, 1]),
    _row("MQ-2.3.13.4-02", [1, 2, 3, 4, 5, 6, 7, 8]),
]


@pytest.mark.parametrize(("row", "allowed"), NUMBERS)
def test_a_number_is_one_of_those_the_specification_lists(row: str, allowed: list[int]) -> None:
    text = requirement(row)
    prop = BY_NAME[text.split()[0]]
    assert set(allowed) <= set(numbers_in(text))
    largest = 0xFF if prop.vt == 0x11 else 0xFFFF
    candidates = {*range(20), *(value + 1 for value in allowed), 0x600, largest, *allowed}
    accepted = {n for n in candidates if n <= largest and is_allowed(prop, n)}
    assert accepted == set(allowed)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("MQ-2.3.1.4-02", Journal),
        ("MQ-2.3.1.11-02", Authenticate),
        ("MQ-2.3.1.13-02", Transaction),
        ("MQ-2.3.1.14-02", Scope),
        ("MQ-2.3.2.18-02", Foreign),
        ("MQ-2.3.2.35-02", Cluster),
        ("MQ-2.3.13.3-02", Scope),
    ],
)
def test_numbers_carry_the_names_of_the_specification(row: str, expected: Any) -> None:
    named = re.findall(r"\b([0-9]) ([A-Z][A-Z_]+[A-Z])\b", requirement(row))
    assert {name: int(number) for number, name in named} == {e.name: e.value for e in expected}


# Rows that list every allowed text, in quotes.
TEXTS = [
    _row("MQ-2.3.8.1-02"),
    _row("MQ-2.3.11.4-02"),
    _row("MQ-2.3.12.3-02"),
    _row("MQ-2.3.12.4-02"),
    _row("MQ-2.3.12.5-02"),
    _row("MQ-2.3.12.6-02"),
    _row("MQ-2.3.12.11-02"),
]


@pytest.mark.parametrize("row", TEXTS)
def test_a_text_is_one_of_those_the_specification_lists(row: str) -> None:
    text = requirement(row)
    prop = BY_NAME[text.split()[0]]
    allowed = re.findall('"(.*?)"', text)
    assert allowed
    assert all(is_allowed(prop, value) for value in allowed)
    others = ["", "MAYBE", allowed[0].lower(), allowed[0] + " ", allowed[0][:-1]]
    assert not any(is_allowed(prop, value) for value in others)


@pytest.mark.requirement("MQ-2.3.1.6-02")
def test_a_base_priority_has_sixteen_bits_and_a_sign() -> None:
    prop = QueueProperty.PROPID_Q_BASEPRIORITY
    for value in (-32768, 0, 32767):
        validate(prop, value)
    for value in (-32769, 32768):
        with pytest.raises(WireError, match="does not fit"):
            validate(prop, value)


@pytest.mark.requirement("MQ-2.3.1.8-01")
def test_a_label_has_at_most_124_characters() -> None:
    assert is_allowed(QueueProperty.PROPID_Q_LABEL, "")
    assert is_allowed(QueueProperty.PROPID_Q_LABEL, "x" * 124)
    assert not is_allowed(QueueProperty.PROPID_Q_LABEL, "x" * 125)
    assert not is_allowed(QueueProperty.PROPID_Q_LABEL, "\U0001f600" * 63), "126 wide characters"


@pytest.mark.parametrize(
    "prop",
    [
        pytest.param(
            RoutingLinkProperty.PROPID_L_COST, marks=pytest.mark.requirement("MQ-2.3.7.3-01")
        ),
        pytest.param(
            RoutingLinkProperty.PROPID_L_ACTUAL_COST,
            marks=pytest.mark.requirement("MQ-2.3.7.12-02"),
        ),
    ],
)
def test_the_cost_of_a_link_is_1_to_999999(prop: Property) -> None:
    accepted = [n for n in (0, 1, 2, 999_998, 999_999, 1_000_000) if is_allowed(prop, n)]
    assert accepted == [1, 2, 999_998, 999_999]


@pytest.mark.requirement("MQ-2.3.10.2-01")
def test_a_sam_account_is_at_most_19_characters_and_a_dollar() -> None:
    prop = ComputerProperty.PROPID_COM_SAM_ACCOUNT
    assert is_allowed(prop, "MyComputer$")
    assert is_allowed(prop, "x" * 19 + "$")
    assert not is_allowed(prop, "x" * 20 + "$")
    assert not is_allowed(prop, "MyComputer")


@pytest.mark.requirement("MQ-2.3.1.23-02")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("224.0.0.0:0", True),
        ("239.255.255.255:65535", True),
        ("234.1.1.1:8001", True),
        ("223.255.255.255:1801", False),
        ("240.0.0.0:1801", False),
        ("234.1.1.256:1801", False),
        ("234.1.1:1801", False),
        ("234.1.1.1.1:1801", False),
        ("234.1.1.1:65536", False),
        ("234.1.1.1", False),
        ("234.1.1.1:", False),
        (" 234.1.1.1:1", False),
    ],
)
def test_a_multicast_address_is_one_with_a_port(text: str, allowed: bool) -> None:
    assert is_allowed(QueueProperty.PROPID_Q_MULTICAST_ADDRESS, text) is allowed


@pytest.mark.requirement("MQ-2.3.2.9-02")
def test_a_service_is_a_combination_of_five_roles() -> None:
    prop = MachineProperty.PROPID_QM_SERVICE
    values = numbers_in(requirement("MQ-2.3.2.9-02").partition("values:")[2])
    assert [*Service] == values
    assert all(is_allowed(prop, value) for value in [*values, 0x1F])
    assert not is_allowed(prop, 0x20)


@pytest.mark.requirement("MQ-2.3.2.31-02")
def test_security_information_has_the_four_bits_of_a_descriptor() -> None:
    prop = MachineProperty.PROPID_QM_SECURITY_INFORMATION
    bits = [numbers_in(requirement(f"MQ-2.2.3-0{n}"))[-1] for n in (2, 3, 4, 5)]
    assert is_allowed(prop, 0)
    assert is_allowed(prop, sum(bits))
    assert all(is_allowed(prop, bit) for bit in bits)
    assert not any(is_allowed(prop, 1 << n) for n in range(32) if 1 << n not in bits)


# MS-SAMR 2.2.1.13
UF_FLAGS = [0x1, 0x2, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x800, 0x1000, 0x2000]
UF_FLAGS += [0x10000 << n for n in range(12)]


@pytest.mark.requirement("MQ-2.3.10.3-02")
def test_account_control_is_a_combination_of_uf_flags() -> None:
    prop = ComputerProperty.PROPID_COM_ACCOUNT_CONTROL
    assert is_allowed(prop, 0)
    assert is_allowed(prop, sum(UF_FLAGS))
    assert [1 << n for n in range(32) if is_allowed(prop, 1 << n)] == UF_FLAGS


NAMES = [
    _row("MQ-2.3.2.20-02"),
    _row("MQ-2.3.2.22-02"),
    _row("MQ-2.3.2.23-02"),
    _row("MQ-2.3.7.7-02"),
    _row("MQ-2.3.7.8-02"),
    _row("MQ-2.3.7.9-02"),
    _row("MQ-2.3.7.11-02"),
    _row("MQ-2.3.8.4-02"),
    _row("MQ-2.3.10.1-02"),
]
# the first four are examples of RFC 4514
GOOD_NAMES = [
    "UID=jsmith,DC=example,DC=net",
    "OU=Sales+CN=J.  Smith,DC=example,DC=net",
    r"CN=James \"Jim\" Smith\, III,DC=example,DC=net",
    r"CN=Before\0dAfter,DC=example,DC=net",
    "1.3.6.1.4.1.1466.0=#04024869",
    "CN=msmq,CN=SALES01,CN=Computers,DC=example",
    "CN=Lučić",
    "CN=a#b=c",
    r"CN=\ both ends\ ",
    "CN=",
    "",
]
BAD_NAMES = [
    "SALES01",
    "=x",
    "CN=a,",
    "CN=a,,CN=b",
    "CN=a, DC=b",  # a blank in front of a type
    "CN= a",
    "CN=a ",
    "CN=#a",
    "CN=#0",
    'CN="a"',
    "CN=a;DC=b",
    "CN=<a>",
    "CN=a\\",
    "CN=a\\x",
    "1=a",
    "1.02=a",
    "C_N=a",
]


@pytest.mark.parametrize("row", NAMES)
def test_a_distinguished_name_follows_rfc_4514(row: str) -> None:
    name = re.search(r"PROPID_\w+", requirement(row))
    assert name
    prop = BY_NAME[name[0]]
    is_vector = bool(prop.vt & VT_VECTOR)
    for text in GOOD_NAMES:
        assert is_allowed(prop, ("CN=a", text) if is_vector else text), text
    for text in BAD_NAMES:
        assert not is_allowed(prop, ("CN=a", text) if is_vector else text), text


def test_a_hostile_distinguished_name_is_refused_in_linear_time() -> None:
    prop = MachineProperty.PROPID_QM_FULL_PATH
    for text in ("CN=" + "a " * 50_000, "CN=" + "\\41" * 50_000 + "\\", "CN=a," * 50_000):
        assert not is_allowed(prop, text)


@pytest.mark.requirement("MQ-2.3.11.3-02")
def test_a_directory_server_stands_behind_two_backslashes() -> None:
    prop = ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER
    assert is_allowed(prop, "\\\\DC01")
    assert is_allowed(prop, "\\\\ü")
    for text in ("DC01", "\\DC01", "\\\\", "\\\\a,b"):
        assert not is_allowed(prop, text)


@pytest.mark.requirement("MQ-2.3.12.12-02")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("IP=10.0.0.7", True),
        ("IPv6=fe80::1", True),
        ("IPv6=::ffff:10.0.0.7", True),
        ("FOREIGN=00112233-4455-6677-8899-AABBCCDDEEFF", True),
        ("IP=10.0.0", False),
        ("IP=fe80::1", False),
        ("IPv6=10.0.0.7", False),
        ("IPv6=fe80::1%eth0", False),
        ("FOREIGN=1", False),
        ("10.0.0.7", False),
        ("FOREIGN", False),
        ("", False),
    ],
)
def test_a_next_hop_is_an_address_with_its_kind(text: str, allowed: bool) -> None:
    prop = ManagementQueueProperty.PROPID_MGMT_QUEUE_NEXTHOPS
    assert is_allowed(prop, ("IP=10.0.0.1", text)) is allowed


def source_info(length: int = 2) -> list[PropVariant]:
    return [
        PropVariant(VT_LPWSTR | VT_VECTOR, ("PUBLIC=x",) * length),
        PropVariant(VT_CLSID | VT_VECTOR, (NULL_GUID,) * length),
        PropVariant(VT_UI8 | VT_VECTOR, (1,) * length),
        PropVariant(VT_UI4 | VT_VECTOR, (2,) * length),
        PropVariant(VT_I4 | VT_VECTOR, (3,) * length),
        PropVariant(VT_UI4 | VT_VECTOR, (4,) * length),
    ]


@pytest.mark.requirement("MQ-2.3.12.24-02")
def test_source_info_is_six_parallel_arrays_in_order() -> None:
    prop = ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO
    arrays = source_info()
    assert is_allowed(prop, tuple(arrays))
    assert is_allowed(prop, tuple(source_info(0)))
    for index in range(6):
        others = [*arrays]
        others[index] = PropVariant(VT_UI2 | VT_VECTOR, (1, 2))
        assert not is_allowed(prop, tuple(others))
        others[index] = source_info(3)[index]
        assert not is_allowed(prop, tuple(others)), "arrays of different lengths"
    assert not is_allowed(prop, tuple(arrays[:5]))
    assert not is_allowed(prop, (*arrays, arrays[5]))
    assert not is_allowed(prop, (arrays[1], arrays[0], *arrays[2:]))


def history(status: int = 0, address: str = "10.0.0.7") -> list[PropVariant]:
    return [
        PropVariant(VT_UI4 | VT_VECTOR, (status,)),
        PropVariant(VT_I4 | VT_VECTOR, (1_000_000_000,)),
        PropVariant(VT_I4 | VT_VECTOR, (-1,)),
        PropVariant(VT_LPWSTR | VT_VECTOR, (address,)),
    ]


HISTORY = ManagementQueueProperty.PROPID_MGMT_QUEUE_CONNECTION_HISTORY


@pytest.mark.requirement("MQ-2.3.12.25-02")
def test_connection_history_is_four_parallel_arrays_in_order() -> None:
    arrays = history()
    assert is_allowed(HISTORY, tuple(arrays))
    assert not is_allowed(HISTORY, tuple(reversed(arrays)))
    for index in range(4):
        others = [*arrays]
        others[index] = PropVariant(VT_UI2 | VT_VECTOR, (1,))
        assert not is_allowed(HISTORY, tuple(others))
        others[index] = PropVariant(arrays[index].vt, ())
        assert not is_allowed(HISTORY, tuple(others))


@pytest.mark.requirement("MQ-2.3.12.25-03")
def test_a_good_connection_status_is_0_to_2() -> None:
    values = numbers_in(requirement("MQ-2.3.12.25-03").partition(":")[2])
    assert values == [0, 1, 2]
    assert [n for n in range(10) if is_allowed(HISTORY, tuple(history(n)))] == values


@pytest.mark.requirement("MQ-2.3.12.25-04")
def test_a_failed_connection_status_has_the_high_bit() -> None:
    listed = requirement("MQ-2.3.12.25-04").partition(":")[2].split(",")
    codes = [0x80000000 + int(item.split()[0], 16) for item in listed]
    assert codes == [*range(0x80000000, 0x8000000E)]
    around = [0x7FFFFFFF, *codes, 0x8000000E, 0xFFFFFFFF]
    assert [n for n in around if is_allowed(HISTORY, tuple(history(n)))] == codes
    failures = [status for status in ConnectionStatus if status >= 0x80000000]
    for item, status in zip(listed, failures, strict=True):
        assert item.split()[1].upper()[:3] in status.name, "names follow the row's words"


@pytest.mark.requirement("MQ-2.3.12.25-05")
def test_an_address_of_the_history_is_a_name_or_four_numbers() -> None:
    for address in ("\\\\server", "1.22.333.4"):
        assert is_allowed(HISTORY, tuple(history(address=address)))
    for address in ("server", "\\server", "\\\\", "1.2.3", "1.2.3.4567", "1.2.3.4.5", ""):
        assert not is_allowed(HISTORY, tuple(history(address=address)))


RESERVED = [
    _row("MQ-2.3.1.18-02"),
    _row("MQ-2.3.1.19-02"),
    _row("MQ-2.3.2.12-02"),
    _row("MQ-2.3.5.5-02"),
    _row("MQ-2.3.5.6-02"),
    _row("MQ-2.3.5.10-02"),
    _row("MQ-2.3.5.11-02"),
    _row("MQ-2.3.5.12-02"),
    _row("MQ-2.3.5.13-02"),
    _row("MQ-2.3.5.14-02"),
    _row("MQ-2.3.5.18-02"),
]


@pytest.mark.parametrize("row", RESERVED)
@given(data=st.data())
def test_a_reserved_property_takes_and_keeps_any_value(row: str, data: st.DataObject) -> None:
    prop = BY_NAME[requirement(row).split()[0]]
    value = data.draw(VALUES[prop.vt])
    assert is_allowed(prop, value)
    change = DirectoryChange(1, NULL_GUID, NULL_GUID, properties=[(prop.value, value)])
    assert DirectoryChange.decode(change.encode()).properties == [(prop.value, value)]


@pytest.mark.requirement("MQ-2.3.2.39-02")
def test_the_blob_that_asks_for_a_new_dacl_may_be_empty() -> None:
    assert is_allowed(MachineProperty.PROPID_QM_UPGRADE_DACL, b"")


@pytest.mark.requirement("MQ-2.3.2.15-02")
def test_a_machine_type_is_empty_or_any_text() -> None:
    assert is_allowed(MachineProperty.PROPID_QM_MACHINE_TYPE, "")
    assert is_allowed(MachineProperty.PROPID_QM_MACHINE_TYPE, "Windows NT 4.0 (Build 1381, Intel)")


@pytest.mark.parametrize(
    "row",
    [
        _row("MQ-2.3.1.6-01"),
        _row("MQ-2.3.1.12-01"),
        _row("MQ-2.3.3.5-01"),
        _row("MQ-2.3.3.6-01"),
        _row("MQ-2.3.5.3-01"),
        _row("MQ-2.3.7.3-01"),
    ],
)
def test_a_property_nobody_set_holds_its_default(row: str) -> None:
    text = requirement(row)
    prop = BY_NAME[text.split()[0]]
    default = re.search(r'default (?:"(.*)"|(\d+))', text)
    assert default
    assert DEFAULTS[prop] == (default[1] or int(default[2]))
    validate(prop, DEFAULTS[prop])


@pytest.mark.requirement("MQ-2.3.1.4-02")
def test_no_journal_is_the_default() -> None:
    assert DEFAULTS[QueueProperty.PROPID_Q_JOURNAL] == 0


@pytest.mark.parametrize(
    ("prop", "value"),
    [
        (QueueProperty.PROPID_Q_LABEL, 5),
        (QueueProperty.PROPID_Q_QUOTA, "5"),
        (SettingsProperty.PROPID_SET_NAME, None),
        (EnterpriseProperty.PROPID_E_CRL, "x"),
        (MachineProperty.PROPID_QM_CNS, b""),
    ],
)
def test_a_value_of_another_type_is_refused_as_such(prop: Property, value: Value) -> None:
    with pytest.raises(WireError) as caught:
        validate(prop, value)
    assert caught.value.field == prop.name
    assert caught.value.status is MqStatus.ILLEGAL_PROPERTY_VT


@given(st.sampled_from([*BY_NAME.values()]), st.data())
def test_any_value_of_the_right_type_is_allowed_or_refused_by_name(
    prop: Property, data: st.DataObject
) -> None:
    is_allowed(prop, data.draw(VALUES[prop.vt]))


def test_a_property_without_a_rule_takes_what_its_type_takes() -> None:
    assert EnterpriseProperty.PROPID_E_CRL.vt == VT_BLOB
    assert is_allowed(QueueProperty.PROPID_Q_QUOTA, 0xFFFFFFFF)
    assert is_allowed(QueueProperty.PROPID_Q_CREATE_TIME, -1)
