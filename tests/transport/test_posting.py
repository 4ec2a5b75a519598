"""How the queue manager itself sends a message: Open Queue, Enqueue, Close Queue."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor
from falconmq.manager.opening import open_queue
from falconmq.manager.states import AccessType, ShareMode
from falconmq.names import FormatName, parse_format_name
from falconmq.transport import posting
from falconmq.transport.administration import send_administration_acknowledgment
from falconmq.transport.reports import send_report
from falconmq.transport.settings import TransportSettings
from falconmq.transport.transactional_acks import send_order_ack
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import STRANGER, make_core
from tests.transport.answers import FAR_QUEUE, PUBLIC_QUEUE, SETTINGS, arrived, given_public_queue


def acknowledge(core: QueueManagerCore) -> bool:
    packet = arrived().packet
    return send_administration_acknowledgment(core, SETTINGS, packet, MessageClass.ACK_RECEIVE)


def acknowledge_order(core: QueueManagerCore) -> bool:
    return send_order_ack(
        core,
        source=STRANGER.bytes_le,
        reply_address="",
        tx_sequence_id=1,
        tx_sequence_number=1,
    )


def report(core: QueueManagerCore) -> bool:
    packet = arrived(trace=True, report_queue=PUBLIC_QUEUE).packet
    return send_report(core, TransportSettings(send_reports=True), packet, next_hop=None)


@pytest.mark.parametrize(
    ("send", "name"),
    [
        pytest.param(acknowledge, FAR_QUEUE, marks=pytest.mark.requirement("QB-3.1.7.15-41")),
        pytest.param(
            acknowledge_order,
            rf"PRIVATE={STRANGER}\00000004",
            marks=pytest.mark.requirement("QB-3.1.7.17-38"),
        ),
        pytest.param(
            report, f"PUBLIC={PUBLIC_QUEUE}", marks=pytest.mark.requirement("QB-3.1.5.8.9-12")
        ),
    ],
)
def test_a_message_of_our_own_opens_its_queue_to_send_and_denies_nothing(
    send: Callable[[QueueManagerCore], bool], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a queue manager that is watched when it opens queues
    core = make_core()
    given_public_queue(core)
    opened: list[OpenQueueDescriptor] = []

    def watched(
        core: QueueManagerCore,
        format_name: FormatName,
        access: AccessType,
        share: ShareMode = ShareMode.DENY_NONE,
        *,
        internal: bool = False,
    ) -> OpenQueueDescriptor:
        opened.append(open_queue(core, format_name, access, share, internal=internal))
        return opened[-1]

    monkeypatch.setattr(posting, "open_queue", watched)
    # when it sends a message of its own
    assert send(core)
    # then it has opened that queue, to send, for all to share, and closed it again
    (descriptor,) = opened
    assert descriptor.format_name == parse_format_name(name)
    assert (descriptor.access, descriptor.share) == (AccessType.SEND, ShareMode.DENY_NONE)
    assert not core.descriptors


def test_a_message_that_is_discarded_leaves_a_line_for_those_who_look(
    caplog: pytest.LogCaptureFixture,
) -> None:
    core = make_core()
    with caplog.at_level(logging.DEBUG, "falconmq.transport"):
        assert not report(core)
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert str(PUBLIC_QUEUE).upper() in record.getMessage()
