"""Is this file what LMDB left behind? Asked before LMDB maps it, for it trusts what it maps.

LMDB maps its file and follows the numbers in it. A file that was cut short ends the process with
SIGBUS, a page overwritten with something else can end it with an assertion: neither leaves an error
to report. So the pages are walked here first, with checked reads.

How to think about the file. Pages 0 and 1 are two copies of the head; the one with the higher
transaction number counts. It names the roots of two trees: the free pages, and the main tree, whose
leaves name the roots of the tables. Branch pages hold numbers of pages, leaf pages hold keys and
values, and a value too big for its leaf sits in overflow pages of its own.

What is looked at: both heads, and every branch and leaf page (number, kind, bounds, that it is
reached once, that its keys are in order and in the range its parent gives it, and that each tree
has as many entries as its head says). Keys in order mean that a search finds what is there, and
that a scan comes past every record. That is in proportion to what is live: half a second for a
million messages of 100 bytes. What is not looked at: free pages, and the bytes of values, which
carry a checksum of ours that is compared whenever one is read.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Final

from falconmq.store.lmdb_errors import damaged

MAGIC: Final = 0xBEEFC0DE
DATA_VERSION: Final = 1  # of LMDB 0.9
HEADS: Final = 2
NO_PAGE: Final = 0xFFFFFFFF_FFFFFFFF
TREE_DEPTH_MAX: Final = 32

BRANCH: Final = 0x01
LEAF: Final = 0x02
OVERFLOW: Final = 0x04
META: Final = 0x08
OVERFLOW_VALUE: Final = 0x01  # flags of a node
SUBTREE_VALUE: Final = 0x02

_PAGE: Final = struct.Struct("=QHHHH")  # number, padding, flags, lower, upper
_OVERFLOW: Final = struct.Struct("=QHHI")  # number, padding, flags, pages
_HEAD: Final = struct.Struct("=IIQQ")  # magic, version, address, map size
_TREE: Final = struct.Struct("=IHHQQQQQ")  # padding, flags, depth, pages by kind, entries, root
_END: Final = struct.Struct("=QQ")  # last page, transaction
_NODE: Final = struct.Struct("=HHHH")  # low, high, flags, key size
_KEY_SIZE: Final = struct.Struct("=H")
_KEY_SIZE_OFFSET: Final = 6  # of it in a node
_NUMBER: Final = struct.Struct("=Q")
_HEAD_BYTES: Final = _PAGE.size + _HEAD.size + 2 * _TREE.size + _END.size


Data = mmap.mmap | bytes
Pointers = tuple[int, ...]


class _DamageError(Exception):
    """What is wrong; `check_pages` adds the file and what to do."""


@dataclass(slots=True)
class _Tree:
    name: str
    depth: int
    entries: int
    root: int
    is_sorted: bool = True


@dataclass(slots=True)
class _Head:
    page_size: int
    last_page: int
    transaction: int
    free: _Tree
    main: _Tree


@dataclass(frozen=True, slots=True)
class PageSummary:
    """What the walk found."""

    tables: dict[str, int]  # entries by table
    pages: int  # branch and leaf pages that were looked at


def check_pages(path: Path) -> PageSummary:
    """Walk the branch and leaf pages of an LMDB file at rest; StoreError names what is wrong."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < _HEAD_BYTES:
            raise damaged(path, f"it has {size} bytes, too few for its head")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Walk(data).run()
            except _DamageError as problem:
                raise damaged(path, str(problem)) from None


