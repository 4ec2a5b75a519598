"""What commands print: a screen for text, and the two printers of decoded packets.

Results go to standard output, everything else to stderr. Both printers show the same fields.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TextIO

from rich.console import Console
from rich.text import Text

from falconmq.capture.packets import CapturedPacket, Totals
from falconmq.cli.sources import Decoded
from falconmq.wire.annotate import annotate
from falconmq.wire.inspection import Inspection, Line, lines
from falconmq.wire.rules import Finding
from falconmq.wire.tracing import Node
from falconmq.wire.words import body_text, count_of, hex_start, printable

Part = str | tuple[str, str]
"""Text, or text with a style of rich."""

_NAME_COLUMN: Final = 11  # behind offset and size
_VALUE_WIDTH: Final = 12
_GUID_SIZE: Final = 36
_BODY_LINES: Final = 4
_GUID: Final = re.compile(r"\b([0-9A-F]{8})(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}\b")
_KIND_STYLES: Final = {
    "EstablishConnection": "magenta",
    "ConnectionParameters": "magenta",
    "SessionAck": "blue",
    "OrderAck": "blue",
    "FinalAck": "blue",
    "Ping": "magenta",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # `main` knows what to do; rich itself would exit with 1


class Screen:
    """Lines of styled text. Without colours they are written plainly, which is fast."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._console = _Console(file=self._stream, highlight=False, markup=False, emoji=False)
        self._has_colour = self._console.color_system is not None
        self.width = max(self._console.width, 60)

    def line(self, *parts: Part) -> None:
        if self._has_colour:
            self._console.print(Text.assemble(*parts), soft_wrap=True)
            return
        text = "".join(part if isinstance(part, str) else part[0] for part in parts)
        self._stream.write(text.rstrip() + "\n")

    def wrapped(
        self, *first: Part, text: str, style: str = "", indent: int = 0, by: str = " "
    ) -> None:
        """`text` behind `first`, continued at column `indent`. It is only broken behind `by`."""
        used = sum(len(part if isinstance(part, str) else part[0]) for part in first)
        pieces = wrap(text, self.width - used, self.width - indent, by)
        self.line(*first, (pieces[0], style))
        for piece in pieces[1:]:
            # a SID or a GUID that is too long for its column moves to the left
            self.line(" " * min(indent, max(self.width - len(piece), 4)), (piece, style))


def wrap(text: str, first_room: int, room: int, by: str = " ") -> list[str]:
    """Pieces of a text that fit the first line and those below it; a long word stands alone."""
    words = text.split(by)
    if by != " ":
        if max(map(len, words)) >= room:
            return wrap(text, first_room, room)
        first_room, room = first_room - 1, room - 1  # for the comma at the end of a line
    pieces = [words[0]] if len(words[0]) <= first_room else ["", words[0]]
    for word in words[1:]:
        limit = first_room if len(pieces) == 1 else room
        if len(pieces[-1]) + len(by) + len(word) <= limit:
            pieces[-1] += by + word
        else:
            pieces[-1] += by.rstrip()
            pieces.append(word)
    return pieces


def short_guids(text: str) -> str:
    """GUIDs cut to their first eight digits, for narrow lines; the tree has them in full."""
    return _GUID.sub(r"\1..", text)


class PacketPrinter(Protocol):
    """Writes packets as they come, then what they add up to."""

    def packet(self, decoded: Decoded) -> None: ...

    def finish(self, totals: Totals | None) -> None: ...


# Text


