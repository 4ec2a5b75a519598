"""What others are to find in the directory: our public keys, and the certificates of users.

Keys are published when a queue manager is registered (`registering`), and here when they are
renewed. A directory that is away then does not stop anybody from renewing: the new keys are written
when it is back. Until then others encrypt for the old ones, which are good for that long.

Certificates are written into the object of their user together with their digests, in one order
(guide 3.2). A user's object may have certificates that were registered elsewhere: they stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from falconmq.directory import tables
from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_one, query_error
from falconmq.errors import DirectoryError, FalconMQError, MqStatus, WireError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import write_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.security.certificate_store import Registered
from falconmq.security.keys import ManagerKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts

RETRY_SECONDS: Final = 30.0
_ATTRIBUTES: Final = ("public_encryption_keys", "public_signing_keys")

_log = logging.getLogger("falconmq.directory")


class KeyPublisher:
    """Brings renewed keys into the directory. Its methods run in turns of the queue manager."""

    def __init__(self) -> None:
        self.problem = ""  # why the keys are not in the directory yet; "": they are, or need not be
        self._wanted: tuple[bytes, bytes] | None = None  # both lists, until they are written

    @property
    def is_waiting(self) -> bool:
        return self._wanted is not None

    def publish(self, core: QueueManagerCore, keys: ManagerKeys) -> None:
        """Let the directory's object of this queue manager have these keys, now or later."""
        if not core.directory.is_integrated:
            self._wanted, self.problem = None, ""
            return
        waits = self.is_waiting
        self._wanted = _lists(keys)
        if not waits:  # else it is tried again anyway
            self._try(core)

    def catch_up(self, core: QueueManagerCore) -> None:
        """At a start: the keys may have been renewed while the directory was away, and still is."""
        if core.key_source is None or not core.directory.is_integrated:
            return
        try:
            keys = core.key_source()
        except FalconMQError as error:
            _log.error("keys not published: %s; %s", error, error.hint)
            return
        if _lists(keys) != (core.local.public_encryption_keys, core.local.public_signing_keys):
            self.publish(core, keys)

    def _try(self, core: QueueManagerCore) -> None:
        if self._wanted is None or not core.directory.is_integrated:  # it has left meanwhile
            self._wanted, self.problem = None, ""
            return
        # Again each time: what the directory says of us, when it is back, are the old ones.
        core.local.public_encryption_keys, core.local.public_signing_keys = self._wanted
        result = write_directory(core, core.local, _ATTRIBUTES)
        if result is DirectoryResult.SUCCESS:
            self._wanted, self.problem = None, ""
            _log.info("keys published name=%s", core.settings.computer_name)
            return
        problem = str(query_error(core.directory, tables.QUEUE_MANAGER, result))
        if problem != self.problem:
            _log.warning("keys not published yet: %s; it is tried again", problem)
        self.problem = problem
        core.timers.after(core.clock.monotonic(), RETRY_SECONDS, lambda: self._try(core))


@dataclass(frozen=True, slots=True)
class UserObjects:
    """The objects of users in a directory. Every call asks it and waits: for threads only."""

    directory: DirectoryBase
    may_create: bool = True  # else users come from elsewhere, as in Active Directory

    def add(self, registered: Registered) -> None:
        """Let everybody believe this certificate. DirectoryError, and nothing has changed."""
        entry = UserSignCert.registered(registered.identifier.bytes_le, registered.certificate.data)
        self._change(registered.owner, lambda known: [*_without(known, entry), entry])

    def remove(self, registered: Registered) -> None:
        """Let nobody believe this certificate any more; fine if nobody did."""
        gone = UserSignCert.registered(registered.identifier.bytes_le, registered.certificate.data)
        self._change(registered.owner, lambda known: _without(known, gone), creates=False)

    def _change(
        self,
        owner: Sid,
        change: Callable[[list[UserSignCert]], list[UserSignCert]],
        *,
        creates: bool = True,
    ) -> None:
        row = find_one(self.directory, tables.USER, equals("security_identifier", owner.encode()))
        if row is None:
            if creates:
                self._create(owner, change([]))
            return
        known = _certificates(owner, row.get("certificates"))
        wanted = change(list(known))
        if wanted != known:
            written = {"identifier": row["identifier"], **_values(wanted)}
            self._check(self.directory.write(tables.USER, written))

    def _create(self, owner: Sid, certificates: list[UserSignCert]) -> None:
        if not self.may_create:
            raise DirectoryError(
                f"the directory has no user {owner}",
                status=MqStatus.MQDS_OBJECT_NOT_FOUND,
                hint="make the user there first; its certificate can be registered then",
            )
        row = {"security_identifier": owner.encode(), **_values(certificates)}
        self._check(self.directory.create(tables.USER, row)[0])

    def _check(self, result: DirectoryResult) -> None:
        if result is not DirectoryResult.SUCCESS:
            raise query_error(self.directory, tables.USER, result)


def _lists(keys: ManagerKeys) -> tuple[bytes, bytes]:
    return keys.public_encryption_keys.encode(), keys.public_signing_keys.encode()


def _values(certificates: list[UserSignCert]) -> dict[str, object]:
    """Both attributes, in the same order."""
    return {
        "certificates": UserSignCerts(certificates).encode(),
        "certificate_digests": [each.digest for each in certificates],
    }


def _without(known: list[UserSignCert], entry: UserSignCert) -> list[UserSignCert]:
    return [each for each in known if each.certificate != entry.certificate]


def _certificates(owner: Sid, value: object) -> list[UserSignCert]:
    if not isinstance(value, bytes) or not value:
        return []
    try:
        return UserSignCerts.decode(value).certificates
    except WireError as error:
        raise DirectoryError(
            f"the certificates of {owner} in the directory cannot be read: {error}",
            status=MqStatus.DS_ERROR,
            hint="somebody wrote something else there: falconmq directory show user",
        ) from error
