"""What an administrator may ask of a running queue manager (MQDMPR 3.1.4.12 to 3.1.4.15)."""

from __future__ import annotations

import pytest

from falconmq.errors import QueueError
from falconmq.manager.lifecycle import bring_online, take_offline
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.queues import open_queue, pause_queue, resume_queue
from falconmq.manager.states import AccessType, DirectoryResult, OutgoingState, ShareMode
from falconmq.names import DirectFormatName, PrivateFormatName, parse_format_name
from tests.manager.helpers import given_queue, make_core


@pytest.mark.requirement("DM-3.1.4.12-01", "DM-3.1.4.13-01")
def test_a_queue_manager_can_be_taken_offline_and_brought_back() -> None:
    core = make_core()
    seen = [core.is_connection_active]
    take_offline(core)
    seen.append(core.is_connection_active)
    bring_online(core)
    seen.append(core.is_connection_active)
    assert seen == [True, False, True]


@pytest.mark.requirement("DM-3.1.4.14-01", "DM-3.1.4.15-01")
def test_an_outgoing_queue_can_be_held_and_let_go() -> None:
    core = make_core()
    names = [parse_format_name(rf"DIRECT=OS:far{number}\private$\q") for number in (1, 2)]
    queues = []
    for name in names:
        assert isinstance(name, DirectFormatName)
        queue = open_queue(core, name, AccessType.SEND).queue
        assert isinstance(queue, OutgoingQueue)
        queues.append(queue)
    pause_queue(core, queues[0])
    assert [queue.state for queue in queues] == [OutgoingState.ON_HOLD, OutgoingState.INACTIVE]
    resume_queue(core, queues[0])
    assert [queue.state for queue in queues] == [OutgoingState.INACTIVE, OutgoingState.INACTIVE]


@pytest.mark.requirement("DM-3.1.1.17-01")
def test_a_directory_operation_ends_in_one_of_seven_ways() -> None:
    assert {result.name for result in DirectoryResult} == {
        "SUCCESS",
        "GENERIC_ERROR",
        "DIRECTORY_NOT_CONNECTED",
        "OBJECT_NOT_FOUND",
        "ATTRIBUTE_NOT_FOUND",
        "END_OF_DATA",
        "OBJECT_ALREADY_EXISTS",
    }


@pytest.mark.requirement("DM-3.1.1.17-23")
def test_deny_none_lets_others_receive_and_peek() -> None:
    core = make_core()
    queue = given_queue(core)
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    open_queue(core, name, AccessType.RECEIVE, ShareMode.DENY_NONE)
    open_queue(core, name, AccessType.RECEIVE, ShareMode.DENY_NONE)
    open_queue(core, name, AccessType.PEEK, ShareMode.DENY_NONE)
    assert len(queue.descriptors) == 3


@pytest.mark.requirement("DM-3.1.1.17-24")
def test_deny_receive_keeps_other_receivers_out() -> None:
    core = make_core()
    queue = given_queue(core)
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    open_queue(core, name, AccessType.RECEIVE, ShareMode.DENY_RECEIVE)
    for share in ShareMode:
        with pytest.raises(QueueError):
            open_queue(core, name, AccessType.RECEIVE, share)
    open_queue(core, name, AccessType.PEEK, ShareMode.DENY_NONE)  # as the steps have it, DM-A62
