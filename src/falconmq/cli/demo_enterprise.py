"""The enterprise of `falconmq demo`: two sites, a link, and a hub that is in both.

The hub comes first, for it keeps the directory; the others register when they start. Then the
directory is told what only people know: that the hub joins the two sites.
"""

from __future__ import annotations

from typing import Final

from falconmq.cli.demo_managers import Manager
from falconmq.client import ControlClient

ORDERS: Final = r"warehouse\orders"


def begin_enterprise(shop: Manager, hub: Manager, warehouse: Manager) -> None:
    """Start all three, and let them know each other through the directory."""
    hub.start()
    hub.wait()
    with hub.client() as client:
        _create(client, "site", {"name": "Warehouse"})
        sites = [_identifier(client, "site", name) for name in ("Shop", "Warehouse")]
        body = {"attributes": {"site_identifiers": sites}}
        client.request("PATCH", f"/directory/queue-manager/{hub.name}", body)
        gates = [str(hub.id)]
        link = {"site1_identifier": sites[0], "site2_identifier": sites[1], "actual_cost": 1}
        _create(client, "routing-link", {**link, "site_gate_identifiers": gates})
    for manager in (shop, warehouse):
        manager.start()
    for manager in (shop, warehouse):
        manager.wait()
    with warehouse.client() as client:
        client.create_queue(ORDERS, transactional=True)
    warehouse.queues["orders"] = ORDERS
    for manager in (hub, shop, warehouse):  # those who came first have not seen those who came last
        with manager.client() as client:
            client.request("POST", "/routes/refresh")


def _create(client: ControlClient, kind: str, attributes: dict[str, object]) -> None:
    client.request("POST", f"/directory/{kind}", {"attributes": attributes})


def _identifier(client: ControlClient, kind: str, name: str) -> str:
    return str(client.request("GET", f"/directory/{kind}/{name}")["attributes"]["identifier"])
