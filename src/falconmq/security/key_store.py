"""The private keys of a queue manager, in `keys.json` of its data directory.

They are made when somebody asks for them the first time, and again only by `renew`. Whoever has the
public halves of older ones goes on encrypting for those, so they stay for a while, for receiving
only. Nobody logs them; they leave the computer in a backup and in no other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from falconmq.security.file_names import KEYS_FILE
from falconmq.security.files import Json, PrivateFile
from falconmq.security.keys import FormerKeys, ManagerKeys
from falconmq.security.providers import PROVIDERS, Provider
from falconmq.security.rsa import RsaKeyPair

GRACE_SECONDS: Final = 30 * 86_400.0  # for peers to get the new public keys
FORMER_MAX: Final = 3  # who renews more often than that drops the oldest
_NUMBERS = ("modulus", "public_exponent", "private_exponent", "prime1", "prime2")


class KeyStore:
    """Those of one data directory. `random` is for tests; without it the system gives chance."""

    def __init__(self, directory: Path, random: Random | None = None) -> None:
        self._file = PrivateFile(directory, KEYS_FILE)
        self._random = random

    @property
    def path(self) -> Path:
        return self._file.path

    def find(self) -> ManagerKeys | None:
        """The keys, if they have been made. KeyFileError if the file must not be used."""
        document = self._file.read()
        return None if document is None else self._keys(document)

    def keys(self) -> ManagerKeys:
        """The keys; made now if there are none. Of two who ask at once, one makes them."""
        found = self.find()
        if found is not None:
            return found
        with self._file.changing() as document:
            if "encryption" in document:
                return self._keys(document)
            keys = ManagerKeys.generate(self._random)
            document["encryption"] = _stored(keys.encryption)
            document["signing"] = _stored(keys.signing)
        return keys

    def renew(self, now: float) -> ManagerKeys:
        """New pairs; those that were in use can decrypt for `GRACE_SECONDS` more."""
        made = ManagerKeys.generate(self._random)
        with self._file.changing() as document:
            former = []
            if "encryption" in document:
                self._keys(document)  # a damaged file is not made worse
                kept = [each for each in document.get("former", ()) if each["until"] > now]
                old = {"encryption": document["encryption"], "until": now + GRACE_SECONDS}
                former = [old, *kept][:FORMER_MAX]
            document["encryption"] = _stored(made.encryption)
            document["signing"] = _stored(made.signing)
            document["former"] = former
            return self._keys(document)

    def _keys(self, document: Json) -> ManagerKeys:
        try:
            former = tuple(
                FormerKeys(_pairs(each["encryption"]), float(each["until"]))
                for each in document.get("former", ())
            )
            return ManagerKeys(_pairs(document["encryption"]), _pairs(document["signing"]), former)
        except (KeyError, TypeError, ValueError) as error:
            raise self._file.damaged("it does not hold the keys of all providers") from error


def pair_to_json(pair: RsaKeyPair) -> Json:
    """A pair for a file that is private."""
    return {name: f"{getattr(pair, name):x}" for name in _NUMBERS}


def pair_from_json(value: Any) -> RsaKeyPair:
    """And back; ValueError, KeyError or TypeError if the numbers do not belong together."""
    pair = RsaKeyPair(*(int(value[name], 16) for name in _NUMBERS))
    if not pair.is_valid:
        raise ValueError("the numbers of an RSA key do not belong together")
    return pair


def _stored(pairs: Mapping[Provider, RsaKeyPair]) -> Json:
    return {provider.name: pair_to_json(pair) for provider, pair in pairs.items()}


def _pairs(stored: Any) -> dict[Provider, RsaKeyPair]:
    return {provider: pair_from_json(stored[provider.name]) for provider in PROVIDERS}
