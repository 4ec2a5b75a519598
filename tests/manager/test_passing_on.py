"""A queue manager on the way of messages to public queues, whose directory is away."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.errors import FalconMQError
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.opening import open_queue
from falconmq.manager.states import AccessType
from falconmq.names import PublicFormatName
from tests.manager.directories import make_directory, make_integrated_core

ELSEWHERE = PublicFormatName(UUID("5e1f5e1f-0000-4000-8000-000000000002"))


def test_a_router_keeps_messages_for_a_queue_that_it_cannot_look_up_now() -> None:
    directory = make_directory()
    core, *_ = make_integrated_core(directory)
    # a directory that is there and does not know the queue: nobody has it
    with pytest.raises(FalconMQError):
        open_queue(core, ELSEWHERE, AccessType.SEND, internal=True)

    directory.is_connected = False
    # a user can be told at once; a peer's message would be lost, so it waits
    with pytest.raises(FalconMQError):
        open_queue(core, ELSEWHERE, AccessType.SEND)
    descriptor = open_queue(core, ELSEWHERE, AccessType.SEND, internal=True)
    assert isinstance(descriptor.queue, OutgoingQueue)
    assert descriptor.queue.properties.base_priority == 0
