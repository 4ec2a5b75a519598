"""Names that try to be paths: no queue name leads to a file, whichever door it comes through."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

import falconmq
from falconmq.errors import FalconMQError
from falconmq.service.backup import Backup
from falconmq.service.restore import BackupError, restore
from tests.cli.commands import InProcess
from tests.conformance_wire.stage import Stage
from tests.hostile.scene import Scene

TRICKS: Final = [
    r".\private$\..",
    r".\private$\..\..\..\tmp\stolen",
    ".\\private$\\../../../../tmp/stolen",
    ".\\private$\\/etc/passwd",
    ".\\private$\\x\0y",
    ".\\private$\\x\r\ny",
    ".\\private$\\\u202egpj.exe",
    ".\\private$\\\ud800",
    ".\\private$\\%2e%2e%2f%2e%2e%2fstolen",
    ".\\private$\\" + "long" * 100,
    ".\\private$\\~root",
    ".\\private$\\$(touch stolen)",
    "../../stolen",
    "/etc/passwd",
    "",
    "\\\\",
]


def files_of(place: Path) -> set[str]:
    """Every file and directory, but for the keys that a service makes when it has time."""
    found = {str(each.relative_to(place)) for each in place.rglob("*")}
    return {each for each in found if "keys" not in each}


def sent(name: str) -> str:
    return name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@pytest.mark.parametrize("name", TRICKS, ids=ascii)
def test_a_name_in_a_request_is_never_a_path(scene: Scene, name: str) -> None:
    place = scene.daemon.data.parent
    before = files_of(place)
    with scene.http() as client:
        made = client.post("/api/v1/queues", json={"name": sent(name)})
        assert made.status_code in (201, 400, 422), made.text
        path = f"/api/v1/queues/{quote(sent(name), safe='')}"
        there = made.status_code == 201
        # what was made is found under its name and can go again; what was not is not there
        for method, address in (
            ("GET", path),
            ("GET", f"{path}/messages"),
            ("GET", f"{path}/export"),
            ("GET", f"/queues/{quote(sent(name), safe='')}"),
            ("GET", f"/static/{quote('../' * 6 + sent(name), safe='')}"),
            ("GET", f"/static/{'../' * 6}etc/passwd"),
            ("DELETE", path),
        ):
            answer = client.request(method, address)
            assert answer.status_code < 500, (method, address, answer.text)
            assert "root:" not in answer.text, (method, address)
        if there:
            assert client.get(path).status_code == 404
    assert files_of(place) == before


@pytest.mark.parametrize("name", [*TRICKS[:4], TRICKS[6], "/etc/passwd"], ids=ascii)
def test_a_name_in_a_command_is_never_a_path(
    scene: Scene,
    tmp_path: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = InProcess(capsys, monkeypatch)
    where = ("--data", str(scene.daemon.data))
    before = files_of(scene.daemon.data.parent)
    made = run("queue", "create", sent(name), *where)
    assert made.code in (0, 1, 2), made
    exported = run("export", sent(name), "out.jsonl", *where)
    assert exported.code in (0, 1, 2), exported
    if made.code == 0:
        assert exported.code == 0
        assert run("queue", "delete", sent(name), "--yes", *where).code == 0
    assert files_of(tmp_path) <= {"out.jsonl"}
    assert files_of(scene.daemon.data.parent) == before


def test_a_name_in_python_or_in_a_declaration_is_never_a_path(tmp_path: Path) -> None:
    # given an estate whose configuration declares such names
    accepted = []
    with falconmq.open(tmp_path / "data", computer_name="A") as manager:
        before = files_of(tmp_path)
        for name in TRICKS:
            try:
                manager.create_queue(name)
                accepted.append(name)
            except FalconMQError as error:
                assert str(error).replace("\n", "").isprintable(), repr(str(error))
        assert files_of(tmp_path) == before
        # then what was taken is listed by the name it has, and no two have become one
        listed = [queue.name for queue in manager.queues()]
        assert len(set(listed)) == len(listed) == len(accepted)
    with falconmq.open(tmp_path / "data", computer_name="A") as manager:
        assert [queue.name for queue in manager.queues()] == listed


def test_a_service_with_tricks_in_its_declarations_says_which(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.daemon.sections['queues]]\nname = ".\\\\private$\\\\x\\u0000y"\n[[queues'] = {}
    with stage, pytest.raises(AssertionError, match="not ready") as refused:
        stage.daemon.start()
    said = str(refused.value)
    assert "Traceback" not in said
    assert "\0" not in said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A backup as it should be."""
    place = tmp_path_factory.mktemp("whole") / "data"
    with (
        falconmq.open(place, computer_name="A") as manager,
        Backup(manager._engine.store, "A", None, time.time()) as making,
    ):
        return b"".join(iter(making.next, None))


def hostile_backup(whole: bytes, member: tarfile.TarInfo) -> io.BytesIO:
    """A backup with one more member behind its head."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(whole)) as given,
        tarfile.open(fileobj=made, mode="w") as out,
    ):
        for number, info in enumerate(given):
            out.addfile(info, given.extractfile(info))
            if not number:
                out.addfile(member, io.BytesIO(b"stolen"[: member.size]))
    made.seek(0)
    return made


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../stolen", tarfile.REGTYPE),
        ("/tmp/falconmq-stolen", tarfile.REGTYPE),
        ("data.mdb/../../stolen", tarfile.REGTYPE),
        ("keys.json", tarfile.SYMTYPE),
        ("data.mdb/000001", tarfile.LNKTYPE),
        ("keys.json", tarfile.CHRTYPE),
        ("control.sock", tarfile.REGTYPE),
    ],
)
def test_a_backup_leads_nowhere_else(tmp_path: Path, whole: bytes, name: str, kind: bytes) -> None:
    # given a backup that somebody has worked on
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    member.size = 6 if kind == tarfile.REGTYPE else 0
    before = files_of(tmp_path)
    # when it is brought back, then it is refused, and only an empty directory is left of it
    with pytest.raises(BackupError):
        restore(hostile_backup(whole, member), tmp_path / "back", time.time())
    assert files_of(tmp_path) <= before | {"back", "back/lock"}
    assert not Path("/tmp/falconmq-stolen").exists()


def test_the_same_backup_without_such_a_member_is_taken(tmp_path: Path, whole: bytes) -> None:
    assert restore(io.BytesIO(whole), tmp_path / "back", time.time()).sent_again == 0
