"""A backup of a running service has everything of one moment; what is not whole is refused."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

import falconmq
from falconmq import Message
from falconmq.errors import StoreError
from falconmq.service.backup import HEAD, MANIFEST, Backup, member
from falconmq.service.configuration import load
from falconmq.service.daemon import Service
from falconmq.service.restore import BackupError, restore, verify
from falconmq.store import MemoryStore, Store, WriteBatch, check_data_directory, open_data_directory
from tests.service.services import ORDERS, loopback, run, until

NOW = 1_800_000_000.0


def whole(store: Store, directory: Path | None = None) -> bytes:
    with Backup(store, "SALES01", directory, NOW) as making:
        return b"".join(iter(making.next, None))


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    """A backup of a directory with some messages."""
    with falconmq.open(tmp_path / "source") as manager:
        queue = manager.create_queue(ORDERS)
        for number in range(50):
            queue.send(Message(f"message {number} {'x' * 1000}", recoverable=True))
    (tmp_path / "source" / "tokens.json").write_text('{"tokens": []}')
    with open_data_directory(tmp_path / "source") as store:
        return whole(store, tmp_path / "source")


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return opened.getnames()


def changed(archive: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The archive with other contents; None leaves a member out."""
    parts = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for info in opened:
            file = opened.extractfile(info)
            assert file is not None
            data = change(info.name, file.read())
            if data is not None:
                parts.append(member(info.name, data))
    return b"".join([*parts, bytes(1024)])


def test_a_backup_is_an_archive_with_a_manifest_at_its_end(archive: bytes) -> None:
    found = names(archive)
    assert (found[0], found[-2:]) == (HEAD, ["tokens.json", MANIFEST])
    assert set(found[1:-2]) == {f"data.mdb/{n:06d}" for n in range(1, len(found) - 2)}
    manifest = verify(io.BytesIO(archive))
    assert (manifest["name"], manifest["time"]) == ("SALES01", "2027-01-15T08:00:00+00:00")
    assert manifest["records"]["messages"] == 50
    assert manifest["files"]["data.mdb"]["size"] > 50_000


def test_a_restored_directory_has_what_was_backed_up(archive: bytes, tmp_path: Path) -> None:
    target = tmp_path / "new" / "data"
    restored = restore(io.BytesIO(archive), target, NOW)
    assert restored.manifest["name"] == "SALES01"
    assert (target / "tokens.json").read_text() == '{"tokens": []}'
    assert (target / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o777 == 0o700
    assert not (target / "restoring").exists()
    assert check_data_directory(target) == []
    with falconmq.open(target) as manager, falconmq.open(tmp_path / "source") as source:
        assert manager.id == source.id
        texts = [message.text for message in manager.queue(ORDERS)]
        assert [text.split()[1] for text in texts if text] == [str(n) for n in range(50)]


def test_a_restored_queue_manager_gives_no_number_again(archive: bytes, tmp_path: Path) -> None:
    with falconmq.open(tmp_path / "source") as source:
        later = source.queue(ORDERS).send_many(Message(str(n)) for n in range(5000))
        created = source.create_queue(r".\private$\later").format_name
    restore(io.BytesIO(archive), tmp_path / "data", NOW)
    with falconmq.open(tmp_path / "data") as manager:
        queue = manager.queue(ORDERS)
        assert queue.send(Message("new")).ordinal > max(id.ordinal for id in later)
        assert manager.create_queue(r".\private$\other").format_name != created
        assert list(queue)[-1].text == "new"  # behind the others: its lookup id is the greatest


def test_a_directory_with_data_is_refused_unless_forced(archive: bytes, tmp_path: Path) -> None:
    with falconmq.open(tmp_path / "data") as manager:
        manager.create_queue(r".\private$\mine")
    with pytest.raises(StoreError, match="holds the data of a queue manager"):
        restore(io.BytesIO(archive), tmp_path / "data", NOW)
    with falconmq.open(tmp_path / "data") as manager:
        assert [queue.name for queue in manager.queues()] == [r".\private$\mine"]
    restore(io.BytesIO(archive), tmp_path / "data", NOW, force=True)
    with falconmq.open(tmp_path / "data") as manager:
        assert [queue.name for queue in manager.queues()] == [ORDERS]


def test_a_directory_of_something_else_is_refused(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "photos").touch()
    with pytest.raises(StoreError, match="photos"):
        restore(io.BytesIO(archive), tmp_path / "data", NOW)


def test_a_directory_in_use_is_refused_even_if_forced(archive: bytes, tmp_path: Path) -> None:
    with falconmq.open(tmp_path / "data"), pytest.raises(StoreError, match="is in use"):
        restore(io.BytesIO(archive), tmp_path / "data", NOW, force=True)


@pytest.mark.parametrize("kept", [0, 100, 1024, 20_000, -2048])
def test_a_backup_that_was_cut_is_refused_and_the_directory_stays(
    archive: bytes, tmp_path: Path, kept: int
) -> None:
    with falconmq.open(tmp_path / "data") as manager:
        manager.create_queue(r".\private$\mine")
    with pytest.raises(BackupError):
        restore(io.BytesIO(archive[:kept]), tmp_path / "data", NOW, force=True)
    with falconmq.open(tmp_path / "data") as manager:
        assert [queue.name for queue in manager.queues()] == [r".\private$\mine"]


def _flip(name: str, data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1]) if name.startswith("data.mdb/") else data


