r"""`falconmq demo`: orders flow through three queue managers, one is killed, the totals are proven.

    shop  -- orders, invoices -->  hub  -->  warehouse
    shop  <------------ receipts -----------  warehouse

Shop and warehouse are in sites of their own, the hub is in both and keeps the directory: there the
others find each other, the way over the hub, and the public queue of the orders. Orders are
transactional and go to that queue by its path name; invoices are recoverable and go to a private
one. The hub is killed and started again in the middle, and the directory with it. Receipts are
express and go back by a direct name.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from falconmq.cli.demo_enterprise import begin_enterprise
from falconmq.cli.demo_flow import Flow, Stream
from falconmq.cli.demo_managers import Manager, Net
from falconmq.cli.demo_report import show, write_report
from falconmq.cli.problems import CommandError
from falconmq.cli.screen import print_json

_DOWN_SECONDS: Final = 1.0  # how long the hub is dead: long enough to see that orders wait
_PATIENCE: Final = 60.0  # seconds without any progress, then something is wrong


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich itself would exit with 1; the daemons must be stopped first


class Told:
    """What the demo says while it runs: a line for each event, and bars on a terminal."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.console = _Console(
            file=sys.stdout, highlight=False, markup=False, emoji=False, quiet=is_quiet
        )
        self.progress = Progress(
            TextColumn("        {task.description:<10}"),
            BarColumn(24),
            MofNCompleteColumn(),
            console=self.console,
            disable=not self.console.is_terminal or is_quiet,
        )
        self._bars: dict[str, TaskID] = {}
        self._start = time.monotonic()

    def line(self, text: str, style: str = "") -> None:
        self.console.print(f"{time.monotonic() - self._start:5.1f} s  {text}", style=style)

    def bars(self, streams: list[Stream]) -> None:
        for stream in streams:
            if stream.name not in self._bars:
                self._bars[stream.name] = self.progress.add_task(stream.name, total=stream.total)
            self.progress.update(self._bars[stream.name], completed=len(stream.received))


def run(
    orders: int,
    keep: Path | None,
    *,
    as_json: bool,
    stay: bool = False,
    report: Path | None = None,
) -> int:
    """The whole demo; 0 if the totals are right. With `stay` until Ctrl-C."""
    told = Told(is_quiet=as_json)
    with _ended_in_order(), _place(keep) as place, Net(3) as addresses:
        shop, hub, warehouse = managers = [
            Manager(name, address, place)
            for name, address in zip(("shop", "hub", "warehouse"), addresses, strict=True)
        ]
        _introduce(told, shop, hub, warehouse)
        try:
            flow = Flow(shop, warehouse, orders)
            result = _play(told, flow, hub)
            if report is not None and not result["problems"]:
                result["report"] = _report(told, managers, place / "lake", report)
            if stay and not result["problems"]:
                _print_totals(told.console, result)
                _stay(told, managers)
            else:
                _stop_in_order(told, flow, hub)
                _print_totals(told.console, result)
        finally:
            for manager in managers:
                manager.stop()
        if as_json:
            print_json(result)
        if result["problems"]:
            kept = place if keep is not None else _rescue(place)
            raise CommandError(
                f"the totals are wrong: {'; '.join(result['problems'])}",
                f"this is a bug in FalconMQ; data and logs are in {kept}",
            )
    if not stay:
        told.line("to look around in the consoles afterwards: falconmq demo --stay", "dim")
    told.line(
        f"data and logs are in {keep}"
        if keep is not None
        else "all stopped; data and logs are removed (--keep DIR leaves them)",
        "dim",
    )
    return 0


def _introduce(told: Told, shop: Manager, hub: Manager, warehouse: Manager) -> None:
    told.console.print("Three queue managers on this computer", style="bold")
    for manager, what in (
        (shop, "sends orders and invoices, over the hub"),
        (hub, "passes them on, and keeps the directory"),
        (warehouse, "receives them, sends receipts straight back"),
    ):
        told.console.print(f"  {manager.name:<10} {manager.address:<12} {what}")
    told.console.print()
    warehouse.create_queues({"invoices": False})
    shop.create_queues({"receipts": False})
    hub.configure("Shop", hub, is_router=True)
    shop.configure("Shop", hub)
    warehouse.configure("Warehouse", hub)


