"""Orders, invoices and receipts: who sends them, who receives them, and what must be true of it.

Four threads are the applications: one sends orders and invoices in the shop; in the warehouse one
receives the orders and answers each with a receipt, another receives the invoices; one receives the
receipts in the shop. They use the control sockets, as any program may.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from falconmq.cli.demo_managers import Manager, path
from falconmq.cli.problems import CommandError
from falconmq.client import ControlClient

_BATCH: Final = 20
_PAUSE: Final = 0.08  # seconds between two batches: 250 orders a second, for people to follow
_POLL: Final = 0.25  # seconds that one call waits for messages; then somebody may stop us
_PAGE: Final = 500


@dataclass
class Stream:
    """The messages of one kind: their numbers, as sent and as received."""

    name: str
    kind: str
    way: str
    total: int
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    queue: str = ""  # where it is received, by its path name

    @property
    def duplicates(self) -> int:
        return len(self.received) - len(set(self.received))

    @property
    def lost(self) -> int:
        return len(set(self.sent) - set(self.received))

    @property
    def is_in_order(self) -> bool:
        return self.received == sorted(self.received)

    def problems(self) -> list[str]:
        """What is wrong with it, in words; nothing if all is well."""
        found = [f"{self.lost} {self.name} lost"] if self.lost else []
        found += [f"{self.duplicates} {self.name} doubled"] if self.duplicates else []
        strange = len(set(self.received) - set(self.sent))
        found += [f"{strange} {self.name} were never sent"] if strange else []
        return found if self.is_in_order else [*found, f"{self.name} out of order"]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "way": self.way,
            "sent": len(self.sent),
            "received": len(self.received),
            "duplicates": self.duplicates,
            "lost": self.lost,
            "in_order": self.is_in_order,
            "problems": self.problems(),
        }


class Flow:
    """The applications of shop and warehouse, at work inside a `with` block."""

    def __init__(self, shop: Manager, warehouse: Manager, orders: int) -> None:
        self.shop = shop
        self.warehouse = warehouse
        self.orders = Stream("orders", "transactional", "over the hub", orders, queue=r".\orders")
        self.invoices = Stream(
            "invoices", "recoverable", "over the hub", orders, queue=path("invoices")
        )
        self.receipts = Stream("receipts", "express", "directly", orders, queue=path("receipts"))
        self.streams = [self.orders, self.invoices, self.receipts]
        self._stopped = threading.Event()
        self._problem: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, args=work, daemon=True)
            for work in (
                (shop, self._send_orders),
                (warehouse, self._receive_orders),
                (warehouse, self._receive_invoices),
                (shop, self._receive_receipts),
            )
        ]

    @property
    def is_done(self) -> bool:
        return all(len(stream.received) >= stream.total for stream in self.streams)

    @property
    def progress(self) -> int:
        return sum(len(stream.sent) + len(stream.received) for stream in self.streams)

    def check(self) -> None:
        """CommandError if one of the applications could not go on."""
        if self._problem is not None:
            raise CommandError(f"the demo broke off: {self._problem}") from self._problem

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _work(self, manager: Manager, work: Callable[[ControlClient], None]) -> None:
        try:
            with manager.client() as client:
                work(client)
        except Exception as error:  # noqa: BLE001  # `check` raises it where it is heard
            self._problem = error

    def _send_orders(self, client: ControlClient) -> None:
        queues = self.warehouse.queues
        for start in range(1, self.orders.total + 1, _BATCH):
            numbers = list(range(start, min(start + _BATCH, self.orders.total + 1)))
            for stream, kind, transaction in (
                (self.orders, "order", True),
                (self.invoices, "invoice", False),
            ):
                messages = [{"text": f"{n}", "label": f"{kind} {n}"} for n in numbers]
                client.send(queues[stream.name], messages, transaction)
                stream.sent += numbers
            if self._stopped.wait(_PAUSE):
                return

    def _receive_orders(self, client: ControlClient) -> None:
        back = rf"DIRECT=TCP:{self.shop.address}\private$\receipts"
        while not self._stopped.is_set():
            numbers = _receive(client, self.orders)
            if numbers:
                receipts = [
                    {"text": f"{n}", "label": f"receipt {n}", "recoverable": False} for n in numbers
                ]
                self.receipts.sent += numbers
                client.send(back, receipts)

    def _receive_invoices(self, client: ControlClient) -> None:
        while not self._stopped.is_set():
            _receive(client, self.invoices)

    def _receive_receipts(self, client: ControlClient) -> None:
        while not self._stopped.is_set():
            _receive(client, self.receipts)


def _receive(client: ControlClient, stream: Stream) -> list[int]:
    messages = client.receive(stream.queue, count=_PAGE, timeout=_POLL)
    numbers = [int(message["text"]) for message in messages]
    stream.received += numbers
    return numbers
