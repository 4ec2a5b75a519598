"""No secret in a log, in a page or in an answer that was not made to hold it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.commands import InProcess
from tests.conformance_wire.exchange import opened
from tests.conformance_wire.play import Play
from tests.hostile.scene import HTTP_PORT, Scene, all_read, attacked

PASSWORD: Final = "correct-horse-battery"  # in places where no password belongs
SECRET_BODY: Final = "the account number is 12345678"


@pytest.fixture(scope="module")
def talkative() -> Iterator[Scene]:
    """A daemon that logs all it can say."""
    with attacked(log={"level": "debug"}, http={"port": HTTP_PORT}) as scene:
        yield scene


def test_no_secret_is_in_the_log(
    talkative: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = InProcess(capsys, monkeypatch)
    where = ("--data", str(talkative.daemon.data))
    # given a daemon that is used with a token, wrong ones, a log-in, keys and certificates
    token = run("token", "create", "admin", "--role", "manage", *where).out.split()[-1]
    secrets = {token, token.partition("_")[2], PASSWORD, SECRET_BODY}
    with talkative.http() as client:
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/v1/status", headers=bearer).status_code == 200
        made = client.post("/api/v1/tokens", json={"name": "b", "roles": ["read"]}, headers=bearer)
        secrets.add(made.json()["token"])
        wrong = {"Authorization": f"Bearer {PASSWORD}"}
        assert client.get("/api/v1/status", headers=wrong).status_code == 401
        assert client.get(f"/api/v1/status?token={PASSWORD}").status_code == 401
        basic = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        secrets.add(basic)
        client.get("/api/v1/status", headers={"Authorization": f"Basic {basic}"})
        logged_in = client.post("/login", data={"token": token})
        assert logged_in.status_code == 303
        secrets |= set(client.cookies.values())
        pages = [client.get(path).text for path in ("/", "/tokens", "/configuration", "/sessions")]
        assert not [secret for secret in secrets for page in pages if secret in page]
    assert run("certificate", "create", "S-1-5-21-1-2-3-1001", *where).code == 0
    assert run("key", "renew", *where).code == 0
    talkative.daemon.create_queue("quiet")
    talkative.stage.client.send(talkative.stage.path("quiet"), [{"text": SECRET_BODY}])
    with Play.calling(talkative.stage) as play:  # and a message that is refused
        opened(2)(play)
        play.write(play.message("missing", body=SECRET_BODY.encode("utf-16-le")).encode())
        all_read(play, 1)
    secrets |= private_parts(talkative.daemon.data)
    # then nothing of that is in its log
    said = talkative.daemon.said()
    assert "DEBUG" in said
    assert len(secrets) > 10
    assert [secret for secret in secrets if secret in said] == []
    assert "PRIVATE KEY" not in said


def private_parts(data: Path) -> set[str]:
    """Every long text in the files that are for their owner alone, but for what is public."""
    found: set[str] = set()
    for file in data.rglob("*.json"):
        if "key" in file.name or "certificate" in file.name:
            _gather(json.loads(file.read_text(encoding="utf-8")), found)
    for file in data.rglob("*.pem"):
        found |= set(re.findall(r"[A-Za-z0-9+/=]{40,}", file.read_text(encoding="ascii")))
    assert found, f"no keys in {sorted(each.name for each in data.rglob('*'))}"
    return found


def _gather(value: object, found: set[str]) -> None:
    if isinstance(value, dict):
        for each in value.values():
            _gather(each, found)
    elif isinstance(value, list):
        for each in value:
            _gather(each, found)
    elif isinstance(value, str) and len(value) >= 64:
        found |= {value, *(line for line in value.split("\n") if len(line) >= 40)}
