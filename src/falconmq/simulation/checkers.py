"""What must be true when the world is quiet: nothing lost, nothing doubled, nobody waits.

Called when all faults are repaired, all readers have drained their queues and hours have passed.
What the specification leaves open is left open here: a message whose time ran out while it was in
doubt may be both delivered and dead-lettered; an express message may get lost when somebody's
memory does; some nacks are kept back for safety. Everything else follows from what is known of each
message: a message that came to nothing has an end, and each end has its answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from falconmq.manager.coordinator import in_doubt
from falconmq.message import Acknowledge
from falconmq.simulation.copies import Copy, Kind, State
from falconmq.simulation.keeping import Kept, check_dead_letters, check_journal, position_key
from falconmq.simulation.ledger import FORGETFUL_JUMP, Ledger
from falconmq.simulation.life import Life
from falconmq.simulation.network import SimulatedNetwork
from falconmq.simulation.node import Node
from falconmq.transport.administration import INSECURE_NACKS
from falconmq.wire.message_class import NEGATIVE, MessageClass

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
    kept = Kept(ledger.nodes)
    for copy in ledger.copies.values():
        _check_copy(ledger, copy)
        if copy.state is State.ACCEPTED:
            check_acknowledgements(ledger, copy)
            check_journal(ledger, copy, kept.journals[copy.key])
            check_dead_letters(ledger, copy, kept.dead_letters[copy.key])


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
    if core.transactions:
        problem = f"{len(in_doubt(core))} of them in doubt"
        raise ledger.fail(f"{node.name} has {len(core.transactions)} transactions, {problem}")
    if len(core.timers.monotonic) > _TIMERS_MAX:
        raise ledger.fail(f"{node.name} has {len(core.timers.monotonic)} timers, and nothing to do")


def _check_copy(ledger: Ledger, copy: Copy) -> None:
    """Where the message itself ended."""
    inserted = len(copy.inserted)
    if copy.state is not State.ACCEPTED:
        _check_never_sent(ledger, copy)
        return
    if copy.rejection and inserted:
        raise ledger.fail(f"{copy.target.name} took it, and should have refused it", copy)
    if not inserted and not has_vanished(ledger, copy):
        raise ledger.fail("it was lost", copy)
    if len(copy.left) != inserted and not _is_volatile(ledger, copy):
        raise ledger.fail(f"it came {inserted} times and left {len(copy.left)} times", copy)


def _check_never_sent(ledger: Ledger, copy: Copy) -> None:
    if copy.kind is Kind.EXPRESS:
        return  # a commit that fails takes no express message out of memory
    if copy.inserted or copy.ends:
        raise ledger.fail(_NEVER_ACCEPTED, copy)
    if copy.acks and not copy.is_dropped:
        raise ledger.fail("its sender aborted or was refused, and yet it was acknowledged", copy)


def has_vanished(ledger: Ledger, copy: Copy) -> bool:
    """Whether it is known why a message came to nothing."""
    if _is_volatile(ledger, copy) or copy.is_dropped:
        return True
    if copy.kind is Kind.TRANSACTIONAL:  # what ends elsewhere is sent again
        return copy.ended_at_sender or copy.was_refused
    return bool(copy.ends)


def _is_volatile(ledger: Ledger, copy: Copy) -> bool:
    return copy.kind is Kind.EXPRESS and ledger.is_troubled


def check_acknowledgements(ledger: Ledger, copy: Copy) -> None:
    """The administration queue has what the flags ask for, once for each event, and no more."""
    if copy.is_dropped:
        return
    found, due = Counter(copy.acks), due_acks(copy)
    is_volatile = _is_volatile(ledger, copy)
    is_aged = any(node.clock.jumped_forward > FORGETFUL_JUMP for node in ledger.nodes)
    for message_class, count in found.items():
        nodes = due.get(message_class)
        if nodes is None:
            raise ledger.fail(f"acknowledgement {message_class:#06x} came unasked", copy)
        if count > len(nodes) and not is_volatile and not is_aged:
            raise ledger.fail(f"acknowledgement {message_class:#06x} came {count} times", copy)
    for message_class, nodes in due.items():
        # Who has no room discards the acknowledgements it would send, QB-3.1.7.15-42.
        if is_volatile or any(node.was_full for node in nodes):
            continue
        if message_class == MessageClass.ACK_REACH_QUEUE and copy.is_local and copy.may_expire:
            continue  # what expired before its transaction committed never arrived
        if found[message_class] < len(nodes):
            raise ledger.fail(f"acknowledgement {message_class:#06x} is missing", copy)


def due_acks(copy: Copy) -> dict[int, list[Node]]:
    """The acknowledgements that the sender asked for, by class, and who had to send each."""
    flags = copy.acknowledgements
    due: defaultdict[int, list[Node]] = defaultdict(list)
    if flags & Acknowledge.POSITIVE_ARRIVAL:
        for _ in copy.inserted:
            due[MessageClass.ACK_REACH_QUEUE].append(copy.target)
    for reason in copy.left:
        asked = Acknowledge.NEGATIVE_RECEIVE if reason & NEGATIVE else Acknowledge.POSITIVE_RECEIVE
        if flags & asked:
            due[reason].append(copy.target)
    if flags & Acknowledge.NEGATIVE_ARRIVAL:
        for end in copy.ends:
            is_insecure = end.message_class in INSECURE_NACKS
            if not is_insecure or end.node.settings.send_insecure_nacks:
                due[end.message_class].append(end.node)
    return due
