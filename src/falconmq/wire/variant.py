"""Property values: VARENUM types, their flat bytes, and PROPVARIANT (MQMQ 2.2.12 to 2.2.17).

In change notifications and replication messages a value stands alone: the property id implies its
type and no type tag is sent (MQCN 2.2.3, MQDSRP 2.2.4). `read_value` and `encode_value` are that
form. `PropVariant` puts the type in front, as the structure of MQMQ 2.2.13.1 does; FalconMQ has no
RPC interface, so NDR's pointers and conformant arrays do not exist here.

| type                         | Python value                                   |
|------------------------------|------------------------------------------------|
| VT_EMPTY, VT_NULL            | None                                           |
| VT_I1 ... VT_UI8             | int                                            |
| VT_BOOL                      | bool                                           |
| VT_LPWSTR                    | str                                            |
| VT_BLOB, VT_CLSID            | bytes (a GUID is its 16 wire bytes)            |
| VT_VECTOR | VT_UI1           | bytes, one per element                         |
| VT_VECTOR | another type     | tuple of the element's values                  |
| VT_VECTOR | VT_VARIANT       | tuple of PropVariant                           |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self, TypeAlias

from falconmq.errors import MqStatus, WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure, encode_utf16

VT_EMPTY: Final = 0x0000
VT_NULL: Final = 0x0001
VT_I2: Final = 0x0002
VT_I4: Final = 0x0003
VT_BOOL: Final = 0x000B
VT_VARIANT: Final = 0x000C  # only with VT_VECTOR
VT_I1: Final = 0x0010
VT_UI1: Final = 0x0011
VT_UI2: Final = 0x0012
VT_UI4: Final = 0x0013
VT_I8: Final = 0x0014
VT_UI8: Final = 0x0015
VT_LPWSTR: Final = 0x001F
VT_BLOB: Final = 0x0041
VT_CLSID: Final = 0x0048
VT_VECTOR: Final = 0x1000

VARIANT_TRUE: Final = 0xFFFF
VARIANT_FALSE: Final = 0x0000

Value: TypeAlias = "int | str | bytes | tuple[Value, ...] | PropVariant | None"

GUID_SIZE: Final = 16
HEADER_SIZE: Final = 8  # of a PROPVARIANT, in front of the union

_VARIANTS: Final = VT_VECTOR | VT_VARIANT
_NO_DATA: Final = frozenset({VT_EMPTY, VT_NULL})
_NAMES: Final[Mapping[int, str]] = {
    VT_EMPTY: "VT_EMPTY",
    VT_NULL: "VT_NULL",
    VT_I2: "VT_I2",
    VT_I4: "VT_I4",
    VT_BOOL: "VT_BOOL",
    VT_VARIANT: "VT_VARIANT",
    VT_I1: "VT_I1",
    VT_UI1: "VT_UI1",
    VT_UI2: "VT_UI2",
    VT_UI4: "VT_UI4",
    VT_I8: "VT_I8",
    VT_UI8: "VT_UI8",
    VT_LPWSTR: "VT_LPWSTR",
    VT_BLOB: "VT_BLOB",
    VT_CLSID: "VT_CLSID",
}
_NUMBERS: Final[Mapping[int, str]] = {
    VT_I1: "b",
    VT_UI1: "B",
    VT_I2: "h",
    VT_UI2: "H",
    VT_I4: "i",
    VT_UI4: "I",
    VT_I8: "q",
    VT_UI8: "Q",
}
# The element types that PROPVARIANT has a counted array for, each with the fewest bytes that one
# element takes; any other vector is refused (MQ-2.2.13.1-28).
_ELEMENTS: Final[Mapping[int, int]] = {
    VT_UI1: 1,
    VT_UI2: 2,
    VT_I4: 4,
    VT_UI4: 4,
    VT_UI8: 8,
    VT_CLSID: GUID_SIZE,
    VT_LPWSTR: 2,
    VT_VARIANT: HEADER_SIZE,
}
_HEADER: Final = Layout("PROPVARIANT", "HBBI", "vt", "wReserved1", "wReserved2", "wReserved3")


def is_type(vt: int) -> bool:
    """Whether a value of this type can stand alone: one of MQMQ 2.2.12, or an array of 2.2.16."""
    if vt & VT_VECTOR:
        return vt ^ VT_VECTOR in _ELEMENTS
    return vt in _NAMES and vt != VT_VARIANT


def type_name(vt: int) -> str:
    """The specification's name: VT_UI4, VT_CLSID|VT_VECTOR; the number when there is none."""
    name = _NAMES.get(vt & ~VT_VECTOR)
    if name is None:
        return f"{vt:#06x}"
    return f"{name}|VT_VECTOR" if vt & VT_VECTOR else name


