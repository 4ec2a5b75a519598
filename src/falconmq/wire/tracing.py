"""A reader that remembers what it read where: the tree behind `falconmq decode`.

The decoders run unchanged; only the reader is another one. When a packet is malformed, the tree
still holds everything read up to the fault.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Self

from falconmq.wire.reader import Buffer, Layout, Reader


@dataclass(slots=True)
class Node:
    """A structure with children, or a field with a value. Offsets count from the packet start."""

    name: str
    offset: int
    size: int = 0
    value: Any = None
    children: list[Node] = field(default_factory=list)
    is_structure: bool = False


class TracingReader(Reader):
    """Reads like `Reader` and builds `root`."""

    __slots__ = ("open_nodes", "root")

    def __init__(self, buffer: Buffer, offset: int = 0, end: int | None = None) -> None:
        super().__init__(buffer, offset, end)
        self.root = Node("", 0, is_structure=True)
        self.open_nodes = [self.root]

    def enter(self, structure: str) -> str:
        node = Node(structure, self.offset, is_structure=True)
        self.open_nodes[-1].children.append(node)
        self.open_nodes.append(node)
        return super().enter(structure)

    def leave(self, outer: str) -> None:
        node = self.open_nodes.pop()
        node.size = self.offset - node.offset
        super().leave(outer)

    def fixed(self, layout: Layout) -> tuple[Any, ...]:
        offset = self.offset
        if self.remaining < layout.size:  # the fields before the cut are there all the same
            there = bytes(self.buffer[self.position : self.end])
            padded = layout.unpack_from(there.ljust(layout.size, b"\0"))
            self._record_fields(layout, padded, offset, len(there))
        values = super().fixed(layout)
        self._record_fields(layout, values, offset, layout.size)
        return values

    def take(self, size: int, field: str) -> memoryview:
        offset = self.offset
        data = super().take(size, field)
        self._record(field, offset, size, data)
        return data

    def text(self, field: str) -> str:
        offset = self.offset
        value = super().text(field)
        self._record(field, offset, self.offset - offset, value)
        return value

    def _number(self, layout: struct.Struct, field: str) -> int:
        offset = self.offset
        number = super()._number(layout, field)
        self._record(field, offset, layout.size, number)
        return number

    def _nested(self, end: int) -> Self:
        inner = super()._nested(end)
        inner.root = self.root
        inner.open_nodes = self.open_nodes
        return inner

    def _record_fields(
        self, layout: Layout, values: tuple[Any, ...], offset: int, available: int
    ) -> None:
        for name, size, value in zip(layout.fields, layout.sizes, values, strict=True):
            available -= size
            if available < 0:
                return
            self._record(name, offset, size, value)
            offset += size

    def _record(self, name: str, offset: int, size: int, value: Any) -> None:
        self.open_nodes[-1].children.append(Node(name, offset, size, value))
