"""Why messages wait for a queue that is reached over the directory, and what the next step is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.client.remote_directory import RemoteDirectory
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.routing import DirectoryRouter
from falconmq.directory.routing_choice import Rule
from falconmq.directory.routing_map import Machine, MapSite, RoutingMap
from falconmq.manager.connectors import create_connector_queues
from falconmq.manager.states import ConnectionStatus
from falconmq.service.daemon import Service
from falconmq.service.directory.ways import Ways
from falconmq.service.why import Explanation, Severity
from falconmq.service.why.outgoing_facts import Attempt, OutgoingFacts
from falconmq.service.why.outgoing_judging import judge_outgoing
from falconmq.service.why.route_facts import RouteFacts
from falconmq.transport.routing import StaticRouter
from falconmq.transport.situations import Situation
from tests.directory.enterprises import guid
from tests.service.services import loopback, run, send, serving, until
from tests.service.why.situations import codes, until_because, why

QUEUE = guid("a public queue")
TO_BOB = rf"PRIVATE={guid('BOB')}\5"
FACTS = OutgoingFacts(
    7,
    f"PUBLIC={QUEUE}",
    now=1000.0,
    messages=2,
    history=(Attempt(ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, 12.0),),
    situation=Situation("nobody knows", 3.0, unsent=2),
)
REASON = "BOB is out of reach of HERE, which asks a routing server. There is none."


def judged(**route: object) -> Explanation:
    return judge_outgoing(replace(FACTS, route=replace(RouteFacts(), **route)))  # type: ignore[arg-type]


def facts_of(found: Explanation) -> dict[str, str]:
    return {fact.label: fact.value for fact in found.facts}


def test_a_directory_that_is_away_is_named_with_its_problem_and_since_when() -> None:
    found = judged(away_seconds=120.0, away_problem="connection refused")
    (cause,) = found.causes
    assert (cause.code, cause.severity) == ("directory-away", Severity.ERROR)
    assert "the directory does not answer for 2 min: connection refused" in cause.text
    assert f"nobody here knows where PUBLIC={QUEUE} is" in cause.text
    assert cause.since == 1000.0 - 120.0
    assert "go by themselves when it is back" in cause.hint
    assert facts_of(found)["directory"] == "away for 2 min: connection refused"
    # and who has the queue is said, if that is known
    known = judged(away_seconds=120.0, rule=Rule.UNKNOWN_DESTINATION, owner="BOB")
    assert "nobody here knows the way to BOB" in known.causes[0].text
    assert known.summary.startswith("2 messages wait for BOB. ")


def test_a_queue_that_the_directory_does_not_know_can_be_given_up() -> None:
    (cause,) = judged().causes
    assert cause.code == "unknown-to-directory"
    assert f"falconmq directory show queue {QUEUE}" in cause.hint
    assert "falconmq outgoing purge 7" in cause.hint


@pytest.mark.parametrize(
    ("rule", "code", "hint"),
    [
        (Rule.UNKNOWN_SOURCE, "not-in-directory", "falconmq directory status"),
        (Rule.UNKNOWN_DESTINATION, "unknown-to-directory", "directory route BOB --refresh"),
        (Rule.ROUTING_SERVERS, "no-route", "routing_server=yes"),
        (Rule.OWN_GATES, "no-route", "site_gate_identifiers"),
        (Rule.NEXT_SITE, "no-route", "falconmq directory route BOB"),
        (Rule.OUT_SERVERS, "no-route", "out-routing servers"),
        (Rule.IN_SERVERS, "no-route", "directory show queue-manager BOB"),
    ],
)
def test_each_dead_end_has_its_next_step(rule: Rule, code: str, hint: str) -> None:
    found = judged(rule=rule, reason=REASON, owner="BOB", way=("HERE",))
    (cause,) = found.causes
    assert cause.code == code
    assert cause.text.startswith("BOB is out of reach of HERE")
    assert cause.text.endswith("last try 12 s ago, next in 3 s")
    assert hint in cause.hint
    assert facts_of(found)["route"] == REASON


def test_a_way_that_is_there_is_a_fact_and_an_old_map_too() -> None:
    found = judged(
        rule=Rule.DIRECT,
        is_possible=True,
        reason="HERE and BOB are in a common site. Next is BOB.",
        way=("HERE", "BOB"),
        map_seconds=7200.0,
        map_problem="no answer",
    )
    facts = facts_of(found)
    assert facts["way"] == "HERE -> BOB"
    assert facts["routing map"] == "read 2 h ago: no answer"
    assert codes(found) == ["no-route"]
    assert found.causes[0].text.startswith("nobody knows")  # at the last try: the map is newer
    assert "routing map" not in facts_of(judged(map_seconds=60.0))
    assert facts_of(judged())["routing map"] == "never read"


def use_map(service: Service, *more: Machine) -> DirectoryRouter:
    """Our site has nobody but ourselves, and those."""
    core = service.engine.core
    router = DirectoryRouter(core)
    here = Machine(core.identifier, "HERE", "here", frozenset({guid("A")}))
    found = RoutingMap([here, *more], [MapSite(guid("A"), "Berlin"), MapSite(guid("B"), "Paris")])
    service.engine.run(lambda _: router.use(found))
    service.transport.router = Ways(StaticRouter(), router)
    return router


def test_real_messages_without_a_way() -> None:
    async def main() -> None:
        async with serving(try_connect_interval=30.0) as service:
            use_map(service)
            await send(service, TO_BOB, "1")
            found = await until_because(service, TO_BOB, "unknown-to-directory")
            assert str(guid("BOB")) in found.summary
            # somebody in another site: there is nobody to ask
            eva = Machine(guid("EVA"), "EVA", "eva", frozenset({guid("B")}))
            use_map(service, eva)
            far = rf"PRIVATE={guid('EVA')}\5"
            await send(service, far, "1")
            found = await until_because(service, far, "no-route")
            assert found.summary.startswith("1 message waits for EVA. ")
            assert "There is no routing server in site Berlin" in found.summary

    run(main())


def test_real_messages_while_the_directory_is_away() -> None:
    async def main() -> None:
        async with serving(try_connect_interval=30.0) as service:
            core = service.engine.core
            away = CachedDirectory(RemoteDirectory([f"http://{loopback()}:8018"]), core.clock)
            try:
                use_map(service)
                await send(service, TO_BOB, "1")
                core.directory = away
                service.engine.look(lambda core: core.directory.read("Enterprise", (), None))
                await until(lambda: away.is_away)
                found = await until_because(service, TO_BOB, "directory-away")
                assert away.problem in found.summary
                assert "away for" in facts_of(found)["directory"]
            finally:
                away.close()

    run(main())


def test_a_connector_queue_says_whom_it_is_for() -> None:
    async def main() -> None:
        async with serving() as service:
            service.engine.run(create_connector_queues, [guid("Host")])
            for name in (f"CONNECTOR={guid('Host')}", f"CONNECTOR={guid('Host')};XACTONLY"):
                found = await why(service, name)
                assert facts_of(found)["for"].startswith("foreign systems")

    run(main())