class TextPrinter:
    """One line a packet, or its whole tree."""

    def __init__(self, screen: Screen, *, with_tree: bool, whole_body: bool = False) -> None:
        self._screen = screen
        self._with_tree = with_tree
        self._whole_body = whole_body
        self._seen: set[int] = set()  # conversations that have had their heading
        self._warnings: Counter[str] = Counter()  # by requirement
        self._is_first = True

    def packet(self, decoded: Decoded) -> None:
        captured = decoded.captured
        if captured is not None:
            self._conversation_heading(captured)
        if not self._with_tree:
            self._summary_line(decoded)
        else:
            self._heading(decoded)
            if decoded.inspection is not None:
                self._tree(decoded, decoded.inspection)
        self._remarks(decoded)
        self._is_first = False

    def finish(self, totals: Totals | None) -> None:
        if totals is not None:
            self._screen.line()
            self._screen.wrapped(text=totals_text(totals), style="bold", indent=2)
        again = [f"{row} {n} times" for row, n in self._warnings.items() if n > 1]
        if again and not self._with_tree:
            self._screen.wrapped(("warnings: ", "bold yellow"), text=", ".join(again), indent=10)

    def _conversation_heading(self, captured: CapturedPacket) -> None:
        conversation = captured.conversation
        if conversation is None or conversation.number in self._seen:
            return
        self._seen.add(conversation.number)
        if not self._is_first:
            self._screen.line()
        ends = f"{conversation.client} -> {conversation.server}"
        begun = "" if conversation.is_whole else ", begun before the capture"
        date = iso_time(conversation.started_ns)
        self._screen.line(
            (f"conversation {conversation.number}", "bold"),
            f"  {ends}",
            (f"  {date}{begun}", "dim"),
        )

    def _summary_line(self, decoded: Decoded) -> None:
        inspection, captured = decoded.inspection, decoded.captured
        name = inspection.name if inspection is not None else "(no packet)"
        first: list[Part] = [(f"{decoded.number:>5}  ", "dim")]
        if captured is not None:
            number = "" if captured.conversation is None else f"{captured.conversation.number}"
            arrow = "->" if _goes_to_server(captured) else "<-"
            first += [f"{clock_time(captured.time_ns)}  ", (f"{number:>3} ", "dim"), f"{arrow} "]
        else:
            first.append((f"{decoded.offset:>8} ", "dim"))
        first.append((f"{name:<21}", _KIND_STYLES.get(name, "green")))
        text = inspection.summary if inspection is not None else count_of(_size(decoded), "byte")
        used = sum(len(part if isinstance(part, str) else part[0]) for part in first)
        if self._screen.width < 110:
            text = short_guids(text)
        indent = used if self._screen.width - used >= 48 else 12
        self._screen.wrapped(*first, text=text, indent=indent)

    def _heading(self, decoded: Decoded) -> None:
        inspection, captured = decoded.inspection, decoded.captured
        if not self._is_first:
            self._screen.line()
        name = inspection.name if inspection is not None else "no packet"
        parts: list[Part] = [
            (f"packet {decoded.number}: ", "bold"),
            (name, f"bold {_KIND_STYLES.get(name, 'green')}"),
            f", {count_of(_size(decoded), 'byte')}",
        ]
        if captured is not None:
            ends = f"{captured.source} -> {captured.destination}"
            when = f"frame {captured.frame}, {iso_time(captured.time_ns)}"
            parts.append((f"  {ends}  {when}", "dim"))
        elif decoded.offset:
            parts.append((f"  at byte {decoded.offset} of the input", "dim"))
        self._screen.line(*parts)
        if inspection is not None and inspection.summary:
            self._screen.wrapped("  ", text=inspection.summary, indent=2)

    def _tree(self, decoded: Decoded, inspection: Inspection) -> None:
        found = list(lines(inspection.tree, decoded.data))
        longest = max((2 * line.depth + len(_short(line.node.name)) for line in found), default=0)
        column = min(_NAME_COLUMN + longest + 2, max(self._screen.width - _GUID_SIZE - 1, 30))
        body_type = 0
        for line in found:
            if line.node.name == "BodyType":
                body_type = line.node.value
            self._tree_line(line, column)
            if line.node.name == "MessageBody" and not line.node.children:
                self._body(line.node, body_type)

    def _tree_line(self, line: Line, column: int) -> None:
        node, words = line.node, line.annotation
        name = f"{'  ' * line.depth}{_short(node.name)}"
        first: list[Part] = [(f"{node.offset:>5} {node.size:>4} ", "dim")]
        if node.is_structure:
            self._screen.line(
                *first, (f"{name}", "bold"), f"  {words.value}" if words.value else ""
            )
            return
        first.append(f"{name:<{column - _NAME_COLUMN - 1}} ")
        column = max(column, _NAME_COLUMN + len(name) + 1)
        value = words.value
        if column + len(value) > self._screen.width:
            self._screen.wrapped(*first, text=value, style="cyan", indent=column)
            if words.meaning:
                self._screen.wrapped(" " * column, text=words.meaning, indent=column)
            return
        padded = f"{value:<{_VALUE_WIDTH}}" if words.meaning else value
        used = column + len(padded) + 1
        longest = max(map(len, words.meaning.split(" ")))
        if used + min(len(words.meaning), max(longest, 20)) <= self._screen.width:
            first += [(padded, "cyan"), " "]
            indent = used if len(padded) <= _VALUE_WIDTH else column + 2
            self._screen.wrapped(*first, text=words.meaning, indent=indent, by=", ")
            return
        self._screen.line(*first, (value, "cyan"))
        indent = min(column, max(self._screen.width - longest, 4))
        self._screen.wrapped(" " * indent, text=words.meaning, indent=indent, by=", ")

    def _body(self, node: Node, body_type: int) -> None:
        """The text or a dump of a body under its line."""
        data = bytes(node.value)
        _, text = body_text(data, body_type)
        if text:
            self._body_text(text)
            return
        shown = data if self._whole_body else data[: 16 * _BODY_LINES]
        for start in range(0, len(shown), 16):
            row = shown[start : start + 16]
            plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
            self._screen.line(
                (f"{node.offset + start:>5}", "dim"), f"      {row.hex(' '):<47}  ", (plain, "cyan")
            )
        self._left_out(len(data) - len(shown), "byte")

    def _body_text(self, text: str) -> None:
        width = self._screen.width - _NAME_COLUMN
        rows = []
        for row in text.splitlines():
            safe = printable(row)
            rows += [safe[i : i + width] for i in range(0, len(safe), width)] or [""]
            if not self._whole_body and len(rows) > _BODY_LINES:
                break
        shown = rows if self._whole_body else rows[:_BODY_LINES]
        for row in shown:
            self._screen.line(" " * _NAME_COLUMN, (row, "cyan"))
        if not self._whole_body:
            self._left_out(len(text) - sum(map(len, shown)) - len(shown) + 1, "character")

    def _left_out(self, count: int, noun: str) -> None:
        if count > 0:
            self._screen.line(
                " " * _NAME_COLUMN, (f"... {count_of(count, noun)} more: --body", "dim")
            )

    def _remarks(self, decoded: Decoded) -> None:
        inspection, captured = decoded.inspection, decoded.captured
        for finding in inspection.findings if inspection is not None else []:
            self._warning(finding)
        if captured is not None and captured.lost:
            self._note(f"{count_of(captured.lost, 'byte')} before it are not in the capture")
        if captured is not None and captured.problem:
            self._note(f"incomplete: {captured.problem} ({hex_start(captured.data, 16)})")
        elif inspection is not None and inspection.error is not None:
            self._screen.wrapped(("  error: ", "bold red"), text=str(inspection.error), indent=9)

    def _warning(self, finding: Finding) -> None:
        """In a tree every time; among summaries the first time only, the count comes at the end."""
        self._warnings[finding.row] += 1
        if self._with_tree or self._warnings[finding.row] == 1:
            text = f"{finding.field}: {finding.problem} [{finding.row}]"
            self._screen.wrapped(("  warning: ", "bold yellow"), text=text, indent=11)

    def _note(self, text: str) -> None:
        self._screen.wrapped(("  note: ", "bold yellow"), text=text, indent=8)


