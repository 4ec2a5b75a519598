"""Keys and certificates as a directory publishes them, read with care: others wrote them.

Queue managers publish two lists of keys, MQDSPUBLICKEYS. Some directories hold the list to sign
with as certificates, MQUSERSIGNCERTS, so both forms are read. Users have MQUSERSIGNCERTS alone.
"""

from __future__ import annotations

from typing import Final

from falconmq.errors import WireError
from falconmq.security.certificates import public_key_of
from falconmq.security.keys import keys_by_provider
from falconmq.security.problems import CertificateError
from falconmq.security.providers import ENHANCED, Provider
from falconmq.security.rsa import RsaPublicKey
from falconmq.wire.public_key_blob import PublicKeyBlob
from falconmq.wire.public_keys import PublicKey, PublicKeys
from falconmq.wire.user_sign_certs import UserSignCerts

_CERTIFICATES_MAX: Final = 64  # of one queue manager or user that are looked at


def encryption_keys(data: bytes) -> dict[Provider, RsaPublicKey]:
    """What others encrypt with, by provider; WireError if this is no list of keys."""
    found = keys_by_provider(PublicKeys.decode(data))
    return {provider: key for provider, key in found.items() if key.is_valid}


def signing_keys(data: bytes) -> PublicKeys:
    """What a queue manager signs with, from either form; WireError if it is neither."""
    try:
        return PublicKeys.decode(data)
    except WireError:
        certificates = UserSignCerts.decode(data).certificates[:_CERTIFICATES_MAX]
    return PublicKeys([_named(key) for each in certificates for key in _key_of(each.certificate)])


def user_certificates(data: bytes) -> UserSignCerts:
    """The certificates of a user; WireError if this is no list of them."""
    return UserSignCerts(UserSignCerts.decode(data).certificates[:_CERTIFICATES_MAX])


def _key_of(certificate: bytes) -> list[RsaPublicKey]:
    """Its key; nothing for a certificate that MSMQ cannot use: the others still count."""
    try:
        return [public_key_of(certificate)]
    except CertificateError:
        return []


def _named(key: RsaPublicKey) -> PublicKey:
    """A certificate says nothing of providers, and for signing they make no difference."""
    blob = PublicKeyBlob(key.modulus, key.exponent).encode()
    return PublicKey(ENHANCED.name, ENHANCED.provider_type, blob)
