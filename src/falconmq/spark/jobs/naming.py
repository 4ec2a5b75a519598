r"""What messages, queues and ways are called in the ledger.

Queues get the name of their computer (`SALES02\private$\orders`), so that those of two managers
differ; a way is "A -> B", from the computer that sent a message to the one it is for. Each distinct
combination is put into words once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from falconmq.spark.grouped import Texts, combined_codes, taken
from falconmq.spark.jobs.flat_places import Flat
from falconmq.spark.jobs.view import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OWNED: Final = re.compile(rf"^(?:PRIVATE|MACHINE)=({_GUID})", re.IGNORECASE)
_DIRECT: Final = re.compile(r"^DIRECT=(?:OS|TCP|HTTPS?):(?://)?([^\\/]+)[\\/](.+)$", re.IGNORECASE)


@dataclass
class Names:
    """Codes of texts, for each message."""

    computers: NDArray[np.int64]  # by the code of a manager
    source: NDArray[np.int64]
    route: NDArray[np.int64]
    queue: NDArray[np.int64]

    def columns(self, flat: Flat, life: Any) -> dict[str, pa.Array]:
        text, place = flat.texts, flat.place
        return {
            "sender": text.column(flat.sender),
            "source_computer": text.column(self.source),
            "arrived_manager": text.column(taken(place["manager"], life.came, -1)),
            "arrived_computer": text.column(taken(place["computer"], life.came, -1)),
            "route": text.column(self.route),
            "queue": text.column(self.queue),
        }


def target_of(destination: str, view: View) -> tuple[str, str]:
    """The computer that a format name leads to, and the queue there; "" what is not known."""
    owned = _OWNED.match(destination)
    if owned is not None:
        cover = view.covers.get(owned[1].lower())
        return ("" if cover is None else cover.computer), ""
    direct = _DIRECT.match(destination)
    if direct is None:
        return "", ""
    host, path = direct[1], direct[2]
    manager = view.addresses.get(host)
    cover = None if manager is None else view.covers.get(manager)
    by_name = {c.computer.upper(): c.computer for c in view.covers.values()}
    return (cover.computer if cover else by_name.get(host.upper(), host)), path


def name_all(flat: Flat, came: NDArray[np.int64], view: View) -> Names:
    texts, place = flat.texts, flat.place
    known = {manager: cover.computer for manager, cover in view.covers.items()}
    targets = [target_of(text, view) for text in texts.values]
    goals = np.array([texts.code(goal or None) for goal, _ in targets] + [-1])
    paths = np.array([texts.code(path or None) for _, path in targets] + [-1])
    computers = texts.mapped(lambda manager: known.get(manager, manager))
    source = computers[flat.sender]
    arrived = taken(place["computer"], came, -1)
    goal = np.where(arrived >= 0, arrived, goals[flat.destination])
    queue = taken(place["queue"], came, -1)
    return Names(
        computers,
        source,
        _worded(texts, _route, source, goal),
        _worded(texts, _queue, queue, goal, paths[flat.destination], flat.destination),
    )


def _route(source: str | None, goal: str | None) -> str:
    return f"{source}" if source == goal else f"{source} -> {goal or '?'}"


def _queue(
    queue: str | None, goal: str | None, path: str | None, destination: str | None
) -> str | None:
    if queue is not None:
        return f"{goal}{queue[1:]}" if queue.startswith(".") else queue
    return f"{goal}\\{path}" if goal and path else destination


def _worded(
    texts: Texts, word: Callable[..., str | None], *parts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A text for each distinct combination."""
    key = combined_codes(parts)
    _, first = np.unique(key, return_index=True)
    made = []
    for row in first.tolist():
        values = [None if part[row] < 0 else texts.values[part[row]] for part in parts]
        made.append(texts.code(word(*values)))
    return np.array(made, np.int64)[key]