def _short(name: str) -> str:
    """PropertyValue[PROPID_Q_LABEL] stands in a line of its own: the property is enough."""
    return name.removeprefix("PropertyValue[").replace("]", "") if "[" in name else name


def _size(decoded: Decoded) -> int:
    return decoded.captured.size if decoded.captured is not None else len(decoded.data)


def _goes_to_server(captured: CapturedPacket) -> bool:
    if captured.conversation is None:
        return captured.source.port > captured.destination.port
    return captured.from_client


def iso_time(time_ns: int | None) -> str:
    """2023-11-14T22:13:20.003000Z"""
    if time_ns is None:
        return "(no time)"
    seconds, fraction = divmod(time_ns, 10**9)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction // 1000:06}Z"


def clock_time(time_ns: int | None) -> str:
    """22:13:20.003"""
    return iso_time(time_ns)[11:-4] if time_ns is not None else " " * 12


def totals_text(totals: Totals) -> str:
    """8 packets and 2 pings in 1 conversation; 21 frames, 1.2 seconds"""
    parts = [
        count_of(totals.packets, "packet"),
        count_of(totals.pings, "ping"),
        count_of(totals.conversations, "conversation"),
        count_of(totals.frames, "frame"),
    ]
    if totals.incomplete:
        parts.append(f"{totals.incomplete} incomplete")
    if totals.missing:
        parts.append(f"{count_of(totals.missing, 'byte')} not in the capture")
    parts += [f"{count} left out ({reason.value})" for reason, count in totals.left_out.items()]
    return ", ".join(parts)


