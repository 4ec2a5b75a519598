"""UTF-16 text whose size, its NUL counted, is announced in front of it (MQMQ 2.2.18.1.5.2).

Direct queue names, labels and the SOAP sections share these rules: the last character is a NUL and
is not part of the text. A NUL inside is kept when it comes from a peer and never sent.
"""

from __future__ import annotations

from falconmq.errors import WireError
from falconmq.wire.reader import Reader, decode_utf16, encode_utf16


def read_counted_text(reader: Reader, size: int, field: str) -> str:
    """Read `size` bytes, an even number of at least 2, and drop the NUL that must end them."""
    text = decode_utf16(reader.take(size, field))
    if text[-1] != "\0":  # MQ-2.2.18.1.5.2-06
        raise reader.error(field, "no NUL ends this string", reader.offset - 2)
    return text[:-1]


def encode_counted_text(text: str, structure: str, field: str) -> bytes:
    """The bytes of a text and its NUL."""
    if "\0" in text:
        raise WireError(structure, field, "a NUL inside the text would cut it off at the receiver")
    return encode_utf16(text) + b"\0\0"
