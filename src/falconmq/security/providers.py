"""The three cryptographic providers that MSMQ knows by name (MQQB 3.1.5.8.3, 3.1.7.1.5).

A privacy level of a message stands for one of them, and each has an RSA key of its own on every
queue manager. The older two know nothing but RC2 and RC4; they are weak, whatever the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from falconmq.wire.message_properties_header import (
    PRIVACY_ADVANCED,
    PRIVACY_BASE,
    PRIVACY_ENHANCED,
)
from falconmq.wire.public_keys import PROV_RSA_AES, PROV_RSA_FULL
from falconmq.wire.simple_blob import CALG_AES_128, CALG_AES_192, CALG_AES_256, CALG_RC2, CALG_RC4


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: its name on the wire, its RSA key, its algorithms."""

    name: str
    provider_type: int
    privacy_level: int
    rsa_bits: int  # DM-3.1.3-22
    algorithms: frozenset[int]
    is_weak: bool


_OLD: Final = frozenset({CALG_RC2, CALG_RC4})

BASE: Final = Provider(
    "Microsoft Base Cryptographic Provider v1.0",
    PROV_RSA_FULL,
    PRIVACY_BASE,
    512,
    _OLD,
    is_weak=True,
)
ENHANCED: Final = Provider(
    "Microsoft Enhanced Cryptographic Provider v1.0",
    PROV_RSA_FULL,
    PRIVACY_ENHANCED,
    1024,
    _OLD,
    is_weak=True,
)
ADVANCED: Final = Provider(
    "Microsoft Enhanced RSA and AES Cryptographic Provider",
    PROV_RSA_AES,
    PRIVACY_ADVANCED,
    1024,
    frozenset({CALG_AES_128, CALG_AES_192, CALG_AES_256}),
    is_weak=False,
)
PROVIDERS: Final = (BASE, ENHANCED, ADVANCED)
BY_PRIVACY_LEVEL: Final[Mapping[int, Provider]] = MappingProxyType(
    {provider.privacy_level: provider for provider in PROVIDERS}
)
BY_NAME: Final[Mapping[str, Provider]] = MappingProxyType(
    {provider.name: provider for provider in PROVIDERS}
)
