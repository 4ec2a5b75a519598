"""Keys and certificates over HTTP, at the first start of a service, and in backups."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import signal
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from falconmq.security.key_store import KeyStore
from falconmq.security.keys import ManagerKeys
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.security.providers import ADVANCED, BASE, ENHANCED
from falconmq.service.access import Role
from falconmq.service.backup import Backup
from falconmq.service.configuration import Configuration, HttpSection, ManagerSection
from falconmq.service.daemon import Service
from falconmq.service.process import serve
from falconmq.service.restore import restore
from falconmq.service.web.control import ControlServer
from falconmq.store import open_data_directory
from tests.security import known
from tests.service.asking import Api
from tests.service.control import ControlledManager
from tests.service.ports import HttpManager

ANNA = "S-1-5-21-7-8-9-1001"
_PAIRS = {BASE: known.PAIR_512, ENHANCED: known.PAIR_1024, ADVANCED: known.PAIR_1024}
PEER = PeerKeys.of(
    UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0"), "SALES02", ManagerKeys(_PAIRS, _PAIRS)
)


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[HttpManager]:
    with HttpManager(tmp_path) as running:
        yield running


@pytest.fixture
def api(port: HttpManager) -> Iterator[httpx.Client]:
    with port.client(port.token()) as client:
        client.base_url = httpx.URL(f"{port.url}/api/v1")
        yield client


def document(**change: Any) -> dict[str, Any]:
    """The keys of a queue manager that is somewhere else."""
    keys = {**PEER.to_document(), **change}
    return {name: value for name, value in keys.items() if value is not None}


def test_keys_are_listed_without_their_secrets(api: httpx.Client, tmp_path: Path) -> None:
    answer = api.get("/keys")
    assert answer.status_code == 200
    listed = answer.json()
    assert listed["name"] == "SALES01"
    assert [(key["use"], key["bits"]) for key in listed["keys"]] == [
        ("encryption", 512),
        ("encryption", 1024),
        ("encryption", 1024),
        ("signing", 512),
        ("signing", 1024),
        ("signing", 1024),
    ]
    assert listed["peers"] == []
    pair = next(iter(KeyStore(tmp_path).keys().encryption.values()))
    assert f"{pair.prime1:x}" not in answer.text
    # they are made once
    assert api.get("/keys").json() == listed


def test_what_one_exports_another_imports(api: httpx.Client, tmp_path: Path) -> None:
    answer = api.post("/keys/peers", json=document())
    assert answer.status_code == 201
    assert answer.json()["name"] == "SALES02"
    assert PeerStore(tmp_path).all() == [PEER]
    assert api.get("/keys").json()["peers"] == [answer.json()]
    # again, as after new keys
    assert api.post("/keys/peers", json=document(name="RENAMED")).status_code == 200
    assert [peer.name for peer in PeerStore(tmp_path).all()] == ["RENAMED"]
    gone = f"/keys/peers/{PEER.queue_manager}"
    assert api.delete(gone).status_code == 204
    missing = api.delete(gone)
    assert (missing.status_code, missing.json()["hint"]) == (404, "falconmq key list shows them")


def test_our_own_export_is_good_and_not_for_ourselves(api: httpx.Client) -> None:
    exported = api.get("/keys/export").json()
    assert PeerKeys.from_document(exported).name == "SALES01"
    refused = api.post("/keys/peers", json=exported)
    assert refused.status_code == 400
    assert "this queue manager itself" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"encryption": "AAAA"}, 400),
        ({"queue_manager": "x"}, 400),
        ({"falconmq_keys": 9}, 400),
        ({"signing": None}, 422),
        ({"more": 1}, 422),
        ({"encryption": "A" * 70_000}, 422),
    ],
)
def test_what_are_no_keys_is_refused(api: httpx.Client, change: dict[str, Any], code: int) -> None:
    answer = api.post("/keys/peers", json=document(**change))
    assert answer.status_code == code
    assert answer.headers["content-type"] == "application/problem+json"


def test_certificates_come_and_go(api: httpx.Client, tmp_path: Path) -> None:
    made = api.post("/certificates", json={"user": ANNA, "lifetime": 86_400})
    assert made.status_code == 201
    assert made.json()["kind"] == "internal"
    assert "private" not in made.text
    again = api.post("/certificates", json={"user": ANNA})
    assert again.status_code == 409
    assert again.json()["error"] == "MQ_ERROR_INTERNAL_USER_CERT_EXIST"
    given = {"user": "S-1-5-21-7-8-9-1002", "certificate": made.json()["certificate"]}
    other = api.post("/certificates/register", json=given)
    assert (other.status_code, other.json()["kind"]) == (201, "external")
    assert api.post("/certificates/register", json=given).status_code == 409
    assert api.get("/certificates").json()["certificates"] == [made.json(), other.json()]
    gone = f"/certificates/{made.json()['id']}"
    assert (api.delete(gone).status_code, api.delete(gone).status_code) == (204, 404)
    assert api.get("/certificates").json()["certificates"] == [other.json()]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/certificates", {"user": "anna"}, 400),
        ("/certificates", {"user": ANNA, "lifetime": 1}, 422),
        ("/certificates", {"user": ANNA, "lifetime": 1e12}, 422),
        ("/certificates/register", {"user": ANNA, "certificate": "nothing"}, 400),
        ("/certificates/register", {"user": ANNA, "certificate": "\ud800"}, 422),
        ("/certificates/register", {"user": "x", "certificate": ""}, 400),
    ],
)
def test_what_makes_no_certificate_is_refused(
    api: httpx.Client, path: str, body: dict[str, Any], code: int
) -> None:
    content = json.dumps(body)
    answer = api.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == code
    assert api.get("/certificates").json() == {"certificates": []}


def test_a_private_key_is_taken_over_the_control_socket_only(
    api: httpx.Client, port: HttpManager, tmp_path: Path
) -> None:
    key = base64.b64encode(b"-----BEGIN PRIVATE KEY-----").decode()
    given = {"user": ANNA, "certificate": "", "key": key}
    answer = api.post("/certificates/register", json=given)
    assert answer.status_code == 403
    assert "does not travel" in answer.json()["detail"]
    assert not (tmp_path / "certificates.json").exists()
    # from the owner it is looked at
    server, socket = ControlServer(), tmp_path / "control.sock"
    port.do(lambda: server.start(socket, port.app))
    try:
        owner = Api(socket)
        for bad, says in ((given, "no private key"), ({**given, "key": "?"}, "no base64")):
            code, _, text = owner.refused("POST", "/certificates/register", bad)
            assert (code, says in text) == (400, True)
    finally:
        port.do(server.stop)


def test_nobody_but_managers_may_ask(port: HttpManager) -> None:
    token = port.token(Role.READ, Role.SEND, Role.RECEIVE, name="all-but-manage")
    with port.client(token) as client:
        for path in ("/keys", "/keys/export", "/certificates"):
            assert client.get(f"/api/v1{path}").status_code == 403
        for path in ("/keys/peers", "/keys/renew", "/certificates", "/certificates/register"):
            assert client.post(f"/api/v1{path}", json={}).status_code == 403


def test_keys_that_others_could_read_are_a_problem_not_a_crash(
    api: httpx.Client, tmp_path: Path
) -> None:
    api.get("/keys")
    (tmp_path / "keys.json").chmod(0o644)
    answer = api.get("/keys")
    assert answer.status_code == 400
    assert "has mode 0644" in answer.json()["detail"]


def test_a_queue_manager_in_memory_has_no_keys(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as controlled:
        code, _, text = Api(controlled.path).refused("GET", "/keys")
    assert code == 503
    assert "no data directory" in text


def test_the_first_start_makes_the_keys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(
        ManagerSection("SALES01", tmp_path, bind="127.0.0.1", port=0),
        http=HttpSection(enabled=False),
    )

    def stop(service: Service) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with caplog.at_level("INFO", "falconmq.service"):
        assert asyncio.run(serve(configuration, ready=stop)) == 0
    path = tmp_path / "keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    pairs = KeyStore(tmp_path).find()
    assert pairs is not None
    secret = f"{next(iter(pairs.signing.values())).private_exponent:x}"
    assert secret not in caplog.text
    # and no other start makes them again
    before = path.read_bytes()
    assert asyncio.run(serve(configuration, ready=stop)) == 0
    assert path.read_bytes() == before


def test_a_backup_brings_the_keys_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    keys = KeyStore(source).keys()
    PeerStore(source).add(PEER)
    store = open_data_directory(source)
    archive = io.BytesIO()
    making = Backup(store, "SALES01", source, 1.7e9)
    while (piece := making.next()) is not None:
        archive.write(piece)
    making.close()
    store.close()
    archive.seek(0)
    restore(archive, tmp_path / "target", 1.7e9)
    assert KeyStore(tmp_path / "target").find() == keys
    assert PeerStore(tmp_path / "target").all() == [PEER]


def test_keys_are_renewed_and_the_old_ones_stay_for_a_while(
    api: httpx.Client, tmp_path: Path
) -> None:
    before = api.get("/keys").json()["keys"]
    answer = api.post("/keys/renew")
    assert answer.status_code == 200
    made = answer.json()
    assert {key["fingerprint"] for key in made["keys"]}.isdisjoint(
        key["fingerprint"] for key in before
    )
    assert api.get("/keys").json()["keys"] == made["keys"]
    (until,) = made["former"]
    left = datetime.fromisoformat(until) - datetime.now(UTC)
    assert timedelta(days=29) < left <= timedelta(days=30)
    pair = next(iter(KeyStore(tmp_path).keys().encryption.values()))
    assert f"{pair.prime1:x}" not in answer.text
    entries = api.get("/audit").json()["entries"]
    assert entries[0]["action"] == "key renew"


def test_the_transport_has_renewed_keys_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = Configuration(
            ManagerSection("SALES01", tmp_path, bind="127.0.0.1", port=0),
            http=HttpSection(enabled=False),
        )
        KeyStore(tmp_path).keys()
        service = await Service.start(configuration)
        try:
            protection = service.transport.protection
            assert protection is not None
            old = protection.receiver.keys
            door = Api(configuration.control_socket)
            asked = await asyncio.to_thread(door.post, "/keys/renew")
            assert len(asked["keys"]) == 6
            assert protection.receiver.keys != old
            assert [each.encryption for each in protection.receiver.former] == [old]
        finally:
            await service.stop()

    asyncio.run(main())
