"""Public queues on the pages of a queue manager that keeps a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq import Acknowledge, Message
from tests.console.site import LogIn, Site
from tests.embedded.helpers import wait_until


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    directory = '[directory]\nkind = "embedded"\ndomain = "example.com"\nsite = "Berlin"\n'
    with Site(tmp_path, more=directory) as site:
        yield site


def test_a_public_queue_is_made_shown_and_found_in_the_directory(site: Site) -> None:
    with LogIn(site, site.token()) as operator:
        assert "others find it in the directory" in operator.get("/queues")
        made = operator.post("/queues", name="orders", public="1", label="Orders")
        assert (made.status_code, made.headers["location"]) == (303, "/queues/.%5Corders")
        operator.post("/queues", name="orders")
        assert [queue.name for queue in site.manager.queues()] == [
            r".\orders",
            r".\private$\orders",
        ]
        listed = operator.get("/queues")
        assert (listed.count("public, plain"), listed.count(">plain<")) == (1, 1)
        # the page of the queue leads to its object
        page = operator.get("/queues/.%5Corders")
        link = page.partition('href="/directory/queue/')[2].partition('"')[0]
        assert site.manager.queue(r".\orders").format_name == f"PUBLIC={link.upper()}"
        assert "Orders" in operator.get(f"/directory/queue/{link}")
        assert "/directory/queue/" not in operator.get("/queues/.%5Cprivate$%5Corders")
    # an acknowledgement finds the way into a public queue
    acks, orders = site.manager.queue(r".\orders"), site.manager.queue(r".\private$\orders")
    wanted = Acknowledge.POSITIVE_RECEIVE
    orders.send(Message("x", acknowledgements=wanted, administration_queue=acks.format_name))
    orders.receive(timeout=0)
    wait_until(lambda: acks.count == 1)
