"""Say in a few words what a body is: for errors, logs and lists."""

from __future__ import annotations

import re
from typing import Final

from falconmq.body.variant import BodyType, body_type_name

_LOOKED_AT: Final = 256  # bytes of a body that the guess looks at
_ROOT_ELEMENT: Final = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def describe_body(body: bytes, body_type: int) -> str:
    """`12 bytes of VT_BSTR`, `an XML document <Order> of 311 bytes`; never the content itself."""
    size = f"{len(body)} byte{'' if len(body) == 1 else 's'}"
    if body_type != BodyType.VT_EMPTY:
        return f"{size} of {body_type_name(body_type)}"
    if not body:
        return "empty"
    start = bytes(body[:_LOOKED_AT]).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        root = _ROOT_ELEMENT.search(start)
        return f"an XML document{_tag(root)} of {size}"
    if start.startswith((b"{", b"[")):
        return f"JSON text of {size}"
    return f"{size} without a body type"


def _tag(root: re.Match[bytes] | None) -> str:
    return f" <{root[1].decode('ascii', 'replace')}>" if root else ""
