"""Bodies: VARIANT values, text, JSON, and XML as .NET writes it."""

from __future__ import annotations

import contextlib
import math
import struct
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.body import (
    BodyType,
    BodyValue,
    XmlValue,
    body_text,
    body_type_name,
    decode_variant,
    decode_xml,
    describe_body,
    encode_variant,
    encode_xml,
)
from falconmq.errors import MessageError, MqStatus

GUID = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
DECLARATION = b'<?xml version="1.0"?>\r\n'

# One value of each type with the bytes it travels as, written down by hand.
VARIANTS: list[tuple[BodyValue, int, str]] = [
    (None, 1, ""),
    (-2, 2, "feff"),
    (-2, 3, "feffffff"),
    (1.5, 4, "0000c03f"),
    (-2.0, 5, "00000000000000c0"),
    (Decimal("1.2345"), 6, "3930000000000000"),
    (datetime(1900, 1, 1, 12), 7, "0000000000000440"),  # noqa: DTZ001
    ("hé", 8, "6800e900"),
    (True, 11, "ffff"),
    (False, 11, "0000"),
    (-2, 16, "fe"),
    (254, 17, "fe"),
    (65534, 18, "feff"),
    (4294967294, 19, "feffffff"),
    (-2, 20, "feffffffffffffff"),
    (18446744073709551614, 21, "feffffffffffffff"),
    ("hi", 30, "6869"),
    ("hi", 31, "68006900"),
    (b"\x01\x02", 65, "0102"),
    (GUID, 72, "d15873555091959549 97b6e611ea26c6"),
    (b"\x01\x02", 0x1011, "0102"),
    (b"\x01\x02", 0x2011, "0102"),
    (b"\x01\x02", 0, "0102"),
]


@pytest.mark.parametrize(("value", "body_type", "data"), VARIANTS)
def test_a_value_travels_as_the_bytes_of_its_type(
    value: BodyValue, body_type: int, data: str
) -> None:
    assert encode_variant(value, body_type) == (bytes.fromhex(data), body_type)
    decoded = decode_variant(bytes.fromhex(data), body_type)
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    ("value", "body_type"),
    [
        ("text", BodyType.VT_BSTR),
        (b"bytes", BodyType.VT_VECTOR_UI1),
        (None, BodyType.VT_NULL),
        (True, BodyType.VT_BOOL),
        (2**31 - 1, BodyType.VT_I4),
        (2**31, BodyType.VT_I8),
        (-(2**31) - 1, BodyType.VT_I8),
        (2**63, BodyType.VT_UI8),
        (0.5, BodyType.VT_R8),
        (Decimal("0.5"), BodyType.VT_CY),
        (datetime(2024, 5, 1), BodyType.VT_DATE),  # noqa: DTZ001
        (GUID, BodyType.VT_CLSID),
    ],
)
def test_a_value_gets_the_type_that_activex_gives_it(value: BodyValue, body_type: BodyType) -> None:
    assert encode_variant(value)[1] is body_type


