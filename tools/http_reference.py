"""The page about the HTTP API, from its own description."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from falconmq import aio
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.service.api import PREFIX, create_app
from falconmq.service.api.description import ROLES
from falconmq.store import MemoryStore

_HEAD: Final = f"""# HTTP API

Made by `make reference`; do not edit. Every queue manager describes the same in full, with all
fields of requests and answers, at `{PREFIX}/openapi.json`. A token goes into the header
`Authorization: Bearer fmq_...`; over the control socket none is needed. The role is the one that
the token needs; where several are named, one of them; `manage` includes all.

Errors are `application/problem+json` with `status`, `detail`, `error` (the name of the status code
in MSMQ), `hresult` and `hint`. `{{name}}` is a path name or format name, URL-quoted.
"""


def http_api() -> str:
    """All operations, by subject."""
    subjects: dict[str, list[str]] = defaultdict(list)
    for path, operations in _described()["paths"].items():
        for method, operation in operations.items():
            subjects[_subject(path)].append(_line(method, path, operation))
    parts = [_HEAD]
    for subject in sorted(subjects):
        rows = "\n".join(subjects[subject])
        parts.append(f"\n## {subject}\n\n| | path | role | |\n|---|---|---|---|\n{rows}\n")
    return "".join(parts)


def _described() -> dict[str, Any]:
    engine = start_engine(MemoryStore(), Settings("REFERENCE"), is_threaded=False)
    try:
        return create_app(aio.QueueManager(engine)).openapi()
    finally:
        engine.close()


def _subject(path: str) -> str:
    if not path.startswith(PREFIX):
        return "health and metrics"
    subject = path.removeprefix(PREFIX).split("/")[1].replace("-", " ")
    return "messages of a queue" if "/queues/{name}/" in path else subject


def _line(method: str, path: str, operation: dict[str, Any]) -> str:
    text = operation.get("description") or operation["summary"]
    first = text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return f"| {method.upper()} | `{path}` | {operation.get(ROLES, 'none')} | {first} |"
