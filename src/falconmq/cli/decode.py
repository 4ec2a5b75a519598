"""`falconmq decode`: show what is in packets, files of packets and captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from falconmq.cli.problems import CommandError, WrongUsageError

if TYPE_CHECKING:
    from falconmq.cli.sources import Decoded, PacketPrinter, Source

KINDS = (
    "packet, ping, notification, replication, security-descriptor, sid, public-keys, "
    "certificates, address"
)
EPILOG = """\b
Examples:
  falconmq decode 100003004c494f52...           hexadecimal digits, any spacing
  falconmq decode capture.pcapng --packet 7     a capture; packet 7 in full
  xxd -p body.bin | falconmq decode - --kind notification --json
"""


def decode(
    source: Annotated[
        str,
        typer.Argument(
            metavar="HEX|FILE|-",
            help="Hexadecimal digits, a file (packets back to back, a hex dump, a pcap or pcapng "
            "capture), or - for standard input.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str, typer.Option(help=f"What the bytes are: {KINDS}.", metavar="KIND")
    ] = "packet",
    port: Annotated[
        list[int] | None,
        typer.Option(
            help="TCP port of MSMQ sessions in a capture, besides 1801. May be repeated.",
            metavar="PORT",
            min=1,
            max=65535,
            show_default=False,
        ),
    ] = None,
    packet: Annotated[
        int | None,
        typer.Option(
            help="Show this packet only, in full.", metavar="NUMBER", min=1, show_default=False
        ),
    ] = None,
    tree: Annotated[
        bool | None,
        typer.Option(
            "--tree/--summary",
            help="Every field, or one line for each packet. A capture is summed up unless --tree.",
            show_default=False,
        ),
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Show the whole of message bodies.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document with every field.")
    ] = False,
    as_json_lines: Annotated[
        bool, typer.Option("--json-lines", help="One JSON object for each packet and line.")
    ] = False,
) -> int:
    """Decode MSMQ packets: every field with its offset, value and meaning.

    Exit code 0: decoded. 1: malformed, shown up to the fault. 2: nothing to decode.
    """
    # Imported here, so that `falconmq --help` does not wait for the decoders.
    from falconmq.cli.packet_json import JsonPrinter  # noqa: PLC0415
    from falconmq.cli.packet_text import TextPrinter  # noqa: PLC0415
    from falconmq.cli.screen import Screen  # noqa: PLC0415
    from falconmq.cli.sources import open_source  # noqa: PLC0415
    from falconmq.wire.inspection import Kind  # noqa: PLC0415

    if kind not in set(Kind):
        raise WrongUsageError(f"unknown kind {kind!r}", f"the kinds are {KINDS}")
    with open_source(source, Kind(kind), frozenset(port or ())) as found:
        printer: PacketPrinter
        if as_json or as_json_lines:
            printer = JsonPrinter(as_lines=as_json_lines)
        else:
            with_tree = tree if tree is not None else packet is not None or not found.is_capture
            printer = TextPrinter(Screen(), with_tree=with_tree, whole_body=body)
        return _print(found, printer, packet)


def _print(source: Source, printer: PacketPrinter, wanted: int | None) -> int:
    """Print packets as they come; returns the exit code."""
    from falconmq.capture.pcap import CaptureError  # noqa: PLC0415

    faulty: Decoded | None = None
    shown = total = 0
    damage: CaptureError | None = None
    try:
        for decoded in source.packets():
            total += 1
            if wanted is not None and decoded.number != wanted:
                continue
            shown += 1
            printer.packet(decoded)
            faulty = faulty or (decoded if _is_faulty(decoded) else None)
            if wanted is not None:
                break
    except CaptureError as error:
        damage = error
    if not shown:
        _refuse_nothing(source, wanted, total, damage)
    printer.finish(source.totals if wanted is None else None)
    if damage is not None:
        raise CommandError(str(damage), damage.hint)
    if faulty is not None:
        raise _fault(faulty)
    return 0


def _is_faulty(decoded: Decoded) -> bool:
    """Malformed. A packet that the capture lost a part of is not its sender's fault."""
    from falconmq.capture.packets import NO_PACKET  # noqa: PLC0415

    if decoded.captured is not None and decoded.captured.problem:
        return decoded.captured.problem == NO_PACKET
    return decoded.inspection is not None and decoded.inspection.error is not None


def _fault(decoded: Decoded) -> CommandError:
    error = decoded.inspection.error if decoded.inspection is not None else None
    if error is None:
        problem = f"packet {decoded.number}: bytes that are no MSMQ packet"
        return CommandError(problem, "is it a session of MSMQ at all? see --port")
    hint = "the bytes before the fault are shown above"
    if "are left" in error.problem or error.field == "PacketSize":
        hint = "it is cut short or a size in it is wrong; what there is of it is shown above"
    elif error.field in ("VersionNumber", "Signature"):
        hint = "a packet begins with 10 ?? ?? ?? 4c 49 4f 52; for other structures see --kind"
    return CommandError(f"packet {decoded.number}: {error}", hint)


def _refuse_nothing(
    source: Source, wanted: int | None, total: int, damage: Exception | None
) -> None:
    if damage is not None:
        raise WrongUsageError(str(damage), "nothing of it could be decoded")
    if wanted is not None and total:
        raise WrongUsageError(f"there is no packet {wanted}", f"the last one is {total}")
    frames = source.totals.frames if source.totals is not None else 0
    raise WrongUsageError(
        f"no MSMQ packets in {frames} frames",
        "sessions on a port other than 1801? name it: --port 2801",
    )
