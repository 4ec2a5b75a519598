"""Property values and PROPVARIANT, MQMQ 2.2.12 to 2.2.17 and MQCN 2.2.3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, WireError
from falconmq.wire import variant
from falconmq.wire.reader import Reader
from falconmq.wire.tracing import TracingReader
from falconmq.wire.variant import (
    VARIANT_FALSE,
    VARIANT_TRUE,
    VT_BLOB,
    VT_BOOL,
    VT_CLSID,
    VT_EMPTY,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_LPWSTR,
    VT_NULL,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_VARIANT,
    VT_VECTOR,
    PropVariant,
    Value,
    encode_value,
    read_value,
    type_name,
)
from tests.strategies.properties import VALUES, prop_variants
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)
from tests.wire.property_catalogue import numbers_in, requirement

GUID = bytes(range(0x10, 0x20))
OTHER_GUID = bytes(range(0xA0, 0xB0))


def decode(vt: int, data: bytes) -> Value:
    """The value of exactly these bytes."""
    reader = Reader(data)
    reader.enter("Test")
    value = read_value(reader, vt, "Value")
    reader.finish("Value")
    return value


def _case(vt: int, hexa: str, value: Value, *rows: str) -> Any:
    mark = pytest.mark.requirement(*rows)
    return pytest.param(vt, bytes.fromhex(hexa), value, marks=mark, id=f"{type_name(vt)}-{hexa}")


# Bytes by hand. Every number has different bytes, so that an order of bytes other than the little
# endian one shows, and the highest bit set, so that a wrong sign shows.
CASES = [
    _case(VT_EMPTY, "", None, "MQ-2.2.12-01"),
    _case(VT_NULL, "", None, "MQ-2.2.12-02"),
    _case(
        VT_I2, "01f0", -0x0FFF, "MQ-2.2.12-03", "MQ-2.2.13.1-10", "CN-2.2.3.1-01", "CN-2.2.3.1-02"
    ),
    _case(
        VT_I4,
        "010203f0",
        -0x0FFCFDFF,
        "MQ-2.2.12-04",
        "MQ-2.2.13.1-12",
        "CN-2.2.3.2-01",
        "CN-2.2.3.2-02",
    ),
    _case(VT_I1, "f1", -15, "MQ-2.2.12-06", "MQ-2.2.13.1-08", "CN-2.2.3.4-01"),
    _case(VT_UI1, "f1", 0xF1, "MQ-2.2.12-07", "MQ-2.2.13.1-09", "CN-2.2.3.5-01"),
    _case(
        VT_UI2, "01f2", 0xF201, "MQ-2.2.12-08", "MQ-2.2.13.1-11", "CN-2.2.3.6-01", "CN-2.2.3.6-02"
    ),
    _case(
        VT_UI4,
        "010203f4",
        0xF4030201,
        "MQ-2.2.12-09",
        "MQ-2.2.13.1-13",
        "CN-2.2.3.7-01",
        "CN-2.2.3.7-02",
        "CN-2.2.3-02",
    ),
    _case(
        VT_I8,
        "01020304050607f8",
        -0x07F8F9FAFBFCFDFF,
        "MQ-2.2.12-10",
        "MQ-2.2.13.1-14",
        "CN-2.2.3.8-01",
        "CN-2.2.3.8-02",
    ),
    _case(
        VT_UI8,
        "01020304050607f8",
        0xF807060504030201,
        "MQ-2.2.12-11",
        "MQ-2.2.13.1-15",
        "MQ-2.2.17-01",
        "CN-2.2.3.9-01",
        "CN-2.2.3.9-02",
    ),
    _case(
        VT_BOOL,
        "ffff",
        True,
        "MQ-2.2.12-05",
        "MQ-2.2.13.1-16",
        "MQ-2.2.14-01",
        "CN-2.2.3.3-01",
        "CN-2.2.3.3-02",
        "RP-2.2.4-20",
    ),
    _case(VT_BOOL, "0000", False, "MQ-2.2.14-02", "CN-2.2.3.3-03", "RP-2.2.4-20"),
    _case(
        VT_LPWSTR,
        "4100c42032d8 0ddc 0000",  # A, U+20C4, a surrogate pair, NUL; no BOM, no length
        "A\u20c4\U0001c80d",
        "MQ-2.2.12-12",
        "MQ-2.2.13.1-19",
        "CN-2.2.3.10-01",
        "CN-2.2.3.10-02",
        "CN-2.2.3.10-03",
        "CN-2.2.3.10-04",
    ),
    _case(VT_LPWSTR, "0000", "", "CN-2.2.3.10-04"),
    _case(
        VT_BLOB,
        "03000000 f1 00 f3",
        b"\xf1\x00\xf3",
        "MQ-2.2.12-13",
        "MQ-2.2.13.1-18",
        "MQ-2.2.15-01",
        "MQ-2.2.15-02",
        "CN-2.2.3.11-01",
        "CN-2.2.3.11-02",
        "CN-2.2.3.11-03",
        "CN-2.2.3.11-04",
    ),
    _case(VT_BLOB, "00000000", b"", "CN-2.2.3.11-04"),
    _case(VT_CLSID, GUID.hex(), GUID, "MQ-2.2.12-14", "MQ-2.2.13.1-17", "CN-2.2.3.12-01"),
    _case(
        VT_VECTOR | VT_UI1,
        "02000000 01 f2",
        b"\x01\xf2",
        "MQ-2.2.12-16",
        "MQ-2.2.13.1-20",
        "MQ-2.2.16.1-01",
        "MQ-2.2.16.1-02",
    ),
    _case(
        VT_VECTOR | VT_UI2,
        "02000000 01f0 02f1",
        (0xF001, 0xF102),
        "MQ-2.2.13.1-21",
        "MQ-2.2.16.2-01",
        "MQ-2.2.16.2-02",
    ),
    _case(
        VT_VECTOR | VT_I4,
        "02000000 010000f0 02000000",
        (-0x0FFFFFFF, 2),
        "MQ-2.2.13.1-22",
        "MQ-2.2.16.3-01",
        "MQ-2.2.16.3-02",
    ),
    _case(
        VT_VECTOR | VT_UI4,
        "02000000 010203f4 05000000",
        (0xF4030201, 5),
        "MQ-2.2.13.1-23",
        "MQ-2.2.16.4-01",
        "MQ-2.2.16.4-02",
        "CN-2.2.3.13-01",
        "CN-2.2.3.13-02",
        "CN-2.2.3.13-03",
        "CN-2.2.3.13-04",
    ),
    _case(
        VT_VECTOR | VT_UI8,
        "02000000 01020304050607f8 0900000000000000",
        (0xF807060504030201, 9),
        "MQ-2.2.13.1-24",
        "MQ-2.2.16.5-01",
        "MQ-2.2.16.5-02",
    ),
    _case(
        VT_VECTOR | VT_CLSID,
        "02000000" + GUID.hex() + OTHER_GUID.hex(),
        (GUID, OTHER_GUID),
        "MQ-2.2.13.1-25",
        "MQ-2.2.16.6-01",
        "MQ-2.2.16.6-02",
        "CN-2.2.3.14-01",
        "CN-2.2.3.14-02",
        "CN-2.2.3.14-03",
        "CN-2.2.3.14-04",
    ),
    _case(
        VT_VECTOR | VT_LPWSTR,
        "03000000 4100 0000 0000 4200 4300 0000",
        ("A", "", "BC"),
        "MQ-2.2.13.1-26",
        "MQ-2.2.16.7-01",
        "CN-2.2.3.15-01",
        "CN-2.2.3.15-02",
        "CN-2.2.3.15-03",
        "CN-2.2.3.15-04",
    ),
    _case(
        VT_VECTOR | VT_VARIANT,
        "02000000 1300000000000000 010203f4 0310000000000000 01000000 ffffffff",
        (PropVariant(VT_UI4, 0xF4030201), PropVariant(VT_VECTOR | VT_I4, (-1,))),
        "MQ-2.2.13.1-27",
        "MQ-2.2.16.8-01",
        "MQ-2.2.16.8-02",
    ),
]


@pytest.mark.parametrize(("vt", "data", "value"), CASES)
def test_a_value_has_the_bytes_of_the_specification(vt: int, data: bytes, value: Value) -> None:
    decoded = decode(vt, data)
    assert decoded == value
    assert type(decoded) is type(value)
    assert encode_value(vt, value) == data


@pytest.mark.requirement("RP-2.2.4-19")
def test_values_take_as_many_bytes_as_replication_says_without_padding() -> None:
    sizes = {VT_I1: 1, VT_UI1: 1, VT_I2: 2, VT_UI2: 2, VT_I4: 4, VT_UI4: 4, VT_I8: 8, VT_UI8: 8}
    assert {vt: len(encode_value(vt, 1)) for vt in sizes} == sizes
    assert len(encode_value(VT_BOOL, True)) == 2
    assert len(encode_value(VT_CLSID, GUID)) == 16
    assert encode_value(VT_LPWSTR, "A") == b"A\0\0\0"
    assert encode_value(VT_BLOB, b"abc") == b"\3\0\0\0abc"
    assert encode_value(VT_VECTOR | VT_UI1, b"abc") == b"\3\0\0\0abc"
    assert encode_value(VT_VECTOR | VT_LPWSTR, ("A", "")) == b"\2\0\0\0A\0\0\0\0\0"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=pytest.mark.requirement(row))
        for row in (f"MQ-2.2.12-{number:02}" for number in range(1, 17))
    ],
)
def test_a_type_has_the_number_of_the_specification(row: str) -> None:
    name, _, rest = requirement(row).partition(" = ")
    assert getattr(variant, name) == int(rest[:6], 16)


@pytest.mark.requirement("MQ-2.2.14-01", "MQ-2.2.14-02")
def test_the_two_truths_have_sixteen_bits() -> None:
    assert numbers_in(requirement("MQ-2.2.14-01"))[0] == VARIANT_TRUE
    assert numbers_in(requirement("MQ-2.2.14-02"))[0] == VARIANT_FALSE


@pytest.mark.parametrize("number", ["0100", "00ff", "feff"])
def test_any_other_truth_is_refused(number: str) -> None:
    with pytest.raises(WireError, match="neither true nor false") as caught:
        decode(VT_BOOL, bytes.fromhex(number))
    assert caught.value.offset == 0


LIMITS = [
    (VT_I1, -128, 127),
    (VT_UI1, 0, 255),
    (VT_I2, -0x8000, 0x7FFF),
    (VT_UI2, 0, 0xFFFF),
    (VT_I4, -0x80000000, 0x7FFFFFFF),
    (VT_UI4, 0, 0xFFFFFFFF),
    (VT_I8, -(1 << 63), (1 << 63) - 1),
    (VT_UI8, 0, (1 << 64) - 1),
]


@pytest.mark.parametrize(("vt", "least", "most"), LIMITS)
def test_a_number_fits_up_to_its_limits_and_not_beyond(vt: int, least: int, most: int) -> None:
    for number in (least, most):
        assert decode(vt, encode_value(vt, number)) == number
    for number in (least - 1, most + 1):
        with pytest.raises(WireError, match="fit"):
            encode_value(vt, number)


@pytest.mark.parametrize(
    ("vt", "value"),
    [
        (VT_UI4, "1"),
        (VT_UI4, None),
        (VT_LPWSTR, b"a"),
        (VT_LPWSTR, 1),
        (VT_BLOB, "a"),
        (VT_CLSID, "a"),
        (VT_BOOL, 1),
        (VT_NULL, 0),
        (VT_VECTOR | VT_UI4, b"a"),
        (VT_VECTOR | VT_UI1, (1,)),
        (VT_VECTOR | VT_VARIANT, (1,)),
    ],
)
def test_a_value_of_another_type_is_refused(vt: int, value: Value) -> None:
    with pytest.raises(WireError, match="is no") as caught:
        encode_value(vt, value, "Quota")
    assert caught.value.status is MqStatus.ILLEGAL_PROPERTY_VT
    assert caught.value.field == "Quota"


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_guid_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="a GUID has 16 bytes"):
        encode_value(VT_CLSID, bytes(size))


def test_a_text_with_a_nul_inside_is_refused() -> None:
    with pytest.raises(WireError, match="NUL"):
        encode_value(VT_LPWSTR, "a\0b")


def test_a_text_without_its_nul_is_refused() -> None:
    with pytest.raises(WireError, match="NUL"):
        decode(VT_LPWSTR, b"A\0B\0")


VECTOR_ARMS = {VT_UI1, VT_UI2, VT_I4, VT_UI4, VT_UI8, VT_CLSID, VT_LPWSTR, VT_VARIANT}


@pytest.mark.requirement("MQ-2.2.13.1-28")
@pytest.mark.parametrize("element", [n for n in range(0x100) if n not in VECTOR_ARMS])
def test_a_vector_that_has_no_arm_is_an_illegal_type(element: int) -> None:
    vt = VT_VECTOR | element
    faults: list[Callable[[], object]] = [
        lambda: decode(vt, bytes(64)),
        lambda: encode_value(vt, ()),
        lambda: PropVariant.decode(vt.to_bytes(2, "little") + bytes(64)),
    ]
    for fault in faults:
        with pytest.raises(WireError) as caught:
            fault()
        assert int(caught.value.status) == 0xC00E0019


@pytest.mark.requirement("MQ-2.2.12-15")
def test_a_variant_type_exists_only_as_a_vector() -> None:
    assert numbers_in(requirement("MQ-2.2.12-15"))[:2] == [VT_VARIANT, VT_VECTOR | VT_VARIANT]
    with pytest.raises(WireError, match="vt"):
        PropVariant.decode(b"\x0c" + bytes(63))
    with pytest.raises(WireError, match="VT_VARIANT"):
        decode(VT_VARIANT, bytes(64))
    with pytest.raises(WireError, match="vt"):
        PropVariant(VT_VARIANT, None).encode()
    inner = PropVariant(VT_UI1, 7)
    assert_round_trip(PropVariant(VT_VECTOR | VT_VARIANT, (inner, inner)))


@pytest.mark.parametrize("vt", [4, 8, 13, 30, 64, 0x2011, 0x8000, 0xFFFF & ~0x1000])
def test_an_unknown_type_is_refused(vt: int) -> None:
    with pytest.raises(WireError) as caught:
        decode(vt, bytes(64))
    assert caught.value.status is MqStatus.ILLEGAL_PROPERTY_VT
    with pytest.raises(WireError):
        encode_value(vt, 0)


@pytest.mark.requirement(
    "MQ-2.2.16.1-01",
    "MQ-2.2.16.2-01",
    "MQ-2.2.16.3-01",
    "MQ-2.2.16.4-01",
    "MQ-2.2.16.5-01",
    "MQ-2.2.16.6-01",
    "MQ-2.2.16.7-01",
    "MQ-2.2.16.8-01",
)
@pytest.mark.parametrize("element", sorted(VECTOR_ARMS))
def test_a_count_that_the_bytes_cannot_hold_is_refused_at_once(element: int) -> None:
    two: dict[int, Value] = {
        VT_UI1: b"ab",
        VT_CLSID: (GUID, GUID),
        VT_LPWSTR: ("", ""),
        VT_VARIANT: (PropVariant(VT_NULL), PropVariant(VT_NULL)),
    }
    data = bytearray(encode_value(VT_VECTOR | element, two.get(element, (1, 2))))
    assert data[:4] == b"\2\0\0\0"
    for count in (3, 0xFFFFFFFF):
        data[:4] = count.to_bytes(4, "little")
        with pytest.raises(WireError, match=f"{count} elements") as caught:
            decode(VT_VECTOR | element, bytes(data))
        assert caught.value.field == "Value.Size"
        assert caught.value.offset == 0
    data[:4] = b"\1\0\0\0"
    with pytest.raises(WireError, match="too many"):
        decode(VT_VECTOR | element, bytes(data))


def test_a_blob_longer_than_the_bytes_is_refused() -> None:
    with pytest.raises(WireError, match="4294967295 bytes"):
        decode(VT_BLOB, b"\xff\xff\xff\xff" + bytes(8))


def test_a_vector_of_variants_inside_one_is_refused() -> None:
    nested = PropVariant(VT_VECTOR | VT_VARIANT, (PropVariant(VT_NULL),))
    with pytest.raises(WireError, match="nest"):
        PropVariant(VT_VECTOR | VT_VARIANT, (nested,)).encode()
    level = b"\x0c\x10" + bytes(6) + b"\1\0\0\0"
    with pytest.raises(WireError, match="nest"):
        PropVariant.decode(level * 10_000)


HEADER = bytes.fromhex("1300 a1 a2 b1b2b3b4 01020304")


@pytest.mark.requirement("MQ-2.2.13.1-01", "MQ-2.2.13.1-06", "MQ-2.2.12.1-01")
def test_a_variant_is_its_type_three_reserved_fields_and_the_value() -> None:
    value = PropVariant.decode(HEADER)
    assert value == PropVariant(VT_UI4, 0x04030201, 0xA1, 0xA2, 0xB4B3B2B1)
    assert value.encode() == HEADER
    reader = TracingReader(HEADER)
    PropVariant.read(reader)
    (node,) = reader.root.children
    assert [(child.name, child.offset, child.size) for child in node.children] == [
        ("vt", 0, 2),
        ("wReserved1", 2, 1),
        ("wReserved2", 3, 1),
        ("wReserved3", 4, 4),
        ("_varUnion", 8, 4),
    ]


@pytest.mark.requirement("MQ-2.2.13.1-07")
@pytest.mark.parametrize(("vt", "data", "value"), CASES)
def test_the_type_in_front_selects_the_value(vt: int, data: bytes, value: Value) -> None:
    whole = vt.to_bytes(2, "little") + bytes(6) + data
    assert PropVariant.decode(whole) == PropVariant(vt, value)
    assert PropVariant(vt, value).encode() == whole


@pytest.mark.requirement("MQ-2.2.13.1-03", "MQ-2.2.13.1-04", "MQ-2.2.13.1-05")
def test_we_send_zeros_in_the_reserved_fields() -> None:
    assert PropVariant(VT_UI1, 7).encode() == b"\x11\0" + bytes(6) + b"\7"


@pytest.mark.requirement("MQ-2.2.13.1-02")
def test_the_type_of_a_variant_is_one_of_the_specification() -> None:
    scalars = {0, 1, 2, 3, 11, 16, 17, 18, 19, 20, 21, 31, 65, 72}
    vectors = {0x1011, 0x1012, 0x1003, 0x1013, 0x1015, 0x1048, 0x101F, 0x100C}

    def is_accepted(vt: int) -> bool:
        try:
            PropVariant.decode(vt.to_bytes(2, "little") + bytes(64))
        except WireError:
            return False
        return True

    assert {vt for vt in range(0x10000) if is_accepted(vt)} == scalars | vectors


@given(prop_variants)
def test_round_trip(value: PropVariant) -> None:
    assert_round_trip(value)


@pytest.mark.requirement("CN-2.2.3-03")
@given(st.sampled_from([*VALUES]), st.sampled_from([*VALUES]), st.data())
def test_values_stand_back_to_back(first: int, second: int, data: st.DataObject) -> None:
    a, b = data.draw(VALUES[first]), data.draw(VALUES[second])
    reader = Reader(encode_value(first, a) + encode_value(second, b))
    assert read_value(reader, first, "a") == a
    assert read_value(reader, second, "b") == b
    assert reader.remaining == 0


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(PropVariant.decode, data)


@given(st.sampled_from([*VALUES]), st.binary(max_size=64))
def test_any_bytes_behind_a_type_decode_or_raise_wire_error(vt: int, data: bytes) -> None:
    assert_decodes_or_refuses(PropVariant.decode, vt.to_bytes(2, "little") + bytes(6) + data)


@pytest.mark.parametrize(("vt", "data", "value"), CASES)
def test_a_cut_value_is_refused(vt: int, data: bytes, value: Value) -> None:
    assert_every_cut_is_refused(lambda cut: decode(vt, cut), data)


def _vectors() -> list[Any]:
    path = Path(__file__).parents[1] / "vectors" / "mqcn-examples.json"
    examples = json.loads(path.read_text(encoding="utf-8"))
    return [
        pytest.param(example, id=example["name"])
        for example in examples
        if "type" in example["fields"]
    ]


@pytest.mark.parametrize("example", _vectors())
def test_the_examples_of_mqcn_have_our_bytes(example: dict[str, Any]) -> None:
    fields, data = example["fields"], bytes.fromhex(example["hex"])
    vt = sum(getattr(variant, name) for name in fields["type"].split("|"))
    value = fields.get("value", fields.get("Value"))
    if vt == VT_BLOB:
        value = value.encode()
    if isinstance(value, list):
        value = tuple(value)
    assert encode_value(vt, value) == data
    assert decode(vt, data) == value
