"""Who may do what in a directory (directory guide 3.4).

A guard stands before any back end and asks the security descriptors of the objects that it holds.
Active Directory asks them itself; a store or another LDAP server does not, so there the guard is
what makes them count. Whoever owns the process needs no permission.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.base import DirectoryBase, Page, not_found, only
from falconmq.directory.queries import find_all, query_error
from falconmq.directory.schema import ObjectTable
from falconmq.directory.tree import public_path
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.access import Principal, grants
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult, DirectoryServerType
from falconmq.wire import access_masks as masks
from falconmq.wire.access_masks import GENERIC_MAPPINGS, ObjectKind, mask_in_words
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE, Sid

SET_PROPERTIES: Final = 0x10  # the same bit for every kind of object
GET_PROPERTIES: Final = 0x20
_LOOK: Final = GET_PROPERTIES | masks.READ_CONTROL
_IN_ENTERPRISE: Final = {
    tables.SITE: masks.MQSEC_CREATE_SITE,
    tables.USER: masks.MQSEC_CREATE_USER,
    tables.CONNECTED_NETWORK: masks.MQSEC_CREATE_CN,
}

Caller = Callable[[], Principal | None]
"""Whom the directory works for now; None: for the owner of the process."""


class GuardedDirectory(DirectoryBase):
    """A directory that lets everybody do what the descriptors of its objects say."""

    def __init__(self, inner: DirectoryBase, caller: Caller) -> None:
        super().__init__()
        self._inner = inner
        self._caller = caller
        self.is_integrated = inner.is_integrated

    def computer_sid(self, computer_name: str) -> Sid | None:
        return self._inner.computer_sid(computer_name)

    def find_servers(self, domain_name: str) -> Sequence[str]:
        return self._inner.find_servers(domain_name)

    def close(self) -> None:
        self._inner.close()

    def create_many(
        self, type_name: str, rows: Iterable[Row]
    ) -> list[tuple[DirectoryResult, UUID]]:
        """Together, where nobody has to be asked; else each for itself."""
        if self._caller() is not None:
            return super().create_many(type_name, rows)
        results = self._inner.create_many(type_name, rows)
        if any(result is not DirectoryResult.SUCCESS for result, _ in results):
            self.last_problem = self._inner.last_problem
        return results

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        principal = self._caller()
        if principal is not None:
            for kind, parent, mask in self._parents(table, row):
                _check(principal, parent, mask, kind)
            if table.kind is not None and row["security"] is None:
                row["security"] = default_descriptor(table.kind, principal.user)
        result, identifier = self._inner.create(table.type_name, row)
        self._pass_on(table, result)
        return identifier

    def _parents(
        self, table: ObjectTable, row: Row
    ) -> Iterator[tuple[ObjectKind, SecurityDescriptor | None, int]]:
        """What a new object comes to stand below, and the right that this takes."""
        if table.type_name == tables.QUEUE:
            computer = public_path(str(row["path_name"])).computer
            owner = self._security_of(tables.QUEUE_MANAGER, equals("computer_name", computer))
            yield ObjectKind.QUEUE_MANAGER, owner, masks.MQSEC_CREATE_QUEUE
        elif table.type_name == tables.QUEUE_MANAGER:
            mask = _machine_right(row)
            sites = row["site_identifiers"]
            assert isinstance(sites, list)
            for site in sites:
                yield (
                    ObjectKind.SITE,
                    self._security_of(tables.SITE, equals("identifier", site)),
                    mask,
                )
        else:
            mask = _IN_ENTERPRISE.get(table.type_name, SET_PROPERTIES)
            yield ObjectKind.ENTERPRISE, self._security_of(tables.ENTERPRISE, ()), mask

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        self._check_object(table, identifier, masks.DELETE)
        self._pass_on(table, self._inner.delete(table.type_name, identifier))

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        mask = 0
        if changes.keys() - {"security"}:
            mask |= SET_PROPERTIES
        if "security" in changes:
            mask |= masks.WRITE_DACL
        if not self._is_own_user(table, identifier):
            self._check_object(table, identifier, mask)
        row = {"identifier": identifier, **changes}
        self._pass_on(table, self._inner.write(table.type_name, row))

    def _is_own_user(self, table: ObjectTable, identifier: UUID) -> bool:
        """Everybody registers certificates for himself."""
        principal = self._caller()
        if principal is None or table.type_name != tables.USER:
            return False
        found = self._inner.read(tables.USER, equals("identifier", identifier), None)[1]
        return found.get("security_identifier") == principal.user.encode()

    def _check_object(self, table: ObjectTable, identifier: UUID, mask: int) -> None:
        principal = self._caller()
        if principal is None:
            return
        if table.kind is None:  # links, users and lists have no descriptor: the enterprise's counts
            security = self._security_of(tables.ENTERPRISE, ())
            _check(principal, security, SET_PROPERTIES, ObjectKind.ENTERPRISE)
            return
        security = self._security_of(table.type_name, equals("identifier", identifier))
        _check(principal, security, mask, table.kind)

    def _security_of(self, type_name: str, filters: Filters) -> SecurityDescriptor | None:
        result, row = self._inner.read(type_name, filters, None)
        if result is DirectoryResult.OBJECT_NOT_FOUND:
            raise not_found(type_name, filters)
        if result is not DirectoryResult.SUCCESS:
            raise query_error(self._inner, type_name, result)
        security = row["security"]
        assert security is None or isinstance(security, SecurityDescriptor)
        return security

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        """Objects that may be looked at; the others are as if they were not there."""
        asked = self._asked(table, attributes)
        return self._visible(table, find_all(self._inner, table.type_name, filters, asked))

    def page(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        after: UUID | None,
        limit: int,
    ) -> tuple[DirectoryResult, Page]:
        """A page of the back end, less what may not be looked at."""
        table = tables.TABLES.get(type_name)
        asked = attributes if table is None else self._asked(table, attributes)
        result, found = self._inner.page(type_name, filters, asked, after, limit)
        if result is not DirectoryResult.SUCCESS or table is None:
            self.last_problem = self._inner.last_problem
            return result, found
        rows = [only(row, attributes) for row in self._visible(table, found.rows)]
        return result, Page(rows, found.next)

    def _asked(
        self, table: ObjectTable, attributes: Collection[str] | None
    ) -> Sequence[str] | None:
        """What to ask the back end for: all where the descriptor decides, for it may be missing."""
        is_guarded = table.kind is not None and self._caller() is not None
        return None if attributes is None or is_guarded else list(attributes)

    def _visible(self, table: ObjectTable, rows: Iterable[Row]) -> Iterator[Row]:
        principal = self._caller()
        for row in rows:
            if principal is None or table.kind is None:
                yield row
                continue
            security = row["security"]
            assert security is None or isinstance(security, SecurityDescriptor)
            if grants(security, principal, GET_PROPERTIES, table.kind):
                if not grants(security, principal, masks.READ_CONTROL, table.kind):
                    row = {**row, "security": None}
                yield row

    def at(self, place: str) -> tuple[ObjectTable, Row]:
        table, found = self._inner.at(place)
        for row in self._visible(table, [found]):
            return table, row
        raise not_found("object", equals("full_path", place))

    def _pass_on(self, table: ObjectTable, result: DirectoryResult) -> None:
        if result is not DirectoryResult.SUCCESS:
            raise query_error(self._inner, table.type_name, result)


def default_descriptor(kind: ObjectKind, owner: Sid) -> SecurityDescriptor:
    """Everybody may look, the owner may do everything (guide 3.4)."""
    aces = [access_allowed(_LOOK, EVERYONE), access_allowed(GENERIC_MAPPINGS[kind].all, owner)]
    return SecurityDescriptor(owner, None, Acl.of(aces))


def _machine_right(row: Row) -> int:
    mask = masks.MQSEC_CREATE_MACHINE
    if row["routing_server"]:
        mask |= masks.MQSEC_CREATE_FRS
    if row["directory_server"] and row["server_type"] is DirectoryServerType.BACKUP_SITE_CONTROLLER:
        mask |= masks.MQSEC_CREATE_BSC
    return mask


def _check(
    principal: Principal, security: SecurityDescriptor | None, mask: int, kind: ObjectKind
) -> None:
    if not grants(security, principal, mask, kind):
        raise DirectoryError(
            f"{principal} may not {mask_in_words(mask, kind)} on this {kind.value}",
            status=MqStatus.ACCESS_DENIED,
            hint="its owner, or who may change permissions, can allow it",
        )
