"""What the files of keys and certificates in a data directory are called."""

from __future__ import annotations

from typing import Final

KEYS_FILE: Final = "keys.json"  # private keys of the queue manager
PEER_KEYS_FILE: Final = "peer-keys.json"  # public keys of other queue managers
CERTIFICATES_FILE: Final = "certificates.json"  # of users; with private keys of internal ones
SECURITY_FILES: Final = (KEYS_FILE, PEER_KEYS_FILE, CERTIFICATES_FILE)
