r"""The directory on five servers, as real processes: a PEC, two PSCs, two BSCs.

    site Zero: pec0, bsc0        site One: psc1        site Two: psc2, bsc2

Each has a whole copy in its own store, and decides about its own site; the others forward to it.
What setup does on paper is done here too: the servers know each other's keys before they start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from falconmq.security.key_store import KeyStore
from falconmq.security.peer_store import PeerKeys, PeerStore
from tests.e2e.estate import Daemon, Estate, wait_until

HTTP_PORT: Final = 8018
SITES: Final = {"pec0": "Zero", "bsc0": "Zero", "psc1": "One", "psc2": "Two", "bsc2": "Two"}
_CONTROLLERS: Final = {"One": "psc1", "Two": "psc2"}
_QUICK: Final[dict[str, object]] = {
    "intersite_seconds": 0.2,
    "intrasite_seconds": 0.1,
    "hello_seconds": 1.0,
}
Json = dict[str, Any]


class Replicas(Estate):
    """The five of them; `with Replicas(directory) as replicas`, then `begin`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.named: dict[str, Daemon] = {name: self.manager(name) for name in SITES}
        self.introduce(self.daemons)
        self._exchange_keys()
        for daemon in self.daemons:
            daemon.sections["hosts"] = {each.name: each.address for each in self.daemons}
            daemon.sections["http"] = {"port": HTTP_PORT, "loopback_role": "manage"}

    def begin(self) -> None:
        """First the PEC and its sites, then the servers of the sites, then the backups."""
        self._start("pec0", "pec")
        for site, controller in _CONTROLLERS.items():
            self.create("pec0", "site", {"name": site, "primary_site_controller": controller})
        for controller in _CONTROLLERS.values():
            self._start(controller, "psc")
        for backup, controller in (("bsc0", "pec0"), ("bsc2", "psc2")):
            self._start(backup, "bsc", controller)
        for name in SITES:
            wait_until(lambda: self._is_in(name), f"{name} is in the directory")  # noqa: B023
        self.settle()

    def create(self, server: str, kind: str, attributes: Json) -> str:
        """At any server; the one that decides is asked. The GUID of the new object."""
        body = {"attributes": attributes}
        made = self.named[server].client.request("POST", f"/directory/{kind}", body)
        return str(made["attributes"]["identifier"])

    def change(self, server: str, kind: str, identifier: str, attributes: Json) -> None:
        body = {"attributes": attributes}
        self.named[server].client.request("PATCH", f"/directory/{kind}/{identifier}", body)

    def delete(self, server: str, kind: str, identifier: str) -> None:
        self.named[server].client.request("DELETE", f"/directory/{kind}/{identifier}")

    def queues(self, server: str) -> dict[str, str]:
        """The queues that a server knows: GUID and label."""
        found: dict[str, str] = {}
        while True:
            page = f"/directory/queue?skip={len(found)}&limit=1000"
            rows = self.named[server].client.request("GET", page)["objects"]
            found |= {row["identifier"]: row["label"] for row in rows}
            if len(rows) < 1000:
                return found

    def fingerprints(self, server: str) -> dict[str, str]:
        """Everything that a server has, with its numbers and deletions."""
        page = "/directory-replication/fingerprints?limit=50000"
        found: dict[str, str] = self.named[server].client.request("GET", page)["fingerprints"]
        return found

    def status(self, server: str) -> Json:
        found: Json = self.named[server].client.request("GET", "/directory-replication")
        return found

    def settle(self) -> None:
        """Until all that run have the same."""
        running = [name for name, daemon in self.named.items() if daemon.process is not None]
        wait_until(lambda: self._are_equal(running), f"all are equal: {', '.join(running)}")

    def _are_equal(self, names: list[str]) -> bool:
        first, *others = [self._objects(name) for name in names]
        return all(each == first for each in others)

    def _objects(self, server: str) -> dict[str, str]:
        """Without deletions: who has to remember them differs for a while."""
        prints = self.fingerprints(server)
        return {name: text for name, text in prints.items() if "/deleted/" not in name}

    def _is_in(self, name: str) -> bool:
        return bool(self.named[name].client.status()["directory"]["is_joined"])

    def _start(self, name: str, role: str, psc: str = "") -> None:
        daemon, site = self.named[name], SITES[name]
        if role != "pec":
            site = self.named["pec0"].client.request("GET", f"/directory/site/{site}")[
                "attributes"
            ]["identifier"]
        section = {**_QUICK, "kind": "embedded", "role": role, "site": site, "timeout_seconds": 10}
        if role == "pec":
            section["domain"] = "replicas.test"
        else:
            section["pec"] = "pec0"
        if psc:
            section["psc"] = psc
        daemon.sections["directory"] = section
        daemon.start()

    def _exchange_keys(self) -> None:
        keys = {
            daemon.name: PeerKeys.of(daemon.id, daemon.name, KeyStore(daemon.data).keys())
            for daemon in self.daemons
        }
        for daemon in self.daemons:
            for name, peer in keys.items():
                if name != daemon.name:
                    PeerStore(daemon.data).add(peer)
