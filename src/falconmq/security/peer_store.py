"""The public keys of other queue managers, in `peer-keys.json`: a directory of files.

Where no directory service knows the keys of a peer, somebody carries them: `falconmq key export`
there, `falconmq key import` here. Nothing in such a document proves where it comes from; whoever
carries it compares the fingerprints.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from falconmq.errors import MqStatus, WireError
from falconmq.security.file_names import PEER_KEYS_FILE
from falconmq.security.files import Json, PrivateFile
from falconmq.security.keys import ManagerKeys, keys_by_provider
from falconmq.security.problems import PeerKeysError, UnknownEntryError
from falconmq.wire.public_keys import PublicKeys

DOCUMENT_FORMAT: Final = 1
_NAME_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class PeerKeys:
    """What one queue manager lets others know of itself."""

    queue_manager: UUID
    name: str
    encryption: PublicKeys = field(repr=False)
    signing: PublicKeys = field(repr=False)

    @classmethod
    def of(cls, queue_manager: UUID, name: str, keys: ManagerKeys) -> PeerKeys:
        """Our own, for others."""
        return cls(queue_manager, name, keys.public_encryption_keys, keys.public_signing_keys)

    @classmethod
    def from_document(cls, document: Any) -> PeerKeys:
        """What `to_document` wrote; PeerKeysError if it is something else."""
        if not isinstance(document, dict):
            raise PeerKeysError("not a JSON object")
        if document.get("falconmq_keys") != DOCUMENT_FORMAT:
            raise PeerKeysError(f"falconmq_keys is not {DOCUMENT_FORMAT}")
        try:
            identifier = UUID(document["queue_manager"])
            name = document["name"]
            encryption = _keys(document["encryption"])
            signing = _keys(document["signing"])
        except KeyError as error:
            raise PeerKeysError(f"{error.args[0]} is missing") from error
        except (ValueError, TypeError, AttributeError, WireError) as error:
            raise PeerKeysError("a part of it cannot be read") from error
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX or not name.isprintable():
            raise PeerKeysError("its name is no name of a computer")
        return cls(identifier, name, encryption, signing)

    def to_document(self) -> Json:
        """JSON for a file: the two lists are those that a directory would have."""
        return {
            "falconmq_keys": DOCUMENT_FORMAT,
            "queue_manager": str(self.queue_manager),
            "name": self.name,
            "encryption": base64.b64encode(self.encryption.encode()).decode("ascii"),
            "signing": base64.b64encode(self.signing.encode()).decode("ascii"),
        }


class PeerStore:
    """Those of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._file = PrivateFile(directory, PEER_KEYS_FILE)

    def all(self) -> list[PeerKeys]:
        """Every queue manager whose keys we have, by name."""
        found = [self._peer(entry) for entry in self._entries().values()]
        return sorted(found, key=lambda peer: (peer.name, peer.queue_manager))

    def find(self, queue_manager: UUID) -> PeerKeys | None:
        entry = self._entries().get(str(queue_manager))
        return None if entry is None else self._peer(entry)

    def add(self, peer: PeerKeys) -> bool:
        """Keep the keys of a queue manager, in place of older ones; True if it was unknown."""
        with self._file.changing() as document:
            peers = self._entries_of(document)
            is_new = str(peer.queue_manager) not in peers
            peers[str(peer.queue_manager)] = peer.to_document()
        return is_new

    def remove(self, queue_manager: UUID) -> PeerKeys:
        """Forget the keys of a queue manager."""
        with self._file.changing() as document:
            entry = self._entries_of(document).pop(str(queue_manager), None)
            if entry is None:
                raise UnknownEntryError(
                    f"no keys of a queue manager {queue_manager} were imported",
                    status=MqStatus.PUBLIC_KEY_DOES_NOT_EXIST,
                    hint="falconmq key list shows them",
                )
        return self._peer(entry)

    def _entries(self) -> Json:
        return self._entries_of(self._file.read() or {})

    def _entries_of(self, document: Json) -> Json:
        peers = document.setdefault("peers", {})
        if not isinstance(peers, dict):
            raise self._file.damaged("it holds no list of queue managers")
        return peers

    def _peer(self, entry: Any) -> PeerKeys:
        try:
            return PeerKeys.from_document(entry)
        except PeerKeysError as error:
            raise self._file.damaged(str(error)) from error


def _keys(text: Any) -> PublicKeys:
    """A list with at least one key that can be used, and none that cannot be a key."""
    try:
        published = PublicKeys.decode(base64.b64decode(text, validate=True))
    except binascii.Error as error:
        raise ValueError("no base64") from error
    found = keys_by_provider(published)
    if not found or not all(key.is_valid for key in found.values()):
        raise ValueError("no key that can be used")
    return published
