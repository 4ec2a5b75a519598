"""`falconmq demo`: three queue managers at work, or the protocol byte by byte."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from falconmq.cli.problems import WrongUsageError

EPILOG = """\b
Examples:
  falconmq demo --report report.html   three queue managers, one is killed; Spark draws it
  falconmq demo --packets              a session and eleven messages, byte by byte
  falconmq demo --hex transactional    the bytes of one message, to decode
"""


def demo(
    packets: Annotated[
        bool,
        typer.Option("--packets", help="Show a session and every kind of message instead."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    as_hex: Annotated[
        str | None,
        typer.Option(
            "--hex",
            help="Print only the bytes of one message, by its name or the start of it.",
            metavar="MESSAGE",
            show_default=False,
        ),
    ] = None,
    orders: Annotated[
        int, typer.Option(help="How many orders the shop sends.", metavar="NUMBER", min=100)
    ] = 1000,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Put data and logs there, and leave them; a new or an empty directory.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Let Spark read what happened, and write a page about it; it needs Java and "
            "falconmq[spark].",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    stay: Annotated[
        bool | None,
        typer.Option(
            "--stay/--no-stay",
            help="Stay up at the end, with the console to look at, until Ctrl-C; on a terminal it "
            "does if this is left out.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """See MSMQ at work: three queue managers, orders that flow, one of them killed.

    A shop sends orders over a hub to a warehouse, which sends receipts back. In the middle the hub
    is killed and started again. At the end everything is counted; exit code 1 if anything was lost
    or doubled. It needs no root, uses addresses of the loopback, and cleans up. Each of the three
    has a web console; on a terminal they stay up at the end, until Ctrl-C.

    With --packets: the session that the specification publishes, and eleven messages that are
    encoded, decoded and compared here and now; exit code 1 if any came back different.
    """
    # Imported here, so that `falconmq --help` waits for neither.
    if packets or as_hex is not None:
        from falconmq.cli.demo_packets import show  # noqa: PLC0415

        return show(as_json=as_json, as_hex=as_hex)
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise WrongUsageError(f"--keep {keep}: it is not empty", "name a new or an empty directory")
    from falconmq.cli.demo_orders import run  # noqa: PLC0415

    if stay is None:
        stay = sys.stdout.isatty() and not as_json
    return run(orders, keep, as_json=as_json, stay=stay, report=report)
