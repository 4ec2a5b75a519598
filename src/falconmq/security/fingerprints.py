"""Fingerprints of certificates: how a configuration names one."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{64}")


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate in DER, 64 hexadecimal digits."""
    return hashlib.sha256(certificate).hexdigest()


def parse_fingerprint(text: str) -> str | None:
    """A fingerprint as people copy it, `AB:CD:...` or `abcd...`; None if it is none."""
    plain = text.replace(":", "").replace(" ", "").lower()
    return plain if _HEXADECIMAL.fullmatch(plain) else None
