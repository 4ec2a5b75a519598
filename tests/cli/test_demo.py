"""`falconmq demo --packets`: what it shows is real, and it notices when something is not."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from falconmq.cli import examples as module
from falconmq.cli.examples import Example, examples, session_frames, verify
from falconmq.wire.packet import decode_packet
from falconmq.wire.rules import check
from tests.cli.commands import InProcess, run

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "tests/vectors/mqqb-frames.json").read_text("utf-8"))["frames"]
KINDS = [
    "express",
    "recoverable",
    "transactional",
    "with security header",
    "to several queues",
    "administration ack",
    "order ack",
    "final ack",
    "change notification v1",
    "change notification v2",
    "directory replication",
]


def test_the_demo_runs_and_fits_two_screens() -> None:
    result = run("demo", "--packets")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert len(lines) <= 50
    assert all(len(line) <= 80 for line in lines)
    assert [line for line in lines if line[:1].isdigit()] == [
        "1  A session between two queue managers",
        "2  Every kind of message",
        "3  Try next",
    ]
    assert [line.split("  ")[1].strip() for line in lines if "   same  " in line] == ["same"] * 11
    for kind in KINDS:
        assert f"   same  {kind}" in result.out


def test_the_conversation_is_told_in_order_with_both_directions(falconmq: InProcess) -> None:
    out = falconmq("demo", "--packets").out
    told = [line[5:35].split() for line in out.splitlines() if line[5:8] in ("-->", "<--")]
    assert [(arrow, kind) for arrow, kind, *_ in told] == [
        ("-->", "Ping"),
        ("<--", "Ping"),
        ("-->", "EstablishConnection"),
        ("<--", "EstablishConnection"),
        ("-->", "ConnectionParameters"),
        ("<--", "ConnectionParameters"),
        ("-->", "UserMessage"),
        ("<--", "SessionAck"),
    ]
    assert "Frame 7 is published without its last 574 bytes" in out


def test_the_shipped_frames_are_the_vectors() -> None:
    text = resources.files("falconmq.cli").joinpath("session_example.json").read_text("utf-8")
    shipped = json.loads(text)["frames"]
    assert [(f["name"], f["hex"], f["complete"]) for f in shipped] == [
        (f["name"], f["hex"], f["complete"]) for f in VECTORS
    ]
    assert [f["from_client"] for f in shipped] == [
        f["direction"] == "client->server" for f in VECTORS
    ]


def test_frame_7_is_completed_as_its_sizes_demand() -> None:
    frame = session_frames()[6]
    published = bytes.fromhex(VECTORS[6]["hex"])
    assert frame.data.startswith(published)
    assert len(frame.data) == 2224
    assert frame.data[222:2222] == b"a\0" * 1000
    assert frame.data[2222:] == bytes(2)
    assert frame.missing == 574


def test_every_kind_is_there_and_breaks_no_rule() -> None:
    made = examples()
    assert [example.name for example in made] == KINDS
    for example in made:
        assert check(example.message) == [], example.name


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_each_message_comes_back_the_same(number: int) -> None:
    assert verify(examples()[number]).difference == ""


def test_a_message_that_comes_back_different_is_noticed(
    falconmq: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(data: bytes) -> object:
        packet = decode_packet(data)
        packet.properties = replace(packet.properties, label="forged")  # type: ignore[union-attr]  # all are user messages
        return packet

    monkeypatch.setattr(module, "decode_packet", forgetful)
    result = falconmq("demo", "--packets")
    assert result.code == 1
    assert "   differs  express" in result.out
    assert "came back different: express: properties" in result.err


@pytest.mark.parametrize(
    ("number", "attribute", "forged", "difference"),
    [
        (2, "transaction", None, "transaction"),
        (3, "security", None, "security"),
        (4, "multi_queue_format", None, "multi_queue_format"),
        (0, "extra", b"more", "the bytes of the second encoding"),
    ],
)
def test_each_part_is_compared(
    number: int,
    attribute: str,
    forged: object,
    difference: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forge(data: bytes) -> object:
        packet = decode_packet(data)
        setattr(packet, attribute, forged)
        return packet

    monkeypatch.setattr(module, "decode_packet", forge)
    assert verify(examples()[number]).difference == difference


def test_a_body_that_means_something_else_is_noticed() -> None:
    example = examples()[6]
    spoiled = Example(example.name, example.message, example.read_body, expected="something else")
    assert verify(spoiled).difference == "what the body says"


def test_json_has_the_session_and_the_messages(falconmq: InProcess) -> None:
    document = json.loads(falconmq("demo", "--packets", "--json").out)
    assert [each["name"] for each in document["messages"]] == KINDS
    assert all(each["same"] for each in document["messages"])
    assert [frame["name"] for frame in document["session"]] == [f["name"] for f in VECTORS]
    assert document["session"][6]["filled_in_bytes"] == 574


def test_the_bytes_of_a_message_can_be_decoded(falconmq: InProcess) -> None:
    digits = falconmq("demo", "--hex", "trans").out.strip()
    result = falconmq("decode", digits)
    assert result.code == 0
    assert "transactional #1" in result.out
    result = falconmq("demo", "--hex", "letter")
    assert (result.code, result.out) == (1, "")
    assert "'order ack'" in result.err


def test_help_ends_with_three_examples(falconmq: InProcess) -> None:
    lines = falconmq("demo", "--help").out.rstrip().splitlines()
    assert lines[-4] == "  Examples:"
    assert all("falconmq demo" in line for line in lines[-3:])
