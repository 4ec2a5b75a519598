"""The daemons that are played against. Each has a setting that some conversations need."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from tests.e2e.estate import Daemon, Estate, Net, path

KNOWN: Final = UUID("7c7b1f5a-0b86-4f27-9d3e-51a7b5c5d9ee")  # a peer that the daemon knows by name
FAR: Final = UUID("c0ffee00-3c4f-4f0e-8a57-0d0c8f3a1b22")  # one behind it, to be reached over it
QUEUE_OF_FRAME_7: Final = UUID("9d1c0d5e-5a9b-4f5f-8d56-2f6a5a3f0a77")
_ADDRESSES_OF_A_NET: Final = 250
_SETTINGS: Final[dict[str, object]] = {
    "try_connect_interval": 0.1,
    "order_ack_timeout": 0.05,
    "maximum_order_ack_delay": 0.4,
    "resend_short": 0.5,
    "resend_medium": 0.5,
    "resend_long": 0.5,
    "resend_final": 0.5,
    "direct_ack_wait_factor": 1,
}
KINDS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "fence": {},
    "transactional": {"transactional": True},
    "full": {"quota_kilobytes": 1},
    "full transactional": {"quota_kilobytes": 1, "transactional": True},
    "signed": {"authentication": True},
    "signed transactional": {"authentication": True, "transactional": True},
    "encrypted": {"privacy_level": "BODY"},
    "encrypted transactional": {"privacy_level": "BODY", "transactional": True},
    "open": {"privacy_level": "NONE"},
    "both": {"authentication": True, "privacy_level": "BODY"},
}


@dataclass(frozen=True)
class _Neighbour:
    """What the configuration of a daemon says about another computer."""

    id: UUID
    name: str
    address: str


class Stage:
    """One daemon with its settings, and addresses for as many peers as come."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self._estate = Estate(directory)
        self._nets = [self._estate.net]
        self._addresses = itertools.count(1)
        self._queues = itertools.count(1)
        self.daemon: Daemon = self._estate.manager("FALCON", **(_SETTINGS | settings))
        self.known_address = self._estate.net.address()
        self.daemon.computers = [_Neighbour(KNOWN, "known", self.known_address)]  # type: ignore[list-item]
        self.daemon.ghosts = {FAR: self.daemon.computers[0]}
        self.guid = self.daemon.id.bytes_le
        self.client = self.daemon.client

    @classmethod
    def started(cls, **settings: object) -> Self:
        stage = cls(Path(tempfile.mkdtemp(prefix="falconmq-wire-")), **settings)
        stage.daemon.publish("q", QUEUE_OF_FRAME_7)
        stage.daemon.start()
        return stage

    def address(self) -> str:
        """An address that nobody has used before."""
        if next(self._addresses) % _ADDRESSES_OF_A_NET == 0:
            self._nets.append(Net())
        return self._nets[-1].address()

    def new_queue(self, kind: str) -> str:
        """The name of a new private queue; a missing one has only a name."""
        name = f"{kind.split(maxsplit=1)[0]}{next(self._queues)}"
        if kind != "missing":
            self.daemon.create_queue(name, **KINDS[kind])
        return name

    def bodies(self, queue: str) -> list[str]:
        """What a queue holds, in its order, as the API tells it: base64."""
        return [message["body"] for message in self.daemon.look(queue)]

    def path(self, queue: str) -> str:
        return path(queue)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._estate.__exit__(kind, error, traceback)
        for net in self._nets[1:]:
            net.close()
        shutil.rmtree(self._estate.directory, ignore_errors=True)
