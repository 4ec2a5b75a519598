"""The router over a directory: what it reads, when it reads it again, what it remembers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from uuid import UUID

import pytest

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.routing import (
    OWNER_SECONDS,
    QUERY_TIMER_SECONDS,
    RETRY_SECONDS,
    DirectoryRouter,
)
from falconmq.directory.routing_choice import Rule
from falconmq.errors import DirectoryError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import Filters
from falconmq.manager.directory_objects import (
    ConnectedNetwork,
    QueueManager,
    RoutingLink,
    Row,
    Site,
)
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.next_hops import Destination, NextHopName
from falconmq.manager.queues import create_queue
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName, SingleFormatName, parse_format_name
from tests.directory.enterprises import guid, guids
from tests.manager.directories import SITE, make_directory, make_integrated_core
from tests.manager.helpers import COMPUTER, IDENTIFIER, pass_time

PATIENCE = 30.0
QUEUE = UUID("0ffeed00-0000-4000-8000-000000000001")
PIA = Destination("pia.example.com", guid("PIA"))


def add_machine(directory: MemoryDirectory, name: str, sites: list[UUID], **more: object) -> None:
    machine = QueueManager(guid(name), computer_name=name, site_identifiers=sites)
    machine.qualified_computer_name = f"{name.lower()}.example.com"
    for attribute, value in more.items():
        setattr(machine, attribute, value)
    directory.create("QueueManager", machine.row())


def two_sites() -> MemoryDirectory:
    """Our queue manager is a gate of Berlin; Paris has a gate and a client."""
    directory = make_directory(routing_server=True)
    directory.create("Site", Site(guid("P"), name="Paris").row())
    add_machine(directory, "P-GATE", [guid("P")], routing_server=True)
    add_machine(directory, "PIA", [guid("P")])
    add_link(directory, "P", "P-GATE")
    directory.calls.clear()
    return directory


def add_link(directory: MemoryDirectory, site: str, gates: str, cost: int = 2) -> None:
    link = RoutingLink(guid(f"link to {site} {cost}"), actual_cost=cost)
    link.site1_identifier, link.site2_identifier = SITE, guid(site)
    link.site_gate_identifiers = [IDENTIFIER, *guids(gates)]
    directory.create("RoutingLink", link.row())


def started(
    directory: MemoryDirectory, hosts: dict[UUID, str] | None = None
) -> tuple[QueueManagerCore, DirectoryRouter]:
    core, _, _ = make_integrated_core(directory)
    router = DirectoryRouter(core, hosts=hosts or {})
    router.start()
    return core, router


def hosts(router: DirectoryRouter, name: str) -> list[str]:
    return [hop.host_name for hop in router.get_next_hops(guid(name))]


def name(text: str) -> SingleFormatName:
    found = parse_format_name(text)
    assert isinstance(found, SingleFormatName)
    return found


@pytest.mark.requirement("QB-3.1.7.5-02")
def test_next_hops_come_with_their_host_names() -> None:
    _, router = started(two_sites())
    gate = NextHopName(guid("P-GATE"), "p-gate.example.com")
    assert router.get_next_hops(guid("PIA")) == [gate]
    assert router.route_to(guid("PIA")).rule is Rule.NEXT_SITE


def test_a_host_of_the_configuration_counts_before_the_name_in_the_directory() -> None:
    _, router = started(two_sites(), hosts={guid("P-GATE"): "127.0.0.9"})
    assert hosts(router, "PIA") == ["127.0.0.9"]


@pytest.mark.requirement("MQ-2.1.2-15")
def test_destinations_of_direct_and_private_names_need_no_directory() -> None:
    _, router = started(two_sites())
    router.core.directory.is_connected = False  # type: ignore[attr-defined]
    assert router.get_destination_info(name(r"DIRECT=OS:sales01\private$\orders")) == Destination(
        "sales01"
    )
    assert router.get_destination_info(name("DIRECT=HTTP://sales01/msmq/orders")) is None
    private = router.get_destination_info(name(rf"PRIVATE={guid('PIA')}\3"))
    assert private == Destination("", guid("PIA"))
    assert router.get_destination_info(name("MULTICAST=224.0.0.9:7")) is None


def test_a_link_that_is_new_counts_after_an_hour() -> None:  # R9
    directory = two_sites()
    core, router = started(directory)
    directory.create("Site", Site(guid("R"), name="Rome").row())
    add_machine(directory, "R-GATE", [guid("R")], routing_server=True)
    add_machine(directory, "PIA2", [guid("P"), guid("R")])
    add_link(directory, "R", "R-GATE", cost=1)
    # when a known destination is asked for, the map is the old one until the timer fires
    pass_time(core, QUERY_TIMER_SECONDS - 1)
    assert guid("R") not in router.map.sites
    pass_time(core, 1)
    assert hosts(router, "PIA2")[0] == "r-gate.example.com"
    # and the timer goes on
    directory.delete("RoutingLink", guid("link to R 1"))
    pass_time(core, QUERY_TIMER_SECONDS)
    assert hosts(router, "PIA2") == ["p-gate.example.com"]


def test_a_refresh_counts_at_once() -> None:
    directory = two_sites()
    _, router = started(directory)
    directory.delete("RoutingLink", guid("link to P 2"))
    assert router.refresh()
    assert hosts(router, "PIA") == []
    assert "asks a gate" in router.explain(guid("PIA"))


def test_somebody_unknown_is_looked_for_once_a_minute_at_most() -> None:
    directory = two_sites()
    core, router = started(directory)
    add_machine(directory, "NEW", [guid("P")])
    assert hosts(router, "NEW") == ["p-gate.example.com"]  # at once, for nobody was looked for yet
    add_machine(directory, "NEWER", [guid("P")])
    assert hosts(router, "NEWER") == []
    pass_time(core, RETRY_SECONDS)
    assert hosts(router, "NEWER") == ["p-gate.example.com"]
    # when names are invented, then the directory has its peace
    before = router.map
    for number in range(20):
        assert router.get_next_hops(UUID(int=number + 1)) == []
    assert router.map is before


def test_a_directory_that_is_away_leaves_the_old_map(caplog: pytest.LogCaptureFixture) -> None:
    directory = two_sites()
    core, router = started(directory)
    directory.is_connected = False
    with caplog.at_level(logging.WARNING, "falconmq.directory"):
        pass_time(core, QUERY_TIMER_SECONDS)
    assert "routing map not read" in caplog.text
    assert hosts(router, "PIA") == ["p-gate.example.com"]
    assert "could not be read" in router.explain(guid("PIA"))
    # when it is back, then it is asked within a minute, not in an hour
    directory.is_connected = True
    add_machine(directory, "NEW", [SITE])
    pass_time(core, RETRY_SECONDS)
    assert router.problem == ""
    assert hosts(router, "NEW") == ["new.example.com"]


@pytest.mark.requirement("QB-A05-01")
@pytest.mark.requirement("QB-3.1.7.4-03", "QB-3.1.7.4-04", "QB-3.1.7.4-05", "QB-3.1.7.4-07")
def test_a_public_queue_leads_to_its_owner_and_is_remembered() -> None:
    directory = two_sites()
    core, router = started(directory)
    row = {"identifier": QUEUE, "path_name": r"PIA\orders", "computer_name": "PIA"}
    directory.create("Queue", row)
    public = name(f"PUBLIC={QUEUE}")
    for text in (f"PUBLIC={QUEUE}", f"CONNECTOR={QUEUE}"):
        assert router.get_destination_info(name(text)) == PIA
    # when it is asked again, then the directory is not
    directory.calls.clear()
    assert router.get_destination_info(public) == PIA
    assert directory.calls == []
    # after an hour it is, and while it is away the old answer counts
    core.clock.advance(3600)  # type: ignore[attr-defined]
    directory.is_connected = False
    assert router.get_destination_info(public) == PIA
    assert core.is_directory_offline
    assert router.get_destination_info(name(f"PUBLIC={UUID(int=5)}")) is None


def test_a_public_queue_that_is_gone_is_forgotten() -> None:
    directory = two_sites()
    core, router = started(directory)
    row = {"identifier": QUEUE, "path_name": r"PIA\orders", "computer_name": "RENAMED"}
    directory.create("Queue", {**row, "queue_manager_identifier": guid("PIA")})
    public = name(f"PUBLIC={QUEUE}")
    assert router.get_destination_info(public) == PIA
    directory.delete("Queue", QUEUE)
    core.clock.advance(3600)  # type: ignore[attr-defined]
    assert router.get_destination_info(public) is None


def test_a_public_queue_of_ours_is_known_without_asking() -> None:
    core, router = started(two_sites())
    queue = create_queue(core, PathName.parse(r".\orders"))
    core.directory.calls.clear()  # type: ignore[attr-defined]
    found = router.get_destination_info(name(f"PUBLIC={queue.identifier}"))
    assert found == Destination(COMPUTER, IDENTIFIER)
    assert core.directory.calls == []  # type: ignore[attr-defined]


@pytest.mark.requirement("QB-3.1.7.5-03", "QB-3.1.7.5-04")
def test_hops_that_the_directory_does_not_know_are_passed_over() -> None:
    directory = two_sites()
    lists = {"in_routing_server_identifiers": [guid("NOBODY"), guid("P-GATE")]}
    add_machine(directory, "BEHIND", [SITE], **lists)
    lists = {"in_routing_server_identifiers": [guid("NOBODY")]}
    add_machine(directory, "LOST", [SITE], **lists)
    _, router = started(directory)
    gate = NextHopName(guid("P-GATE"), "p-gate.example.com")
    assert router.get_next_hops(guid("BEHIND")) == [gate]
    assert router.get_next_hops(guid("LOST")) == []


def test_a_hop_without_a_name_is_passed_over() -> None:
    directory = two_sites()
    directory.create("QueueManager", QueueManager(guid("?"), site_identifiers=[SITE]).row())
    _, router = started(directory)
    assert router.route_to(guid("?")).hops == (guid("?"),)
    assert router.get_next_hops(guid("?")) == []


def test_everything_that_ways_depend_on_is_read() -> None:
    directory = two_sites()
    directory.create("Site", Site(guid("F"), name="Mainframe", foreign_site=True).row())
    lists = {
        "in_routing_server_identifiers": [guid("P-GATE")],
        "out_routing_server_identifiers": [IDENTIFIER],
    }
    add_machine(directory, "HOST", [guid("F")], foreign_system=True, **lists)
    _, router = started(directory)
    host = router.map.machines[guid("HOST")]
    assert host.is_foreign
    assert host.sites == {guid("F")}
    assert (host.in_servers, host.out_servers) == ((guid("P-GATE"),), (IDENTIFIER,))
    assert router.map.sites[guid("F")].is_foreign
    assert not router.map.sites[SITE].is_foreign


def test_faults_of_the_map_are_logged_when_it_is_read(caplog: pytest.LogCaptureFixture) -> None:
    directory = two_sites()
    directory.create("Site", Site(guid("X"), name="Oslo").row())
    with caplog.at_level(logging.WARNING, "falconmq.directory"):
        core, router = started(directory)
        pass_time(core, QUERY_TIMER_SECONDS)
    assert caplog.text.count("site Oslo has no gate") == 1  # each fault once
    assert len(router.faults) == 1
    # when it is mended and comes back, then it is told of again
    directory.delete("Site", guid("X"))
    router.refresh()
    assert router.faults == []
    directory.create("Site", Site(guid("X"), name="Oslo").row())
    router.refresh()
    assert caplog.text.count("site Oslo has no gate") == 2


def test_connected_networks_are_read_where_the_directory_has_some() -> None:
    directory = two_sites()
    directory.create("ConnectedNetwork", ConnectedNetwork(guid("IP"), name="IP").row())
    row = {**QueueManager(guid("OLD"), computer_name="OLD", site_identifiers=[SITE]).row()}
    directory.create("QueueManager", {**row, "connected_network_identifiers": [guid("IP")]})
    _, router = started(directory)
    assert router.map.machines[guid("OLD")].networks == {guid("IP")}


def test_the_whole_way_can_be_seen() -> None:
    _, router = started(two_sites())
    steps = [(step.source, step.rule) for step in router.trace(guid("PIA"))]
    assert steps == [
        (IDENTIFIER, Rule.NEXT_SITE),
        (guid("P-GATE"), Rule.DIRECT),
        (guid("PIA"), Rule.HERE),
    ]
    assert router.explain(guid("PIA")).startswith(f"{COMPUTER} is a gate")


# Elsewhere


class Slow(MemoryDirectory):
    """One that answers when the test says so."""

    def __init__(self, of: MemoryDirectory) -> None:
        super().__init__()
        self.rows = of.rows
        self.answers = threading.Event()
        self.asked = 0
        self.last_problem: DirectoryError | None = None

    def close(self) -> None:
        """Nothing to let go of."""

    def read(
        self, type_name: str, filters: Filters, attributes: Collection[str] | None
    ) -> tuple[DirectoryResult, Row]:
        self.asked += 1
        assert self.answers.wait(PATIENCE)
        return super().read(type_name, filters, attributes)


@pytest.mark.parametrize("is_derived", [True, False])
def test_nobody_waits_until_the_directory_says_where_a_queue_is(is_derived: bool) -> None:
    # given a router whose host can come again, and a directory elsewhere
    directory = two_sites()
    core, router = started(directory)
    owner = {"queue_manager_identifier": guid("PIA")} if is_derived else {}
    row = {"identifier": QUEUE, "path_name": r"pia\orders", "computer_name": "PIA", **owner}
    directory.rows.setdefault("Queue", {})[QUEUE] = row
    slow, answered = Slow(directory), threading.Event()
    core.directory = cache = CachedDirectory(slow, core.clock, timeout_seconds=PATIENCE)  # type: ignore[arg-type]
    router.answered = answered.set
    wanted = name(f"PUBLIC={QUEUE}")
    try:
        # when nobody has heard of a queue, then nobody is known, and a thread asks, once
        for _ in range(3):
            assert router.get_destination_info(wanted) is None
            assert router.is_asked(wanted)
        assert not answered.is_set()
        slow.answers.set()
        assert answered.wait(PATIENCE)
        assert not router.is_asked(wanted)
        if not is_derived:  # its computer is another question
            answered.clear()
            assert router.get_destination_info(wanted) is None
            assert answered.wait(PATIENCE)
        assert router.get_destination_info(wanted) == PIA
        # when it is asked again after a while, then what is known holds until there is an answer
        pass_time(core, OWNER_SECONDS + 1)
        slow.answers.clear()
        answered.clear()
        asked = slow.asked
        assert router.get_destination_info(wanted) == PIA
        slow.answers.set()
        assert answered.wait(PATIENCE)
        assert slow.asked > asked
        # others need no answer
        assert not router.is_asked(name(rf"PRIVATE={guid('PIA')}\3"))
        # and who cannot come again waits, as ever
        router.answered = None
        cache.forget()
        if is_derived:
            assert router.get_destination_info(wanted) == PIA
    finally:
        slow.answers.set()
        cache.close()