@pytest.mark.parametrize(
    ("value", "body_type"),
    [
        (128, BodyType.VT_I1),
        (-1, BodyType.VT_UI1),
        (2**64, None),
        ("text", BodyType.VT_I4),
        (1, BodyType.VT_BSTR),
        (1, BodyType.VT_BOOL),
        ("é", BodyType.VT_LPSTR),
        ("\ud800", BodyType.VT_BSTR),
        (1e300, BodyType.VT_R4),
        (Decimal("0.00001"), BodyType.VT_CY),
        (Decimal(2**63), BodyType.VT_CY),
        (Decimal("NaN"), BodyType.VT_CY),
        (datetime(2024, 5, 1, tzinfo=UTC), BodyType.VT_DATE),
        (b"data", BodyType.VT_STREAMED_OBJECT),
        (0, BodyType.VT_NULL),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(
    value: BodyValue, body_type: BodyType | None
) -> None:
    with pytest.raises(MessageError, match="does not fit") as caught:
        encode_variant(value, body_type)
    assert caught.value.field == "body"


def test_an_error_about_a_value_does_not_repeat_a_long_one() -> None:
    with pytest.raises(MessageError) as caught:
        encode_variant("x" * 5000, BodyType.VT_I4)
    assert len(str(caught.value)) < 120


def test_an_object_is_sent_to_json_or_xml() -> None:
    with pytest.raises(MessageError, match="a dict is no VARIANT value") as caught:
        encode_variant({"a": 1})  # type: ignore[arg-type]  # what a user may try
    assert "Message.json" in caught.value.hint
    assert caught.value.status is MqStatus.ILLEGAL_PROPERTY_VT


def test_a_type_nobody_knows_is_refused_for_values_only() -> None:
    with pytest.raises(MessageError, match="0x4003"):
        encode_variant(1, 0x4003)
    with pytest.raises(MessageError, match="no Python value for body type 0x4003"):
        decode_variant(b"data", 0x4003)


@pytest.mark.parametrize(
    ("body", "body_type"),
    [
        (b"\x01", BodyType.VT_I2),
        (b"\x01\x02\x03\x04\x05", BodyType.VT_I4),
        (b"", BodyType.VT_BOOL),
        (b"\x01\x02\x03", BodyType.VT_BOOL),
        (b"\x00\xd8", BodyType.VT_BSTR),
        (b"\x00", BodyType.VT_LPWSTR),
        (b"\x81", BodyType.VT_LPSTR),
        (b"\x01", BodyType.VT_NULL),
        (bytes(15), BodyType.VT_CLSID),
        (bytes.fromhex("000000000000f07f"), BodyType.VT_DATE),
        (bytes.fromhex("000000000000f87f"), BodyType.VT_DATE),
        (bytes.fromhex("9c7500883ce43774"), BodyType.VT_DATE),
    ],
)
def test_bytes_that_are_no_value_of_their_type_are_refused(body: bytes, body_type: int) -> None:
    with pytest.raises(MessageError, match=f"bytes are no {BodyType(body_type).name}"):
        decode_variant(body, body_type)


@given(st.integers(0, 0x120), st.binary(max_size=20))
def test_any_body_has_a_value_or_an_error_of_ours(body_type: int, body: bytes) -> None:
    with contextlib.suppress(MessageError):
        decode_variant(body, body_type)


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (0.0, datetime(1899, 12, 30)),  # noqa: DTZ001
        (-1.25, datetime(1899, 12, 29, 6)),  # noqa: DTZ001
        (45413.75, datetime(2024, 5, 1, 18)),  # noqa: DTZ001
    ],
)
def test_an_ole_date_counts_days_since_1899(number: float, moment: datetime) -> None:
    data = struct.pack("<d", number)
    assert decode_variant(data, BodyType.VT_DATE) == moment
    assert encode_variant(moment) == (data, BodyType.VT_DATE)


@given(st.datetimes(max_value=datetime(9999, 12, 31)))  # noqa: DTZ001
def test_an_ole_date_keeps_the_millisecond(moment: datetime) -> None:
    decoded = decode_variant(*encode_variant(moment))
    assert isinstance(decoded, datetime)
    assert abs(decoded - moment) < timedelta(milliseconds=1)


@pytest.mark.parametrize("body_type", [BodyType.VT_BSTR, BodyType.VT_LPWSTR, BodyType.VT_LPSTR])
def test_the_nul_of_a_c_string_is_no_part_of_the_text(body_type: BodyType) -> None:
    body = b"h\0i\0\0\0" if body_type != BodyType.VT_LPSTR else b"hi\0"
    assert body_text(body, body_type) == decode_variant(body, body_type) == "hi"


@pytest.mark.parametrize(
    "body",
    [
        "grüße".encode(),
        "grüße".encode("utf-8-sig"),
        "grüße".encode("utf-16"),
        b"\xfe\xff" + "grüße".encode("utf-16-be"),
    ],
)
def test_a_plain_body_reads_as_utf_8_or_marked_utf_16(body: bytes) -> None:
    assert body_text(body, BodyType.VT_EMPTY) == "grüße"


