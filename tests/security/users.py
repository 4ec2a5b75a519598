"""A directory with certificates of two users, and openssl as somebody who knows nothing of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.wire.sid import Sid

ANNA: Final = Sid.parse("S-1-5-21-7-8-9-1001")
BERT: Final = Sid.parse("S-1-5-21-7-8-9-1002")
CARA: Final = Sid.parse("S-1-5-21-7-8-9-1003")  # has no certificate
_BITS: Final = 1024  # quickly made


def make_users(directory: Path, *owners: Sid) -> dict[Sid, Registered]:
    """Internal certificates, with keys that are quickly made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", _BITS)
        return {owner: CertificateStore(directory).create(owner) for owner in owners}


def openssl(*arguments: str | Path, data: bytes = b"") -> bytes:
    """What the command says."""
    command = shutil.which("openssl")
    assert command is not None, "these tests need the openssl command: apt install openssl"
    done = subprocess.run(
        [command, *map(str, arguments)], input=data, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def openssl_verifies(
    directory: Path, certificate: bytes, hash_name: str, signature: bytes, data: bytes
) -> bool:
    """Whether openssl finds that a signature, as the wire has it, is of these bytes."""
    files = [directory / name for name in ("signer.der", "signer.pub", "signature", "signed")]
    for file, content in zip(files, (certificate, b"", signature[::-1], data), strict=True):
        file.write_bytes(content)
    public = openssl("x509", "-inform", "DER", "-in", files[0], "-noout", "-pubkey")
    files[1].write_bytes(public)
    said = openssl("dgst", f"-{hash_name}", "-verify", files[1], "-signature", files[2], files[3])
    return said.strip() == b"Verified OK"
