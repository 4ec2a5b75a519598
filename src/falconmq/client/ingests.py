r"""Batches of messages that are sent exactly once, whoever fails on the way.

    with ControlClient.connect("http://sales02:8018", token) as client:
        ingest = Ingest(client, "nightly-orders")
        stage = ingest.open(7, r".\private$\orders")           # a part of batch 7
        ingest.add(7, stage.id, 1, packets)                    # its messages, as `client.packets`
        ingest.commit(7, [stage.id])                           # all parts become messages at once

Every request may be repeated, so each is asked again while the service cannot be reached, for
`patience` seconds. A stage lives in the memory of the service: after a restart it is gone, and
whoever uses it is told so (TransactionError, STALE_HANDLE). Nothing of it was sent then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

from falconmq.client import packets
from falconmq.client.calls import Call
from falconmq.client.control import ControlClient
from falconmq.client.session import Session, ask_json, post
from falconmq.errors import FalconMQError

REQUEST_PACKETS: Final = 10_000  # that one request may hand in
STAGE_SECONDS: Final = 600.0
PATIENCE_SECONDS: Final = 60.0
_COMMIT_SECONDS: Final = 600.0  # that the answer to a commit may take: a million messages need some
_HEADERS: Final = {"Content-Type": packets.MEDIA_TYPE}


@dataclass(frozen=True, slots=True)
class Staged:
    """A stage as it is now, and what its packets must be."""

    id: UUID
    count: int
    bytes: int
    is_repeated: bool  # the batch is done already: nothing has to be sent
    format_name: str  # the destination that packets name
    is_transactional: bool | None  # None: the queue is on another computer
    manager: UUID


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: it sent so many messages, or found that the batch was done before."""

    count: int
    is_repeated: bool


class Ingest:
    """The batches of one key. It uses the client, and leaves it open."""

    def __init__(
        self, client: ControlClient, key: str, *, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.key = key
        self._channel = client.channel
        self._session = Session(self._channel.door, time.monotonic, patience, 0.0)
        self._path = f"/ingests/{quote(key, safe='')}"

    def open(
        self,
        batch: int,
        queue: str,
        *,
        partition: int = 0,
        seconds: float = STAGE_SECONDS,
        keep_ids: bool = False,
    ) -> Staged:
        """A new stage of a batch, without messages."""
        query = urlencode(
            {
                "queue": queue,
                "stage": str(uuid4()),  # so that the service knows a repeated request
                "partition": partition,
                "seconds": seconds,
                "keep_ids": str(keep_ids).lower(),
            }
        )
        return _staged(self._ask(Call("POST", self._of(batch, f"stages?{query}"), b"", _HEADERS)))

    def add(self, batch: int, stage: UUID, sequence: int, content: bytes) -> Staged:
        """The packets with this number of a stage; the first one is 1."""
        path = self._of(batch, f"stages/{stage}?sequence={sequence}")
        return _staged(self._ask(Call("POST", path, content, _HEADERS)))

    def commit(self, batch: int, stages: Sequence[UUID]) -> Committed:
        """Send the messages of these stages, in this order, all or nothing."""
        body = {"stages": [str(stage) for stage in stages]}
        path = self._of(batch, "commit")
        answer = self._ask(post(path, body, answer_seconds=_COMMIT_SECONDS))
        return Committed(int(answer["committed"]), bool(answer["repeated"]))

    def abort(self, batch: int, stages: Sequence[UUID]) -> None:
        """Let the service drop stages now; if it cannot be told, it does so by itself later."""
        body = {"stages": [str(stage) for stage in stages]}
        impatient = Session(self._channel.door, time.monotonic, 0.0, 0.0)
        with contextlib.suppress(FalconMQError):
            self._channel.run(ask_json(impatient, post(self._of(batch, "abort"), body)))

    def last_batch(self) -> int | None:
        """The last batch that was committed; None: there is none."""
        found: int | None = self._ask(Call("GET", self._path))["last_batch"]
        return found

    def _of(self, batch: int, rest: str) -> str:
        return f"{self._path}/{batch}/{rest}"

    def _ask(self, call: Call) -> dict[str, Any]:
        return self._channel.run(ask_json(self._session, call))


def _staged(answer: dict[str, Any]) -> Staged:
    return Staged(
        UUID(answer["stage"]),
        int(answer["count"]),
        int(answer["bytes"]),
        bool(answer["repeated"]),
        str(answer["format_name"]),
        answer["transactional"],
        UUID(answer["manager"]),
    )