def test_bytes_that_are_no_text_say_what_they_are() -> None:
    with pytest.raises(
        MessageError, match="3 bytes without a body type, wrong at byte 1"
    ) as caught:
        body_text(b"a\xffb", BodyType.VT_EMPTY)
    assert "message.body" in caught.value.hint
    with pytest.raises(MessageError, match="no text: it is 4 bytes of VT_I4") as caught:
        body_text(bytes(4), BodyType.VT_I4)
    assert "message.value" in caught.value.hint
    with pytest.raises(MessageError, match="3 bytes of VT_BSTR"):
        body_text(b"a\0b", BodyType.VT_BSTR)


@pytest.mark.parametrize(
    ("body", "body_type", "words"),
    [
        (b"", 0, "empty"),
        (b"\x01", 0, "1 byte without a body type"),
        (b"\x01\x02", 8, "2 bytes of VT_BSTR"),
        (b'\xef\xbb\xbf {"a": 1}', 0, "JSON text of 12 bytes"),
        (b"[1]", 0, "JSON text of 3 bytes"),
        (DECLARATION + b"<Order/>", 0, "an XML document <Order> of 31 bytes"),
        (b"<", 0, "an XML document of 1 byte"),
        (b"data", 768, "4 bytes of 768 (.NET BinaryMessageFormatter)"),
        (b"data", 0x1011, "4 bytes of VT_VECTOR | VT_UI1"),
        (b"data", 0x4003, "4 bytes of body type 0x4003"),
    ],
)
def test_a_body_is_described_without_its_content(body: bytes, body_type: int, words: str) -> None:
    assert describe_body(body, body_type) == words


def test_body_types_have_the_names_people_search_for() -> None:
    assert body_type_name(8) == "VT_BSTR"
    assert body_type_name(0x2011) == "VT_ARRAY | VT_UI1"
    assert body_type_name(999) == "body type 0x3e7"


XML_VALUES: list[tuple[XmlValue, str | None, str]] = [
    ("hello", None, "<string>hello</string>"),
    ("a<b>&\r\n", None, "<string>a&lt;b&gt;&amp;&#xD;\n</string>"),
    ("", None, "<string></string>"),
    (" padded ", None, "<string> padded </string>"),
    (-5, None, "<int>-5</int>"),
    (2**31, None, "<long>2147483648</long>"),
    (2**63, None, "<unsignedLong>9223372036854775808</unsignedLong>"),
    (-5, "short", "<short>-5</short>"),
    (-5, "byte", "<byte>-5</byte>"),
    (255, "unsignedByte", "<unsignedByte>255</unsignedByte>"),
    (65535, "unsignedShort", "<unsignedShort>65535</unsignedShort>"),
    (2**32 - 1, "unsignedInt", "<unsignedInt>4294967295</unsignedInt>"),
    (True, None, "<boolean>true</boolean>"),
    (False, None, "<boolean>false</boolean>"),
    (1.5, None, "<double>1.5</double>"),
    (2.0, None, "<double>2</double>"),
    (math.inf, None, "<double>INF</double>"),
    (-math.inf, "float", "<float>-INF</float>"),
    (Decimal("1E+3"), None, "<decimal>1000</decimal>"),
    (Decimal("12.50"), None, "<decimal>12.50</decimal>"),
    (b"\x00\xff", None, "<base64Binary>AP8=</base64Binary>"),
    (GUID, None, "<guid>557358d1-9150-9595-4997-b6e611ea26c6</guid>"),
    ("A", "char", "<char>65</char>"),
    (
        datetime(2024, 5, 1, 10, 20, 30),  # noqa: DTZ001
        None,
        "<dateTime>2024-05-01T10:20:30</dateTime>",
    ),
    (
        datetime(2024, 5, 1, 10, 20, 30, 120000, UTC),
        None,
        "<dateTime>2024-05-01T10:20:30.12Z</dateTime>",
    ),
    (
        datetime(2024, 5, 1, 10, 20, 30, tzinfo=timezone(timedelta(hours=2))),
        None,
        "<dateTime>2024-05-01T10:20:30+02:00</dateTime>",
    ),
]


