"""`falconmq send`: every property of a message is an option."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from falconmq import Acknowledge, BodyType, Delivery, Journal, Message
from falconmq.manager.model import OutgoingQueue
from falconmq.message import MessageProperties
from falconmq.names import parse_format_name
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager

GUID = "55735802-9150-9595-4997-B6E611EA26C6"


@pytest.fixture(autouse=True)
def orders(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)


def received(service: ControlledManager) -> Message:
    return service.blocking.queue(ORDERS).receive(timeout=0)


def pipe_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_text_is_sent_and_its_id_printed(falconmq: InProcess, service: ControlledManager) -> None:
    done = falconmq("send", ORDERS, "--body", "héllo")
    message = received(service)
    assert (done.code, done.out, done.err) == (0, f"{message.id}\n", "")
    assert (message.text, message.body_type) == ("héllo", BodyType.VT_BSTR)
    assert message.delivery is Delivery.RECOVERABLE


def test_a_file_is_sent_as_its_bytes(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    (tmp_path / "body").write_bytes(b"\0\1\2")
    falconmq("send", ORDERS, "--file", str(tmp_path / "body"), "--body-type", "VT_ARRAY_UI1")
    message = received(service)
    assert (message.body, message.body_type) == (b"\0\1\2", BodyType.VT_ARRAY_UI1)


@pytest.mark.parametrize("options", [[], ["--file", "-"]])
def test_standard_input_is_sent(
    falconmq: InProcess,
    service: ControlledManager,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    pipe_in(monkeypatch, b"from a pipe\n")
    falconmq("send", ORDERS, *options)
    assert received(service).body == b"from a pipe\n"


def test_nothing_to_send_on_a_terminal_is_wrong_usage(
    falconmq: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe_in(monkeypatch, b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    done = falconmq("send", ORDERS)
    assert done.code == 2
    assert "--body" in done.err


def test_a_message_is_sent_many_times(
    falconmq: InProcess, service: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.cli.send.BATCH_MESSAGES", 2)
    done = falconmq("send", ORDERS, "--body", "x", "--count", "5", "--json")
    ids = [json.loads(line)["id"] for line in done.out.splitlines()]
    assert [str(message.id) for message in service.blocking.queue(ORDERS)] == ids
    assert len(set(ids)) == 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--label", "first"], {"label": "first"}),
        (["--priority", "7"], {"priority": 7}),
        (["--recoverable"], {"delivery": Delivery.RECOVERABLE}),
        (["--express"], {"delivery": Delivery.EXPRESS}),
        (["--time-to-reach-queue", "60"], {"time_to_reach_queue": 60}),
        (["--time-to-reach-queue", "infinite"], {"time_to_reach_queue": 0xFFFFFFFF}),
        (["--time-to-be-received", "60"], {"time_to_be_received": 60}),
        (
            ["--journal", "dead-letter", "--journal", "journal"],
            {"journal": Journal.DEAD_LETTER | Journal.JOURNAL},
        ),
        (
            ["--acknowledge", "full-receive", "--administration-queue", r"DIRECT=OS:a\b"],
            {
                "acknowledgements": Acknowledge.FULL_RECEIVE,
                "administration_queue": parse_format_name(r"DIRECT=OS:a\b"),
            },
        ),
        (
            ["--response-queue", r"DIRECT=OS:a\b", "--response-queue", r"DIRECT=OS:c\d"],
            {
                "response_queues": (
                    parse_format_name(r"DIRECT=OS:a\b"),
                    parse_format_name(r"DIRECT=OS:c\d"),
                )
            },
        ),
        (["--response-queue", r"DIRECT=OS:a\b"], {"response_queues": ()}),
        (["--application-tag", "42"], {"application_tag": 42}),
        (["--extension", "00 ff"], {"extension": b"\0\xff"}),
        (["--message-class", "normal"], {"message_class": 0}),
        (["--allow-peek-when-locked"], {"allow_peek_when_locked": True}),
        (["--trace", "--report-queue", GUID], {"trace": True}),
        (["--connector-type", GUID, "--hash-algorithm", "sha-256"], {"hash_algorithm": 0x800C}),
        (["--sender-id", "010100000000000512000000"], {"sender_id_type": 1}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_property_is_an_option(
    falconmq: InProcess, service: ControlledManager, options: list[str], expected: dict[str, Any]
) -> None:
    done = falconmq("send", ORDERS, "--body", "x", *options)
    assert done.err == ""
    message = received(service)
    assert {name: getattr(message, name) for name in expected} == expected


def test_what_protects_a_message_comes_from_files_or_digits(
    falconmq: InProcess, service: ControlledManager, tmp_path: Path
) -> None:
    (tmp_path / "signature").write_bytes(b"signed")
    done = falconmq(
        *("send", ORDERS, "--body", "x", "--connector-type", GUID),
        *("--privacy-level", "advanced", "--encryption-algorithm", "aes128"),
        *("--symmetric-key", "0102", "--sender-certificate", "0304"),
        *(
            "--signature",
            f"@{tmp_path / 'signature'}",
            "--provider",
            "Base",
            "--provider-type",
            "2",
        ),
    )
    assert done.err == ""
    message = received(service)
    assert (message.signature, message.symmetric_key) == (b"signed", b"\1\2")
    assert message.sender_certificate == b"\3\4"
    assert message.provider is not None
    assert (message.provider.name, message.provider.type) == ("Base", 2)


def test_an_answer_names_the_message_it_answers(
    falconmq: InProcess, service: ControlledManager
) -> None:
    question = falconmq("send", ORDERS, "--body", "?").out.strip()
    received(service)
    falconmq("send", ORDERS, "--body", "!", "--correlation-id", question)
    assert str(received(service).correlation_id) == question


def test_every_property_of_a_message_has_an_option(falconmq: InProcess) -> None:
    shown = falconmq("send", "--help").out
    names = {name.replace("_", "-") for name in MessageProperties.__annotations__}
    names -= {"delivery", "destination", "destinations"}  # --express and the queue say it
    names -= {"acknowledgements", "administration-queues", "response-queues"}  # repeated options
    missing = {name for name in names if f"--{name}" not in shown}
    assert missing == set()


def test_a_transactional_queue_gets_a_transaction_by_itself(
    falconmq: InProcess, service: ControlledManager
) -> None:
    ledger = service.blocking.create_queue(r".\private$\ledger", transactional=True)
    assert falconmq("send", ledger.name, "--body", "x").code == 0
    assert ledger.receive(timeout=0).is_transactional


def test_a_remote_queue_gets_one_if_it_is_asked_for(
    falconmq: InProcess, service: ControlledManager
) -> None:
    falconmq("send", r"DIRECT=OS:sales02\private$\ledger", "--body", "x", "--transaction")
    (queue,) = (q for q in service.engine.core.queues.values() if isinstance(q, OutgoingQueue))
    position = queue.positions.find(queue.positions.lookup_ids()[0])
    assert position is not None
    assert position.message.packet.transaction is not None


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--body", "x", "--file", "y"], 2, "two bodies"),
        (["--file", "/nowhere/at/all"], 2, "cannot read /nowhere/at/all"),
        (["--body", "x", "--priority", "9"], 2, "--priority"),
        (["--body", "x", "--extension", "xyz"], 2, "--extension: no hexadecimal digits"),
        (["--body", "x", "--time-to-be-received", "soon"], 2, "--time-to-be-received soon"),
        (["--body", "x", "--label", "x" * 300], 1, "MQ_ERROR_LABEL_TOO_LONG"),
        (["--body", "x", "--acknowledge", "positive-arival"], 1, "POSITIVE_ARRIVAL"),
        (["--body", "x", "--response-queue", r".\private$\x"], 1, "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (["--body", "x", "--transaction"], 1, "leave out --transaction"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    falconmq: InProcess, service: ControlledManager, options: list[str], code: int, text: str
) -> None:
    done = falconmq("send", ORDERS, *options)
    assert done.code == code
    assert text in done.err
    assert done.out == ""
    assert service.blocking.queue(ORDERS).count == 0


def test_a_misspelt_queue_is_answered_with_what_to_type(falconmq: InProcess) -> None:
    done = falconmq("send", r".\private$\ordres", "--body", "hello")
    assert done.code == 1
    assert done.err.splitlines() == [
        r"error: no queue .\private$\ordres on SALES01 (MQ_ERROR_QUEUE_NOT_FOUND 0xC00E0003)",
        rf"hint:  did you mean {ORDERS}? to create it: falconmq queue create '.\private$\ordres'",
    ]
