"""`falconmq demo --packets`: a session as published, then every kind of message."""

from __future__ import annotations

from typing import Any

import typer

from falconmq.cli.examples import ExampleFrame, Verified, examples, session_frames, verify
from falconmq.cli.packet_json import packet_json
from falconmq.cli.problems import CommandError
from falconmq.cli.screen import Screen, print_json, short_guids
from falconmq.cli.sources import Decoded
from falconmq.wire.inspection import Inspection, Kind, inspect

# What each side says, in the order of the frames.
_SAID = (
    "are you there?",
    "yes, and I would take a session",
    "I call you",
    "I accept",
    "acknowledge within these times",
    "agreed",
    "a message",
    "got it",
)


def show(*, as_json: bool, as_hex: str | None) -> int:
    """The session of the specification, then every kind of message; or the bytes of one."""
    messages = [verify(example) for example in examples()]
    if as_hex is not None:
        return _print_hex(as_hex, messages)
    session = [
        (
            frame,
            inspect(
                frame.data,
                Kind.PING if frame.is_ping else Kind.PACKET,
                is_response=not frame.from_client,
            ),
        )
        for frame in session_frames()
    ]
    if as_json:
        _print_json(session, messages)
    else:
        screen = Screen()
        _print_session(screen, session)
        _print_messages(screen, messages)
        _print_next_steps(screen)
    different = [f"{each.example.name}: {each.difference}" for each in messages if each.difference]
    different += [f"{frame.name}: {found.error}" for frame, found in session if found.error]
    if different:
        raise CommandError(
            f"came back different: {'; '.join(different)}", "this is a bug in FalconMQ"
        )
    return 0


def _print_session(screen: Screen, session: list[tuple[ExampleFrame, Inspection]]) -> None:
    screen.line(("1  A session between two queue managers", "bold"))
    screen.wrapped("   ", text="as MS-MQQB 4.1 publishes it, decoded byte by byte", indent=3)
    screen.line()
    for number, (said, (frame, found)) in enumerate(zip(_SAID, session, strict=True), 1):
        arrow = "-->" if frame.from_client else "<--"
        style = "green" if frame.from_client else "magenta"
        screen.line(
            (f"   {number} ", "dim"),
            (f"{arrow} ", f"bold {style}"),
            (f"{found.name:<21}", style),
            (f"{found.size:>4} bytes  ", "dim"),
            (said, "italic"),
        )
        screen.wrapped(" " * 9, text=short_guids(found.summary), style="cyan", indent=9)
        for finding in found.findings:
            text = f"{finding.problem} [{finding.row}]"
            screen.wrapped(" " * 9, ("warning: ", "yellow"), text=text, indent=18)
    filled = sum(frame.missing for frame, _ in session)
    screen.line()
    remark = (
        f"Frame 7 is published without its last {filled} bytes; they were filled in as its sizes "
        "demand. Frame 4 comes from another session than frame 3: its GUIDs differ."
    )
    screen.wrapped("   ", text=remark, style="dim", indent=3)


def _print_messages(screen: Screen, messages: list[Verified]) -> None:
    screen.line()
    screen.line(("2  Every kind of message", "bold"))
    screen.wrapped(
        "   ", text="encoded, decoded, compared field by field; size and first bytes", indent=3
    )
    screen.line()
    for each in messages:
        mark = ("differs  ", "bold red") if each.difference else ("same  ", "bold green")
        screen.line(
            "   ",
            mark,
            (f"{each.example.name:<23}", "green"),
            (f"{len(each.data):>4} bytes  ", "dim"),
            each.data[:12].hex(" "),
        )
        if each.difference:
            screen.wrapped(" " * 9, text=each.difference, style="red", indent=9)


def _print_next_steps(screen: Screen) -> None:
    screen.line()
    screen.line(("3  Try next", "bold"))
    screen.line()
    for command, what in (
        ("falconmq demo --hex transactional | falconmq decode -", "every field of it"),
        ("falconmq decode capture.pcapng", "a capture of yours"),
        ("falconmq decode --help", "all it can read"),
    ):
        screen.line("   ", (f"{command:<54}", "cyan"), (what, "dim"))


def _print_hex(name: str, messages: list[Verified]) -> int:
    found = [each for each in messages if each.example.name.startswith(name)]
    if not found:
        names = ", ".join(repr(each.example.name) for each in messages)
        raise CommandError(f"the demo has no message {name!r}", f"it has {names}")
    typer.echo(found[0].data.hex())
    return 0


def _print_json(session: list[tuple[ExampleFrame, Inspection]], messages: list[Verified]) -> None:
    document: dict[str, Any] = {
        "session": [
            {
                "name": frame.name,
                "from_client": frame.from_client,
                "filled_in_bytes": frame.missing,
                "hex": frame.data.hex(),
                "packet": packet_json(Decoded(number, frame.data, found)),
            }
            for number, (frame, found) in enumerate(session, 1)
        ],
        "messages": [
            {
                "name": each.example.name,
                "size": len(each.data),
                "hex": each.data.hex(),
                "same": not each.difference,
                "difference": each.difference or None,
                "summary": inspect(each.data).summary,
            }
            for each in messages
        ],
    }
    print_json(document)