@pytest.mark.parametrize(("value", "type_name", "element"), XML_VALUES)
def test_a_simple_value_is_written_as_dotnet_writes_it(
    value: XmlValue, type_name: str | None, element: str
) -> None:
    document = encode_xml(value, type_name)
    assert document == DECLARATION + element.encode()
    decoded = decode_xml(document)
    assert decoded == value
    assert type(decoded) is type(value)


@given(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", min_codepoint=32)),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.binary(),
        st.uuids(),
        st.datetimes(min_value=datetime(1000, 1, 1)),  # noqa: DTZ001
        st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    )
)
def test_every_simple_value_comes_back(value: XmlValue) -> None:
    assert decode_xml(encode_xml(value)) == value


def test_not_a_number_comes_back() -> None:
    number = decode_xml(encode_xml(math.nan))
    assert isinstance(number, float)
    assert math.isnan(number)


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        ("\x01", None),
        ("\ud800", None),
        ("\uffff", None),
        (2**64, None),
        (-(2**63) - 1, None),
        (256, "unsignedByte"),
        (True, "int"),
        (1, "boolean"),
        ("1", "int"),
        (1, "string"),
        ("AB", "char"),
        ("\U0001f600", "char"),
        ("1.5", "double"),
        (Decimal("Infinity"), None),
        ("now", "dateTime"),
        ("data", "base64Binary"),
        ("guid", "guid"),
        (None, None),
        (10**400, "double"),
    ],
)
def test_a_value_xml_cannot_hold_is_refused(value: XmlValue, type_name: str | None) -> None:
    with pytest.raises(MessageError) as caught:
        encode_xml(value, type_name)
    assert caught.value.status is MqStatus.BAD_XML_FORMAT


def test_an_unknown_type_name_lists_the_known_ones() -> None:
    with pytest.raises(MessageError, match="no simple type 'integer'") as caught:
        encode_xml(1, "integer")
    assert "unsignedInt" in caught.value.hint


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b"<string>plain</string>", "plain"),
        (b"\xef\xbb\xbf<string>marked</string>", "marked"),
        ('<?xml version="1.0" encoding="utf-16"?><string>\xe9</string>'.encode("utf-16"), "\xe9"),
        (b"<!-- a --> <?pi?>\n<int> 5 </int>\n", 5),
        (b"<string><![CDATA[<!DOCTYPE x>]]></string>", "<!DOCTYPE x>"),
        (b"<string>a&amp;&#65;</string>", "a&A"),
        (b"<boolean>1</boolean>", True),
        (
            b"<dateTime>2024-05-01T10:20:30.1234567Z</dateTime>",
            datetime(2024, 5, 1, 10, 20, 30, 123456, UTC),
        ),
        (b"<base64Binary>AP\r\n8=</base64Binary>", b"\x00\xff"),
        (b"<float>1e3</float>", 1000.0),
        (
            b'<string xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true" />',
            None,
        ),
    ],
)
def test_documents_of_other_writers_are_read(document: bytes, value: XmlValue) -> None:
    assert decode_xml(document) == value


