"""The table of the configuration comes first, then the directory; nobody blocks the loop."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.routing import RETRY_SECONDS, DirectoryRouter
from falconmq.directory.routing_map import RoutingMap
from falconmq.manager.next_hops import Destination, NextHopName
from falconmq.names import SingleFormatName, parse_format_name
from falconmq.service.directory.ways import Ways
from falconmq.transport.routing import Router, StaticRouter
from tests.directory.enterprises import enterprise, guid, machine
from tests.manager.directories import make_directory, make_integrated_core
from tests.manager.helpers import IDENTIFIER, pass_time

PUBLIC = guid("a public queue")
HOURLY = 3600.0


def map_of(foreign: str = "") -> RoutingMap:
    here = machine("HERE", "A E" if foreign else "A")
    here = here.__class__(IDENTIFIER, "HERE", "here", here.sites)
    return enterprise(
        [here, machine("BOB", "A"), machine("EVA", "E", foreign=True)], foreign=foreign
    )


def given_router(routing_map: RoutingMap) -> DirectoryRouter:
    core, _, _ = make_integrated_core(make_directory())
    router = DirectoryRouter(core)
    router.use(routing_map)
    return router


def name(text: str) -> SingleFormatName:
    found = parse_format_name(text)
    assert isinstance(found, SingleFormatName)
    return found


def test_in_a_workgroup_the_table_is_all_there_is() -> None:
    ways = Ways(StaticRouter({guid("BOB"): "10.0.0.2"}), None)
    assert ways.get_next_hops(guid("BOB")) == [NextHopName(guid("BOB"), "10.0.0.2")]
    assert ways.get_next_hops(guid("EVA")) == []
    assert ways.get_destination_info(name(f"PUBLIC={PUBLIC}")) is None
    assert ways.get_destination_info(name(rf"PRIVATE={guid('BOB')}\3")) is not None
    assert ways.connector_site(guid("EVA")) is None
    assert not ways.is_foreign(guid("EVA"))


def test_the_directory_knows_what_the_table_does_not() -> None:
    ways = Ways(StaticRouter(), given_router(map_of()))
    assert ways.get_next_hops(guid("BOB")) == [NextHopName(guid("BOB"), "bob.example.com")]
    ways.directory.core.directory.create(  # type: ignore[union-attr]
        "Queue",
        {"identifier": PUBLIC, "queue_manager_identifier": guid("BOB"), "computer_name": "BOB"},
    )
    found = ways.get_destination_info(name(f"PUBLIC={PUBLIC}"))
    assert found == Destination("bob.example.com", guid("BOB"))


def test_a_route_of_the_configuration_holds_whatever_the_directory_says() -> None:
    hosts = {guid("RELAY"): "10.0.0.9"}
    ways = Ways(StaticRouter(hosts, {guid("BOB"): [guid("RELAY")]}), given_router(map_of()))
    assert ways.get_next_hops(guid("BOB")) == [NextHopName(guid("RELAY"), "10.0.0.9")]


def test_an_address_of_the_configuration_counts_for_hops_of_the_directory() -> None:
    far = machine("FAR", "B")
    here = machine("X", "A").__class__(
        IDENTIFIER, "HERE", "here", frozenset({guid("A")}), False, (), (guid("BOB"),)
    )
    bob = machine("BOB", "A B", server=True)
    router = given_router(enterprise([here, bob, far]))
    ways = Ways(StaticRouter({guid("BOB"): "10.0.0.2"}), router)
    assert ways.get_next_hops(guid("FAR")) == [NextHopName(guid("BOB"), "10.0.0.2")]


def test_foreign_systems_are_known_from_the_directory_alone() -> None:
    router = given_router(map_of(foreign="E"))
    ways = Ways(StaticRouter(), router)
    assert ways.connector_site(guid("EVA")) == guid("E")
    assert ways.is_foreign(guid("EVA"))
    assert (ways.connector_site(guid("BOB")), ways.is_foreign(guid("BOB"))) == (None, False)
    assert router.map.connector_sites(IDENTIFIER) == [guid("E")]
    assert router.map.connector_sites(guid("EVA")) == []  # she is foreign herself
    # unless an administrator says that she can be reached
    told = Ways(StaticRouter({guid("EVA"): "10.0.0.5"}), router)
    assert told.connector_site(guid("EVA")) is None
    router_of_the_transport: Router = told
    assert [hop.host_name for hop in router_of_the_transport.get_next_hops(guid("EVA"))] == [
        "10.0.0.5"
    ]


class Asked:
    """Somebody who reads maps beside the loop; here, when the test says so."""

    def __init__(self, router: DirectoryRouter) -> None:
        self.count = 0
        self.router = router
        router.ask_refresh = self.ask

    def ask(self) -> None:
        self.count += 1


def given_asked() -> tuple[Asked, DirectoryRouter]:
    directory = make_directory()
    core, _, _ = make_integrated_core(directory)
    router = DirectoryRouter(core, query_seconds=HOURLY)
    directory.calls.clear()
    return Asked(router), router


def test_a_map_is_asked_for_and_never_read_in_the_loop() -> None:
    asked, router = given_asked()
    router.start()
    assert asked.count == 1
    assert [router.read_at] == [None]
    assert router.core.directory.calls == []  # type: ignore[attr-defined]
    # when it comes, then it counts, and is asked for again an hour later
    router.use(map_of())
    assert router.read_at == router.core.clock.time()
    pass_time(router.core, HOURLY - 1)
    assert asked.count == 1
    pass_time(router.core, 1)
    assert asked.count == 2


def test_a_map_that_could_not_be_read_is_asked_for_a_minute_later() -> None:
    asked, router = given_asked()
    router.start()
    router.use(map_of())
    router.fail("it is away")
    assert router.problem == "it is away"
    assert guid("BOB") in router.map.machines  # the old one stays
    assert "it is away" in router.explain(guid("BOB"))
    pass_time(router.core, RETRY_SECONDS)
    assert asked.count == 2
    # and one that nobody answers for is asked for once a minute, too
    pass_time(router.core, RETRY_SECONDS)
    assert asked.count == 3
    router.use(map_of())
    assert router.problem == ""
    pass_time(router.core, RETRY_SECONDS)
    assert asked.count == 3


def test_somebody_unknown_is_asked_for_once_a_minute_at_most() -> None:
    asked, router = given_asked()
    router.start()
    router.use(map_of())
    for count in (2, 3):
        for number in range(20):
            assert router.get_next_hops(UUID(int=number + 1)) == []
        assert asked.count == count
        pass_time(router.core, RETRY_SECONDS)


def test_a_map_that_was_kept_is_used_and_asked_for_again() -> None:
    asked, router = given_asked()
    router.use(map_of(), read_at=1000.0)
    router.start()
    assert (router.read_at, asked.count) == (1000.0, 1)
    assert router.get_next_hops(guid("BOB")) != []


@pytest.mark.parametrize("then", ["use", "fail"])
def test_who_has_left_asks_no_more(then: str) -> None:
    asked, router = given_asked()
    router.start()
    router.stop()
    if then == "use":  # an answer that was on its way
        router.use(map_of())
    else:
        router.fail("it is away")
    pass_time(router.core, HOURLY * 2)
    assert asked.count == 1
