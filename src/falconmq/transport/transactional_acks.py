"""OrderAck and FinalAck: telling the sender's queue manager about transactional messages.

Send Transactional Acknowledgment, MQQB 3.1.7.17. Both go to the order queue of the queue manager
that sent the message first, even if a router handed it to us (QB-A57-01). How that queue is named
depends on how the message came:

    by a direct name       DIRECT=TCP:address\\PRIVATE$\\order_queue$, the address of the session
    by any other name      PRIVATE=source\\00000004

`reply_address` is that address; "" stands for the second line. The packets themselves are made by
`falconmq.wire.ordering_acks`.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import WireError
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.registry import is_local_computer
from falconmq.manager.states import OutgoingState
from falconmq.names import DirectFormatName, PrivateFormatName, SingleFormatName
from falconmq.transport.posting import post
from falconmq.wire.ordering_acks import (
    ORDER_QUEUE_IDENTIFIER,
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    order_queue_name,
)
from falconmq.wire.user_message import UserMessage

WAITING_MAX: Final = 1_000  # for a sender that cannot be reached: then no OrderAck is added


def send_order_ack(
    core: QueueManagerCore,
    *,
    source: bytes,
    reply_address: str,
    tx_sequence_id: int,
    tx_sequence_number: int,
) -> bool:
    """Tell `source` up to which number the messages of a sequence arrived; False if it is not told.

    Send Transactional Acknowledgment with ORDER_ACK, MQQB 3.1.7.17. Who cannot be reached sends
    again and is told then: such answers need not pile up.
    """
    if not tx_sequence_number:
        return False  # nothing arrived yet: sequences begin with 1
    if _has_enough(core, _order_queue(core, source, reply_address)[0]):
        return False
    # The sequence is the peer's, the one that comes in: QB-3.1.7.17-28, QB-A34-01.
    body = OrderAckBody.up_to(tx_sequence_id, tx_sequence_number)  # QB-3.1.7.17-29, -30
    return _send(core, OrderAck(body), source, reply_address)


def send_final_ack(
    core: QueueManagerCore, packet: UserMessage, message_class: int, *, reply_address: str
) -> bool:
    """Tell the sender how a transactional message ended; False if it is not told.

    Send Transactional Acknowledgment, MQQB 3.1.7.17. `message_class` is ACK_RECEIVE or a nack, any
    of them (QB-A35-01); SendInsecureNacks keeps none of them back, for the sender needs them to
    clear its own tables.
    """
    if packet.transaction is None:  # QB-A40-01
        return False
    ack = FinalAck(FinalAckBody.about(packet), message_class)  # QB-3.1.7.17-02, -31 to -34
    return _send(core, ack, packet.user.source_queue_manager, reply_address)


def _send(
    core: QueueManagerCore, ack: OrderAck | FinalAck, source: bytes, reply_address: str
) -> bool:
    name, destination = _order_queue(core, source, reply_address)
    packet = ack.to_user_message(
        source_queue_manager=core.identifier.bytes_le,
        destination=destination,
        sent_time=int(core.clock.time()),
        message_id=next_message_id(core),
    )
    return post(core, name, packet, unlimited=True)


def _has_enough(core: QueueManagerCore, name: SingleFormatName) -> bool:
    queue = core.outgoing.get(name)
    if queue is None or queue.state is OutgoingState.CONNECTED:
        return False
    return len(queue.positions) >= WAITING_MAX


def _order_queue(
    core: QueueManagerCore, source: bytes, reply_address: str
) -> tuple[SingleFormatName, bytes | str]:
    """The order queue of the sender: its name, and what the packet calls it."""
    direct = _direct_order_queue(core, reply_address)
    if direct is not None:
        return direct, reply_address  # QB-3.1.7.17-35, QB-3.1.7.17-36
    name = PrivateFormatName(UUID(bytes_le=source), ORDER_QUEUE_IDENTIFIER)
    return name, source  # QB-3.1.7.17-37, QB-A57-01


def _direct_order_queue(core: QueueManagerCore, address: str) -> DirectFormatName | None:
    """The order queue at an address; None if no direct name leads from here to there.

    An IPv6 address with a zone has none. And an address of this computer would lead to our own
    order queue: the peer is another queue manager here.
    """
    if not address or is_local_computer(core, address):
        return None
    try:
        return DirectFormatName.from_wire(order_queue_name(address))
    except WireError:
        return None
