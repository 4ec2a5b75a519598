"""Get Destination Info and Get Next Hops, MQQB 3.1.7.4 and 3.1.7.5, over a table."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, MqStatus
from falconmq.names import (
    DirectFormatName,
    MultipleElementFormatName,
    SingleFormatName,
    parse_format_name,
)
from falconmq.transport.routing import Destination, NextHopName, StaticRouter

GOAL = UUID("0d1ab8e4-3a0d-4b0e-9f4f-0a7d3c1f2b5e")
NEAR = UUID("5b0f2d9c-6e51-4c39-8a51-7f8f1c0f9a11")
SPARE = UUID("c0ffee00-1111-4222-8333-444455556666")


def name(text: str) -> SingleFormatName:
    parsed = parse_format_name(text)
    assert not isinstance(parsed, MultipleElementFormatName)
    return parsed


@pytest.mark.requirement("QB-3.1.7.4-02", "QB-3.1.7.4-07")
@pytest.mark.parametrize(
    ("text", "host"),
    [
        (r"DIRECT=OS:sales01.example.com\private$\orders", "sales01.example.com"),
        (r"DIRECT=TCP:10.0.0.7\orders", "10.0.0.7"),
        (r"DIRECT=TCP:2001:db8::7\private$\orders", "2001:db8::7"),
    ],
)
def test_a_direct_name_says_its_host_and_no_queue_manager(text: str, host: str) -> None:
    assert StaticRouter().get_destination_info(name(text)) == Destination(host, None)


@pytest.mark.requirement("QB-3.1.7.4-06", "QB-3.1.7.4-07")
def test_a_private_name_says_its_queue_manager_and_no_host() -> None:
    found = StaticRouter().get_destination_info(name(rf"PRIVATE={GOAL}\0000001f"))
    assert found == Destination("", GOAL)


@pytest.mark.requirement("QB-3.1.7.4-04")
@pytest.mark.parametrize("text", [f"PUBLIC={GOAL}", f"CONNECTOR={GOAL}"])
def test_a_name_that_only_a_directory_knows_leads_nowhere(text: str) -> None:
    assert StaticRouter({GOAL: "sales01"}).get_destination_info(name(text)) is None


@pytest.mark.parametrize(
    "unreachable",
    [
        name("DIRECT=HTTP://sales01/msmq/private$/orders"),
        name(r"DIRECT=SPX:00000001:0123456789AB\orders"),
        name("MULTICAST=224.0.0.1:8001"),
        name(f"MACHINE={GOAL};JOURNAL"),
        DirectFormatName.from_wire("garbage of a peer"),
    ],
    ids=str,
)
def test_a_name_that_this_protocol_does_not_reach_leads_nowhere(
    unreachable: SingleFormatName,
) -> None:
    assert StaticRouter({GOAL: "sales01"}).get_destination_info(unreachable) is None


def test_a_queue_manager_without_a_route_is_reached_directly() -> None:
    router = StaticRouter({GOAL: "sales01", NEAR: "hub"})
    assert router.get_next_hops(GOAL) == [NextHopName(GOAL, "sales01")]


def test_a_route_names_the_next_hops_the_best_first() -> None:
    hosts = {NEAR: "hub", SPARE: "10.0.0.9", GOAL: "sales01"}
    router = StaticRouter(hosts, {GOAL: [NEAR, SPARE, GOAL]})
    assert router.get_next_hops(GOAL) == [
        NextHopName(NEAR, "hub"),
        NextHopName(SPARE, "10.0.0.9"),
        NextHopName(GOAL, "sales01"),
    ]


def test_the_goal_of_a_route_needs_no_host_of_its_own() -> None:
    router = StaticRouter({NEAR: "hub"}, {GOAL: [NEAR]})
    assert router.get_next_hops(GOAL) == [NextHopName(NEAR, "hub")]


@pytest.mark.requirement("QB-3.1.7.5-04")
def test_a_queue_manager_that_nobody_knows_has_no_next_hop() -> None:
    assert StaticRouter({NEAR: "hub"}).get_next_hops(GOAL) == []


@pytest.mark.parametrize("host", ["sales01", "SALES_01.example.com", "10.0.0.7", "fe80::1%eth0"])
def test_hosts_are_names_or_addresses(host: str) -> None:
    assert StaticRouter({GOAL: host}).get_next_hops(GOAL) == [NextHopName(GOAL, host)]


@pytest.mark.parametrize(
    "host", ["", " ", "sales 01", "sales01:1801", "10.0.0.7:1801", r"sales01\orders", "tcp://hub"]
)
def test_a_host_that_is_none_is_refused_with_what_to_write(host: str) -> None:
    with pytest.raises(DirectoryError, match="is no host name or IP address") as caught:
        StaticRouter({GOAL: host})
    assert str(GOAL) in str(caught.value)
    assert repr(host) in str(caught.value)
    assert "10.0.0.7" in caught.value.hint
    assert caught.value.status is MqStatus.INVALID_PARAMETER


@pytest.mark.parametrize(
    ("hosts", "routes", "status", "problem"),
    [
        pytest.param(
            {UUID(int=0): "hub"}, {}, MqStatus.INVALID_PARAMETER, "null GUID", id="null GUID"
        ),
        pytest.param(
            {GOAL: "hub"}, {GOAL: []}, MqStatus.INVALID_PARAMETER, "over nobody", id="empty route"
        ),
        pytest.param(
            {GOAL: "hub"},
            {GOAL: [NEAR]},
            MqStatus.MACHINE_NOT_FOUND,
            f"over {NEAR}, whose host is not known",
            id="unknown hop",
        ),
    ],
)
def test_a_table_that_cannot_work_is_refused(
    hosts: Any, routes: Any, status: MqStatus, problem: str
) -> None:
    with pytest.raises(DirectoryError, match=problem) as caught:
        StaticRouter(hosts, routes)
    assert caught.value.status is status


def test_a_router_keeps_the_table_it_was_made_with() -> None:
    # given a router
    hosts, hops = {GOAL: "sales01", NEAR: "hub"}, [NEAR]
    router = StaticRouter(hosts, {GOAL: hops})
    # when the lists it was made of are changed, then it does not notice
    hosts[NEAR] = ""
    hops.clear()
    assert router.get_next_hops(GOAL) == [NextHopName(NEAR, "hub")]
