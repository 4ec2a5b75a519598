"""Making a queue manager known to its directory, and taking it out again.

Everything here asks the directory and waits for it: it runs in a thread, never in a turn.

Registering is done at every start. The first time it creates the object of the queue manager; later
it brings up to date what the configuration says, and the public keys; so does every `refresh`. Two
queue managers of one name cannot be: whoever comes second is told so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.memory import KnownRow
from falconmq.directory.queries import query_error
from falconmq.directory.routing_reading import MapRows, read_map_rows
from falconmq.errors import DirectoryError, FalconMQError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.security.keys import ManagerKeys
from falconmq.service.directory.republishing import Republished

QUEUE_MANAGER = "QueueManager"
Said = Mapping[str, object]
"""Names and values, and `site`, as the configuration had them."""

_log = logging.getLogger("falconmq.directory")


@dataclass(frozen=True)
class Candidate:
    """A queue manager as it wants to be known."""

    identifier: UUID
    computer_name: str
    attributes: Mapping[str, object]  # that are always ours to say; the keys are, too
    configured: Mapping[str, object] = field(default_factory=dict)  # said once; see `register`
    site: str = ""  # by name; "": where it is, or else the only one there is
    new_attributes: Mapping[str, object] = field(default_factory=dict)  # of a new object alone
    keys: Callable[[], ManagerKeys] | None = None
    queues: Sequence[Row] = ()  # public ones that it has

    def said(self) -> dict[str, object]:
        """What of it is said once."""
        return {**self.configured, **({"site": self.site} if self.site else {})}


@dataclass(frozen=True)
class Knowledge:
    """What a queue manager has to know of its directory to be a part of it."""

    own: Row
    enterprise: Row
    sites: list[Row]  # whole rows of its own sites
    map: MapRows
    read_at: float = 0.0  # seconds since 1970
    is_new: bool = False  # it was registered just now
    is_remembered: bool = False  # the directory is away: this is what it once said
    published: Sequence[Republished] = ()  # queues that it did not have before

    def rows(self) -> list[KnownRow]:
        """All of it, to be kept."""
        by_identifier: dict[tuple[str, object], Row] = {}
        parts = (
            *(("Site", row) for row in self.map.sites),
            *(("RoutingLink", row) for row in self.map.links),
            *((QUEUE_MANAGER, row) for row in self.map.machines),
            *(("Site", row) for row in self.sites),
            (QUEUE_MANAGER, self.own),
            ("Enterprise", self.enterprise),
        )
        for type_name, row in parts:  # whole rows come last
            by_identifier[type_name, row["identifier"]] = row
        return [(type_name, row) for (type_name, _), row in by_identifier.items()]


def register(directory: CachedDirectory, candidate: Candidate, said: Said) -> Knowledge:
    """Make a queue manager known, and read what it has to know. DirectoryError.

    Once it is registered the directory has the last word: what an administrator changes there
    stays. `said` is what the configuration said the last time; only what it says anew is written.
    """
    by_identifier = equals("identifier", candidate.identifier)
    row = directory.fetch(QUEUE_MANAGER, by_identifier)
    is_new = row is None
    if row is None:
        _check_name(directory, candidate)
        _create(directory, candidate)
    else:
        _bring_up_to_date(directory, candidate, row, said)
    return read_knowledge(directory, candidate.identifier, is_new=is_new)


def refresh(directory: CachedDirectory, candidate: Candidate, said: Said) -> Knowledge:
    """Read everything again, and put right what the directory says of us. DirectoryError.

    A write that we gave up waiting for may have come late, behind a newer one: then the directory
    has our keys or our host name of before.
    """
    row = directory.fetch(QUEUE_MANAGER, equals("identifier", candidate.identifier))
    if row is not None:
        _bring_up_to_date(directory, candidate, row, said)
    return read_knowledge(directory, candidate.identifier)


def read_knowledge(
    directory: CachedDirectory, identifier: UUID, *, is_new: bool = False
) -> Knowledge:
    """Everything that a queue manager has to know, now."""
    own = directory.fetch(QUEUE_MANAGER, equals("identifier", identifier))
    enterprise = directory.fetch("Enterprise", ())
    if own is None or enterprise is None:
        raise DirectoryError(
            "the directory does not know this queue manager any more",
            status=MqStatus.MACHINE_NOT_FOUND,
            hint="somebody deleted its object: falconmq directory leave --force, then join again",
        )
    wanted = own.get("site_identifiers")
    sites = [directory.fetch("Site", equals("identifier", site)) for site in _list(wanted)]
    with directory.noticing():
        found = read_map_rows(directory.inner)
    directory.fetch_servers("")
    directory.fetch_computer_sid(str(own["computer_name"]))
    whole = [row for row in sites if row is not None]
    return Knowledge(own, enterprise, whole, found, directory.time(), is_new)


def known_from_memory(
    rows: Sequence[KnownRow], identifier: UUID, read_at: float
) -> Knowledge | None:
    """What was known when the directory was last there; None if it was never joined."""
    by_type: dict[str, list[Row]] = {}
    for type_name, row in rows:
        by_type.setdefault(type_name, []).append(row)
    machines = by_type.get(QUEUE_MANAGER, [])
    own = next((row for row in machines if row["identifier"] == identifier), None)
    enterprise = next(iter(by_type.get("Enterprise", [])), None)
    if own is None or enterprise is None:
        return None
    sites = by_type.get("Site", [])
    ours = [row for row in sites if row["identifier"] in _list(own.get("site_identifiers"))]
    found = MapRows(sites, by_type.get("RoutingLink", []), machines)
    return Knowledge(own, enterprise, ours, found, read_at, is_remembered=True)


def unregister(directory: CachedDirectory, identifier: UUID, queues: Sequence[UUID]) -> None:
    """Take a queue manager and its public queues out of the directory. DirectoryError."""
    objects = [*(("Queue", queue) for queue in queues), (QUEUE_MANAGER, identifier)]
    for type_name, each in objects:
        result = directory.inner.delete(type_name, each)
        directory.forget(type_name, each)
        if result not in (DirectoryResult.SUCCESS, DirectoryResult.OBJECT_NOT_FOUND):
            with directory.noticing():
                raise query_error(directory.inner, type_name, result)


def _check_name(directory: CachedDirectory, candidate: Candidate) -> None:
    other = directory.fetch(QUEUE_MANAGER, equals("computer_name", candidate.computer_name))
    if other is not None:
        raise _taken(candidate, other["identifier"])


def _taken(candidate: Candidate, other: object) -> DirectoryError:
    name = candidate.computer_name
    return DirectoryError(
        f"the directory has another queue manager {name}: {other}, not {candidate.identifier}",
        status=MqStatus.MACHINE_EXISTS,
        hint="if that one is gone for good: "
        f"falconmq directory delete queue-manager {name}; else give this one another manager.name",
    )


def _create(directory: CachedDirectory, candidate: Candidate) -> None:
    row = {
        **candidate.new_attributes,
        **candidate.configured,
        **candidate.attributes,
        **_public_keys(candidate),
        "identifier": candidate.identifier,
        "computer_name": candidate.computer_name,
        "site_identifiers": [_find_site(directory, candidate.site)],
    }
    result, identifier = directory.inner.create(QUEUE_MANAGER, row)
    directory.forget(QUEUE_MANAGER)
    _check(directory, QUEUE_MANAGER, result)
    if identifier != candidate.identifier:
        raise _other_identifier(directory, candidate, row, identifier)
    _log.info("registered in the directory name=%s", candidate.computer_name)


def _other_identifier(
    directory: CachedDirectory, candidate: Candidate, row: Row, given: UUID
) -> DirectoryError:
    """Somebody was faster; or the directory gives identifiers itself, as Active Directory does."""
    found = directory.fetch(QUEUE_MANAGER, equals("identifier", given)) or row
    keys = "public_signing_keys"
    if keys not in row or found.get(keys) != row[keys]:
        return _taken(candidate, given)
    directory.inner.delete(QUEUE_MANAGER, given)  # it is ours, and of no use
    directory.forget(QUEUE_MANAGER)
    return DirectoryError(
        "the directory gives queue managers their identifiers itself, and this one has its own",
        status=MqStatus.UNSUPPORTED_OPERATION,
        hint="Active Directory cannot be joined so; use slapd with falconmq.schema, or another "
        "FalconMQ, as the directory",
    )


def _bring_up_to_date(
    directory: CachedDirectory, candidate: Candidate, row: Row, said: Said
) -> None:
    wanted = {**candidate.attributes, **_public_keys(candidate)}
    wanted |= {n: value for n, value in candidate.configured.items() if said.get(n) != value}
    if candidate.site and said.get("site") != candidate.site:
        site, known = _find_site(directory, candidate.site), _list(row.get("site_identifiers"))
        wanted["site_identifiers"] = known if site in known else [*known, site]
    changes = {name: value for name, value in wanted.items() if row.get(name) != value}
    if changes:
        result = directory.inner.write(
            QUEUE_MANAGER, {"identifier": candidate.identifier, **changes}
        )
        directory.forget(QUEUE_MANAGER, candidate.identifier)
        _check(directory, QUEUE_MANAGER, result)
        _log.info("own object in the directory changed attributes=%s", ",".join(sorted(changes)))


def _public_keys(candidate: Candidate) -> dict[str, object]:
    try:
        keys = None if candidate.keys is None else candidate.keys()
    except FalconMQError as error:
        _log.error("keys not published: %s; %s", error, error.hint)
        keys = None
    if keys is None:
        return {}
    return {
        "public_encryption_keys": keys.public_encryption_keys.encode(),
        "public_signing_keys": keys.public_signing_keys.encode(),
    }


def _find_site(directory: CachedDirectory, name: str) -> UUID:
    """The site of a name or GUID; without one the only one that is not foreign."""
    sites = {str(row["name"]): row for row in directory.fetch_all("Site")}
    wanted = name.lower()  # a name, or a GUID
    named = [row for each, row in sites.items() if wanted in (each.lower(), str(row["identifier"]))]
    if not name:
        named = [row for row in sites.values() if not row.get("foreign_site")]
    if len(named) == 1:
        identifier = named[0]["identifier"]
        assert isinstance(identifier, UUID)
        return identifier
    raise _no_such_site(name, sorted(sites))


def _no_such_site(name: str, known: Sequence[str]) -> DirectoryError:
    problem = f"the directory has no site {name}" if name else "the site is not said"
    hint = f"name one with directory.site or --site; there are: {', '.join(known)}"
    if not known:
        problem = "the directory has no site yet"
        hint = "where it is kept: falconmq directory create site NAME; in LDAP nobody has begun: "
        hint += "falconmq directory init DOMAIN ldap://HOST --site NAME"
    return DirectoryError(problem, status=MqStatus.CANT_RESOLVE_SITES, hint=hint)


def _check(directory: CachedDirectory, type_name: str, result: DirectoryResult) -> None:
    if result is DirectoryResult.SUCCESS:
        return
    with directory.noticing():
        error = query_error(directory.inner, type_name, result)
        raise DirectoryRefusedError(result, str(error), hint=error.hint)


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
