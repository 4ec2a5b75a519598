"""Decoded packets as text for people: one line a packet, or its whole tree."""

from __future__ import annotations

from collections import Counter
from typing import Final

from falconmq.capture.packets import CapturedPacket, Totals
from falconmq.cli.screen import Part, Screen, iso_time, short_guids
from falconmq.cli.sources import Decoded
from falconmq.wire.inspection import Inspection, Line, lines
from falconmq.wire.rules import Finding
from falconmq.wire.tracing import Node
from falconmq.wire.words import body_text, count_of, hex_start, printable

_NAME_COLUMN: Final = 11  # behind offset and size
_VALUE_WIDTH: Final = 12
_GUID_SIZE: Final = 36
_BODY_LINES: Final = 4
_KIND_STYLES: Final = {
    "EstablishConnection": "magenta",
    "ConnectionParameters": "magenta",
    "SessionAck": "blue",
    "OrderAck": "blue",
    "FinalAck": "blue",
    "Ping": "magenta",
}


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
        text = inspection.summary if inspection is not None else count_of(decoded.size, "byte")
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
            f", {count_of(decoded.size, 'byte')}",
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


def _goes_to_server(captured: CapturedPacket) -> bool:
    if captured.conversation is None:
        return captured.source.port > captured.destination.port
    return captured.from_client


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
