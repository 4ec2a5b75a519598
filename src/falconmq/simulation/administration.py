"""What administrators do to the queues of a node while applications work: purge, delete, create.

A queue that is deleted comes back under the same name, at once or a minute later. What is sent to
it meanwhile is refused, and messages that name it by its old number are refused for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from falconmq.manager.model import OutgoingQueue
from falconmq.manager.queues import create_queue, delete_queue, purge_queue
from falconmq.simulation.ledger import SMALL
from falconmq.simulation.node import Node
from falconmq.simulation.workload import PATHS, QUEUES
from falconmq.simulation.world import World
from falconmq.wire.message_class import MessageClass


@dataclass(eq=False)
class Administration:
    """The administrators of a world."""

    world: World

    def purge(self, node: Node) -> None:
        life = node.life
        name = self.world.random.choice(("plain", "orders"))
        queue = None if life is None else life.core.paths.get(PATHS[name])
        if life is None or queue is None:
            return
        self.world.counts["purge"] += 1
        self.world.note(node.name, "purges %s", name)
        life.turn(lambda: purge_queue(life.core, queue))

    def purge_outgoing(self, node: Node) -> None:
        """Throw away what waits for a destination; nobody does that to acknowledgements."""
        life = node.life
        if life is None:
            return
        full = [queue for queue in life.core.outgoing.values() if _has_only_letters(queue)]
        if not full:
            return
        queue = self.world.random.choice(full)
        node.purged_outgoing_queues = True
        self.world.counts["purge of an outgoing queue"] += 1
        self.world.note(node.name, "purges what waits for %s", queue.destination)
        life.turn(lambda: purge_queue(life.core, queue))

    def delete(self, node: Node) -> None:
        """A queue is deleted with what is in it, and made again under the same name."""
        life, random = node.life, self.world.random
        name = random.choice(("plain", "orders", "orders", SMALL))
        queue = None if life is None else life.core.paths.get(PATHS[name])
        if life is None or queue is None:
            return
        node.deleted_queues.add(name)
        self.world.counts["queue deleted"] += 1
        self.world.note(node.name, "deletes %s", name)
        life.turn(lambda: delete_queue(life.core, queue))
        self.world.after(random.choice((0.0, 0.01, 1.0, 60.0)), lambda: self._make(node, name))

    def _make(self, node: Node, name: str) -> None:
        """Make a queue again; if that cannot be done now, later."""
        life = node.life

        def again(is_durable: bool = False) -> None:
            if not is_durable:
                self.world.after(5.0, lambda: self._make(node, name))

        if life is None:
            again()
        elif PATHS[name] not in life.core.paths:
            self.world.note(node.name, "makes %s again", name)
            properties = replace(QUEUES[name])
            life.turn(lambda: create_queue(life.core, PATHS[name], properties), again)


def _has_only_letters(queue: OutgoingQueue) -> bool:
    """Whether messages of applications wait there, and no acknowledgement."""
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.lookup_ids()]
    classes = {p.message.packet.properties.message_class for p in found if p is not None}
    return classes == {MessageClass.NORMAL}
