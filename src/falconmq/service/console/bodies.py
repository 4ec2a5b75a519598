"""Bodies of messages as people read them: text, JSON and XML in lines, bytes in hexadecimal.

A body comes from anybody. So nothing of it is evaluated: JSON is only indented anew, letter by
letter, and XML is cut at its tags, without a parser that could be talked into expanding entities or
reading files. Sizes are bounded before work begins; whoever needs all of it downloads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from falconmq.wire.words import body_text, printable

PRETTY_BYTES: Final = 128 * 1024  # a longer body is shown as it is
SHOWN_CHARACTERS: Final = 128 * 1024  # of any text
HEX_BYTES: Final = 4096  # on one page
_ROW: Final = 16
_DEEPEST: Final = 40  # levels that are indented; deeper ones stand below each other
_INDENT: Final = "  "

VIEWS: Final = {"text": "Text", "json": "JSON", "xml": "XML", "hex": "Bytes"}


@dataclass(frozen=True, slots=True)
class BodyView:
    """One way to see a body."""

    name: str
    text: str
    is_cut: bool = False
    encoding: str = ""
    offset: int = 0  # of the first byte, in hexadecimal
    next_offset: int | None = None
    previous_offset: int | None = None


def views_of(body: bytes, body_type: int) -> list[str]:
    """The ways in which a body can be seen, the most readable first."""
    _, text = body_text(body, body_type, PRETTY_BYTES)
    if not text:
        return ["hex"]
    found = ["text", "hex"]
    if len(body) <= PRETTY_BYTES:
        if pretty_json(text) is not None:
            found.insert(0, "json")
        elif pretty_xml(text) is not None:
            found.insert(0, "xml")
    return found


def view_of(body: bytes, body_type: int, name: str, offset: int = 0) -> BodyView:
    """A body seen in one way; what cannot be seen so is shown as text or bytes."""
    encoding, text = body_text(body, body_type, max(PRETTY_BYTES, 4 * SHOWN_CHARACTERS))
    if name == "hex" or not text:
        return _hex(body, offset)
    pretty = None
    if len(body) <= PRETTY_BYTES:
        pretty = {"json": pretty_json, "xml": pretty_xml}.get(name, lambda _: None)(text)
    shown = _visible(text if pretty is None else pretty)
    is_cut = len(shown) > SHOWN_CHARACTERS or len(body) > 4 * SHOWN_CHARACTERS
    chosen = name if pretty is not None else "text"
    return BodyView(chosen, shown[:SHOWN_CHARACTERS], is_cut, encoding)


def pretty_json(text: str) -> str | None:
    """JSON with a line for each value; None if it is none. Numbers and keys stay as written."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _indent_json(text)


def _indent_json(text: str) -> str:
    """Indent what is known to be JSON."""
    parts: list[str] = []
    depth, position, size = 0, 0, 0
    while position < len(text) and size <= SHOWN_CHARACTERS:
        sign = text[position]
        end = position + 1
        if sign == '"':
            end = _end_of_string(text, position)
            piece = text[position:end]
        elif sign in "{[":
            depth += 1
            rest = _skip_space(text, end)
            is_empty = text[rest : rest + 1] in ("}", "]")
            piece = sign if is_empty else sign + _line(depth)
            end = rest
            if is_empty:
                depth -= 1
                piece += text[rest]
                end = rest + 1
        elif sign in "}]":
            depth -= 1
            piece = _line(depth) + sign
        elif sign == ",":
            piece = "," + _line(depth)
        elif sign == ":":
            piece = ": "
        else:
            piece = "" if sign in " \t\r\n" else sign
        parts.append(piece)
        size += len(piece)
        position = end
    return "".join(parts)


def _end_of_string(text: str, start: int) -> int:
    position = start + 1
    while position < len(text) and text[position] != '"':
        position += 2 if text[position] == "\\" else 1
    return position + 1


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def pretty_xml(text: str) -> str | None:
    """XML with a line for each tag; None if it does not look like XML. Entities stay as written."""
    if text.lstrip()[:1] != "<":
        return None
    lines: list[str] = []
    depth, size, previous = 0, 0, ""
    for kind, piece in _xml_pieces(text):
        if kind == "broken":
            return None
        if kind == "close":
            depth -= 1
            if depth < 0:
                return None
        if lines and (
            (kind == "text" and previous == "open")
            or (kind == "close" and previous in ("open", "text"))
        ):
            lines[-1] += piece  # <a>text</a> stays on its line
        else:
            lines.append(_line(depth)[1:] + piece)
        if kind == "open":
            depth += 1
        size += len(piece) + min(depth, _DEEPEST) * len(_INDENT)
        # a text between two tags of its own is followed by a tag on a line of its own
        previous = kind if not (kind == "text" and previous != "open") else "mixed"
        if size > SHOWN_CHARACTERS:
            break
    else:
        if depth:
            return None
    return "\n".join(lines) if lines else None


def _xml_pieces(text: str) -> list[tuple[str, str]]:
    """Tags, comments and texts in their order; the last is "broken" if one has no end."""
    pieces: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        if text[position] != "<":
            end = text.find("<", position)
            end = len(text) if end < 0 else end
            piece = text[position:end].strip()
            if piece:
                pieces.append(("text", piece))
            position = end
            continue
        end = _end_of_tag(text, position)
        if end < 0:
            return [*pieces, ("broken", "")]
        piece = text[position:end]
        pieces.append((_kind(piece), piece))
        position = end
    return pieces


def _end_of_tag(text: str, start: int) -> int:
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
        if text.startswith(opening, start):
            end = text.find(closing, start + len(opening))
            return -1 if end < 0 else end + len(closing)
    quote, level = "", 0
    for position in range(start, len(text)):
        sign = text[position]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "<":
            level += 1
        elif sign == ">":
            level -= 1  # a DOCTYPE holds declarations of its own
            if not level:
                return position + 1
    return -1


def _kind(piece: str) -> str:
    if piece.startswith("</"):
        return "close"
    if piece.startswith("<![CDATA["):
        return "text"
    if piece.startswith(("<?", "<!")) or piece.endswith("/>"):
        return "whole"
    return "open" if piece[1:2].isalpha() or piece[1:2] in ("_", ":") else "broken"


def _hex(body: bytes, offset: int) -> BodyView:
    start = min(offset, max(0, len(body) - 1)) // _ROW * _ROW
    shown = body[start : start + HEX_BYTES]
    rows = []
    for at in range(0, len(shown), _ROW):
        row = shown[at : at + _ROW]
        plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{start + at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {plain}")
    after = start + HEX_BYTES
    return BodyView(
        "hex",
        "\n".join(rows) or "(no bytes)",
        is_cut=len(body) > HEX_BYTES,
        offset=start,
        next_offset=after if after < len(body) else None,
        previous_offset=max(0, start - HEX_BYTES) if start else None,
    )


def _visible(text: str) -> str:
    """Control characters as escapes, so that nothing hides or turns the direction of the text."""
    if text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" else printable_sign(sign) for sign in _lines(text))


def printable_sign(sign: str) -> str:
    return sign if sign.isprintable() else printable(sign)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _line(depth: int) -> str:
    return "\n" + _INDENT * max(0, min(depth, _DEEPEST))
