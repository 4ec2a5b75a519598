"""Ways of the directory over real sockets: a blocked line, and maps that disagree (R10, R11)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from uuid import UUID

from falconmq import Acknowledge, Message
from falconmq.directory.routing import DirectoryRouter
from falconmq.directory.routing_choice import RoutingOptions
from falconmq.directory.routing_map import Link, Machine, MapSite, RoutingMap
from falconmq.manager.model import Queue
from falconmq.service.daemon import Service
from falconmq.service.directory.ways import Ways
from falconmq.transport.routing import StaticRouter
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import HOP_COUNT
from tests.directory.enterprises import guid
from tests.service.services import ORDERS, loopback, outgoing, run, serving, until
from tests.transport.answers import packets_in
from tests.transport.estate import bodies, only

BERLIN, PARIS = guid("Berlin"), guid("Paris")


def machine(service: Service, *sites: UUID, host: str = "", server: bool = False) -> Machine:
    core = service.engine.core
    address = host or service.configuration.manager.bind
    name = core.settings.computer_name
    return Machine(core.identifier, name, address, frozenset(sites), server)


def use(
    service: Service,
    machines: list[Machine],
    links: list[Link] | None = None,
    options: RoutingOptions | None = None,
) -> None:
    """Let a service decide by this map."""
    router = DirectoryRouter(service.engine.core, options or RoutingOptions())
    sites = [MapSite(BERLIN, "Berlin"), MapSite(PARIS, "Paris")]
    service.engine.run(lambda _: router.use(RoutingMap(machines, sites, links or [])))
    service.transport.router = Ways(StaticRouter(), router)


async def orders(service: Service) -> tuple[Queue, str]:
    """A queue, and its name for others."""
    await service.manager.create_queue(ORDERS)
    core = service.engine.core
    (queue,) = [q for q in core.private_numbers.values() if q.path_name.name == "orders"]
    return queue, rf"PRIVATE={core.identifier}\{queue.private_queue_number:x}"


def test_a_routing_server_helps_when_the_line_is_blocked() -> None:  # R10
    async def main() -> None:
        async with AsyncExitStack() as stack:
            a, r, b = [await stack.enter_async_context(serving()) for _ in range(3)]
            queue, name = await orders(b)
            # given two queue managers of a site, of which one does not get through to the other
            blocked = machine(b, BERLIN, host=loopback())
            server = machine(r, BERLIN, server=True)
            options = RoutingOptions(server_if_direct_fails=True)
            use(a, [machine(a, BERLIN), server, blocked], options=options)
            use(r, [machine(a, BERLIN), server, machine(b, BERLIN)])
            # when a message is sent
            target = await a.manager.queue(name)
            await target.send(Message("over", recoverable=True))
            await until(lambda: len(bodies(queue)) == 1)
            # then it came over the server
            assert only(queue).packet.user.flags & HOP_COUNT == 1
            assert r.transport.counters["passed on"] == 1
            # and the server stays in use while it works: nobody tries the blocked line again
            (way,) = outgoing(a)
            tries = way.connection_failures
            for number in range(5):
                await target.send(Message(f"again {number}", recoverable=True))
            await until(lambda: len(bodies(queue)) == 6)
            assert way.connection_failures == tries == 1

    run(main())


def test_maps_that_disagree_send_a_message_in_a_circle_until_its_hops_are_used_up() -> None:  # R11
    async def main() -> None:
        async with AsyncExitStack() as stack:
            a, x, y, b = [await stack.enter_async_context(serving()) for _ in range(4)]
            queue, name = await orders(b)
            answers, answers_name = await orders(a)
            # given two gates, each of which takes the other for the way to Paris
            link = [Link(BERLIN, PARIS, 1, (x.engine.core.identifier, y.engine.core.identifier))]
            far = machine(b, PARIS)
            source = machine(a, BERLIN)
            here_x, here_y = machine(x, BERLIN, server=True), machine(y, BERLIN, server=True)
            there_x, there_y = machine(x, PARIS, server=True), machine(y, PARIS, server=True)
            use(a, [source, here_x, far])
            use(x, [source, here_x, there_y, far], link)
            use(y, [source, here_y, there_x, far], link)
            # when a message is sent, and its sender wants to hear of its end
            target = await a.manager.queue(name)
            message = Message(
                "round and round",
                recoverable=True,
                acknowledgements=Acknowledge.FULL_REACH_QUEUE,
                administration_queue=answers_name,
            )
            await target.send(message)
            await until(lambda: len(packets_in(answers)) == 1)
            # then it ends after 29 hops, and is told
            (answer,) = packets_in(answers)
            assert answer.properties.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
            assert bodies(queue) == []
            passed = [s.transport.counters["passed on"] for s in (x, y)]
            assert sum(passed) == 29

    run(main())
