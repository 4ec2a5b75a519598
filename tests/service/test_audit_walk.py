"""Everything that changes something: it is in the audit log, or it is said here why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from falconmq.service.access import Role
from falconmq.service.console import app as console
from falconmq.service.requests import audit
from falconmq.service.requests.audit import Wanted
from tests.console.site import LogIn, Site
from tests.service.ports import HttpManager

CHANGING = ("post", "put", "patch", "delete")
QUEUE = quote(r".\private$\nothing", safe="")
ID = str(UUID(int=7))
VALUES = {"name": QUEUE, "number": "1", "batch": "1", "lookup_id": "7", "key": "somebody"}

# Requests that administer nothing: messages come and go, and programs work with what is theirs.
MESSAGES = "messages come and go"
OWN = "a program and what it has opened itself"
EXCEPTIONS = {
    "POST /queues/{}/messages": MESSAGES,
    "POST /queues/{}/packets": MESSAGES,
    "POST /queues/{}/receive": MESSAGES,
    "POST /consumers/{}/acknowledge": MESSAGES,
    "POST /consumers/{}/claim": MESSAGES,
    "POST /consumers/{}/release": OWN,
    "POST /consumers/{}/renew": OWN,
    "POST /ingests/{}/{}/stages": MESSAGES,
    "POST /ingests/{}/{}/stages/{}": MESSAGES,
    "POST /ingests/{}/{}/commit": MESSAGES,
    "POST /ingests/{}/{}/abort": MESSAGES,
    "POST /queues/{}/handles": OWN,
    "POST /queues/{}/cursors": OWN,
    "DELETE /cursors/{}": OWN,
    "DELETE /handles/{}": OWN,
    "POST /handles/{}/extend": OWN,
    "POST /transactions": OWN,
    "POST /transactions/{}/prepare": OWN,
    "POST /transactions/{}/extend": OWN,
    "POST /transactions/{}/commit": OWN,
    "POST /transactions/{}/abort": OWN,
    "POST /leases/{}/commit": OWN,
    "POST /leases/{}/abort": OWN,
    "POST /leases/{}/extend": OWN,
}
PAGES = {
    "/queues/{}/send": MESSAGES,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    with HttpManager(tmp_path_factory.mktemp("walk")) as manager:
        yield manager


def shape(path: str) -> str:
    return re.sub(r"{[^}]*}", "{}", path).removeprefix("/api/v1")


def filled(path: str) -> str:
    return re.sub(r"{(\w+)}", lambda match: VALUES.get(match[1], ID), path)


def operations(client: httpx.Client) -> list[tuple[str, str]]:
    paths: dict[str, Any] = client.get("/api/v1/openapi.json").json()["paths"]
    return [
        (method.upper(), path)
        for path, described in paths.items()
        for method in CHANGING
        if method in described
    ]


def newest(manager: Any) -> dict[str, Any]:
    control = manager.app.state.control if isinstance(manager, HttpManager) else manager.control
    found: list[dict[str, Any]] = control.audit.newest(Wanted(), 1)[0]
    return found[0] if found else {"number": 0}


def test_every_request_that_administers_is_written_down(served: HttpManager) -> None:
    unwritten, written = set(), set()
    with served.client(served.token(Role.MANAGE, name="boss")) as client:
        for method, path in operations(client):
            before = newest(served)["number"]
            answer = client.request(method, filled(path), json={})
            entry, name = newest(served), f"{method} {shape(path)}"
            assert answer.status_code != 500, name
            if entry["number"] == before:
                unwritten.add(name)
                continue
            written.add(name)
            assert (entry["who"], entry["code"]) == ("token boss", answer.status_code), name
            assert entry["result"] == ("done" if answer.status_code < 400 else "failed"), name
    assert unwritten == set(EXCEPTIONS)
    assert len(written) > 20


def test_every_request_that_is_refused_is_written_down(
    served: HttpManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it wanted: who has a token without the role tries something."""
    monkeypatch.setattr(audit, "REFUSALS", 1_000)  # a minute has room for all that there is
    unwritten = []
    with served.client(served.token(Role.READ, name="reader")) as client:
        for method, path in operations(client):
            before = newest(served)["number"]
            answer = client.request(method, filled(path), json={})
            entry = newest(served)
            if answer.status_code == 403 and entry["number"] == before:
                unwritten.append(f"{method} {shape(path)}")
            elif answer.status_code == 403:
                assert (entry["who"], entry["result"]) == ("token reader", "refused")
    assert unwritten == []


def test_every_form_of_the_console_is_written_down(tmp_path: Path) -> None:
    unwritten = set()
    with Site(tmp_path) as site, LogIn(site, site.token(Role.MANAGE, name="boss")) as boss:
        assert newest(site)["action"] == "log in"
        for method, path, _, role in console._PAGES:
            if method != "POST" or role is None:
                continue
            before = newest(site)["number"]
            answer = boss.post(filled(path), confirmed="1", host="127.0.0.1")
            entry, name = newest(site), shape(path)
            if entry["number"] == before:
                unwritten.add(name)
                continue
            assert (entry["who"], entry["code"]) == ("token boss", answer.status_code), name
            # nothing of this is there: what could not be done does not look as if it had been
            is_told = entry["result"] == "failed" and entry["problem"]
            assert is_told or entry["action"] in ("config reload", "ping"), entry
        boss.post("/logout")
        assert newest(site)["action"] == "log out"
    assert unwritten == set(PAGES)
