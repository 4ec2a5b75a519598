"""Why there is no session with another queue manager: from the tries to connect to a cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.service.why.explanation import Cause, Severity
from falconmq.service.why.outgoing_facts import OutgoingFacts
from falconmq.service.why.route_judging import no_way
from falconmq.service.why.words import age, ago
from falconmq.transport.session import SessionState


def not_connected(facts: OutgoingFacts) -> Cause | None:
    """Why the last try failed; None if there is a session, or nothing to send."""
    situation = facts.situation
    has_work = facts.messages > situation.arrived
    if situation.session_state is not None or not facts.has_transport or not has_work:
        return None
    if facts.state in (OutgoingState.ON_HOLD, OutgoingState.LOCKED):
        return None
    if facts.is_http or facts.is_multicast or not facts.history:
        return None
    last = facts.history[-1]
    for statuses, make in _FAILURES:
        if last.status in statuses:
            return make(facts)
    return _closed(facts)


def _unresolved(facts: OutgoingFacts) -> Cause:
    return Cause(
        "name-not-resolved",
        f"nobody knows the address of {facts.host}, {_tries(facts)}",
        Severity.ERROR,
        f'check the name, or give its address in [hosts]: {facts.host} = "10.0.0.7"',
        _since(facts),
    )


def _no_route(facts: OutgoingFacts) -> Cause:
    found = no_way(facts, _tries(facts), _since(facts))
    if found is not None:
        return found
    problem = facts.situation.problem or "no way is known"
    return Cause(
        "no-route",
        f"{problem}, {_tries(facts)}",
        Severity.ERROR,
        "tell where it is in [[computers]] or [[routes]], or use a DIRECT= name",
        _since(facts),
    )


def _refused(facts: OutgoingFacts) -> Cause:
    return Cause(
        "connection-refused",
        f"connection refused on port {facts.port}, {_tries(facts)}",
        Severity.ERROR,
        f"is the service running there? check: falconmq ping {target_of(facts)}",
        _since(facts),
    )


def _ping_failed(facts: OutgoingFacts) -> Cause:
    return Cause(
        "ping-refused",
        f"the ping before the connection was not answered with yes, {_tries(facts)}",
        Severity.ERROR,
        f"its UDP port 3527 is closed, or it takes no sessions now: falconmq ping "
        f"{target_of(facts)}; to connect without asking: ping_enabled = false in [transport]",
        _since(facts),
    )


def _unreachable(facts: OutgoingFacts) -> Cause:
    problem = facts.situation.problem
    is_silent = "no answer" in problem or "timed out" in problem
    hint = "a firewall may drop the packets" if is_silent else "the network may be down"
    return Cause(
        "no-answer" if is_silent else "unreachable",
        f"{problem or 'the connection could not be made'}, {_tries(facts)}",
        Severity.ERROR,
        f"{hint}; check: falconmq ping {target_of(facts)}",
        _since(facts),
    )


def _our_end(facts: OutgoingFacts) -> Cause:
    return Cause(
        "no-local-resource",
        f"this computer could not make the connection: {facts.situation.problem}, {_tries(facts)}",
        Severity.ERROR,
        "check bind in [manager] and the limits of this computer (files, memory)",
        _since(facts),
    )


def _not_opened(facts: OutgoingFacts) -> Cause:
    problem = facts.situation.problem or "the connection ended"
    return Cause(
        "session-not-opened",
        f"somebody answers on port {facts.port}, but no session came of it: {problem}, "
        f"{_tries(facts)}",
        Severity.ERROR,
        f"is that a queue manager, and does it take sessions? check: falconmq ping "
        f"{target_of(facts)}",
        _since(facts),
    )


def _closed(facts: OutgoingFacts) -> Cause:
    """There was a session, and it ended with messages left."""
    problem = facts.situation.problem or "the session ended"
    hint = "the receiver may have no room left: look at its quota and its log"
    if "silent" in problem:
        hint = f"the line or the receiver hangs: falconmq ping {target_of(facts)}"
    return Cause(
        "session-closed",
        f"the session ended: {problem}, {_tries(facts)}",
        Severity.WARNING,
        hint,
        _since(facts),
    )


_FAILURES: Final[
    tuple[tuple[frozenset[ConnectionStatus], Callable[[OutgoingFacts], Cause]], ...]
] = (
    (frozenset({ConnectionStatus.DNS_FAILURE}), _unresolved),
    (frozenset({ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE}), _no_route),
    (frozenset({ConnectionStatus.CONNECTION_REFUSED}), _refused),
    (frozenset({ConnectionStatus.PING_FAILURE}), _ping_failed),
    (frozenset({ConnectionStatus.SOCKET_CONNECT_FAILURE}), _unreachable),
    (frozenset({ConnectionStatus.CONNECTION_NOT_READY}), _not_opened),
    (
        frozenset(
            {
                ConnectionStatus.SOCKET_BIND_FAILURE,
                ConnectionStatus.SOCKET_CREATE_FAILURE,
                ConnectionStatus.LOW_RESOURCE,
                ConnectionStatus.TCP_NOT_ENABLED,
            }
        ),
        _our_end,
    ),
)


def opening(facts: OutgoingFacts) -> Cause | None:
    """A session is being opened: somebody listens, and has not answered yet."""
    state = facts.situation.session_state
    if state is None or state is SessionState.OPEN:
        return None
    attempt = facts.history[-1] if facts.history else None
    if attempt is None or attempt.status is not ConnectionStatus.IN_PROCESS:
        return Cause("connecting", f"connecting to {facts.situation.address}")
    return Cause(
        "no-answer-to-greeting",
        f"{facts.situation.address} took the connection {ago(attempt.seconds)} and has not "
        "answered the greeting yet",
        Severity.WARNING,
        f"is that a queue manager? check: falconmq ping {target_of(facts)}",
        facts.now - attempt.seconds,
    )


def _tries(facts: OutgoingFacts) -> str:
    """When it was tried last, and when it will be again."""
    last = facts.history[-1]
    following = facts.situation.next_try_seconds
    text = f"last try {ago(last.seconds)}"
    return text if following is None else f"{text}, next in {age(following)}"


def _since(facts: OutgoingFacts) -> float:
    """Since when all tries have failed, as far as the history goes back."""
    first = facts.history[-1].seconds
    for attempt in reversed(facts.history):
        if attempt.status is ConnectionStatus.ESTABLISHED:
            break
        first = attempt.seconds
    return facts.now - first


def target_of(facts: OutgoingFacts) -> str:
    return facts.host or facts.situation.address or facts.destination
