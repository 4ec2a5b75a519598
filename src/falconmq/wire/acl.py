"""ACL: a list of ACEs behind an 8-byte header (MS-DTYP 2.4.5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.ace import Ace, ObjectAce, read_ace
from falconmq.wire.reader import Layout, Reader, Structure

ACL_REVISION: Final = 2
ACL_REVISION_DS: Final = 4
SIZE_MAX: Final = 0xFFFF

_ACE_SIZE_MIN: Final = 4  # an ACE header and nothing else

_LAYOUT: Final = Layout("ACL", "BBHHH", "AclRevision", "Sbz1", "AclSize", "AceCount", "Sbz2")


@dataclass(frozen=True, slots=True)
class Acl(Structure):
    """The entries in their order, which decides: the first match wins.

    An empty list grants nobody anything; no list at all (a null DACL) grants everybody everything.
    """

    aces: tuple[Ace, ...] = ()
    acl_revision: int = ACL_REVISION
    sbz1: int = 0
    sbz2: int = 0

    @classmethod
    def of(cls, aces: Iterable[Ace]) -> Self:
        """A list of these entries, of the lowest revision that may hold them."""
        entries = tuple(aces)
        has_object_ace = any(isinstance(ace, ObjectAce) for ace in entries)
        return cls(entries, ACL_REVISION_DS if has_object_ace else ACL_REVISION)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ACL")
        revision, sbz1, size, count, sbz2 = reader.fixed(_LAYOUT)
        if revision not in (ACL_REVISION, ACL_REVISION_DS):
            raise reader.refuse(_LAYOUT, "AclRevision", f"{revision} is neither 2 nor 4")
        if not _LAYOUT.size <= size <= _LAYOUT.size + reader.remaining:
            limit = _LAYOUT.size + reader.remaining
            raise reader.refuse(_LAYOUT, "AclSize", f"{size} is not in {_LAYOUT.size}..{limit}")
        if count * _ACE_SIZE_MIN > size - _LAYOUT.size:
            raise reader.refuse(_LAYOUT, "AceCount", f"{count} ACEs do not fit {size} bytes")
        body = reader.part(size - _LAYOUT.size, "AclSize")
        aces = tuple([read_ace(body) for _ in range(count)])
        if body.remaining:
            body.skip(body.remaining, "Slack")  # room for more ACEs: Windows leaves it, we do not
        reader.leave(outer)
        return cls(aces, revision, sbz1, sbz2)

    def encode(self) -> bytes:
        if self.acl_revision not in (ACL_REVISION, ACL_REVISION_DS):
            raise WireError("ACL", "AclRevision", f"{self.acl_revision} is neither 2 nor 4")
        body = b"".join([ace.encode() for ace in self.aces])
        size = _LAYOUT.size + len(body)
        head = _LAYOUT.pack(self.acl_revision, self.sbz1, size, len(self.aces), self.sbz2)
        return head + body
