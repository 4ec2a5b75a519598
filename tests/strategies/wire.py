"""Hypothesis strategies for the small parts that every structure is made of."""

from __future__ import annotations

from hypothesis import strategies as st

u8 = st.integers(0, 0xFF)
u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)
guids = st.binary(min_size=16, max_size=16)
"""GUIDs as their 16 wire bytes."""


def texts(*, min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[str]:
    """Strings a NUL-terminated UTF-16 field can hold; `max_size` counts 16-bit units."""
    characters = st.characters(min_codepoint=1, max_codepoint=0xFFFF)  # lone surrogates too
    return st.text(characters, min_size=min_size, max_size=max_size).filter(_survives_utf16)


def _survives_utf16(text: str) -> bool:
    """Two lone surrogates next to each other would come back as one character."""
    data = text.encode("utf-16-le", "surrogatepass")
    return data.decode("utf-16-le", "surrogatepass") == text
