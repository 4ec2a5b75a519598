"""`falconmq export` and `falconmq import`: what comes back is what went out."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as parquet
import pytest

import falconmq as fmq
from falconmq import Acknowledge, BodyType, Journal, Message
from falconmq.cli import exporting, importing
from falconmq.client import ControlClient, arrow
from falconmq.errors import UnreachableError
from falconmq.message import CryptographicProvider
from tests.cli.commands import InProcess, start
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager
from tests.service.services import PATIENCE

COPY = r".\private$\copy"
LEDGER = r".\private$\ledger"
FORMATS = pytest.mark.parametrize("suffix", ["jsonl", "parquet"])


def rich_messages() -> list[Message]:
    """Messages that have everything a sender may choose."""
    name = r"DIRECT=OS:sales02\private$\answers"
    return [
        Message("text with \u2028 and \U0001f600", label="first"),
        Message(b"", label=""),
        Message(bytes(range(256)), body_type=BodyType.VT_ARRAY_UI1, recoverable=False),
        Message(b"\x01\x02\x03\x04", body_type=0x4711, priority=7, application_tag=0xFFFFFFFF),
        Message(
            "all",
            label="x" * 249,
            priority=1,
            time_to_reach_queue=100,
            time_to_be_received=1_000_000,
            acknowledgements=Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_ARRIVAL,
            journal=Journal.DEAD_LETTER,
            administration_queue=name,
            response_queue=name,
            correlation_id=r"{55735802-9150-9595-4997-B6E611EA26C6}\7",
            extension=b"\0\xff",
            trace=True,
            report_queue=UUID(int=5),
            connector_type=UUID(int=7),
            sender_id=b"\x01\x01\0\0\0\0\0\x05\x12\0\0\0",
            sender_certificate=b"certificate",
            signature=b"signature",
            provider=CryptographicProvider("Microsoft", 24),
            dead_letter_queue=r".\private$\dead",
            allow_peek_when_locked=True,
        ),
    ]


# What is given anew by the queue manager that takes the copy.
_NEW = ("id", "lookup_id", "arrived_time", "sent_time", "destination", "destination_queue_manager")


def properties(message: Message) -> dict[str, Any]:
    found = {f.name: getattr(message, f.name) for f in dataclasses.fields(message)}
    return {name: value for name, value in found.items() if name not in _NEW}


def given(service: ControlledManager, count: int, *, transactional: bool = False) -> None:
    for name in (ORDERS, COPY):
        service.blocking.create_queue(name, transactional=transactional)
    with service.blocking.transaction() as transaction:
        messages = [Message(f"{number}") for number in range(count)]
        queue = service.blocking.queue(ORDERS)
        queue.send_many(messages, transaction if transactional else None)


def texts(service: ControlledManager, name: str) -> list[str]:
    return [message.text for message in service.blocking.queue(name)]


@FORMATS
def test_every_property_comes_back(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path, suffix: str
) -> None:
    # given messages with everything that can be sent
    orders = service.blocking.create_queue(ORDERS)
    copy = service.blocking.create_queue(COPY)
    service.blocking.create_queue(r".\private$\dead")
    for message in rich_messages():
        orders.send(message)
    # when they go through a file
    file = str(tmp_path / f"orders.{suffix}")
    done = falconmq("export", ORDERS, file)
    assert (done.code, done.out, done.err) == (0, "", f"exported 5 messages to {file}\n")
    done = falconmq("import", file, COPY)
    assert (done.code, done.err) == (0, f"imported 5 messages into {COPY}\n")
    # then all is as it was
    assert [properties(m) for m in copy] == [properties(m) for m in orders]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("orders")) == [
        f"orders.{suffix}"
    ]


def test_lines_can_be_written_by_hand_and_piped(
    falconmq: InProcess, service: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.blocking.create_queue(ORDERS)
    lines = b'{"text": "hello", "label": "by hand"}\n\n{"json": {"a": 1}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert falconmq("import", "-", ORDERS).code == 0
    assert texts(service, ORDERS) == ["hello", '{"a":1}']


def test_standard_output_gets_json_lines(falconmq: InProcess, service: ControlledManager) -> None:
    given(service, 3)
    done = falconmq("export", ORDERS, "-", "--count", "2")
    assert [json.loads(line)["text"] for line in done.out.splitlines()] == ["0", "1"]
    assert done.err == "exported 2 messages to standard output\n"


@FORMATS
def test_consume_takes_the_messages_in_pages(
    falconmq: InProcess,
    service: ControlledManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    monkeypatch.setattr(exporting, "PAGE_MESSAGES", 2)
    given(service, 5)
    file = tmp_path / f"orders.{suffix}"
    done = falconmq("export", ORDERS, str(file), "--consume", "--json")
    assert json.loads(done.out) == {"exported": 5, "consumed": True, "file": str(file)}
    assert texts(service, ORDERS) == []
    assert falconmq("import", str(file), COPY).code == 0
    assert texts(service, COPY) == ["0", "1", "2", "3", "4"]


def test_a_parquet_file_tells_the_history_of_messages_too(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 2, transactional=True)
    file = tmp_path / "orders.parquet"
    assert falconmq("export", ORDERS, str(file)).code == 0
    row = parquet.read_table(file).to_pylist()[1]
    message = list(service.blocking.queue(ORDERS))[1]
    assert message.transaction is not None
    assert (row["message_id"], row["lookup_id"]) == (str(message.id), message.lookup_id)
    assert (row["queue"], row["destination"]) == (ORDERS, str(message.destination))
    exact = arrow.messages_to_table([message], ORDERS).to_pylist()[0]
    assert row == exact


class Broken:
    """A client whose calls to some paths fail, before or after they are carried out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ending = ""
        self.at = 0
        self.is_after = False
        self.error: BaseException = KeyboardInterrupt()
        request = ControlClient.request

        def breaking(client: ControlClient, method: str, path: str, *args: Any, **more: Any) -> Any:
            is_meant = bool(self.ending) and path.endswith(self.ending)
            self.at -= is_meant
            if is_meant and self.at == 0 and not self.is_after:
                raise self.error
            answer = request(client, method, path, *args, **more)
            if is_meant and self.at == 0:
                raise self.error
            return answer

        monkeypatch.setattr(ControlClient, "request", breaking)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_consume_that_was_interrupted_goes_on(
    falconmq: InProcess,
    service: ControlledManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_after: bool,
) -> None:
    # given an export that breaks off at the commit of its second page
    monkeypatch.setattr(exporting, "PAGE_MESSAGES", 2)
    broken = Broken(monkeypatch)
    broken.ending, broken.at, broken.is_after = "/commit", 2, is_after
    broken.error = UnreachableError("gone", status=fmq.MqStatus.SERVICE_NOT_AVAILABLE)
    given(service, 5)
    file = tmp_path / "orders.jsonl"
    assert falconmq("export", ORDERS, str(file), "--consume").code == 3
    assert not file.exists()
    # then it does not begin anew by mistake
    done = falconmq("export", ORDERS, str(file), "--consume")
    assert done.code == 1
    assert "--consume --resume" in done.err
    # and goes on where it was: each message once, none lost
    done = falconmq("export", ORDERS, str(file), "--consume", "--resume")
    assert (done.code, "others hold" in done.err) == (0, False)
    assert [json.loads(line)["text"] for line in file.read_text().splitlines()] == list("01234")
    assert texts(service, ORDERS) == []