def test_an_object_comes_back_as_its_element() -> None:
    order = decode_xml(DECLARATION + b"<Order><Id>7</Id></Order>")
    assert isinstance(order, Element)
    assert order.tag == "Order"
    assert order.findtext("Id") == "7"
    assert isinstance(decode_xml(b"<string><b/></string>"), Element)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"hello",
        b"<string>",
        b"<string>a</string><string/>",
        b"<string>&unknown;</string>",
        b"\xff\xfe\x00",
        b"\x00\x01\xff",
        b"<int>five</int>",
        b"<int>2147483648</int>",
        b"<int>\xd9\xa1</int>",
        b"<boolean>yes</boolean>",
        b"<double>0x10</double>",
        b"<decimal>NaN</decimal>",
        b"<dateTime>20240501</dateTime>",
        b"<dateTime>2024-13-01T00:00:00</dateTime>",
        b"<base64Binary>A</base64Binary>",
        b"<guid>no</guid>",
        b"<char>65536</char>",
        b"<int>" + b"9" * 10_000 + b"</int>",
    ],
)
def test_a_document_that_cannot_be_read_is_refused(document: bytes) -> None:
    with pytest.raises(MessageError) as caught:
        decode_xml(document)
    assert caught.value.status is MqStatus.BAD_XML_FORMAT


BOMB = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><string>&b;</string>'


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        DECLARATION + BOMB,
        b"\xef\xbb\xbf" + BOMB,
        b"<!-- a --><?pi?>\r\n" + BOMB,
        BOMB.decode().encode("utf-16"),
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><string/>',
        b"<!DOCTYPE x><string/>",
    ],
)
def test_a_dtd_is_refused_before_anything_is_expanded(document: bytes) -> None:
    with pytest.raises(MessageError, match="DTD"):
        decode_xml(document)


@pytest.mark.parametrize("encoding", ["utf-7", "utf-16", "ebcdic-cp-us", "shift_jis"])
def test_a_declared_encoding_cannot_hide_a_dtd(encoding: str) -> None:
    text = "+ADwAIQ-DOCTYPE x [<!ENTITY a 'ha'>]><string>&a;</string>"
    document = f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode()
    with pytest.raises(MessageError):
        decode_xml(document)


@given(st.binary(max_size=40) | st.text("<>!?-/&;[]DOCTYPE xstring", max_size=40).map(str.encode))
def test_any_bytes_are_xml_or_an_error_of_ours(data: bytes) -> None:
    try:
        decode_xml(data)
    except MessageError as error:
        assert error.status is MqStatus.BAD_XML_FORMAT


def test_a_deep_document_is_read_without_recursion() -> None:
    depth = sys.getrecursionlimit() * 3
    root = decode_xml(b"<a>" * depth + b"</a>" * depth)
    assert isinstance(root, Element)


XML_INTEGERS = [
    ("byte", -128, 127),
    ("unsignedByte", 0, 255),
    ("short", -32768, 32767),
    ("unsignedShort", 0, 65535),
    ("int", -2147483648, 2147483647),
    ("unsignedInt", 0, 4294967295),
    ("long", -9223372036854775808, 9223372036854775807),
    ("unsignedLong", 0, 18446744073709551615),
]


@pytest.mark.parametrize(("name", "low", "high"), XML_INTEGERS)
def test_an_xml_integer_is_kept_to_the_range_of_its_dotnet_type(
    name: str, low: int, high: int
) -> None:
    for number in (low, high):
        assert decode_xml(encode_xml(number, name)) == number
    for number in (low - 1, high + 1):
        with pytest.raises(MessageError, match=f"it is not in {low}..{high}"):
            encode_xml(number, name)
        with pytest.raises(MessageError):
            decode_xml(f"<{name}>{number}</{name}>".encode())


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "string"),
        ("1", "int"),
        (True, "int"),
        (True, "double"),
        ("x", "boolean"),
        (True, "decimal"),
        ("1", "decimal"),
        ("AA==", "base64Binary"),
        ("now", "dateTime"),
        ("0", "guid"),
        (Decimal("1E+29"), "decimal"),
        (Decimal("1E+999999"), "decimal"),
    ],
)
def test_a_value_of_another_type_is_refused(value: XmlValue, name: str) -> None:
    with pytest.raises(MessageError, match=f"is no {name}"):
        encode_xml(value, name)


def test_a_value_without_an_xml_type_is_refused() -> None:
    with pytest.raises(MessageError, match="a list is no simple XML value"):
        encode_xml([])  # type: ignore[arg-type]  # what the test is about