def _without_tokens(name: str, data: bytes) -> bytes | None:
    return None if name == "tokens.json" else data


def _newer(name: str, data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "format": 2}).encode() if name == HEAD else data


def _other_data(name: str, data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "data_format": 9}).encode() if name == HEAD else data


def _no_json(name: str, data: bytes) -> bytes:
    return b"[]" if name == MANIFEST else data


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_flip, "not those of its manifest"),
        (_without_tokens, "not those of its manifest"),
        (_newer, "has format 2 with data of format 1; this FalconMQ reads 1 with 1"),
        (_other_data, "with data of format 9"),
        (_no_json, "manifest.json is"),
    ],
)
def test_a_backup_that_was_changed_is_refused(
    archive: bytes, change: Callable[[str, bytes], bytes | None], problem: str
) -> None:
    with pytest.raises(BackupError, match=problem):
        verify(io.BytesIO(changed(archive, change)))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../evil", "none of its files"),
        ("/etc/passwd", "none of its files"),
        ("data.mdb", "none of its files"),
        ("data.mdb/000009", "out of order"),
        (HEAD, "none of its files"),
    ],
)
def test_a_member_that_does_not_belong_there_is_refused(
    archive: bytes, tmp_path: Path, name: str, problem: str
) -> None:
    first = member(HEAD, json.dumps({"format": 1, "data_format": 1}).encode())
    hostile = io.BytesIO(first + member(name, b"x") + bytes(1024))
    with pytest.raises(BackupError, match=problem):
        restore(hostile, tmp_path / "data", NOW)
    assert not (tmp_path / "evil").exists()


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("tokens.json")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    first = member(HEAD, json.dumps({"format": 1, "data_format": 1}).encode())
    with pytest.raises(BackupError, match="no file of its kind"):
        restore(io.BytesIO(first + info.tobuf() + bytes(1024)), tmp_path / "data", NOW)


def test_any_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    other = io.BytesIO(member("hello.txt", b"x") + bytes(1024))
    with pytest.raises(BackupError, match="no backup of FalconMQ"):
        verify(other)
    with pytest.raises(BackupError):
        verify(io.BytesIO(b"hello " * 1000))


