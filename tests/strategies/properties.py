"""Strategies for property values and for lists of properties."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.property_ids import PROPERTIES, Property
from falconmq.wire.variant import (
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
)
from tests.strategies.wire import guids, texts, u8, u16, u32, u64


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


SCALARS: dict[int, st.SearchStrategy[Value]] = {
    VT_EMPTY: st.none(),
    VT_NULL: st.none(),
    VT_I1: _signed(8),
    VT_UI1: u8,
    VT_I2: _signed(16),
    VT_UI2: u16,
    VT_I4: _signed(32),
    VT_UI4: u32,
    VT_I8: _signed(64),
    VT_UI8: u64,
    VT_BOOL: st.booleans(),
    VT_LPWSTR: texts(),
    VT_BLOB: st.binary(max_size=40),
    VT_CLSID: guids,
}


def _vector(element: int) -> st.SearchStrategy[Value]:
    return st.lists(SCALARS[element], max_size=4).map(tuple)


_PLAIN: dict[int, st.SearchStrategy[Value]] = {
    **SCALARS,
    VT_VECTOR | VT_UI1: st.binary(max_size=40),
    VT_VECTOR | VT_UI2: _vector(VT_UI2),
    VT_VECTOR | VT_I4: _vector(VT_I4),
    VT_VECTOR | VT_UI4: _vector(VT_UI4),
    VT_VECTOR | VT_UI8: _vector(VT_UI8),
    VT_VECTOR | VT_CLSID: _vector(VT_CLSID),
    VT_VECTOR | VT_LPWSTR: _vector(VT_LPWSTR),
}


@st.composite
def _variants(draw: st.DrawFn, types: list[int]) -> PropVariant:
    vt = draw(st.sampled_from(types))
    return PropVariant(vt, draw(VALUES[vt]), draw(u8), draw(u8), draw(u32))


VALUES: dict[int, st.SearchStrategy[Value]] = {
    **_PLAIN,
    VT_VECTOR | VT_VARIANT: st.lists(_variants([*_PLAIN]), max_size=3).map(tuple),
}
"""A strategy for the values of every type."""

prop_variants = _variants([*VALUES])
"""PROPVARIANTs of every type, with anything in the reserved fields."""


@st.composite
def _property(draw: st.DrawFn, known: list[Property]) -> tuple[int, Value]:
    prop = draw(st.sampled_from(known))
    return prop.value, draw(VALUES[prop.vt])


def properties(min_size: int = 0, max_size: int = 6) -> st.SearchStrategy[list[tuple[int, Value]]]:
    """Property ids of directory objects with values of their types, in any order."""
    return st.lists(_property([*PROPERTIES.values()]), min_size=min_size, max_size=max_size)
