"""What must be true when the world is quiet: nothing lost, nothing doubled, nobody waits.

Called when all faults are repaired, all readers have drained their queues and hours have passed.
What the specification leaves open is left open here: a message whose time ran out while it was in
doubt may be both delivered and dead-lettered; an express message may get lost when somebody's
memory does; some nacks are kept back for safety.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from falconmq.manager.model import Queue
from falconmq.message import Acknowledge, Journal
from falconmq.simulation.ledger import FORGETFUL_JUMP, Copy, Key, Kind, Ledger, State
from falconmq.simulation.network import SimulatedNetwork
from falconmq.simulation.node import Life, Node
from falconmq.transport.administration import INSECURE_NACKS
from falconmq.wire.message_class import NEGATIVE, MessageClass

RECEIVED: Final = int(MessageClass.ACK_RECEIVE)
_TIMERS_MAX: Final = 64
_NEVER_ACCEPTED: Final = "its sender aborted or was refused, and yet it was delivered"


def check_quiet(ledger: Ledger, network: SimulatedNetwork) -> None:
    """Everything that must be true in the end; SimulationError says what is not."""
    for node in ledger.nodes:
        life = node.life
        assert life is not None
        _check_nothing_waits(ledger, life)
    open_ends = network.open_endpoints()
    if open_ends:
        names = ", ".join(sorted(end.life.node.name for end in open_ends))
        raise ledger.fail(f"{len(open_ends)} connections are still open, at {names}")
    journals = {node: _journal(node) for node in ledger.nodes}
    dead = {node: _dead_letters(node) for node in ledger.nodes}
    for copy in ledger.copies.values():
        _check_copy(ledger, copy)
        if copy.state is State.ACCEPTED:
            check_acknowledgements(ledger, copy)
            check_journal(ledger, copy, journals[copy.sender][copy.key])
            check_dead_letter(ledger, copy, sum(found[copy.key] for found in dead.values()))


def _check_nothing_waits(ledger: Ledger, life: Life) -> None:
    node, core = life.node, life.core
    for name, outgoing in core.outgoing.items():
        if len(outgoing.positions):
            keys = [position_key(outgoing, lookup) for lookup in outgoing.positions.lookup_ids()]
            numbers = [ledger.copies[key].number for key in keys if key in ledger.copies]
            raise ledger.fail(
                f"{len(keys)} messages still wait at {node.name} for {name}, of the ledger: "
                + ", ".join(f"#{number}" for number in numbers),
                ledger.copies.get(keys[0]),
            )
    for queue in core.queues.values():
        if queue.is_internal and len(queue.positions):
            raise ledger.fail(f"{len(queue.positions)} messages lie in {queue.path_name}")
    if core.used_bytes != sum(queue.total_bytes for queue in core.queues.values()):
        raise ledger.fail(f"{node.name} counts {core.used_bytes} bytes, and has others")
    if not node.disk.is_idle:
        raise ledger.fail(f"the disk of {node.name} is still busy")
    if life.transport.sessions:
        raise ledger.fail(f"{node.name} still has {len(life.transport.sessions)} sessions")
    if life.transport.awaiting:
        numbers = sorted(life.transport.awaiting)
        raise ledger.fail(f"{node.name} waits for news of messages that are gone: {numbers}")
    if len(core.timers.monotonic) > _TIMERS_MAX:
        raise ledger.fail(f"{node.name} has {len(core.timers.monotonic)} timers, and nothing to do")


def _check_copy(ledger: Ledger, copy: Copy) -> None:
    """Where the message itself ended."""
    inserted = len(copy.inserted)
    if copy.state is not State.ACCEPTED:
        if inserted and copy.kind is not Kind.EXPRESS:
            raise ledger.fail(_NEVER_ACCEPTED, copy)
        return
    if copy.rejection and inserted:
        raise ledger.fail(f"{copy.target.name} took it, and should have refused it", copy)
    if not inserted and not may_vanish(ledger, copy):
        raise ledger.fail("it was lost", copy)
    if len(copy.left) != inserted and not (copy.kind is Kind.EXPRESS and ledger.is_troubled):
        raise ledger.fail(f"it came {inserted} times and left {len(copy.left)} times", copy)


def may_vanish(ledger: Ledger, copy: Copy) -> bool:
    """Whether a message may have come to nothing; the nack or dead letter is checked elsewhere."""
    if copy.rejection or copy.may_expire or copy.queue == "small":
        return True
    return copy.kind is Kind.EXPRESS and ledger.is_troubled


def check_acknowledgements(ledger: Ledger, copy: Copy) -> None:
    """The administration queue has what the flags ask for, once each, and nothing else."""
    found = Counter(copy.acks)
    expected = expected_acks(copy)
    for message_class, count in found.items():
        if message_class not in expected:
            raise ledger.fail(f"acknowledgement {message_class:#06x} came unasked", copy)
        is_in_doubt = message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
        if count > 1 and not is_in_doubt and not may_double(ledger, copy):
            raise ledger.fail(f"acknowledgement {message_class:#06x} came {count} times", copy)
    if copy.kind is Kind.EXPRESS and ledger.is_troubled:
        return
    if ledger.world.counts["throttle"]:
        return  # who has no room discards the acknowledgements it would send, QB-3.1.7.15-42
    for message_class in required_acks(copy):
        if not found[message_class]:
            raise ledger.fail(f"acknowledgement {message_class:#06x} is missing", copy)
    if not copy.inserted and copy.acknowledgements & Acknowledge.NEGATIVE_ARRIVAL:
        is_insecure = copy.rejection in INSECURE_NACKS
        if is_insecure and not copy.target.settings.send_insecure_nacks:
            return
        if not any(message_class & NEGATIVE for message_class in found):
            raise ledger.fail("it came to nothing, and its sender was not told", copy)


def may_double(ledger: Ledger, copy: Copy) -> bool:
    if copy.kind is Kind.EXPRESS or copy.queue == "missing":
        return ledger.is_troubled  # streams to queues that do not exist live in memory
    return any(node.clock.jumped_forward > FORGETFUL_JUMP for node in ledger.nodes)


def expected_acks(copy: Copy) -> set[int]:
    """The classes that may come."""
    flags, expected = copy.acknowledgements, set(required_acks(copy))
    if flags & Acknowledge.POSITIVE_ARRIVAL and copy.inserted:
        expected.add(MessageClass.ACK_REACH_QUEUE)
    if flags & Acknowledge.NEGATIVE_ARRIVAL:
        if copy.rejection:
            expected.add(copy.rejection)
        if copy.may_expire:
            expected.add(MessageClass.NACK_REACH_QUEUE_TIMEOUT)
        if copy.queue == "small":
            expected.add(MessageClass.NACK_Q_EXCEED_QUOTA)
    return expected


def required_acks(copy: Copy) -> list[int]:
    """The classes that must come for a message that reached its queue."""
    if not copy.inserted:
        return []
    flags, required = copy.acknowledgements, []
    # What expired before its transaction committed never arrived, and only its end is told.
    has_arrived = not (copy.is_local and copy.may_expire)
    if flags & Acknowledge.POSITIVE_ARRIVAL and has_arrived:
        required.append(int(MessageClass.ACK_REACH_QUEUE))
    for reason in copy.left:
        asked = Acknowledge.NEGATIVE_RECEIVE if reason & NEGATIVE else Acknowledge.POSITIVE_RECEIVE
        if flags & asked:
            required.append(reason)
    return required


def check_journal(ledger: Ledger, copy: Copy, found: int) -> None:
    """The sender's journal has one copy of what was delivered, if the sender asked for it."""
    is_asked = bool(copy.journal & Journal.JOURNAL)
    if found and not is_asked:
        raise ledger.fail("a copy is in the journal, and nobody asked for it", copy)
    if not is_asked or (copy.kind is Kind.EXPRESS and ledger.is_troubled):
        return
    is_transactional = copy.kind is Kind.TRANSACTIONAL and not copy.is_local
    delivered = bool(copy.inserted)
    if is_transactional:
        delivered = RECEIVED in copy.left
    if delivered and found != 1 and not (found == 0 and copy.may_expire):
        raise ledger.fail(f"{found} copies are in the sender's journal instead of one", copy)
    if found and not delivered and is_transactional:
        raise ledger.fail("a copy is in the journal, and nobody received it", copy)


