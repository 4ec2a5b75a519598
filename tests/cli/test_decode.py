"""`falconmq decode`, as people meet it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falconmq.cli.decode import KINDS
from falconmq.cli.examples import examples, session_frames
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.sources import parse_hex
from falconmq.wire.inspection import Kind
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.session_header import SessionHeader
from tests.cli.commands import InProcess, run, start
from tests.strategies.captures import (
    CLIENT,
    MS,
    SERVER,
    T0,
    Connection,
    enhanced,
    ethernet,
    interface,
    pcap,
    section,
    udp,
)

FRAMES = [frame.data for frame in session_frames()]
PING, PING_ANSWER, ESTABLISH, ACCEPT, PARAMETERS, AGREED, MESSAGE, ACKNOWLEDGED = FRAMES
SESSION = b"".join(FRAMES[2:])
EXAMPLES = {example.name: example.message for example in examples()}


def write(tmp_path: Path, name: str, content: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


def captured_session() -> list[tuple[int, bytes]]:
    connection = Connection().open()
    for number, packet in enumerate(FRAMES[2:]):
        connection.send(packet, from_client=number % 2 == 0)
    there, back = (CLIENT[0], 4057), (SERVER[0], 3527)
    pings = [
        (T0 - 2 * MS, ethernet(udp(there, back, PING))),
        (T0 - MS, ethernet(udp(back, there, PING_ANSWER))),
    ]
    return pings + connection.close().frames


# As a process


def test_a_packet_in_hexadecimal_is_shown_field_by_field() -> None:
    result = run("decode", MESSAGE.hex())
    assert (result.code, result.err) == (0, "")
    for line in (
        "packet 1: UserMessage, 2224 bytes",
        '  "mqsender label" to DIRECT=OS:a04bm02\\q, express, 2000 bytes VT_BSTR',
        "    2    2   Flags                  0x0003       PR=3 default",
        "   12    4   TimeToReachQueue       345600 s     4 days",
        "   16   16   SourceQueueManager     557358D1-9150-9595-4997-B6E611EA26C6",
        "   52    4   SentTime               1380927820   2013-10-04T23:03:40Z",
        "   64   28   DestinationQueue  DIRECT=OS:a04bm02\\q",
        "  138    2   MessageClass           0x0000       NORMAL: message of an",
        "  160    4   BodyType               0x00000008   VT_BSTR",
        "           ... 721 characters more: --body",
    ):
        assert line in result.out
    assert "  warning: UserHeader.AdminQueue: acknowledgements are asked for" in result.out
    assert "[MQ-2.2.19.2-47]" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_the_version_is_shown_by_command_and_module() -> None:
    assert run("--version", is_real_start=True) == (0, "falconmq 0.1.0\n", "")
    module = [sys.executable, "-m", "falconmq", "--version"]
    assert subprocess.run(module, capture_output=True, check=True).stdout == b"falconmq 0.1.0\n"


def test_falconmq_alone_shows_help_with_examples() -> None:
    result = run()
    assert result.code == 0
    assert result.err == ""
    assert result.out.rstrip().splitlines()[-4] == "  Examples:"
    assert run("--help").out == result.out


def test_help_of_decode_ends_with_three_examples() -> None:
    result = run("decode", "--help")
    assert result.code == 0
    lines = result.out.rstrip().splitlines()
    assert lines[-4] == "  Examples:"
    assert all("falconmq decode" in line for line in lines[-3:])


def test_standard_input_is_read_as_hex_binary_and_capture() -> None:
    outputs = {
        run("decode", "-", "--summary", stdin=SESSION).out,
        run("decode", "-", "--summary", stdin=SESSION.hex().encode()).out,
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 9  # six packets, one warning, two wrapped lines
    result = run("decode", "-", stdin=pcap(captured_session()))
    assert "6 packets, 2 pings, 1 conversation" in result.out


def test_a_broken_pipe_ends_quietly(tmp_path: Path) -> None:
    path = write(tmp_path, "many.bin", SESSION * 200)
    for options in ((), ("--json",)):
        process = start("decode", path, *options)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141
        process.stderr.close()
        assert process.stdin is not None
        process.stdin.close()


def test_interrupting_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("decode", str(pipe))
    with pipe.open("wb"):  # returns as soon as the command has opened the other end
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}],
)
def test_nothing_in_a_packet_can_hurt_a_terminal(environment: dict[str, str]) -> None:
    message = EXAMPLES["express"]
    evil = "\x1b[2J \ud800 é \r\n"
    message.properties = MessagePropertiesHeader(label=evil, message_body=evil[:4].encode())
    result = run("decode", message.encode().hex(), environment=environment)
    assert result.code == 0
    plain = result.out
    for style in ("0", "1", "2", "1;32", "36"):
        plain = plain.replace(f"\x1b[{style}m", "")
    assert "\x1b" not in plain
    assert "\\x1b[2J \\ud800 " in plain
    assert ("\x1b[1m" in result.out) == ("FORCE_COLOR" in environment)


def test_a_full_disk_is_an_error_in_words() -> None:
    with Path("/dev/full").open("wb") as full:
        result = run("decode", PARAMETERS.hex(), stdout=full)
    assert result.code == 1
    assert result.err == "error: cannot write the output: No space left on device\n"


# In this process: inputs


def test_packets_back_to_back_with_a_session_header_beyond_packet_size(
    falconmq: InProcess, tmp_path: Path
) -> None:
    piggy = EXAMPLES["express"]
    piggy.session = SessionHeader(3, 1, 1, 2, 0)
    path = write(tmp_path, "two.bin", piggy.encode() + PARAMETERS)
    piggy.session = None
    result = falconmq("decode", path, "--json")
    packets = json.loads(result.out)["packets"]
    assert [(p["offset"], p["kind"]) for p in packets] == [
        (0, "UserMessage"),
        (len(piggy.encode()) + 16, "ConnectionParameters"),
    ]
    assert "[ack: received 3, 1 more on disk, sent 2, window 64]" in packets[0]["summary"]


def hex_forms() -> dict[str, str]:
    def rows(template: str, group: int) -> str:
        lines = []
        for start_ in range(0, len(PARAMETERS), 16):
            row = PARAMETERS[start_ : start_ + 16]
            plain = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in row)
            digits = row.hex(" ", group) if group > 1 else row.hex(" ")
            lines.append(template.format(start_, digits, plain))
        return "\n".join(lines)

    dashed = ":".join(f"{b:02X}" for b in PARAMETERS)
    half = [PARAMETERS[i : i + 8].hex(" ") for i in range(0, 32, 8)]
    return {
        "plain": PARAMETERS.hex(),
        "spaced": PARAMETERS.hex(" "),
        "colons": dashed,
        "prefixed": "0x" + PARAMETERS.hex(),
        "C": "{" + ", ".join(f"0x{b:02x}" for b in PARAMETERS) + "};",
        "escaped": "".join(f"\\x{b:02x}" for b in PARAMETERS),
        "lines": PARAMETERS[:10].hex() + "\n" + PARAMETERS[10:].hex(" ") + "\n",
        "xxd": rows("{0:08x}: {1}  {2}", 2) + "\n",
        "hexdump -C": f"00000000  {half[0]}  {half[1]}  |..LIOR ab |\n"
        f"00000010  {half[2]}  {half[3]}  |.....|\n00000020\n",
        "od": rows("{0:06x} {1}", 1) + "\n000020\n",
        "Wireshark": rows("{0:04x}   {1}   {2}", 1),
        "tcpdump": rows("\t0x{0:04x}:  {1}  {2}", 2),
    }


@pytest.mark.parametrize("form", hex_forms())
def test_hexadecimal_is_read_in_every_form_people_paste(
    form: str, falconmq: InProcess, tmp_path: Path
) -> None:
    text = hex_forms()[form]
    assert parse_hex(text) == PARAMETERS
    for source in (text, write(tmp_path, "dump.txt", text.encode())):
        result = falconmq("decode", source, "--summary")
        assert result.code == 0, result.err
        assert "window 64" in result.out


def test_repeated_rows_of_a_dump_are_filled_in() -> None:
    text = "00000000  10 00  |..|\n00000002  5a 5a  |ZZ|\n*\n00000008  11 12  |..|\n0000000a\n"
    assert parse_hex(text) == b"\x10\x00" + b"Z" * 6 + b"\x11\x12"
    text = "00000000  10 00  |..|\n*\n00000006\n"
    assert parse_hex(text) == b"\x10\x00" * 3


@given(
    data=st.binary(min_size=1, max_size=80), separator=st.sampled_from(["", " ", ":", "\n", ", "])
)
def test_any_bytes_come_back_from_their_digits(data: bytes, separator: str) -> None:
    if separator == "\n" and len(data) < 3:
        separator = ""
    assert parse_hex(separator.join(f"{byte:02x}" for byte in b"\xfa" + data))[1:] == data


@given(text=st.text(max_size=60))
def test_any_text_is_hexadecimal_or_refused(text: str) -> None:
    try:
        parse_hex(text)
    except WrongUsageError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("1000030", "an odd number of hexadecimal digits: 7 in line 1"),
        ("10 00\n0", "an odd number of hexadecimal digits: 1 in line 2"),
        ("10 00 zz 00", "'z' in line 1, column 7 is no hexadecimal digit"),
        ("no-such-file.pcap", "there is no file 'no-such-file.pcap', and it is not hexadecimal"),
        ("", "there is nothing to decode"),
        ("0x", "there are no hexadecimal digits in it"),
        ("x" * 5000, "there is no file"),
        ("a\0b", "it is not hexadecimal"),
    ],
)
def test_a_wrong_argument_is_explained(falconmq: InProcess, argument: str, message: str) -> None:
    result = falconmq("decode", argument)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert message in result.err
    assert "\nhint:  " in result.err


def test_files_that_cannot_be_read_are_explained(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = falconmq("decode", str(tmp_path))
    assert (result.code, result.err.splitlines()[0]) == (2, f"error: {tmp_path} is a directory")
    result = falconmq("decode", write(tmp_path, "empty", b""))
    assert result.code == 2
    assert "is empty" in result.err
    secret = write(tmp_path, "secret", PARAMETERS)

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    result = falconmq("decode", secret)
    assert result.code == 2
    assert f"cannot read {secret}: Permission denied" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decode"], "Missing argument"),
        (["decode", "10", "--bogus"], "No such option"),
        (["decode", "10", "--kind", "letter"], "unknown kind 'letter'"),
        (["decode", "10", "--packet", "0"], "--packet"),
        (["decode", "10", "--port", "70000"], "--port"),
        (["decide"], "No such command"),
    ],
)
def test_wrong_usage_is_explained(falconmq: InProcess, arguments: list[str], message: str) -> None:
    result = falconmq(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert message in result.err
    assert "\nhint:  " in result.err


# Malformed packets


def test_a_cut_packet_is_shown_up_to_the_cut(falconmq: InProcess) -> None:
    result = falconmq("decode", MESSAGE[:1650].hex())
    assert result.code == 1
    assert 'Label                  "mqsender label"' in result.out
    assert "  error: MessagePropertiesHeader.MessageBody at offset 222" in result.out
    assert "error: packet 1: MessagePropertiesHeader.MessageBody at offset 222: needs 2000" in (
        result.err
    )
    assert "hint:  it is cut short or a size in it is wrong" in result.err


def test_the_packets_before_a_broken_one_are_shown(falconmq: InProcess) -> None:
    result = falconmq("decode", (PARAMETERS + b"\x11" + PARAMETERS[1:]).hex(), "--summary")
    assert result.code == 1
    assert "ConnectionParameters window 64" in result.out
    assert "packet 2: BaseHeader.VersionNumber at offset 0: 0x11 instead of 0x10" in result.err
    assert "10 ?? ?? ?? 4c 49 4f 52" in result.err


def test_a_packet_that_is_malformed_inside_does_not_hide_the_next(falconmq: InProcess) -> None:
    broken = bytearray(MESSAGE)
    broken[137] = 0xFF  # LabelLength
    result = falconmq("decode", (bytes(broken) + PARAMETERS).hex(), "--json")
    packets = json.loads(result.out)["packets"]
    assert result.code == 1
    assert packets[0]["error"] == {
        "structure": "MessagePropertiesHeader",
        "field": "LabelLength",
        "offset": 137,
        "problem": "255 is over 250",
    }
    assert packets[1]["error"] is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes_decode_or_are_refused_in_words(falconmq: InProcess, data: bytes) -> None:
    result = falconmq("decode", data.hex())
    assert result.code in (0, 1)
    assert (result.code == 1) == result.err.startswith("error: ")


# Kinds


@pytest.mark.parametrize(
    ("kind", "example", "expected"),
    [
        ("notification", "change notification v1", "NotificationUpdate"),
        ("notification", "change notification v2", "queue created"),
        ("replication", "directory replication", "PROPID_Q_LABEL"),
    ],
)
def test_bodies_alone_can_be_decoded(
    falconmq: InProcess, kind: str, example: str, expected: str
) -> None:
    body = bytes(EXAMPLES[example].properties.message_body)
    result = falconmq("decode", body.hex(), "--kind", kind)
    assert result.code == 0, result.err
    assert expected in result.out


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("ping", PING.hex(), "ping 4 from 557358D1"),
        ("sid", "010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000", "S-1-5-21-3181267629"),
        (
            "security-descriptor",
            "01000480140000000000000000000000200000000101000000000001000000000200080000000000",
            "O:WD",
        ),
        ("address", "040001000a000007", "TA_ADDRESS"),
        ("certificates", "00000000", "CertificateCount"),
        ("public-keys", "0800000000000000", "cNumofKeys"),
    ],
)
def test_other_structures_can_be_named(
    falconmq: InProcess, kind: str, data: str, expected: str
) -> None:
    result = falconmq("decode", data, "--kind", kind)
    assert result.code == 0, result.err
    assert expected in result.out


def test_help_names_every_kind() -> None:
    assert ", ".join(Kind) == KINDS


def test_a_ping_is_recognised_without_being_named(falconmq: InProcess) -> None:
    assert "packet 1: Ping, 24 bytes" in falconmq("decode", PING.hex()).out


# Text


@pytest.mark.parametrize("columns", ["60", "80", "120", "200"])
def test_lines_fit_the_screen(
    falconmq: InProcess, columns: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    everything = SESSION + b"".join(message.encode() for message in EXAMPLES.values())
    path = write(tmp_path, "all.bin", everything)
    for options in ((), ("--summary",)):
        out = falconmq("decode", path, *options).out
        long = [line for line in out.splitlines() if len(line) > max(int(columns), 80)]
        assert long == []


def test_the_whole_body_is_shown_on_demand(falconmq: InProcess) -> None:
    message = EXAMPLES["recoverable"]
    message.properties = MessagePropertiesHeader(message_body=bytes(range(128)) * 2)
    short = falconmq("decode", message.encode().hex()).out
    assert "... 192 bytes more: --body" in short
    whole = falconmq("decode", message.encode().hex(), "--body").out
    assert "more: --body" not in whole
    assert "70 71 72 73 74 75 76 77 78 79 7a 7b 7c 7d 7e 7f  pqrstuvwxyz{|}~." in whole


def test_a_text_body_is_shown_as_text(falconmq: InProcess) -> None:
    message = EXAMPLES["recoverable"]
    text = "\n".join(f"line {n}" for n in range(9))
    message.properties = MessagePropertiesHeader(message_body=text.encode())
    short = falconmq("decode", message.encode().hex()).out
    assert "           line 3\n           ... " in short
    assert "line 4" not in short
    assert "line 8" in falconmq("decode", message.encode().hex(), "--body").out


def test_one_packet_of_many_is_shown_alone(falconmq: InProcess, tmp_path: Path) -> None:
    path = write(tmp_path, "session.bin", SESSION)
    result = falconmq("decode", path, "--packet", "3")
    assert result.out.startswith("packet 3: ConnectionParameters, 32 bytes  at byte 1144")
    assert result.out.count("packet ") == 1
    result = falconmq("decode", path, "--packet", "7")
    assert (result.code, result.out) == (2, "")
    assert "there is no packet 7" in result.err
    assert "the last one is 6" in result.err


# JSON


def fields(packet: dict[str, Any]) -> dict[str, Any]:
    found = {}

    def walk(entries: list[dict[str, Any]], path: str) -> None:
        for entry in entries:
            name = f"{path}.{entry['name']}" if path else entry["name"]
            found[name] = entry
            walk(entry.get("fields", []), name)

    walk(packet["fields"], "")
    return found


def test_json_has_stable_keys_raw_values_and_meanings(falconmq: InProcess) -> None:
    result = falconmq("decode", MESSAGE.hex(), "--json")
    document = json.loads(result.out)
    assert list(document) == ["packets"]
    (packet,) = document["packets"]
    assert list(packet) == [
        "number", "offset", "size", "kind", "summary", "fields", "warnings", "error",
    ]  # fmt: skip
    found = fields(packet)
    assert found["UserMessage.BaseHeader.PacketSize"] == {
        "name": "PacketSize",
        "offset": 8,
        "size": 4,
        "value": 2224,
        "text": "2224",
        "meaning": "bytes",
    }
    source = found["UserMessage.UserHeader.SourceQueueManager"]
    assert source["value"] == "d1587355509195954997b6e611ea26c6"
    assert source["text"] == "557358D1-9150-9595-4997-B6E611EA26C6"
    body = found["UserMessage.MessagePropertiesHeader.MessageBody"]
    assert body["value"] == "6100" * 1000
    assert body["text"] == "a" * 1000
    assert packet["warnings"] == [
        {
            "requirement": "MQ-2.2.19.2-47",
            "field": "UserHeader.AdminQueue",
            "problem": "acknowledgements are asked for, but no admin queue is named",
        }
    ]


def test_json_and_text_show_the_same_fields(falconmq: InProcess) -> None:
    for message in EXAMPLES.values():
        digits = message.encode().hex()
        (packet,) = json.loads(falconmq("decode", digits, "--json").out)["packets"]
        text = falconmq("decode", digits).out
        for path, entry in fields(packet).items():
            if path.count("."):
                name = entry["name"].removeprefix("PropertyValue[").removesuffix("]")
                assert f"{entry['offset']:>5} {entry['size']:>4} " in text
                assert name.replace("]", "") in text


def test_json_lines_have_one_packet_each(falconmq: InProcess, tmp_path: Path) -> None:
    result = falconmq("decode", write(tmp_path, "session.bin", SESSION), "--json-lines")
    packets = [json.loads(line) for line in result.out.splitlines()]
    assert [packet["number"] for packet in packets] == [1, 2, 3, 4, 5, 6]


# Captures


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_capture_is_a_conversation(falconmq: InProcess, tmp_path: Path, form: str) -> None:
    frames = captured_session()
    content = pcap(frames)
    if form == "pcapng":
        content = section() + interface() + b"".join(enhanced(t // 1000, f) for t, f in frames)
    result = falconmq("decode", write(tmp_path, "capture", content))
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[:5] == [
        "    1  22:13:19.998      -> Ping                 request 4 from 557358D1..",
        "    2  22:13:19.999      <- Ping                 answer 4 from 43CD8907..",
        "",
        "conversation 1  10.0.0.7:49759 -> 10.0.0.8:1801  2023-11-14T22:13:20.000000Z",
        "    3  22:13:20.003    1 -> EstablishConnection  557358D1.. calls 43CD8907..",
    ]
    assert "    4  22:13:20.004    1 <- EstablishConnection  3C3A6AEB.. accepts 1F742305.." in lines
    assert lines[-1] == "6 packets, 2 pings, 1 conversation, 14 frames"


def test_a_packet_of_a_capture_in_full(falconmq: InProcess, tmp_path: Path) -> None:
    path = write(tmp_path, "capture", pcap(captured_session()))
    result = falconmq("decode", path, "--packet", "7")
    assert result.code == 0
    assert (
        "packet 7: UserMessage, 2224 bytes  10.0.0.7:49759 -> 10.0.0.8:1801  frame " in result.out
    )
    assert "MessagePropertiesHeader" in result.out
    assert falconmq("decode", path, "--tree").out.count("BaseHeader") == 6


def test_a_capture_as_json_says_where_each_packet_came_from(
    falconmq: InProcess, tmp_path: Path
) -> None:
    path = write(tmp_path, "capture", pcap(captured_session()))
    document = json.loads(falconmq("decode", path, "--json").out)
    assert [packet["kind"] for packet in document["packets"]][:3] == [
        "Ping",
        "Ping",
        "EstablishConnection",
    ]
    assert document["packets"][2]["capture"] == {
        "frame": 6,
        "time": "2023-11-14T22:13:20.003000Z",
        "source": "10.0.0.7:49759",
        "destination": "10.0.0.8:1801",
        "conversation": 1,
        "lost_before": 0,
        "problem": None,
    }
    assert document["totals"] == {
        "frames": 14,
        "conversations": 1,
        "packets": 6,
        "pings": 2,
        "incomplete": 0,
        "missing_bytes": 0,
        "left_out": {},
    }


def test_a_capture_with_holes_shows_the_rest_and_says_what_is_missing(
    falconmq: InProcess, tmp_path: Path
) -> None:
    connection = Connection().open().send(ESTABLISH).lose(PARAMETERS).send(AGREED)
    connection.send(MESSAGE[:100]).reset()
    result = falconmq("decode", write(tmp_path, "capture", pcap(connection.frames)))
    assert result.code == 0
    assert "note: 32 bytes before it are not in the capture" in result.out
    assert "note: incomplete: the connection was reset before its end" in result.out
    assert "2 packets, 0 pings, 1 conversation, 7 frames, 1 incomplete, 32 bytes" in result.out


def test_a_capture_that_begins_in_the_middle_of_a_session(
    falconmq: InProcess, tmp_path: Path
) -> None:
    connection = Connection().send(MESSAGE[700:] + ACKNOWLEDGED)
    result = falconmq("decode", write(tmp_path, "capture", pcap(connection.frames)))
    assert result.code == 0  # nobody did anything wrong
    assert "begun before the capture" in result.out
    assert "incomplete: its beginning is not in the capture" in result.out
    assert "SessionAck" in result.out


def test_a_damaged_capture_shows_what_came_before(falconmq: InProcess, tmp_path: Path) -> None:
    content = pcap(captured_session())
    result = falconmq("decode", write(tmp_path, "capture", content[:-10]))
    assert result.code == 1
    assert "6 packets, 2 pings" in result.out
    assert "error: the capture ends in the middle of frame 14" in result.err
    result = falconmq("decode", write(tmp_path, "capture", content[:10]))
    assert (result.code, result.out) == (2, "")
    assert "ends in the middle of the file header" in result.err


def test_a_capture_without_msmq_is_nothing_to_decode(falconmq: InProcess, tmp_path: Path) -> None:
    web = Connection(server=("10.0.0.8", 80)).open().send(b"GET / HTTP/1.1\r\n\r\n").close()
    path = write(tmp_path, "capture", pcap(web.frames))
    result = falconmq("decode", path)
    assert (result.code, result.out) == (2, "")
    assert "no MSMQ packets in 6 frames" in result.err
    assert "--port" in result.err
    result = falconmq("decode", path, "--port", "80")
    assert result.code == 1
    assert "bytes that are no MSMQ packet" in result.err


def test_a_warning_is_said_once_among_summaries_and_counted(
    falconmq: InProcess, tmp_path: Path
) -> None:
    connection = Connection().open().send(MESSAGE * 3).close()
    result = falconmq("decode", write(tmp_path, "capture", pcap(connection.frames)))
    assert result.out.count("warning: ") == 1
    assert "warnings: MQ-2.2.19.2-47 3 times" in result.out