def _play(told: Told, flow: Flow, hub: Manager) -> dict[str, Any]:
    managers = [flow.shop, hub, flow.warehouse]
    begin_enterprise(flow.shop, hub, flow.warehouse)
    told.line(r"all three are ready; the directory knows the queue warehouse\orders")
    told.line("look at them while they work:")
    for manager in managers:
        told.console.print(f"         {manager.name:<10} {manager.console()}", style="dim")
    told.line(f"the shop sends {flow.orders.total} orders and {flow.invoices.total} invoices")
    with flow, told.progress:
        _until(told, flow, lambda: len(flow.orders.received) >= flow.orders.total // 3)
        number = hub.kill()
        came = len(flow.orders.received)
        told.line(f"the hub is killed (SIGKILL to process {number}); {came} orders came", "red")
        told.line("the directory is down with it; the shop goes by what it knows", "red")
        _watch(told, flow.streams, _DOWN_SECONDS)
        told.line(f"{_waiting(flow.shop)} messages wait at the shop; orders go on being taken")
        hub.start()
        hub.wait()
        told.line("the hub is back, with all that it had promised to keep", "green")
        _until(told, flow, lambda: flow.is_done)
        told.line("everything has arrived")
        _until(told, flow, lambda: not _waiting(flow.shop))
        told.line("everything the shop sent is acknowledged")
    return {
        "streams": [stream.as_json() for stream in flow.streams],
        "sessions": _sessions(managers),
        "problems": [problem for stream in flow.streams for problem in stream.problems()],
    }


def _report(told: Told, managers: list[Manager], lake: Path, target: Path) -> dict[str, Any]:
    """Let Spark read what happened, and draw it."""
    told.line("Spark reads the event logs of all three (falconmq pipeline run); half a minute")
    jobs = write_report(managers, lake, target)
    for job in jobs:
        rows = sum(job["written"].values())
        told.line(f"  {job['job']:<8} read {job['read']:,}, wrote {rows:,} rows")
    told.line(f"the report is in {target}", "green")
    if told.console.is_terminal and show(target):
        told.line("your browser shows it", "dim")
    return {"file": str(target), "jobs": jobs}


def _stop_in_order(told: Told, flow: Flow, hub: Manager) -> None:
    """Before it stops, each acknowledges what it has; so nothing waits at the last one."""
    for manager in (flow.shop, hub):
        _until(told, flow, lambda: not _waiting(manager))  # noqa: B023  # called at once
        manager.stop()
    _until(told, flow, lambda: not _waiting(flow.warehouse))
    told.line("shop and hub have stopped in order; nothing waits anywhere")


def _stay(told: Told, managers: list[Manager]) -> None:
    """Let people look around, until Ctrl-C."""
    told.console.print("All three are still up; look at them:", style="bold")
    for manager in managers:
        place = shlex.quote(str(manager.data))
        told.console.print(f"  {manager.name:<10} console: {manager.console()}")
        status = f"{'':<12} falconmq status --data {place}"
        told.console.print(status, style="dim", soft_wrap=True)
    with contextlib.suppress(KeyboardInterrupt):
        told.console.print("Ctrl-C stops them.")
        while True:
            time.sleep(1)
    told.console.print()


def _until(told: Told, flow: Flow, condition: Callable[[], bool]) -> None:
    """Wait, with bars that move; CommandError if nothing moves any more."""
    seen, since = flow.progress, time.monotonic()
    while not condition():
        flow.check()
        _watch(told, flow.streams, 0.05)
        if flow.progress != seen:
            seen, since = flow.progress, time.monotonic()
        if time.monotonic() - since > _PATIENCE:
            raise CommandError(f"nothing has moved for {_PATIENCE:.0f} seconds")
    told.bars(flow.streams)


def _watch(told: Told, streams: list[Stream], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        told.bars(streams)
        time.sleep(min(0.05, seconds))


def _waiting(manager: Manager) -> int:
    with manager.client() as client:
        return sum(queue["messages"] for queue in client.outgoing())


def _sessions(managers: list[Manager]) -> list[dict[str, Any]]:
    """The sessions that are open, each as the one who opened it sees it."""
    names = {manager.address: manager.name for manager in managers}
    found = []
    for manager in managers:
        with manager.client() as client:
            sessions = client.status()["sessions"]
        found += [
            {
                "from": manager.name,
                "to": names.get(session["address"], session["address"]),
                "sent": session["messages_sent"],
                "received": session["messages_received"],
            }
            for session in sessions
            if session["is_initiator"] and session["state"] == "OPEN"
        ]
    return found


def _print_totals(console: Console, result: dict[str, Any]) -> None:
    keys = ("sent", "received", "duplicates", "lost")
    totals = _table("Totals", "kind", "way", numbers=("sent", "received", "doubled", "lost"))
    totals.add_column("in order")
    for stream in result["streams"]:
        totals.add_row(
            stream["name"],
            stream["kind"],
            stream["way"],
            *(str(stream[key]) for key in keys),
            "yes" if stream["in_order"] else "no",
            style="red" if stream["problems"] else "green",
        )
    sessions = _table("Sessions", "with", numbers=("sent", "received"))
    for session in result["sessions"]:
        sessions.add_row(*(str(session[key]) for key in ("from", "to", "sent", "received")))
    for table in (totals, sessions):
        console.print()
        console.print(table)
    console.print()


def _table(*headings: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Whoever ends the demo with SIGTERM, as `timeout` does, ends its queue managers too."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="falconmq-demo-", ignore_cleanup_errors=True) as place:
        yield Path(place)


def _rescue(place: Path) -> Path:
    """What went wrong has to be found out: the directory is about to be removed."""
    kept = Path(f"{place}-failed")
    shutil.copytree(place, kept, ignore=shutil.ignore_patterns("control.sock"))
    return kept
