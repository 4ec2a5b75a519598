"""Report messages, MQQB 3.1.5.8.9 and 3.1.7.1.7."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.clock import VirtualClock
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_objects import QueueManager
from falconmq.manager.model import Queue
from falconmq.manager.queue_rows import queue_row
from falconmq.message import Acknowledge, Delivery, Journal, Message
from falconmq.names import PublicFormatName, parse_format_name
from falconmq.transport.reports import send_report
from falconmq.transport.settings import TransportSettings
from falconmq.wire.base_header import TRACE
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_message import UserMessage
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    STRANGER,
    commit,
    given_queue,
    make_core,
    restart,
)
from tests.transport.answers import (
    PUBLIC_QUEUE,
    THIRD,
    arrived,
    assert_silence,
    given_public_queue,
    only_message,
    only_packet,
    packets_in,
)

TRACING = TransportSettings(send_reports=True)
ADDRESS = "10.0.0.7"
DESTINATION = r"DIRECT=OS:sales02\private$\Orders"
# label, of the ABNF of MQQB 3.1.5.8.9; the hour has its seconds, QB-A47
LABEL = re.compile(
    r"[0-9A-F]{4}:[0-9A-F]{8}:[0-9A-F]{2} received by "
    r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12} at "
    r"[0-9]{2}:[0-9]{2}:[0-9]{2} (AM|PM) (Mon|Tue|Wed|Thu|Fri|Sat|Sun),"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{2} [0-9]{2}"
)
both_sides = pytest.mark.parametrize("next_hop", [None, ADDRESS], ids=["received", "sent"])


def traced(hops: int = 0x0A, message_id: int = 0x1F, **properties: Any) -> UserMessage:
    """A message that asks for reports."""
    properties.setdefault("destination", DESTINATION)
    packet = arrived(
        b"order 7", trace=True, report_queue=PUBLIC_QUEUE, label="order", **properties
    ).packet
    user = replace(packet.user, message_id=message_id, flags=packet.user.flags | hops)
    return replace(packet, user=user)


def given_report_queue(**settings: Any) -> tuple[QueueManagerCore, Queue]:
    core = make_core(**settings)
    return core, given_public_queue(core, "reports")


def report_on(packet: UserMessage, next_hop: str | None = None) -> Message:
    """The report about a message, from the queue manager that has the report queue."""
    core, queue = given_report_queue()
    assert send_report(core, TRACING, packet, next_hop=next_hop)
    return only_message(core, queue)


# Whether


@pytest.mark.requirement("MQ-2.2.20.8-11")
@pytest.mark.requirement("QB-3.1.5.8.9-01", "QB-3.1.7.1.7-01", "QB-3.1.5.8.9-12", "QB-3.1.5.8.9-14")
@both_sides
def test_a_message_that_is_traced_is_reported(next_hop: str | None) -> None:
    # given a queue manager that sends reports, and has the report queue
    core, queue = given_report_queue()
    # when a message passes, and one that does not ask for reports
    assert send_report(core, TRACING, traced(), next_hop=next_hop)
    assert not send_report(core, TRACING, arrived().packet, next_hop=next_hop)
    # then one report is in the queue
    assert len(packets_in(queue)) == 1
    assert not queue.descriptors
    assert not core.outgoing


@pytest.mark.requirement("MQ-2.2.20.8-11")
@pytest.mark.requirement("QB-A47-01")
@both_sides
def test_reports_are_off_by_default(next_hop: str | None) -> None:
    core, queue = given_report_queue()
    assert not send_report(core, TransportSettings(), traced(), next_hop=next_hop)
    assert packets_in(queue) == []


@pytest.mark.requirement("QB-A47-01")
@both_sides
def test_without_a_report_queue_there_is_no_report(next_hop: str | None) -> None:
    # given a message that is traced, but says not where to (QT is 0)
    core, _ = given_report_queue()
    packet = arrived(trace=True, report_queue=None).packet
    assert packet.debug is not None
    # when it passes, then nothing is sent
    assert not send_report(core, TRACING, packet, next_hop=next_hop)
    assert_silence(core)


@pytest.mark.requirement("QB-3.1.5.8.9-01", "QB-3.1.7.1.7-01")
@both_sides
def test_a_report_queue_alone_does_not_ask_for_reports(next_hop: str | None) -> None:
    # given a message with a DebugHeader whose TR is not set
    core, queue = given_report_queue()
    packet = traced()
    packet.base.flags &= ~TRACE
    # when it passes, then nothing is sent
    assert not send_report(core, TRACING, packet, next_hop=next_hop)
    assert packets_in(queue) == []


@pytest.mark.requirement("QB-A47-01")
@both_sides
def test_a_report_is_never_traced(next_hop: str | None) -> None:
    core, queue = given_report_queue()
    packet = traced(message_class=MessageClass.REPORT)
    assert not send_report(core, TRACING, packet, next_hop=next_hop)
    assert packets_in(queue) == []


@pytest.mark.requirement("QB-3.1.5.8.9-13")
@both_sides
def test_a_report_to_a_queue_that_nobody_knows_is_discarded(next_hop: str | None) -> None:
    core = make_core()
    assert not send_report(core, TRACING, traced(), next_hop=next_hop)
    assert_silence(core)


@pytest.mark.requirement("QB-3.1.5.8.9-13")
@both_sides
def test_a_report_to_a_queue_that_cannot_be_opened_is_discarded(next_hop: str | None) -> None:
    # given a directory that still knows a queue which is not here any more
    core, directory, _ = make_integrated_core()
    row = queue_row(given_queue(core))
    row.update(identifier=PUBLIC_QUEUE, computer_name=COMPUTER, path_name=rf"{COMPUTER}\reports")
    directory.create("Queue", row)
    # when a traced message passes, then the report is dropped
    assert not send_report(core, TRACING, traced(), next_hop=next_hop)
    assert_silence(core)


@pytest.mark.requirement("QB-3.1.5.8.9-03", "QB-3.1.7.1.7-03")
@both_sides
def test_a_report_queue_elsewhere_is_found_in_the_directory(next_hop: str | None) -> None:
    # given a directory that knows the report queue, and the computer it is on
    core, directory, _ = make_integrated_core()
    directory.create("QueueManager", QueueManager(THIRD, computer_name="SALES09").row())
    row = queue_row(given_queue(core))
    row.update(identifier=PUBLIC_QUEUE, computer_name="SALES09", path_name=r"SALES09\reports")
    directory.create("Queue", row)
    # when a traced message passes
    assert send_report(core, TRACING, traced(), next_hop=next_hop)
    # then the report waits for that computer
    report = only_message(core, f"PUBLIC={PUBLIC_QUEUE}")
    assert report.destination == PublicFormatName(PUBLIC_QUEUE)
    assert report.destination_queue_manager == THIRD


# What


@pytest.mark.requirement("QB-3.1.5.8.9-02", "QB-3.1.5.8.9-03", "QB-3.1.5.8.9-04")
@pytest.mark.requirement("QB-3.1.7.1.7-02", "QB-3.1.7.1.7-03", "QB-3.1.7.1.7-04")
@both_sides
def test_a_report_is_an_express_message_of_our_own(next_hop: str | None) -> None:
    core, queue = given_report_queue()
    packet = traced(journal=Journal.JOURNAL)
    assert send_report(core, TRACING, packet, next_hop=next_hop)
    report, sent = only_message(core, queue), only_packet(core, queue)
    assert report.message_class == 0x0001
    assert report.destination == PublicFormatName(PUBLIC_QUEUE)
    assert sent.user.destination_queue_type == 5
    assert (report.delivery, sent.user.delivery_mode) == (Delivery.EXPRESS, 0)
    assert report.source_queue_manager == IDENTIFIER
    # and it asks for nothing itself
    assert (report.trace, report.journal) == (False, Journal.NONE)
    assert (report.acknowledgements, report.administration_queue) == (Acknowledge.NONE, None)
    # and it does not outlive a restart
    commit(core)
    again = restart(core)
    assert packets_in(again.public[PUBLIC_QUEUE]) == []


@pytest.mark.requirement("QB-3.1.5.8.9-05", "QB-3.1.5.8.9-06", "QB-3.1.5.8.9-07")
@pytest.mark.requirement("QB-3.1.5.8.9-08", "QB-3.1.5.8.9-09", "QB-A47-01")
@pytest.mark.requirement("QB-3.1.7.1.7-05", "QB-3.1.7.1.7-06")
@both_sides
def test_the_label_says_which_message_and_when(next_hop: str | None) -> None:
    # when a message of STRANGER's passes on its 10th hop, on 2023-11-14 at 22:13:20 UTC
    label = report_on(traced(), next_hop).label
    # then the label says so
    assert label == (
        "5B0F:0000001F:0A received by 5B0F2D9C-6E51-4C39-8A51-7F8F1C0F9A11"
        " at 22:13:20 PM Tue,Nov 14 23"
    )
    assert str(STRANGER).upper() in label


@pytest.mark.requirement("QB-3.1.5.8.9-05", "QB-3.1.5.8.9-09", "QB-3.1.7.1.7-05")
@given(
    now=st.integers(0, 0xFFFFFFFF),
    message_id=st.integers(1, 0xFFFFFFFF),
    hops=st.integers(0, 0x1D),
    source=st.uuids(),
)
def test_every_label_follows_the_grammar(now: int, message_id: int, hops: int, source: Any) -> None:
    core = make_core(clock=VirtualClock(float(now)))
    queue = given_public_queue(core, "reports")
    packet = traced(hops, message_id, source=source, sent_time=now)
    assert send_report(core, TRACING, packet, next_hop=None)
    label = only_message(core, queue).label
    assert LABEL.fullmatch(label)
    assert label.startswith(f"{source.hex[:4]}:{message_id:08x}:{hops:02x}".upper())


@pytest.mark.requirement("QB-3.1.5.8.9-09", "QB-A47-01")
@pytest.mark.parametrize(
    ("now", "text"),
    [
        (951_782_400, "00:00:00 AM Tue,Feb 29 00"),
        (951_825_599, "11:59:59 AM Tue,Feb 29 00"),
        (951_825_600, "12:00:00 PM Tue,Feb 29 00"),
        (1_735_689_599, "23:59:59 PM Tue,Dec 31 24"),
        (1_735_689_600, "00:00:00 AM Wed,Jan 01 25"),
    ],
)
def test_the_time_has_24_hours_and_a_half_of_the_day(now: int, text: str) -> None:
    core = make_core(clock=VirtualClock(float(now)))
    queue = given_public_queue(core, "reports")
    assert send_report(core, TRACING, traced(sent_time=now), next_hop=None)
    assert only_message(core, queue).label.endswith(f" at {text}")


@pytest.mark.requirement("QB-3.1.5.8.9-10", "QB-3.1.5.8.9-11")
@pytest.mark.parametrize(
    "destination", [DESTINATION, rf"PRIVATE={IDENTIFIER}\0000001f", rf"PRIVATE={THIRD}\0000001f"]
)
def test_on_receipt_the_body_names_message_and_queue(destination: str) -> None:
    body = report_on(traced(destination=destination)).body
    assert body.decode("utf-16-le") == (
        "<MESSAGE ID>0000001F</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>{parse_format_name(destination)}</TARGET QUEUE>\r\n"
    )


@pytest.mark.requirement("QB-3.1.7.1.7-07", "QB-3.1.7.1.7-08", "QB-3.1.7.1.7-09")
@pytest.mark.parametrize("address", ["10.0.0.7", "2001:db8::7"])
def test_on_sending_the_body_names_the_next_hop_too(address: str) -> None:
    body = report_on(traced(hops=0x0B), address).body
    assert body.decode("utf-16-le") == (
        "<MESSAGE ID>0000001F</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>{DESTINATION}</TARGET QUEUE>\r\n"
        f"<NEXT HOP>{address}</NEXT HOP>\r\n"
        "<HOP COUNT>0B </HOP COUNT>\r\n"
    )