def read_value(reader: Reader, vt: int, field: str) -> Value:
    """Read one value of type `vt`; the type itself is not on the wire (MQCN 2.2.3)."""
    if vt & VT_VECTOR:
        return _read_vector(reader, vt, field)
    code = _NUMBERS.get(vt)
    if code is not None:
        number: int = reader.fixed(_number(vt, code, field))[0]
        return number
    if vt == VT_LPWSTR:
        return reader.text(field)
    if vt == VT_CLSID:
        return reader.guid(field)
    if vt == VT_BLOB:
        return bytes(reader.take(reader.u32(f"{field}.Size"), field))
    if vt == VT_BOOL:
        return _read_bool(reader, field)
    if vt in _NO_DATA:
        return None
    raise _illegal_type(reader.error(field, f"type {type_name(vt)} has no value"))


def encode_value(vt: int, value: Value, field: str = "Value") -> bytes:
    """The bytes of one value, without its type; WireError if the value is none of that type."""
    if vt & VT_VECTOR:
        return _encode_vector(vt, value, field)
    code = _NUMBERS.get(vt)
    if code is not None:
        if not isinstance(value, int):
            raise _misfit(vt, value, field)
        return _number(vt, code, field).pack(value)
    if vt == VT_LPWSTR and isinstance(value, str):
        return encode_text(value, type_name(vt), field)
    if vt == VT_CLSID and isinstance(value, bytes):
        return encode_guid(value, type_name(vt), field)
    if vt == VT_BLOB and isinstance(value, bytes):
        return _counted(len(value), field) + value
    if vt == VT_BOOL and isinstance(value, bool):
        return _number(vt, "H", field).pack(VARIANT_TRUE if value else VARIANT_FALSE)
    if vt in _NO_DATA and value is None:
        return b""
    raise _misfit(vt, value, field)


def encode_text(text: str, structure: str, field: str) -> bytes:
    """UTF-16LE with its NUL; a NUL inside would end the string early, so it is refused."""
    if "\0" in text:
        raise WireError(structure, field, f"{text!r} has a NUL inside")
    return encode_utf16(text) + b"\0\0"


