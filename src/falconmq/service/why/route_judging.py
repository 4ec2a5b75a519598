"""Why there is no way to a queue that the directory knows, or should: from facts to a cause."""

from __future__ import annotations

from typing import Final

from falconmq.directory.routing_choice import Rule
from falconmq.service.why.explanation import Cause, Fact, Severity
from falconmq.service.why.outgoing_facts import OutgoingFacts
from falconmq.service.why.route_facts import RouteFacts
from falconmq.service.why.words import age, ago

_LONG: Final = 3 * 3600.0  # seconds after which a map that is read hourly is old


def no_way(facts: OutgoingFacts, tries: str, since: float) -> Cause | None:
    """Why the directory has no next step; None if there is no directory, or it has one."""
    route = facts.route
    if route is None or route.is_possible:
        return None
    if route.is_away:
        return _away(facts, route, tries)
    if route.rule is None:
        return _unknown_queue(facts, tries, since)
    reason = route.reason.rstrip(".")
    hint = _HINTS.get(route.rule, "falconmq directory route {} --refresh").format(route.owner)
    code = _CODES.get(route.rule, "no-route")
    return Cause(code, f"{reason}; {tries}", Severity.ERROR, hint, since)


def _away(facts: OutgoingFacts, route: RouteFacts, tries: str) -> Cause:
    waited = route.away_seconds or 0.0
    problem = f": {route.away_problem}" if route.away_problem else ""
    known = f"the way to {route.owner}" if route.owner else f"where {facts.destination} is"
    return Cause(
        "directory-away",
        f"the directory does not answer for {age(waited)}{problem}, and nobody here knows {known}; "
        f"{tries}",
        Severity.ERROR,
        "the messages go by themselves when it is back; look there, or: falconmq directory status",
        facts.now - waited,
    )


def _unknown_queue(facts: OutgoingFacts, tries: str, since: float) -> Cause:
    guid = facts.destination.partition("=")[2]
    return Cause(
        "unknown-to-directory",
        f"the directory does not know {facts.destination}: it was deleted, or never there; {tries}",
        Severity.ERROR,
        f"falconmq directory show queue {guid}; to give the messages up: "
        f"falconmq outgoing purge {facts.number}",
        since,
    )


_CODES: Final = {
    Rule.UNKNOWN_SOURCE: "not-in-directory",
    Rule.UNKNOWN_DESTINATION: "unknown-to-directory",
}
_HINTS: Final = {
    Rule.UNKNOWN_SOURCE: "is this queue manager registered? falconmq directory status",
    Rule.UNKNOWN_DESTINATION: "if it is new: falconmq directory route {} --refresh; "
    "all that are known: falconmq directory list queue-manager",
    Rule.ROUTING_SERVERS: "make one of the site a routing server: "
    "falconmq directory set queue-manager NAME routing_server=yes",
    Rule.OWN_GATES: "name a routing server of the site as gate of one of its links: "
    "falconmq directory set routing-link GUID site_gate_identifiers=GUID",
    Rule.NEXT_SITE: "see what the map lacks: falconmq directory route {}",
    Rule.OUT_SERVERS: "falconmq directory show queue-manager NAME: its out-routing servers "
    "have to be routing servers",
    Rule.IN_SERVERS: "falconmq directory show queue-manager {}: its in-routing servers have to be "
    "routing servers",
}


def route_lines(route: RouteFacts | None) -> list[Fact]:
    """What the directory says, for those who want to see for themselves."""
    if route is None:
        return []
    found = []
    if route.reason:
        found.append(Fact("route", route.reason))
    if len(route.way) > 1:
        found.append(Fact("way", " -> ".join(route.way)))
    if route.away_seconds is not None:
        found.append(Fact("directory", f"away for {age(route.away_seconds)}: {route.away_problem}"))
    if route.map_seconds is None:
        found.append(Fact("routing map", "never read"))
    elif route.map_problem or route.map_seconds > _LONG:
        why = f": {route.map_problem}" if route.map_problem else ""
        found.append(Fact("routing map", f"read {ago(route.map_seconds)}{why}"))
    return found