def test_a_store_in_memory_can_be_backed_up(tmp_path: Path) -> None:
    store, batch = MemoryStore(), WriteBatch()
    batch.put("meta", b"identifier", bytes(15) + b"\7")
    batch.put("other", b"key", b"value")
    store.commit([batch])
    restore(io.BytesIO(whole(store)), tmp_path / "data", NOW)
    with open_data_directory(tmp_path / "data") as found:
        assert found.get("other", b"key") == b"value"


def test_whoever_stops_early_leaves_no_thread_behind(tmp_path: Path) -> None:
    with open_data_directory(tmp_path) as store:
        batch = WriteBatch()
        for number in range(20_000):
            batch.put("messages", number.to_bytes(8, "big"), bytes(1000))
        store.commit([batch])
        before = threading.active_count()
        with Backup(store, "A", None, NOW) as making:
            making.next()
            making.next()
            assert threading.active_count() == before + 1
        assert threading.active_count() == before
        store.commit([batch])  # and the store goes on


def test_a_backup_of_a_running_service_is_of_one_moment(tmp_path: Path) -> None:
    """While messages come and go, the backup has a queue as it was at some moment."""
    chosen = load(
        data=tmp_path / "data",
        bind=loopback(),
        environment={"FALCONMQ_HTTP_PORT": "0", "FALCONMQ_HTTP_LOOPBACK_ROLE": "manage"},
    )

    async def main() -> bytes:
        service = await Service.start(chosen)
        assert service.http is not None
        queue = await service.manager.create_queue(ORDERS)
        for number in range(200):
            await queue.send(Message(f"{number:04d}" + "x" * 20_000, recoverable=True))
        content = b""
        url = f"{service.http.url}/api/v1/backup"
        async with httpx.AsyncClient() as client, client.stream("GET", url) as answer:
            assert answer.headers["content-type"] == "application/x-tar"
            assert ".tar" in answer.headers["content-disposition"]
            async for piece in answer.aiter_bytes(1 << 20):
                content += piece
                number += 1  # the service goes on: one message in, one out
                await queue.send(Message(f"{number:04d}" + "x" * 20_000, recoverable=True))
                await queue.receive(timeout=0)
        await service.stop()
        return content

    content = run(main())
    restore(io.BytesIO(content), tmp_path / "restored", NOW)
    with falconmq.open(tmp_path / "restored") as manager:
        numbers = [int((message.text or "")[:4]) for message in manager.queue(ORDERS)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) in (200, 201)


def test_a_backup_needs_the_role_to_manage(tmp_path: Path) -> None:
    chosen = load(
        data=tmp_path / "data",
        bind=loopback(),
        environment={"FALCONMQ_HTTP_PORT": "0", "FALCONMQ_HTTP_LOOPBACK_ROLE": "read"},
    )

    async def main() -> None:
        service = await Service.start(chosen)
        assert service.http is not None
        async with httpx.AsyncClient(base_url=f"{service.http.url}/api/v1") as client:
            assert (await client.get("/backup")).status_code == 403
        await service.stop()

    run(main())


async def _rest(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        pass


@pytest.mark.slow  # until the grace of requests is over
def test_a_service_that_stops_ends_a_backup(tmp_path: Path) -> None:
    environment = {"FALCONMQ_HTTP_PORT": "0", "FALCONMQ_HTTP_LOOPBACK_ROLE": "manage"}
    chosen = load(data=tmp_path / "data", bind=loopback(), environment=environment)

    async def main() -> None:
        service = await Service.start(chosen)
        assert service.http is not None
        queue = await service.manager.create_queue(ORDERS)
        await queue.send_many([Message("x" * 1_000_000, recoverable=True) for _ in range(60)])
        url = f"{service.http.url}/api/v1/backup"
        async with httpx.AsyncClient() as client, client.stream("GET", url) as answer:
            pieces = answer.aiter_raw(1000)
            await anext(pieces)
            await service.stop()
            with pytest.raises(httpx.HTTPError):
                await _rest(pieces)
        await until(lambda: not any("backup" in t.name for t in threading.enumerate()))

    run(main())