@dataclass(slots=True)
class PropVariant(Structure):
    """A value with its type: vt, eight bits twice and 32 bits that mean nothing, then the value.

    The elements of VT_VECTOR|VT_VARIANT are of this kind: the arrays of EOD_SOURCE_INFO and
    CONNECTION_HISTORY. They do not nest further; a vector of variants inside one is refused, so
    that hostile bytes cannot exhaust the stack.
    """

    vt: int
    value: Value = None
    reserved1: int = 0  # the reserved fields may hold anything: MQ-2.2.13.1-06
    reserved2: int = 0
    reserved3: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls._read(reader, nested=False)

    @classmethod
    def read_element(cls, reader: Reader) -> Self:
        """Read an element of a vector of variants."""
        return cls._read(reader, nested=True)

    def encode(self) -> bytes:
        if not is_type(self.vt):  # MQ-2.2.13.1-02
            problem = f"{self.vt:#06x} is no type of MQMQ 2.2.12"
            raise _illegal_type(WireError("PROPVARIANT", "vt", problem))
        header = _HEADER.pack(self.vt, self.reserved1, self.reserved2, self.reserved3)
        return header + encode_value(self.vt, self.value, "_varUnion")

    @classmethod
    def _read(cls, reader: Reader, *, nested: bool) -> Self:
        outer = reader.enter("PROPVARIANT")
        vt, reserved1, reserved2, reserved3 = reader.fixed(_HEADER)
        if not is_type(vt):  # MQ-2.2.13.1-02
            raise _illegal_type(
                reader.refuse(_HEADER, "vt", f"{vt:#06x} is no type of MQMQ 2.2.12")
            )
        if nested and vt == _VARIANTS:
            raise _illegal_type(reader.refuse(_HEADER, "vt", "vectors of variants do not nest"))
        value = read_value(reader, vt, "_varUnion")
        reader.leave(outer)
        return cls(vt, value, reserved1, reserved2, reserved3)


@lru_cache(maxsize=1024)
def _number(vt: int, code: str, field: str) -> Layout:
    return Layout(type_name(vt), code, field)


def _read_bool(reader: Reader, field: str) -> bool:
    number = reader.u16(field)
    if number not in (VARIANT_TRUE, VARIANT_FALSE):  # CN-2.2.3.3-02, CN-2.2.3.3-03
        raise reader.error(field, f"{number:#06x} is neither true nor false", reader.offset - 2)
    return number == VARIANT_TRUE


def _read_vector(reader: Reader, vt: int, field: str) -> Value:
    element = vt ^ VT_VECTOR
    smallest = _ELEMENTS.get(element)
    if smallest is None:  # MQ-2.2.13.1-28
        raise _illegal_type(reader.error(field, f"there is no vector of {type_name(element)}"))
    count = reader.u32(f"{field}.Size")
    if count * smallest > reader.remaining:
        problem = f"{count} elements do not fit the {reader.remaining} bytes that are left"
        raise reader.error(f"{field}.Size", problem, reader.offset - 4)
    if element == VT_UI1:
        return bytes(reader.take(count, field))
    if element == VT_VARIANT:
        return tuple([PropVariant.read_element(reader) for _ in range(count)])
    return tuple([read_value(reader, element, field) for _ in range(count)])


def _encode_vector(vt: int, value: Value, field: str) -> bytes:
    element = vt ^ VT_VECTOR
    if element not in _ELEMENTS:
        problem = f"there is no vector of {type_name(element)}"
        raise _illegal_type(WireError("PROPVARIANT", field, problem))
    if element == VT_UI1:
        if not isinstance(value, bytes):
            raise _misfit(vt, value, field)
        return _counted(len(value), field) + value
    if not isinstance(value, tuple):
        raise _misfit(vt, value, field)
    parts = [_counted(len(value), field)]
    parts += [_encode_element(element, each, field) for each in value]
    return b"".join(parts)


def _encode_element(vt: int, value: Value, field: str) -> bytes:
    if vt != VT_VARIANT:
        return encode_value(vt, value, field)
    if not isinstance(value, PropVariant):
        raise _misfit(vt, value, field)
    if value.vt == _VARIANTS:
        problem = "vectors of variants do not nest"
        raise _illegal_type(WireError("PROPVARIANT", field, problem))
    return value.encode()


def _counted(count: int, field: str) -> bytes:
    return _number(VT_UI4, "I", f"{field}.Size").pack(count)


def _misfit(vt: int, value: Value, field: str) -> WireError:
    problem = f"a {type(value).__name__} is no {type_name(vt)}"
    return _illegal_type(WireError(type_name(vt), field, problem))


def _illegal_type(error: WireError) -> WireError:
    error.status = MqStatus.ILLEGAL_PROPERTY_VT
    return error
