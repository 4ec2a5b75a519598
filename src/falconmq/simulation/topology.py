"""Who reaches whom over whom: the routing tables of the nodes, drawn from the seed."""

from __future__ import annotations

from uuid import UUID

from falconmq.simulation.node import Node
from falconmq.simulation.world import World
from falconmq.transport.routing import StaticRouter


def connect_nodes(world: World, nodes: list[Node], ghost: UUID | None = None) -> None:
    """Give every node a router: to everybody directly, along a line, through a hub, or in a square.

    In a square there are two ways to the opposite corner: what went the one way may be overtaken by
    what goes the other. To the queue manager `ghost`, which is nowhere, all ways end in a circle:
    the first two nodes send it to each other, their own messages and those of others.
    """
    shapes = {"mesh": _mesh, "line": _line, "hub": _hub}
    if len(nodes) == 4:
        shapes["square"] = _square
    shape = shapes[world.random.choice(sorted(shapes))]
    for here, node in enumerate(nodes):
        routes: dict[UUID, list[UUID]] = {}
        for there, other in enumerate(nodes):
            hops = shape(here, there)
            if other is not node and hops != [there]:
                routes[other.identifier] = [nodes[hop].identifier for hop in hops]
        if ghost is not None:
            routes[ghost] = [nodes[0 if here else 1].identifier]
        hosts = {other.identifier: other.name for other in nodes if other is not node}
        node.router = StaticRouter(hosts, routes)


def _mesh(here: int, there: int) -> list[int]:  # noqa: ARG001
    return [there]


def _line(here: int, there: int) -> list[int]:
    return [here + 1 if there > here else here - 1]


def _hub(here: int, there: int) -> list[int]:
    return [0] if here and there else [there]


def _square(here: int, there: int) -> list[int]:
    """The corners are 0, 1, 2, 3 in a circle."""
    is_opposite = (there - here) % 4 == 2
    return [(here + 1) % 4, (here + 3) % 4] if is_opposite else [there]
