"""Reports about messages that pass a queue manager (MQQB 3.1.5.8.9, 3.1.7.1.7)."""

from __future__ import annotations

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.queues import create_queue
from falconmq.names import PathName
from falconmq.wire.message_class import MessageClass
from tests.transport.answers import PUBLIC_QUEUE
from tests.transport.estate import Estate, Node, bodies
from tests.transport.raw_peer import ADDRESS, RawPeer, routed_estate

REPORTS = PUBLIC_QUEUE.bytes_le


def given_reporter(*, send_reports: bool = True) -> tuple[Estate, Node, Queue]:
    """A queue manager that has the report queue."""
    estate = routed_estate()
    node = estate.node("B", 2, send_reports=send_reports)
    path = PathName.parse(r".\reports")
    queue: Queue = node.run(
        lambda: create_queue(node.core, path, skip_directory=True, identifier=PUBLIC_QUEUE)
    )
    return estate, node, queue


def texts(queue: Queue) -> list[str]:
    return [body.decode("utf-16-le") for body in bodies(queue)]


@pytest.mark.requirement("QB-3.1.5.8.9-01")
@pytest.mark.parametrize("transactional", [True, False])
def test_a_traced_message_that_comes_is_reported(transactional: bool) -> None:
    """The guide's scenario 43, on receipt."""
    # given a queue manager that sends reports
    _, node, reports = given_reporter()
    queue = node.queue("orders", transactional=transactional)
    peer = RawPeer(node).open()
    transaction = (1 << 32 | 1, 1, 0) if transactional else None
    # when a message comes that asks for them, and one that does not
    peer.send(queue, message_id=0x1F, report_queue=REPORTS, transaction=transaction)
    peer.send(node.queue("quiet"))
    # then there is one report, of the receipt: no next hop
    (text,) = texts(reports)
    assert text == (
        "<MESSAGE ID>0000001F</MESSAGE ID>\r\n"
        rf"<TARGET QUEUE>DIRECT=TCP:{node.address}\private$\orders</TARGET QUEUE>" + "\r\n"
    )


@pytest.mark.requirement("QB-3.1.7.1.7-01")
def test_a_traced_message_that_goes_is_reported_with_its_next_hop() -> None:
    """The guide's scenario 43, on sending."""
    estate, node, reports = given_reporter()
    peer = RawPeer(node).open()
    name = rf"DIRECT=TCP:{ADDRESS}\private$\far"
    node.send(name, b"x", trace=True, report_queue=PUBLIC_QUEUE)
    estate.settle()
    assert len(peer.messages) == 1
    (text,) = texts(reports)
    assert f"<NEXT HOP>{ADDRESS}</NEXT HOP>\r\n<HOP COUNT>00 </HOP COUNT>\r\n" in text


@pytest.mark.requirement("QB-3.1.5.8.9-01", "QB-3.1.7.1.7-01")
def test_a_router_reports_that_a_message_came_and_that_it_went() -> None:
    # given a message for a queue behind a router
    estate, router, reports = given_reporter()
    far = estate.node("C", 3)
    queue = far.queue("orders")
    peer = RawPeer(router).open()
    # when it comes there
    peer.send(queue.private_queue_number, address=far.transport.guid, report_queue=REPORTS)
    # then there are two reports, both with the hop that brought it here
    assert len(bodies(queue)) == 1
    came, went = texts(reports)
    assert "NEXT HOP" not in came
    assert f"<NEXT HOP>{far.address}</NEXT HOP>\r\n<HOP COUNT>01 </HOP COUNT>" in went


@pytest.mark.requirement("QB-3.1.5.8.9-01", "QB-A47-01")
def test_reports_are_off_by_default() -> None:
    _, node, reports = given_reporter(send_reports=False)
    queue = node.queue("orders")
    RawPeer(node).open().send(queue, report_queue=REPORTS)
    assert len(bodies(queue)) == 1
    assert texts(reports) == []


@pytest.mark.requirement("QB-A47-01")
def test_a_report_is_not_reported() -> None:
    _, node, reports = given_reporter()
    peer = RawPeer(node).open()
    peer.send(REPORTS, b"", message_class=MessageClass.REPORT, report_queue=REPORTS)
    assert len(bodies(reports)) == 1


def test_a_message_that_is_refused_is_not_reported() -> None:
    _, node, reports = given_reporter()
    RawPeer(node).open().send(4711, report_queue=REPORTS)
    assert texts(reports) == []
