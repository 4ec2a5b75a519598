"""The way of a write to whoever decides, and of the result back (MQDSRP 3.2.7.2, 3.3.7.1).

A server that decides answers at once. Any other sends the request on and remembers it; its loop
goes on meanwhile (A-08).
"""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.replication.checks import Speaker, may_request
from falconmq.directory.replication.deciding import decide_request
from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.obeyed import answer_of, remember_answer
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.directory.replication.writes import (
    PendingWrite,
    RequestedChange,
    WaitingWrite,
    WriteKey,
    write_key,
)
from falconmq.errors import MqStatus
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.replication_messages import ChangeReplyMessage, ChangeRequestMessage


def change_object(server: Server, wanted: RequestedChange, at: str = "") -> PendingWrite:
    """A write of somebody at this server: decided here, or asked for (Change Remote Object).

    `at`: of a certain server, and not of the one that usually knows the way.
    """
    partition_id = wanted.partition_id.bytes_le
    change = DirectoryChange(  # RP-3.1.7.1.1-08 to -10
        wanted.command, wanted.identifier, partition_id, properties=list(wanted.properties)
    )
    write = PendingWrite()
    partition = server.state.partitions.get(wanted.partition_id)
    if partition is not None and server.owns(partition):
        server.finished.append((write, decide_request(server, partition, change)))
        return write
    server.next_request = (server.next_request + 1) & 0xFFFFFFFF
    psc_name = server.my_psc_name if server.is_bsc and not at else None  # RP-3.1.7.1.1-05, -06
    request = ChangeRequestMessage(
        server.site_bytes, partition_id, server.next_request, server.name, psc_name, change
    )
    status = _send_on(server, request, write, at)
    if status is not None:
        server.finished.append((write, status))
    return write


def receive_change_request(server: Server, request: ChangeRequestMessage, speaker: Speaker) -> None:
    """Another server asks (MQDSRP 3.2.7.2)."""
    if not may_request(server, speaker):
        server.drop("change_request_of_a_stranger")
        return
    workspace = server.objects.workspace
    answer = answer_of(workspace, request)
    if answer is not None:  # also if another server decides by now
        server.drop("repeated_change_request")
        _send_reply(server, request, answer)
        return
    partition = server.state.partitions.get(UUID(bytes_le=request.partition_id))
    if partition is not None and server.owns(partition):
        status = decide_request(server, partition, request.directory_change)
        remember_answer(workspace, request, status)
        _send_reply(server, request, status)  # RP-3.2.7.2-15
        return
    if write_key(request.requester_name, request.request_identifier) in server.waiting:
        server.drop("repeated_change_request")
        return
    refused = _send_on(server, request, None)
    if refused is not None:
        _send_reply(server, request, refused)


def receive_change_reply(server: Server, reply: ChangeReplyMessage, speaker: Speaker) -> None:
    """The result of a write that waits here; late ones find nobody (MQDSRP 3.3.7.6)."""
    key = write_key(reply.requester_name, reply.request_identifier)
    waiting = server.waiting.get(key)
    if waiting is None:
        server.drop("late_reply")
    elif not speaker.is_named(waiting.next_hop):
        server.drop("reply_of_a_stranger")
    else:
        _end_wait(server, key, reply.result)


def change_request_nacked(server: Server, request: ChangeRequestMessage) -> None:
    """A request could not be delivered (MQDSRP 3.3.7.8)."""
    key = write_key(request.requester_name, request.request_identifier)
    if key in server.waiting:
        _end_wait(server, key, MqStatus.MQDS_OWNER_NOT_REACHED)


def wait_is_over(server: Server, key: WriteKey) -> None:
    """RP-3.3.7.1-07"""
    if key in server.waiting:
        _end_wait(server, key, MqStatus.MQDS_NO_RSP_FROM_OWNER)


def _send_on(
    server: Server, request: ChangeRequestMessage, write: PendingWrite | None, at: str = ""
) -> int | None:
    """Process Change Request (MQDSRP 3.3.7.1); a status if there is nobody to send it to."""
    partition = server.state.partitions.get(UUID(bytes_le=request.partition_id))
    if at:
        next_hop = at
    elif server.is_bsc:
        next_hop = server.my_psc_name  # RP-3.3.7.1-02
    else:
        next_hop = "" if partition is None else partition.authority_name  # -03
    if not next_hop or server.is_me(next_hop):
        return MqStatus.MQDS_UNKNOWN_SOURCE  # -04
    key = write_key(request.requester_name, request.request_identifier)
    server.waiting[key] = WaitingWrite(request, next_hop, write)
    authority = "" if partition is None else partition.authority_name
    settings = server.settings
    is_last_hop = authority.lower() == next_hop.lower()
    seconds = settings.authority_wait_seconds if is_last_hop else settings.forwarded_wait_seconds
    server.arm(TimerKind.WRITE_WAIT, key, seconds)
    server.counters["forwarded"] += 1
    server.send(next_hop, request, Profile.URGENT)  # -05; unchanged: A-05
    return None


def _end_wait(server: Server, key: WriteKey, status: int) -> None:
    waiting = server.waiting.pop(key)
    server.timers.cancel(Timer(TimerKind.WRITE_WAIT, key))
    if waiting.write is not None:
        server.finished.append((waiting.write, status))
    else:
        _send_reply(server, waiting.request, status)


def _send_reply(server: Server, request: ChangeRequestMessage, status: int) -> None:
    """Send Change Reply (MQDSRP 3.2.7.6): to whoever asked, or through his PSC (A-10)."""
    machine = request.requester_name
    is_neighbour = server.state.neighbour_named(machine) is not None
    if not is_neighbour and request.psc_name and not server.is_me(request.psc_name):
        machine = request.psc_name  # -04
    reply = ChangeReplyMessage(
        server.site_bytes, request.request_identifier, status, request.requester_name
    )
    server.send(machine, reply, Profile.URGENT)
