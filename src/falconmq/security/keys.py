"""The keys of a queue manager: a pair to encrypt and a pair to sign for each provider.

The public halves go to the directory as two MQDSPUBLICKEYS lists (MQDMPR 3.1.3); the private ones
stay in the data directory (`key_store`). Both lists have the form of MQMQ 2.2.1, which calls every
key one for key exchange: what a key is for is told by the list that it is in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from falconmq.security import rsa
from falconmq.security.providers import BY_NAME, PROVIDERS, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.wire.public_key_blob import PublicKeyBlob
from falconmq.wire.public_keys import PublicKey, PublicKeys


@dataclass(frozen=True, slots=True)
class FormerKeys:
    """Pairs that new ones have taken the place of: some peers do not know that yet."""

    encryption: Mapping[Provider, RsaKeyPair] = field(repr=False)
    until: float  # seconds since 1970; nothing is decrypted with them any more then


@dataclass(frozen=True, slots=True)
class ManagerKeys:
    """All pairs of one queue manager, by provider."""

    encryption: Mapping[Provider, RsaKeyPair] = field(repr=False)
    signing: Mapping[Provider, RsaKeyPair] = field(repr=False)
    former: tuple[FormerKeys, ...] = ()  # the latest first

    @classmethod
    def generate(cls, random: Random | None = None) -> ManagerKeys:
        """New ones: from the system's chance, or the same again from the same `random`."""
        encryption = {provider: rsa.generate(provider.rsa_bits, random) for provider in PROVIDERS}
        signing = {provider: rsa.generate(provider.rsa_bits, random) for provider in PROVIDERS}
        return cls(encryption, signing)

    @property
    def public_encryption_keys(self) -> PublicKeys:
        """PublicEncryptionKeyList of the directory (DM-3.1.3-17)."""
        return public_keys({key: pair.public for key, pair in self.encryption.items()})

    @property
    def public_signing_keys(self) -> PublicKeys:
        """PublicSigningKeyList of the directory (DM-3.1.3-23)."""
        return public_keys({key: pair.public for key, pair in self.signing.items()})


def public_keys(keys: Mapping[Provider, RsaPublicKey]) -> PublicKeys:
    """The list of some public keys, one for each provider (DM-3.1.3-18)."""
    return PublicKeys(
        [
            PublicKey(
                provider.name,
                provider.provider_type,
                PublicKeyBlob(key.modulus, key.exponent).encode(),
            )
            for provider, key in keys.items()
        ]
    )


def keys_by_provider(published: PublicKeys) -> dict[Provider, RsaPublicKey]:
    """The keys of a list that belong to providers we know; of two for one, the first."""
    found: dict[Provider, RsaPublicKey] = {}
    for entry in published.keys:
        provider = BY_NAME.get(entry.provider_name)
        if provider is not None and provider not in found:
            blob = entry.public_key  # QB-3.1.7.1.5.2-01
            found[provider] = RsaPublicKey(blob.modulus, blob.public_exponent)
    return found


def fingerprint(key: RsaPublicKey) -> str:
    """How people compare keys over the telephone: the start of a SHA-256 over the blob."""
    digest = hashlib.sha256(PublicKeyBlob(key.modulus, key.exponent).encode()).hexdigest()
    return ":".join(digest[start : start + 4] for start in range(0, 32, 4))
