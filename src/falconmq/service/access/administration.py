"""Which requests administer the queue manager, and the rights to it that they take.

One table for the API and one for the console. What it names is written into the audit log. What
changes a queue is checked against the descriptor of that queue, by the core; what changes the queue
manager itself is checked against the one of `security.manager_permissions`, here.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from falconmq.wire.access_masks import MQSEC_MACHINE_GENERIC_ALL, MQSEC_SET_MACHINE_PROPERTIES

API: Final = "/api/v1"
_SET: Final = MQSEC_SET_MACHINE_PROPERTIES
_ALL: Final = MQSEC_MACHINE_GENERIC_ALL

# Method, path, what it does, and the rights to the queue manager that it takes. `{}` is the target.
_REQUESTS: Final[tuple[tuple[str, str, str, int], ...]] = (
    ("POST", f"{API}/tokens", "token create", _SET),
    ("DELETE", f"{API}/tokens/{{}}", "token revoke", _SET),
    ("POST", f"{API}/configuration/reload", "config reload", _SET),
    ("GET", f"{API}/backup", "backup", _ALL),
    ("POST", f"{API}/outgoing/{{}}/pause", "outgoing pause", _SET),
    ("POST", f"{API}/outgoing/{{}}/resume", "outgoing resume", _SET),
    ("DELETE", f"{API}/outgoing/{{}}/messages", "outgoing purge", _SET),
    ("POST", f"{API}/dead-letters/redrive", "dead-letter redrive", 0),
    ("POST", f"{API}/dead-letters/delete", "dead-letter delete", 0),
    ("POST", f"{API}/ping", "ping", 0),
    ("DELETE", f"{API}/ingests/{{}}", "ingest forget", _SET),
    ("DELETE", f"{API}/consumers/{{}}", "consumer delete", _SET),
    ("POST", f"{API}/keys/renew", "key renew", _SET),
    ("POST", f"{API}/keys/peers", "key import", _SET),
    ("DELETE", f"{API}/keys/peers/{{}}", "key remove", _SET),
    ("POST", f"{API}/certificates", "certificate create", _SET),
    ("POST", f"{API}/certificates/register", "certificate register", _SET),
    ("DELETE", f"{API}/certificates/{{}}", "certificate remove", _SET),
    ("POST", f"{API}/directory/rows/{{}}", "directory create", 0),  # their descriptors decide
    ("PATCH", f"{API}/directory/rows/{{}}", "directory set", 0),
    ("DELETE", f"{API}/directory/rows/{{}}", "directory delete", 0),
    ("POST", f"{API}/directory/{{}}", "directory create", _SET),
    ("PATCH", f"{API}/directory/{{}}", "directory set", _SET),
    ("DELETE", f"{API}/directory/{{}}", "directory delete", _SET),
    ("POST", f"{API}/directory-replication/move", "directory role move", _SET),
    ("POST", f"{API}/directory-replication/take-over", "directory role take-over", _SET),
    ("POST", f"{API}/directory-replication/remove-site", "directory site remove", _SET),
    ("POST", f"{API}/directory-replication/remove-claim", "directory claim remove", _SET),
    ("POST", f"{API}/routes/refresh", "directory refresh", _SET),
    ("POST", f"{API}/membership", "directory join", _SET),
    ("DELETE", f"{API}/membership", "directory leave", _SET),
    ("POST", f"{API}/queues", "queue create", 0),
    ("POST", f"{API}/queues/{{}}/purge", "queue purge", 0),
    ("POST", f"{API}/queues/{{}}/messages/move", "queue move", 0),
    ("DELETE", f"{API}/queues/{{}}/messages/\\d+", "message delete", 0),
    ("PUT", f"{API}/queues/{{}}/permissions", "permissions set", 0),
    ("PATCH", f"{API}/queues/{{}}/permissions", "permissions change", 0),
    ("PATCH", f"{API}/queues/{{}}", "queue set", 0),
    ("DELETE", f"{API}/queues/{{}}", "queue delete", 0),
    ("POST", "/login", "log in", 0),
    ("POST", "/logout", "log out", 0),
    ("POST", "/tokens", "token create", _SET),
    ("POST", "/tokens/{}/revoke", "token revoke", _SET),
    ("POST", "/configuration", "config reload", _SET),
    ("POST", "/outgoing/{}/pause", "outgoing pause", _SET),
    ("POST", "/outgoing/{}/resume", "outgoing resume", _SET),
    ("POST", "/outgoing/{}/purge", "outgoing purge", _SET),
    ("POST", "/dead-letters", "dead-letter redrive or delete", 0),
    ("POST", "/sessions", "ping", 0),
    ("POST", "/directory/refresh", "directory refresh", _SET),
    ("POST", "/transactions/{}/commit", "transaction commit", _SET),
    ("POST", "/transactions/{}/abort", "transaction abort", _SET),
    ("POST", "/leases/{}/abort", "lease abort", _SET),
    ("POST", "/queues", "queue create", 0),
    ("POST", "/queues/{}/purge", "queue purge", 0),
    ("POST", "/queues/{}/delete", "queue delete", 0),
    ("POST", "/queues/{}/properties", "queue set", 0),
    ("POST", "/queues/{}/permissions/grant", "permissions change", 0),
    ("POST", "/queues/{}/permissions/revoke", "permissions change", 0),
    ("POST", "/queues/{}/permissions/set", "permissions set", 0),
    ("POST", "/queues/{}/selected", "messages delete or move", 0),
    ("POST", "/queues/{}/messages/\\d+/delete", "message delete", 0),
    ("POST", "/queues/{}/messages/\\d+/move", "queue move", 0),
    ("POST", "/queues/{}/messages/\\d+/redrive", "dead-letter redrive", 0),
)


class Action(NamedTuple):
    """What a request administers."""

    name: str
    target: str  # "": it is not in the path
    rights: int  # to the queue manager; 0: the core asks for those to the queue


def _patterns() -> dict[str, list[tuple[re.Pattern[str], str, int]]]:
    found: dict[str, list[tuple[re.Pattern[str], str, int]]] = {}
    for method, path, name, rights in _REQUESTS:
        pattern = re.compile(path.replace("{}", "(.+)"), re.DOTALL)
        found.setdefault(method, []).append((pattern, name, rights))
    return found


_PATTERNS: Final = _patterns()
NAMES: Final = tuple(sorted({name for _, _, name, _ in _REQUESTS}))
# Most requests: messages come and go. They are told apart before any pattern is tried.
_DAILY: Final = ("/packets", "/receive", "/messages")


def action_of(method: str, path: str) -> Action | None:
    """What a request administers; None: nothing."""
    if method not in _PATTERNS or (method == "POST" and path.endswith(_DAILY)):
        return None
    for pattern, name, rights in _PATTERNS[method]:
        match = pattern.fullmatch(path)
        if match is not None:
            return Action(name, match[1] if match.re.groups else "", rights)
    return None