def check_dead_letter(ledger: Ledger, copy: Copy, found: int) -> None:
    """A transactional message that nobody received is a dead letter of its sender, once."""
    is_asked = bool(copy.journal & Journal.DEAD_LETTER)
    if found and not is_asked:
        raise ledger.fail("it is a dead letter, and nobody asked for that", copy)
    if not is_asked or copy.is_local:
        return
    received = RECEIVED in copy.left
    if found and received and not copy.may_expire:
        raise ledger.fail("it is a dead letter, and it was received", copy)
    if copy.kind is Kind.TRANSACTIONAL and not received and found != 1:
        raise ledger.fail(f"nobody received it, and there are {found} dead letters of it", copy)


def _journal(node: Node) -> Counter[Key]:
    assert node.life is not None
    return _count(node.life.core.journal)


def _dead_letters(node: Node) -> Counter[Key]:
    assert node.life is not None
    core = node.life.core
    return _count(core.dead_letter) + _count(core.transactional_dead_letter)


def _count(queue: Queue) -> Counter[Key]:
    """How often each message is in a queue of the system's."""
    return Counter(position_key(queue, lookup) for lookup in queue.positions.lookup_ids())


def position_key(queue: Queue, lookup_id: int) -> Key:
    position = queue.positions.find(lookup_id)
    assert position is not None
    user = position.message.packet.user
    return user.source_queue_manager, user.message_id
