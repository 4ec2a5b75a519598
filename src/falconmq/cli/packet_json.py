"""Decoded packets as JSON for programs: the same fields that people see."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from falconmq.capture.packets import Totals
from falconmq.cli.screen import iso_time
from falconmq.cli.sources import Decoded
from falconmq.wire.annotate import annotate
from falconmq.wire.inspection import Inspection
from falconmq.wire.tracing import Node
from falconmq.wire.words import body_text


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
    packet["size"] = decoded.size
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
