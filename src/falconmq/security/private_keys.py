"""Private keys that people bring along, from files as other programs write them.

    PEM        PKCS#8 or PKCS#1, with or without a password
    DER        PKCS#8 or PKCS#1
    PKCS#12    .p12, .pfx: usually with the certificate in the same file

MSMQ signs with RSA. Whatever else is in a file is named in the error, and so is a password that is
missing or wrong. No text that is made here has a part of a key in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from falconmq.security import library
from falconmq.security.problems import PrivateKeyError
from falconmq.security.rsa import LIBRARY_BITS_MIN, RsaKeyPair

_SEQUENCE: Final = 0x30
_LONG_FORM: Final = 0x80
_PKCS12_VERSION: Final = b"\x02\x01\x03"  # INTEGER 3; the other forms begin with 0
_PEM: Final = b"-----BEGIN"


@dataclass(frozen=True, slots=True)
class PrivateKeyFile:
    """What was in a file: a key, and the certificate that came with it, if one did."""

    pair: RsaKeyPair
    certificate: bytes = b""  # DER


def read_private_key(data: bytes, password: str = "") -> PrivateKeyFile:
    """The key in a file. PrivateKeyError if there is none, or none that MSMQ can sign with."""
    secret = password.encode() or None
    if is_pkcs12(data):
        return _from_pkcs12(data, secret)
    serialization = library.load("hazmat.primitives.serialization")
    is_pem = _PEM in data
    load = serialization.load_pem_private_key if is_pem else serialization.load_der_private_key
    try:
        key = load(data, secret)
    except TypeError as error:  # a password where none is needed, or none where one is
        raise _about_password(secret) from error
    except ValueError as error:
        if secret is not None and b"ENCRYPTED" in data:
            raise _about_password(secret) from error
        raise _no_key() from error
    except library.load("exceptions").UnsupportedAlgorithm as error:
        raise _unsupported("of a kind that nobody here knows") from error
    return PrivateKeyFile(_pair(key))


def is_pkcs12(data: bytes) -> bool:
    """Whether these bytes begin as those of a PKCS#12 file."""
    if len(data) < 2 or data[0] != _SEQUENCE:
        return False
    start = 2 + (data[1] & ~_LONG_FORM if data[1] & _LONG_FORM else 0)
    return data[start : start + len(_PKCS12_VERSION)] == _PKCS12_VERSION


def _from_pkcs12(data: bytes, secret: bytes | None) -> PrivateKeyFile:
    pkcs12 = library.load("hazmat.primitives.serialization.pkcs12")
    serialization = library.load("hazmat.primitives.serialization")
    try:
        key, certificate, _ = pkcs12.load_key_and_certificates(data, secret)
    except ValueError as error:  # it does not tell a wrong password from a damaged file
        raise _about_password(secret) from error
    except library.load("exceptions").UnsupportedAlgorithm as error:
        raise _unsupported("protected in a way that nobody here knows") from error
    if key is None:
        raise _no_key()
    found = b"" if certificate is None else certificate.public_bytes(serialization.Encoding.DER)
    return PrivateKeyFile(_pair(key), found)


def _pair(key: Any) -> RsaKeyPair:
    if not isinstance(key, library.load("hazmat.primitives.asymmetric.rsa").RSAPrivateKey):
        raise _unsupported("no RSA key")
    numbers = key.private_numbers()
    public = numbers.public_numbers
    pair = RsaKeyPair(public.n, public.e, numbers.d, numbers.p, numbers.q)
    if pair.public.is_legacy:
        raise PrivateKeyError(
            f"an RSA key of {pair.public.bits} bits is too short to sign with",
            hint=f"use one of {LIBRARY_BITS_MIN} bits or more",
        )
    return pair


def _about_password(secret: bytes | None) -> PrivateKeyError:
    if secret is None:
        return PrivateKeyError(
            "the private key has a password", hint="give it as well: --password-file FILE"
        )
    return PrivateKeyError(
        "the password does not open the private key", hint="is it the one of this very file?"
    )


def _no_key() -> PrivateKeyError:
    return PrivateKeyError(
        "this is no private key", hint="PEM, DER and PKCS#12 are read; is it the right file?"
    )


def _unsupported(what: str) -> PrivateKeyError:
    return PrivateKeyError(
        f"the private key is {what}", hint="MSMQ signs with RSA and nothing else"
    )
