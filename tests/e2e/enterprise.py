r"""An enterprise as real processes: three sites in a row, six queue managers, one directory.

    North           Middle            South
    n1  n2* ------- m1*  m2 --------- s1*  s2        * gate of its site; m2 keeps the directory

Nobody has a table of the others: names, sites, links and public queues are in the directory, which
m2 has in its store, and which the others ask over HTTP. Only host names are given to each of them,
as a DNS would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.e2e.estate import Daemon, Estate, wait_until

HTTP_PORT: Final = 8018
SITES: Final = {"North": ("n1", "n2"), "Middle": ("m1", "m2"), "South": ("s1", "s2")}
GATES: Final = ("n2", "m1", "s1")
KEEPER: Final = "m2"


class Enterprise(Estate):
    """The six of them; `with Enterprise(directory) as enterprise`, then `begin`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        sites = [(name, site) for site, names in SITES.items() for name in names]
        self.named: dict[str, Daemon] = {name: self.manager(name) for name, _ in sites}
        self.keeper = self.named[KEEPER]
        for name, site in sites:
            self._configure(self.named[name], site)

    def begin(self) -> None:
        """First the directory, its sites, then everybody, who registers, then the links."""
        self.keeper.start()
        self._create_sites()
        for daemon in self.daemons:
            if daemon is not self.keeper:
                daemon.start()
        self._link("North", "Middle", "n2", "m1")
        self._link("Middle", "South", "m1", "s1")
        for daemon in self.daemons:
            daemon.client.request("POST", "/routes/refresh")
            wait_until(lambda: self._knows_all(daemon), f"{daemon.name} knows the links")  # noqa: B023

    def object(self, kind: str, name: str) -> dict[str, object]:
        """What the directory has."""
        found: dict[str, object] = self.keeper.client.request("GET", f"/directory/{kind}/{name}")
        attributes = found["attributes"]
        assert isinstance(attributes, dict)
        return attributes

    def _configure(self, daemon: Daemon, site: str) -> None:
        daemon.sections["hosts"] = {each.name: each.address for each in self.daemons}
        daemon.sections["http"] = {"port": HTTP_PORT, "loopback_role": "manage"}
        directory: dict[str, object] = {
            "site": site,
            "routing_server": daemon.name in GATES,
            "timeout_seconds": 10.0,  # the computer is busy
            "notification_seconds": 0.1,
        }
        if daemon is self.keeper:
            directory |= {"kind": "embedded", "domain": "enterprise.test"}
        else:
            url = f"http://{self.keeper.address}:{HTTP_PORT}"
            directory |= {"kind": "remote", "servers": [url]}
        daemon.sections["directory"] = directory

    def _create_sites(self) -> None:
        for site in SITES:
            if site != "Middle":  # the keeper made its own
                body = {"attributes": {"name": site}}
                self.keeper.client.request("POST", "/directory/site", body)

    def _link(self, site1: str, site2: str, *gates: str) -> None:
        attributes = {
            "site1_identifier": self.object("site", site1)["identifier"],
            "site2_identifier": self.object("site", site2)["identifier"],
            "actual_cost": 1,
            "site_gate_identifiers": [str(self.named[gate].id) for gate in gates],
        }
        self.keeper.client.request("POST", "/directory/routing-link", {"attributes": attributes})

    def _knows_all(self, daemon: Daemon) -> bool:
        counts = daemon.client.status()["directory"]["map"]
        seen = counts["queue_managers"], counts["links"]
        return seen == (len(self.daemons), len(SITES) - 1)