# JSON


class JsonPrinter:
    """One document, {"packets": [...], "totals": ...}, or with `as_lines` one object a line."""

    def __init__(self, stream: TextIO | None = None, *, as_lines: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._as_lines = as_lines
        self._count = 0

    def packet(self, decoded: Decoded) -> None:
        if self._as_lines:
            self._stream.write(json.dumps(packet_json(decoded)) + "\n")
        else:
            self._stream.write(",\n" if self._count else '{"packets": [\n')
            self._stream.write(json.dumps(packet_json(decoded), indent=1))
        self._count += 1

    def finish(self, totals: Totals | None) -> None:
        if self._as_lines:
            return
        self._stream.write("\n]" if self._count else '{"packets": []')
        if totals is not None:
            self._stream.write(f',\n"totals": {json.dumps(totals_json(totals), indent=1)}')
        self._stream.write("}\n")


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """One document on standard output."""
    out = stream if stream is not None else sys.stdout
    out.write(json.dumps(value, indent=1) + "\n")


def packet_json(decoded: Decoded) -> dict[str, Any]:
    """A packet with stable keys; numbers are numbers, bytes are hexadecimal."""
    inspection, captured = decoded.inspection, decoded.captured
    packet: dict[str, Any] = {"number": decoded.number}
    if decoded.offset is not None:
        packet["offset"] = decoded.offset
    if captured is not None:
        conversation = captured.conversation
        packet["capture"] = {
            "frame": captured.frame,
            "time": None if captured.time_ns is None else iso_time(captured.time_ns),
            "source": str(captured.source),
            "destination": str(captured.destination),
            "conversation": None if conversation is None else conversation.number,
            "lost_before": captured.lost,
            "problem": captured.problem or None,
        }
    packet["size"] = _size(decoded)
    packet["kind"] = inspection.name if inspection is not None else None
    packet["summary"] = inspection.summary if inspection is not None else ""
    packet["fields"] = [] if inspection is None else _fields_json(inspection.tree)
    packet["warnings"] = [] if inspection is None else _findings_json(inspection)
    packet["error"] = None if inspection is None else _error_json(inspection)
    return packet


def _fields_json(node: Node) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    siblings: dict[str, Any] = {}
    for child in node.children:
        entry: dict[str, Any] = {"name": child.name, "offset": child.offset, "size": child.size}
        if not child.is_structure:
            siblings[child.name] = child.value
            words = annotate(node.name, child.name, child.value, child.size, siblings)
            entry["value"] = _value_json(child.value)
            entry["text"] = words.value
            if child.name == "MessageBody":
                entry["text"] = body_text(child.value, siblings.get("BodyType", 0))[1]
            entry["meaning"] = words.meaning
        if child.is_structure or child.children:
            entry["fields"] = _fields_json(child)
        fields.append(entry)
    return fields


def _value_json(value: Any) -> Any:
    return value if isinstance(value, (int, str)) or value is None else bytes(value).hex()


def _findings_json(inspection: Inspection) -> list[dict[str, str]]:
    return [
        {"requirement": finding.row, "field": finding.field, "problem": finding.problem}
        for finding in inspection.findings
    ]


def _error_json(inspection: Inspection) -> dict[str, Any] | None:
    error = inspection.error
    if error is None:
        return None
    return {
        "structure": error.structure,
        "field": error.field,
        "offset": error.offset,
        "problem": error.problem,
    }


def totals_json(totals: Totals) -> dict[str, Any]:
    return {
        "frames": totals.frames,
        "conversations": totals.conversations,
        "packets": totals.packets,
        "pings": totals.pings,
        "incomplete": totals.incomplete,
        "missing_bytes": totals.missing,
        "left_out": {reason.name.lower(): count for reason, count in totals.left_out.items()},
    }