def test_messages_that_others_hold_are_told_about(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 3)
    with service.client() as client:
        path = "/queues/.%5Cprivate%24%5Corders/receive"
        client.request("POST", path, {"lease": 60})
    done = falconmq("export", ORDERS, str(tmp_path / "orders.jsonl"))
    assert done.err.splitlines()[0].startswith("exported 2 messages")
    assert done.err.splitlines()[1] == "others hold 1 message, which no export can see"


@pytest.mark.slow
def test_an_export_that_is_killed_again_and_again_loses_nothing(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    # given many messages
    service.blocking.create_queue(ORDERS)
    sent = [f"{number}" for number in range(4000)]
    service.blocking.queue(ORDERS).send_many([Message(text) for text in sent])
    file, part = tmp_path / "orders.jsonl", tmp_path / "orders.jsonl.part"
    arguments = ["export", ORDERS, str(file), "--consume", "--data", str(service.directory)]
    # when the export is killed while it writes, three times
    size = 0
    for _ in range(3):
        process = start(*arguments, *(["--resume"] if part.exists() else []))
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and not (part.exists() and part.stat().st_size > size):
            assert time.monotonic() < deadline
        process.kill()
        process.communicate(timeout=PATIENCE)
        if file.exists():
            break
        size = part.stat().st_size
    # then at the end every message is in the file once, in order, and none in the queue
    if not file.exists():
        assert falconmq(*arguments, "--resume").code == 0
    lines = file.read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == sent
    assert texts(service, ORDERS) == []
    assert sorted(p.name for p in tmp_path.iterdir() if "orders" in p.name) == ["orders.jsonl"]


def test_a_torn_line_is_cut_off(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 2)
    assert falconmq("export", ORDERS, str(tmp_path / "a.jsonl")).code == 0
    whole = (tmp_path / "a.jsonl").read_bytes()
    (tmp_path / "b.jsonl.part").write_bytes(whole[: len(whole) // 2 + 20])
    assert falconmq("export", ORDERS, str(tmp_path / "b.jsonl"), "--consume", "--resume").code == 0
    assert (tmp_path / "b.jsonl").read_bytes() == whole


def test_when_the_file_cannot_be_written_the_messages_are_back_at_once(
    falconmq: InProcess, service: ControlledManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given(service, 3)

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "sync", full)
    done = falconmq("export", ORDERS, str(tmp_path / "orders.jsonl"), "--consume")
    assert done.code == 1
    assert "No space left on device" in done.err
    assert texts(service, ORDERS) == ["0", "1", "2"]
    assert (tmp_path / "orders.jsonl.part").read_bytes() == b""


def test_a_file_is_replaced_by_force_only(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 1)
    file = tmp_path / "orders.jsonl"
    file.write_text("mine")
    assert falconmq("export", ORDERS, str(file)).code == 1
    assert file.read_text() == "mine"
    assert falconmq("export", ORDERS, str(file), "--force").code == 0
    assert json.loads(file.read_text())["text"] == "0"


def exported(falconmq: InProcess, tmp_path: Path) -> str:
    file = str(tmp_path / "orders.jsonl")
    assert falconmq("export", ORDERS, file).code == 0
    return file


@FORMATS
def test_the_report_has_old_and_new_ids(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path, suffix: str
) -> None:
    given(service, 2)
    file = str(tmp_path / f"orders.{suffix}")
    assert falconmq("export", ORDERS, file).code == 0
    done = falconmq("import", file, COPY, "--json")
    report = [json.loads(line) for line in done.out.splitlines()]
    old, new = ([str(m.id) for m in service.blocking.queue(name)] for name in (ORDERS, COPY))
    assert report == [
        {"line": number, "old_id": old[number - 1], "id": new[number - 1]} for number in (1, 2)
    ]


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("is_after", [False, True])
def test_an_import_that_was_interrupted_goes_on(
    falconmq: InProcess,
    service: ControlledManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_after: bool,
    transactional: bool,
) -> None:
    # given an import that is interrupted at its second batch, before or after it was sent
    monkeypatch.setattr(importing, "BATCH_MESSAGES", 2)
    given(service, 5, transactional=transactional)
    file = exported(falconmq, tmp_path)
    broken = Broken(monkeypatch)
    broken.ending, broken.at, broken.is_after = "/messages", 2, is_after
    assert falconmq("import", file, COPY).code == 130
    # then it does not begin anew by mistake
    done = falconmq("import", file, COPY)
    assert done.code == 1
    assert "--resume" in done.err
    # and goes on, with batches of another size now: each message once, none lost
    monkeypatch.setattr(importing, "BATCH_MESSAGES", 500)
    assert falconmq("import", file, COPY, "--resume").code == 0
    assert texts(service, COPY) == list("01234")
    assert not Path(f"{file}.progress").exists()


def content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


@pytest.mark.slow
def test_an_import_that_is_killed_again_and_again_sends_each_message_once(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    # given a file of many messages
    service.blocking.create_queue(COPY)
    file, kept = tmp_path / "orders.jsonl", tmp_path / "orders.jsonl.progress"
    sent = [f"{number}" for number in range(6000)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in sent))
    arguments = ["import", str(file), COPY, "--data", str(service.directory)]
    # when the import is killed while it sends, three times
    before = None
    for _ in range(3):
        process = start(*arguments, *(["--resume"] if kept.exists() else []))
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and content(kept) in (None, before):
            assert time.monotonic() < deadline
        process.kill()
        process.communicate(timeout=PATIENCE)
        before = content(kept)
        if before is None:
            break
    # then at the end every message is in the queue once, in order
    if kept.exists():
        assert falconmq(*arguments, "--resume").code == 0
    assert texts(service, COPY) == sent
    assert not kept.exists()


def test_after_a_restart_nobody_knows_and_the_command_says_so(
    falconmq: InProcess,
    service: ControlledManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a batch that was on its way when the service was started anew
    monkeypatch.setattr(importing, "BATCH_MESSAGES", 2)
    given(service, 5)
    file = exported(falconmq, tmp_path)
    broken = Broken(monkeypatch)
    broken.ending, broken.at, broken.is_after = "/messages", 2, True
    assert falconmq("import", file, COPY).code == 130
    progress = Path(f"{file}.progress")
    progress.write_text(progress.read_text().replace(json.loads(progress.read_text())["run"], "0"))
    # when it is resumed
    done = falconmq("import", file, COPY, "--resume")
    # then it sends nothing twice, and tells which messages are meant
    assert done.code == 1
    assert "messages 3 to 4" in done.err
    assert "--skip" in done.err
    assert texts(service, COPY) == list("0123")
    assert falconmq("import", file, COPY, "--skip", "4").code == 0
    assert texts(service, COPY) == list("01234")


def test_a_transaction_sends_all_or_nothing(
    falconmq: InProcess,
    service: ControlledManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importing, "BATCH_MESSAGES", 2)
    given(service, 5, transactional=True)
    file = exported(falconmq, tmp_path)
    broken = Broken(monkeypatch)
    broken.ending, broken.at, broken.is_after = "/messages", 3, True
    assert falconmq("import", file, COPY, "--transaction").code == 130
    assert texts(service, COPY) == []
    assert service.blocking.status().transactions == 0
    assert not Path(f"{file}.progress").exists()
    assert falconmq("import", file, COPY, "--transaction").code == 0
    assert texts(service, COPY) == list("01234")


def test_a_message_that_is_wrong_is_named_and_the_rest_can_go_on(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 2)
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"text": "a"}\n{"text": "b", "priority": 9}\n')
    done = falconmq("import", str(file), COPY)
    assert done.code == 1
    assert "messages 1 to 2" in done.err
    assert "messages[1].priority" in done.err
    assert texts(service, COPY) == []
    file.write_text("what?\n")
    Path(f"{file}.progress").unlink()
    done = falconmq("import", str(file), COPY)
    assert (done.code, "wrong.jsonl, line 1: no JSON" in done.err) == (1, True)


def test_a_full_queue_says_that_some_may_be_there(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 0)
    service.blocking.queue(COPY).update(quota_kilobytes=1)
    file = tmp_path / "much.jsonl"
    file.write_text('{"text": "0123456789"}\n' * 50)
    done = falconmq("import", str(file), COPY)
    assert done.code == 1
    assert "INSUFFICIENT_RESOURCES" in done.err
    assert "--skip NUMBER" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", ORDERS, "orders.txt"], "what is in orders.txt?"),
        (["export", ORDERS, "-", "--format", "parquet"], "Parquet needs a file"),
        (["export", ORDERS, "a.jsonl", "--resume"], "--resume goes on with --consume"),
        (["import", "nothing.jsonl", ORDERS], "cannot read nothing.jsonl"),
        (["import", "-", ORDERS, "--resume"], "standard input cannot be resumed"),
        (["import", "a.jsonl", ORDERS, "--resume", "--transaction"], "a transaction cannot"),
        (["import", "a.jsonl", ORDERS, "--resume", "--skip", "1"], "--resume or --skip"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    falconmq: InProcess, service: ControlledManager, arguments: list[str], said: str
) -> None:
    done = falconmq(*arguments)
    assert done.code == 2
    assert said in done.err


def test_a_progress_of_something_else_is_refused(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    given(service, 1)
    file = exported(falconmq, tmp_path)
    assert falconmq("import", file, COPY, "--resume").code == 1
    state = {"queue": ORDERS, "key": "k", "size": Path(file).stat().st_size}
    Path(f"{file}.progress").write_text(json.dumps(state))
    assert "name the same queue" in falconmq("import", file, COPY, "--resume").err
    Path(f"{file}.progress").write_text(json.dumps({**state, "queue": COPY, "size": 1}))
    assert "a file of 1 bytes" in falconmq("import", file, COPY, "--resume").err
    Path(f"{file}.progress").write_text("{")
    assert "cannot read" in falconmq("import", file, COPY, "--resume").err