class _Walk:
    """One pass over the pages of a file."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._head = _read_heads(data)
        self._page_size = self._head.page_size
        self._pages_in_file = len(data) // self._page_size
        # Pages at the end that were used and freed in one transaction are never written, so a
        # shorter file need not be a cut one. Then, and only then, every value is looked at.
        self._is_short = self._pages_in_file <= self._head.last_page
        self._reached = bytearray(min(self._head.last_page + 1, self._pages_in_file))
        self._pages = 0

    def run(self) -> PageSummary:
        self._walk(self._head.free)
        tables = {}
        for leaf in self._walk(self._head.main, keep_leaves=True):
            for name, tree in self._subtrees(leaf):
                self._walk(tree)
                tables[name] = tree.entries
        return PageSummary(tables, self._pages)

    def _walk(self, tree: _Tree, *, keep_leaves: bool = False) -> list[int]:
        """Every page of a tree; returns the leaves if asked to, by offset."""
        leaves: list[int] = []
        if tree.root == NO_PAGE:
            if tree.entries:
                raise _DamageError(f"{tree.name} lost its {tree.entries} entries")
            return leaves
        if not 1 <= tree.depth <= TREE_DEPTH_MAX:
            raise _DamageError(f"{tree.name} has depth {tree.depth}")
        entries = 0
        todo: list[tuple[int, int, bytes, bytes | None]] = [(tree.root, tree.depth, b"", None)]
        while todo:
            number, depth, low, high = todo.pop()
            offset, pointers = self._check_page(number, LEAF if depth == 1 else BRANCH)
            keys = self._keys(offset, pointers)
            if depth > 1:
                keys[0] = low  # the first key of a branch page is not kept there
            if tree.is_sorted and not _is_in_order(keys, low, high):
                raise _DamageError(f"page {number} has keys out of order")
            if depth > 1:
                children = self._children(offset, pointers)
                ends = [*keys[1:], high]
                todo += zip(children, [depth - 1] * len(keys), keys, ends, strict=True)
                continue
            entries += len(keys)
            if keep_leaves:
                leaves.append(offset)
            if self._is_short:
                self._check_overflow(offset, pointers)
        if entries != tree.entries:
            raise _DamageError(f"{tree.name} has {entries} entries, its head says {tree.entries}")
        return leaves

    def _check_page(self, number: int, kind: int) -> tuple[int, Pointers]:
        """Where a page is, and its nodes in it, once it has proved to be what it should be."""
        self._reach(number)
        offset = number * self._page_size
        stored, _, flags, lower, upper = _PAGE.unpack_from(self._data, offset)
        if stored != number or flags != kind:
            raise _DamageError(f"page {number} has foreign content")
        count = (lower - _PAGE.size) >> 1
        if count < 1 or (kind == BRANCH and count < 2) or not lower <= upper <= self._page_size:
            raise _DamageError(f"page {number} has impossible bounds")
        pointers = _pointers(count).unpack_from(self._data, offset + _PAGE.size)
        if min(pointers) < upper or max(pointers) > self._page_size - _NODE.size:
            raise _DamageError(f"page {number} points outside itself")
        self._pages += 1
        return offset, pointers

    def _reach(self, number: int) -> None:
        if not HEADS <= number <= self._head.last_page:
            raise _DamageError(f"it refers to page {number} of {self._head.last_page}")
        if number >= self._pages_in_file:
            raise _DamageError(
                f"it was cut short: {len(self._data)} bytes, but page {number} is in use"
            )
        if self._reached[number]:
            raise _DamageError(f"page {number} is used twice")
        self._reached[number] = 1

    def _keys(self, offset: int, pointers: Pointers) -> list[bytes]:
        data, size_at = self._data, _KEY_SIZE.unpack_from
        room = self._page_size - _NODE.size
        keys = []
        for pointer in pointers:
            (size,) = size_at(data, offset + pointer + _KEY_SIZE_OFFSET)
            if pointer + size > room:
                raise _DamageError(f"page {offset // self._page_size} points outside itself")
            at = offset + pointer + _NODE.size
            keys.append(data[at : at + size])
        return keys

    def _nodes(self, offset: int, pointers: Pointers) -> Iterator[tuple[int, int, int, int]]:
        """Offset, low and high word, flags of each node; its key starts 8 bytes further."""
        for pointer in pointers:
            low, high, flags, _ = _NODE.unpack_from(self._data, offset + pointer)
            yield offset + pointer, low | high << 16, flags, pointer

    def _children(self, offset: int, pointers: Pointers) -> list[int]:
        return [word | flags << 32 for _, word, flags, _ in self._nodes(offset, pointers)]

    def _check_overflow(self, offset: int, pointers: Pointers) -> None:
        """Reach the first and last page of every value that has pages of its own."""
        for node, size, flags, pointer in self._nodes(offset, pointers):
            if not flags & OVERFLOW_VALUE:
                continue
            at = self._value_offset(node, pointer, _NUMBER.size)
            (number,) = _NUMBER.unpack_from(self._data, at)
            self._reach(number)
            stored, _, kind, pages = _OVERFLOW.unpack_from(self._data, number * self._page_size)
            if stored != number or kind != OVERFLOW:
                raise _DamageError(f"page {number} has foreign content")
            if pages * self._page_size < size + _PAGE.size:
                raise _DamageError(f"page {number} has impossible bounds")
            if pages > 1:
                self._reach(number + pages - 1)

    def _subtrees(self, offset: int) -> Iterator[tuple[str, _Tree]]:
        """The tables that a leaf of the main tree names."""
        count = (_PAGE.unpack_from(self._data, offset)[3] - _PAGE.size) >> 1
        pointers = _pointers(count).unpack_from(self._data, offset + _PAGE.size)
        for node, size, flags, pointer in self._nodes(offset, pointers):
            if not flags & SUBTREE_VALUE or size != _TREE.size:
                raise _DamageError("its list of tables holds something else")
            at = self._value_offset(node, pointer, _TREE.size)
            key = self._data[node + _NODE.size : at]
            name = key.decode("utf-8", "backslashreplace")
            yield name, _read_tree(self._data, at, f"table {name}")

    def _value_offset(self, node: int, pointer: int, size: int) -> int:
        """Where the value of a node starts, if `size` bytes of it are inside its page."""
        key_size = _NODE.unpack_from(self._data, node)[3]
        if pointer + _NODE.size + key_size + size > self._page_size:
            raise _DamageError(f"page {node // self._page_size} points outside itself")
        return node + _NODE.size + int(key_size)


def _is_in_order(keys: list[bytes], low: bytes, high: bytes | None) -> bool:
    if keys[0] < low or (high is not None and keys[-1] >= high):
        return False
    return all(map(lt, keys, islice(keys, 1, None)))


@cache
def _pointers(count: int) -> struct.Struct:
    return struct.Struct(f"={count}H")


def _read_heads(data: Data) -> _Head:
    first = _read_head(data, 0, 0)
    if first.page_size < 512 or first.page_size > 65536 or first.page_size & first.page_size - 1:
        raise _DamageError(f"its page size is {first.page_size}")
    if len(data) < 2 * first.page_size:
        raise _DamageError(f"it was cut short: {len(data)} bytes")
    second = _read_head(data, first.page_size, 1)
    if second.page_size != first.page_size:
        raise _DamageError("its two heads disagree about the page size")
    return max(first, second, key=lambda head: head.transaction)


def _read_head(data: Data, offset: int, number: int) -> _Head:
    stored, _, flags, _, _ = _PAGE.unpack_from(data, offset)
    at = offset + _PAGE.size
    magic, version, _, _ = _HEAD.unpack_from(data, at)
    if magic != MAGIC:
        raise _DamageError(f"head {number} is not that of an LMDB file")
    if version != DATA_VERSION:
        raise _DamageError(f"head {number} has LMDB's data version {version}, not {DATA_VERSION}")
    if stored != number or flags != META:
        raise _DamageError(f"head {number} has foreign content")
    at += _HEAD.size
    page_size = _TREE.unpack_from(data, at)[0]
    free = _read_tree(data, at, "the list of free pages")
    free.is_sorted = False  # by number, not by byte
    main = _read_tree(data, at + _TREE.size, "the list of tables")
    last_page, transaction = _END.unpack_from(data, at + 2 * _TREE.size)
    return _Head(page_size, last_page, transaction, free, main)


def _read_tree(data: Data, offset: int, name: str) -> _Tree:
    _, _, depth, _, _, _, entries, root = _TREE.unpack_from(data, offset)
    return _Tree(name, depth, entries, root)
