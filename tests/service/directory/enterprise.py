"""A service that keeps an enterprise of three sites, for tests that ask it for ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.console.site import Site

_DIRECTORY = """
[directory]
kind = "embedded"
domain = "example.com"
site = "Berlin"

[[computers]]
id = "{known}"
address = "10.9.8.7"
"""
KNOWN = "0c0ffee0-0000-4000-8000-000000000001"  # in [[computers]], in no directory


class Directory:
    """The directory of a service, over its HTTP API; its owner asks."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.http = httpx.Client(base_url=f"{site.url}/api/v1", timeout=30)

    def create(self, kind: str, **attributes: Any) -> str:
        answer = self.http.post(f"/directory/{kind}", json={"attributes": attributes})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["attributes"]["identifier"])

    def find(self, kind: str, name: str) -> dict[str, Any]:
        answer = self.http.get(f"/directory/{kind}/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["attributes"])

    def refresh(self) -> dict[str, Any]:
        answer = self.http.post("/routes/refresh")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def route(self, name: str) -> httpx.Response:
        return self.http.get(f"/routes/{name}")


@contextmanager
def given_enterprise(place: Path, name: str = "SALES01") -> Iterator[Directory]:
    """Berlin with this queue manager and a gate, Paris behind it, Rome behind Paris.

    A foreign site is behind Rome; nobody is a gate of it.
    """
    more = _DIRECTORY.format(known=KNOWN)
    with Site(place, name=name, loopback_role="manage", more=more) as site:
        directory = Directory(site)
        with directory.http:
            _fill(directory)
            directory.refresh()
            yield directory


def _fill(directory: Directory) -> None:
    sites = {"Berlin": directory.find("site", "Berlin")["identifier"]}
    sites |= {name: directory.create("site", name=name) for name in ("Paris", "Rome")}
    sites["Host"] = directory.create("site", name="Host", foreign_site=True)
    gates = {
        name: directory.create(
            "queue-manager",
            computer_name=f"{name.upper()}-GATE",
            site_identifiers=[sites[name]],
            routing_server=True,
        )
        for name in ("Berlin", "Paris", "Rome")
    }
    for computer, site in (("PIA", "Paris"), ("REMO", "Rome"), ("FRIDA", "Host")):
        is_foreign = site == "Host"
        directory.create(
            "queue-manager",
            computer_name=computer,
            site_identifiers=[sites[site]],
            foreign_system=is_foreign,
        )
    for one, other, cost in (("Berlin", "Paris", 1), ("Paris", "Rome", 3), ("Rome", "Host", 5)):
        directory.create(
            "routing-link",
            site1_identifier=sites[one],
            site2_identifier=sites[other],
            actual_cost=cost,
            site_gate_identifiers=[gates[end] for end in (one, other) if end in gates],
        )
