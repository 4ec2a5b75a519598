"""The audit log: what is written, by whom, that it lasts, and that nobody can wash it out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from falconmq import aio
from falconmq.embedded.manager import start_engine
from falconmq.errors import ResourceError
from falconmq.manager.core import Settings
from falconmq.service.access import Role
from falconmq.service.access.administration import NAMES, action_of
from falconmq.service.configuration import HttpSection
from falconmq.service.daemon import Service
from falconmq.service.process import _reload_when_asked
from falconmq.service.readiness import Readiness
from falconmq.service.requests import audit
from falconmq.service.requests.audit import AuditLog, Entry, Wanted
from falconmq.store import MemoryStore
from falconmq.store.data_directory import open_data_directory
from tests.cli.commands import run as command_line
from tests.service.asking import ORDERS, Api, clocked_engine
from tests.service.control import ControlledManager
from tests.service.ports import HttpManager
from tests.service.services import configured, loopback, run

AT = f"/api/v1/queues/{quote(ORDERS, safe='')}"
PLENTY = 1 << 20


@pytest.fixture
def served(tmp_path: Path) -> Iterator[HttpManager]:
    with HttpManager(tmp_path) as manager:
        yield manager


def entries(manager: HttpManager, **wanted: Any) -> list[dict[str, Any]]:
    """As an auditor sees them, the newest first."""
    token = manager.token(Role.MANAGE, name=f"auditor{len(manager.tokens.all())}")
    with manager.client(token) as client:
        found: list[dict[str, Any]] = client.get("/api/v1/audit", params=wanted).json()["entries"]
    return found


def test_what_is_administered_is_written_with_who_what_where_and_how_it_ended(
    served: HttpManager,
) -> None:
    with served.client(served.token(Role.MANAGE, name="boss")) as client:
        client.post("/api/v1/queues", json={"name": ORDERS})
        client.post("/api/v1/queues", json={"name": ORDERS})
        client.patch(AT, json={"label": "new"})
        client.put(f"{AT}/permissions", json={"sddl": "D:(A;;GA;;;WD)"})
        client.post(f"{AT}/purge")
        client.delete(AT)
    found = entries(served)
    assert [(e["action"], e["target"], e["result"], e["code"]) for e in reversed(found)] == [
        ("queue create", ORDERS, "done", 201),
        ("queue create", ORDERS, "failed", 409),
        ("queue set", ORDERS, "done", 200),
        ("permissions set", ORDERS, "done", 200),
        ("queue purge", ORDERS, "done", 200),
        ("queue delete", ORDERS, "done", 204),
    ]
    assert {(entry["who"], entry["origin"]) for entry in found} == {("token boss", "127.0.0.1")}
    assert [entry["number"] for entry in found] == [6, 5, 4, 3, 2, 1]
    assert "there is a queue" in found[4]["problem"]
    assert found[3]["details"] == "label=new"
    assert found[2]["details"] == "D:(A;;GA;;;WD)"


def test_refusals_are_written_and_secrets_are_not(served: HttpManager) -> None:
    secret = served.token(Role.MANAGE, name="boss")
    with served.client(secret) as client:
        made = client.post("/api/v1/tokens", json={"name": "shop", "roles": ["send"]}).json()
        client.get("/api/v1/queues")  # looking is not administering
    with served.client(made["token"]) as client:
        client.delete(AT)
        client.get("/api/v1/queues")
    with served.client("fmq_0123456789ab_" + "x" * 43) as client:
        assert client.get("/api/v1/queues").status_code == 401
    with served.client() as client:
        client.post("/login", data={"token": "wrong"})
        assert client.get("/api/v1/queues").status_code == 401
    found = list(reversed(entries(served)))
    assert [(e["who"], e["action"], e["target"], e["result"]) for e in found] == [
        ("token boss", "token create", "shop", "done"),
        ("token shop", "queue delete", ORDERS, "refused"),
        ("token shop", "GET request", "/api/v1/queues", "refused"),
        ("", "come in", "/api/v1/queues", "refused"),
        ("", "log in", "", "refused"),
        ("", "GET request", "/api/v1/queues", "refused"),
    ]
    assert found[1]["problem"] == "shop has not the role read"
    stored = repr(found)
    for text in (secret, made["token"], secret[-20:], made["token"][-20:]):
        assert text not in stored


def test_entries_can_be_chosen(served: HttpManager) -> None:
    with served.client(served.token(Role.MANAGE, name="boss")) as client:
        for name in ("a", "b"):
            client.post("/api/v1/queues", json={"name": rf".\private$\{name}"})
        client.delete(AT)  # it is not there
    assert len(entries(served, action="queue create")) == 2
    assert [e["target"] for e in entries(served, target=r"$\B")] == [r".\private$\b"]
    assert [e["code"] for e in entries(served, result="failed")] == [404]
    assert entries(served, who="token nobody") == []
    assert len(entries(served, who="token boss", count=2)) == 2
    assert [entry["number"] for entry in entries(served, before=2)] == [1]
    assert len(entries(served, since="2001-01-01")) == 3
    assert entries(served, since="2999-01-01") == []
    assert entries(served, until="2001-01-01") == []
    assert len(entries(served, since="2001-01-01", until="2999-01-01")) == 3


def test_the_audit_log_takes_the_role_manage(served: HttpManager) -> None:
    with served.client(served.token(Role.READ, name="reader")) as client:
        assert client.get("/api/v1/audit").status_code == 403
    with served.client(served.token(Role.MANAGE, name="boss")) as client:
        assert client.get("/api/v1/audit?since=yesterday").status_code == 422


def test_the_owner_of_the_socket_is_named(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as controlled:
        api = Api(controlled.path)
        api.post("/queues", {"name": ORDERS})
        (entry,) = api.get("/audit")["entries"]
    assert (entry["who"], entry["origin"]) == ("owner", "control socket")


def test_entries_last(tmp_path: Path) -> None:
    async def main() -> None:
        for number in (1, 2):
            engine = start_engine(open_data_directory(tmp_path), Settings("SALES01"))
            log = AuditLog(engine, lambda: PLENTY)
            await log.record(Entry("owner", "here", "test", f"run {number}", "done"))
            found, more = log.newest(Wanted(), 10)
            await aio.QueueManager(engine).close()
        assert [(e["number"], e["target"]) for e in found] == [(2, "run 2"), (1, "run 1")]
        assert more is None

    asyncio.run(main())


def test_the_oldest_entries_make_room_and_numbers_go_on() -> None:
    async def main() -> None:
        engine, _ = clocked_engine()
        limit = 1000
        log = AuditLog(engine, lambda: limit)
        for number in range(40):
            await log.record(Entry("owner", "here", "test", f"{number}", "done"))
        size = sum(len(key) + len(value) for key, value in engine.store.scan(audit.TABLE))
        found, _ = log.newest(Wanted(), 100)
        assert 500 < size <= limit
        assert [entry["number"] for entry in found] == list(range(40, 40 - len(found), -1))
        assert int.from_bytes(engine.store.get("meta", b"audit_bytes") or b"", "big") == size
        again = AuditLog(engine, lambda: limit)
        await again.record(Entry("owner", "here", "test", "next", "done"))
        assert again.newest(Wanted(), 1)[0][0]["number"] == 41
        await aio.QueueManager(engine).close()

    asyncio.run(main())


def test_refusals_cannot_wash_out_what_others_did() -> None:
    async def main() -> None:
        engine, clock = clocked_engine()
        log = AuditLog(engine, lambda: PLENTY)
        clock.advance(100)
        refusal = Entry("", "10.0.0.9", "come in", "/", "refused", 401)
        for _ in range(3 * audit.REFUSALS):
            await log.record(refusal)
        await log.record(Entry("owner", "here", "queue delete", "x", "done"))
        found, _ = log.newest(Wanted(), 1000)
        assert len(found) == audit.REFUSALS + 1
        assert found[0]["skipped"] == 2 * audit.REFUSALS
        assert found[1]["skipped"] == 0
        clock.advance(60)
        await log.record(refusal)
        assert len(log.newest(Wanted(), 1000)[0]) == audit.REFUSALS + 2
        await aio.QueueManager(engine).close()

    asyncio.run(main())


def test_long_texts_are_cut() -> None:
    async def main() -> None:
        engine, _ = clocked_engine()
        log = AuditLog(engine, lambda: PLENTY)
        await log.record(Entry("owner", "here", "test", "x" * 5000, "done", details="y" * 5000))
        (entry,), _ = log.newest(Wanted(), 1)
        assert (len(entry["target"]), len(entry["details"])) == (400, 400)
        await aio.QueueManager(engine).close()

    asyncio.run(main())


def test_a_store_that_is_full_is_told_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        store = MemoryStore()
        engine, _ = clocked_engine(store)
        log = AuditLog(engine, lambda: PLENTY)
        await log.record(Entry("owner", "here", "test", "one", "done"))
        store.fail_commit(1, ResourceError("the disk is full"))
        await log.record(Entry("owner", "here", "test", "two", "done"))
        await log.record(Entry("owner", "here", "test", "three", "done"))
        found, _ = log.newest(Wanted(), 10)
        assert [(e["number"], e["target"]) for e in found] == [(2, "three"), (1, "one")]
        await aio.QueueManager(engine).close()

    asyncio.run(main())
    assert "audit entry lost who=owner action=test target=two" in caplog.text


def test_a_running_service_writes_down_commands_and_signals(tmp_path: Path) -> None:
    """A token that a command makes, and a reload that a signal asks for."""

    async def main() -> None:
        configuration = configured(loopback(), tmp_path)
        configuration = replace(configuration, http=HttpSection(enabled=False))
        service = await Service.start(configuration)
        try:
            command = ("token", "create", "shop", "--role", "send", "--data", str(tmp_path))
            done = await asyncio.to_thread(command_line, *command)
            assert done.code == 0, done.err
            asked = asyncio.Event()
            asked.set()
            reloads = asyncio.create_task(_reload_when_asked(service, Readiness(), asked))
            control = service._control
            assert control is not None
            while not control.audit.newest(Wanted(action="config reload"), 1)[0]:
                await asyncio.sleep(0.002)
            reloads.cancel()
            reload, made = control.audit.newest(Wanted(), 10)[0]
        finally:
            await service.stop()
        assert (reload["who"], reload["origin"]) == ("SIGHUP", "this computer")
        assert (made["who"], made["action"], made["target"]) == ("owner", "token create", "shop")
        assert made["details"] == "roles send"
        assert done.out.strip() not in repr(made)

    run(main())


@pytest.mark.parametrize(
    ("method", "path", "action", "target"),
    [
        ("DELETE", r"/api/v1/queues/.\private$\a/b", "queue delete", r".\private$\a/b"),
        ("DELETE", r"/api/v1/queues/.\private$\a/messages/7", "message delete", r".\private$\a"),
        ("POST", r"/api/v1/queues/.\private$\a/purge", "queue purge", r".\private$\a"),
        ("PUT", r"/api/v1/queues/.\private$\a/permissions", "permissions set", r".\private$\a"),
        ("GET", "/api/v1/backup", "backup", ""),
        ("POST", r"/queues/.\private$\a/delete", "queue delete", r".\private$\a"),
    ],
)
def test_a_request_is_known_by_its_path(method: str, path: str, action: str, target: str) -> None:
    found = action_of(method, path)
    assert found is not None
    assert (found.name, found.target) == (action, target)
    assert action in NAMES


def test_what_comes_and_goes_is_no_administration() -> None:
    for method, tail in [
        ("POST", "packets"),
        ("POST", "receive"),
        ("POST", "messages"),
        ("GET", ""),
    ]:
        assert action_of(method, f"{AT}/{tail}") is None
