"""Reports: following a message from hop to hop (MQQB 3.1.5.8.9, 3.1.7.1.7).

A message that asks to be traced names a public queue. Every queue manager that receives it, and
every one that passes it on, sends a report there, an express message whose label and body are
texts of a fixed form:

    0D1A:00000007:02 received by 0D1AB8E4-3A0D-4B0E-9F4F-0A7D3C1F2B5E at 22:13:20 PM Tue,Nov 14 23

The label says "received by" even of a message that was sent, and names the queue manager that sent
it first (QB-A47-01). Reports tell a stranger about the network, so they are off by default.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.message import Delivery, Message
from falconmq.names import PublicFormatName
from falconmq.serialization import from_user_message
from falconmq.transport.posting import post_message
from falconmq.transport.settings import TransportSettings
from falconmq.wire.base_header import TRACE
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import HOP_COUNT
from falconmq.wire.user_message import UserMessage

# Not those of strftime, which speak the language of the computer.
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_NOON: Final = 12


def send_report(
    core: QueueManagerCore,
    settings: TransportSettings,
    packet: UserMessage,
    *,
    next_hop: str | None,
) -> bool:
    """Report that a message came, or that it goes to the address `next_hop`; False if not.

    MQQB 3.1.5.8.9 on receipt (`next_hop` None), 3.1.7.1.7 on sending.
    """
    if not settings.send_reports or not packet.base.flags & TRACE:
        return False  # QB-3.1.5.8.9-01, QB-3.1.7.1.7-01
    queue = None if packet.debug is None else packet.debug.queue_identifier
    is_report = packet.properties.message_class == MessageClass.REPORT
    if queue is None or is_report:  # QB-A47-01: never trace a report
        return False
    report = Message(
        _body(packet, next_hop).encode("utf-16-le"),
        label=_label(packet, core.clock.time()),
        message_class=MessageClass.REPORT,  # QB-3.1.5.8.9-02, QB-3.1.7.1.7-02
        delivery=Delivery.EXPRESS,  # QB-3.1.5.8.9-04, QB-3.1.7.1.7-04
    )
    name = PublicFormatName(UUID(bytes_le=queue))  # QB-3.1.5.8.9-03, QB-3.1.7.1.7-03
    return post_message(core, name, report)


def _label(packet: UserMessage, now: float) -> str:
    """QB-3.1.5.8.9-05 to -08, QB-3.1.7.1.7-05, -06; the NUL is added on the wire."""
    source = str(UUID(bytes_le=packet.user.source_queue_manager)).upper()
    message_id, hops = _message_id(packet), _hops(packet)
    return f"{source[:4]}:{message_id}:{hops} received by {source} at {_time_date(now)}"


def _time_date(now: float) -> str:
    """QB-3.1.5.8.9-09: 24 hours and AM or PM both (QB-A47-01); UTC, for hops are far apart."""
    at = datetime.fromtimestamp(now, UTC)
    half = "AM" if at.hour < _NOON else "PM"
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{at:%H:%M:%S} {half} {day},{month} {at:%d %y}"


def _body(packet: UserMessage, next_hop: str | None) -> str:
    """QB-3.1.5.8.9-10, -11 and, of a message that leaves, QB-3.1.7.1.7-07 to -09."""
    queue = from_user_message(packet).destination
    text = (
        f"<MESSAGE ID>{_message_id(packet)}</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>{'' if queue is None else queue}</TARGET QUEUE>\r\n"
    )
    if next_hop is not None:
        text += (
            f"<NEXT HOP>{next_hop}</NEXT HOP>\r\n"
            f"<HOP COUNT>{_hops(packet)} </HOP COUNT>\r\n"  # the blank is in the grammar
        )
    return text


def _message_id(packet: UserMessage) -> str:
    return f"{packet.user.message_id:08X}"


def _hops(packet: UserMessage) -> str:
    return f"{packet.user.flags & HOP_COUNT:02X}"
