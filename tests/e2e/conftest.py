"""Daemons for tests: an estate of one's own, or three of them that many tests share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from tests.e2e.estate import Daemon, Estate

GHOST = UUID("0e8f2a52-9a5b-4c0f-8b7e-6f1f0a3d9c11")  # a queue manager that nobody ever reaches

REPORTS = UUID("5b0f6c52-77a5-4f0e-9d0c-3f1c2b7f6a90")  # a public queue; each of them has one


@dataclass(frozen=True)
class Company:
    """shop and warehouse know each other's address; by other names the way leads over the hub."""

    shop: Daemon
    hub: Daemon
    warehouse: Daemon


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    with Estate(tmp_path) as estate:
        yield estate


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Three daemons; a test that uses them creates queues of its own."""
    with Estate(tmp_path_factory.mktemp("company")) as estate:
        shop, hub, warehouse = [
            estate.manager(name, send_insecure_nacks=True, send_reports=True)
            for name in ("shop", "hub", "warehouse")
        ]
        for daemon in estate.daemons:
            daemon.publish("reports", REPORTS)
        estate.introduce([shop, hub, warehouse])
        shop.routes[warehouse] = hub
        warehouse.routes[shop] = hub
        # shop and hub hold each other for the way to the ghost: a message goes round for ever
        shop.ghosts[GHOST] = hub
        hub.ghosts[GHOST] = shop
        estate.start()
        yield Company(shop, hub, warehouse)
