"""Strategies for SIDs, ACEs, ACLs and security descriptors, and for those that SDDL can spell."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.ace import (
    BASIC_ACE_TYPES,
    DATA_ACE_TYPES,
    OBJECT_ACE_TYPES,
    Ace,
    BasicAce,
    ObjectAce,
    OpaqueAce,
)
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import (
    SE_DACL_PRESENT,
    SE_SACL_PRESENT,
    SE_SELF_RELATIVE,
    SecurityDescriptor,
)
from falconmq.wire.sid import SDDL_ALIASES, Sid
from tests.strategies.wire import guids, u8, u16, u32

sids: st.SearchStrategy[Sid] = st.one_of(
    st.sampled_from(sorted(SDDL_ALIASES.values(), key=str)),
    st.builds(
        Sid,
        st.one_of(st.integers(0, 20), st.integers(0, 0xFFFFFFFFFFFF)),
        st.lists(u32, max_size=15).map(tuple),
    ),
)
_words = st.lists(st.binary(min_size=4, max_size=4), max_size=5).map(b"".join)
_types_without_layout = st.integers(0, 0xFF).filter(
    lambda ace_type: ace_type not in BASIC_ACE_TYPES | OBJECT_ACE_TYPES
)


@st.composite
def _basic_aces(draw: st.DrawFn) -> BasicAce:
    ace_type = draw(st.sampled_from(sorted(BASIC_ACE_TYPES)))
    data = draw(_words) if ace_type in DATA_ACE_TYPES else b""
    return BasicAce(ace_type, draw(u32), draw(sids), draw(u8), data)


@st.composite
def _object_aces(draw: st.DrawFn) -> ObjectAce:
    ace_type = draw(st.sampled_from(sorted(OBJECT_ACE_TYPES)))
    return ObjectAce(
        ace_type,
        draw(u32),
        draw(sids),
        draw(st.none() | guids),
        draw(st.none() | guids),
        draw(u8),
        draw(_words) if ace_type in DATA_ACE_TYPES else b"",
        draw(u32) & ~3,
    )


basic_aces = _basic_aces()
object_aces = _object_aces()
opaque_aces = st.builds(OpaqueAce, _types_without_layout, _words, u8)
aces: st.SearchStrategy[Ace] = st.one_of(basic_aces, object_aces, opaque_aces)
acls = st.builds(Acl, st.lists(aces, max_size=5).map(tuple), st.sampled_from([2, 4]), u8, u16)
security_descriptors = st.builds(
    SecurityDescriptor,
    st.none() | sids,
    st.none() | sids,
    st.none() | acls,
    st.none() | acls,
    u16.map(lambda control: control | SE_SELF_RELATIVE),
    u8,
)

# What SDDL has words for.
_spellable_flags = u8.map(lambda flags: flags & 0xDF)
spellable_aces: st.SearchStrategy[Ace] = st.one_of(
    st.builds(BasicAce, st.sampled_from([0, 1, 2, 3, 0x11, 0x13]), u32, sids, _spellable_flags),
    st.builds(
        ObjectAce,
        st.sampled_from([5, 6, 7, 8]),
        u32,
        sids,
        st.none() | guids,
        st.none() | guids,
        _spellable_flags,
    ),
)
_DACL_CONTROL = SE_DACL_PRESENT | 0x1500
_SACL_CONTROL = SE_SACL_PRESENT | 0x2A00


@st.composite
def _spellable_security_descriptors(draw: st.DrawFn) -> SecurityDescriptor:
    acls_of_text = st.lists(spellable_aces, max_size=4).map(Acl.of)
    control = 0
    dacl = sacl = None
    if draw(st.booleans()):
        dacl = draw(st.none() | acls_of_text)
        control |= SE_DACL_PRESENT | draw(u16) & _DACL_CONTROL
    if draw(st.booleans()):
        sacl = draw(st.none() | acls_of_text)
        control |= SE_SACL_PRESENT | draw(u16) & _SACL_CONTROL
    return SecurityDescriptor(draw(st.none() | sids), draw(st.none() | sids), dacl, sacl, control)


spellable_security_descriptors = _spellable_security_descriptors()


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Valid bytes with a few of them overwritten, then perhaps cut short."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 4))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(u8)
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)
