"""Why messages for another queue manager wait: from facts to causes.

Each check looks for one cause. They are asked in the order in which the causes hide each other:
nothing can be said about acknowledgements while nobody listens at the other end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from falconmq.manager.states import OutgoingState
from falconmq.service.why.connecting_judging import not_connected, opening, target_of
from falconmq.service.why.explanation import Cause, Explanation, Fact, Kind, Severity
from falconmq.service.why.outgoing_facts import OutgoingFacts
from falconmq.service.why.route_judging import route_lines
from falconmq.service.why.words import age, ago, class_hint, messages, reason_words, size, waits
from falconmq.transport.session import SessionState
from falconmq.wire.message_class import MessageClass

_SLOW_ACK_SECONDS: Final = 30.0  # without any acknowledgement while messages are on their way
_SEVERAL: Final = 2

Check = Callable[[OutgoingFacts], Cause | None]


def judge_outgoing(facts: OutgoingFacts, subject: str = "") -> Explanation:
    """Why the messages of an outgoing queue are still here."""
    causes = outgoing_causes(facts)
    waiting = facts.messages - facts.situation.arrived
    where = _where(facts)
    if waiting > 0:
        summary = f"{waits(waiting)} for {where}. {sentence(causes[0].text)}"
    elif facts.messages:
        summary = sentence(causes[0].text)
    else:
        summary = f"No message waits for {where}."
        if causes[0].severity is not Severity.INFO:
            summary += f" {sentence(causes[0].text)}"
    about = subject or facts.destination
    return Explanation(about, Kind.OUTGOING, summary, _facts(facts), causes)


def _where(facts: OutgoingFacts) -> str:
    """Whom the messages are for: not the next hop on the way there."""
    owner = "" if facts.route is None else facts.route.owner
    return owner or facts.host or facts.destination


def outgoing_causes(facts: OutgoingFacts) -> list[Cause]:
    """All causes that are found, the one that stops everything first; at least one."""
    found = [cause for check in _CHECKS if (cause := check(facts)) is not None]
    return found or [_going(facts)]


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# What stops everything


def _no_transport(facts: OutgoingFacts) -> Cause | None:
    if facts.has_transport:
        return None
    return Cause(
        "no-transport",
        "nobody sends: the data directory is open, but not served",
        Severity.ERROR,
        "start the service: falconmq serve",
    )


def _unsupported(facts: OutgoingFacts) -> Cause | None:
    if not facts.is_http and not facts.is_multicast:
        return None
    what = "HTTP" if facts.is_http else "multicast"
    return Cause(
        "destination-not-supported",
        f"FalconMQ does not send over {what}",
        Severity.ERROR,
        f"name the queue DIRECT=TCP: or DIRECT=OS:; to give these up: "
        f"falconmq outgoing purge {facts.number}",
    )


def _paused(facts: OutgoingFacts) -> Cause | None:
    if facts.state is not OutgoingState.ON_HOLD:
        return None
    hint = f"falconmq outgoing resume {facts.number}"
    return Cause("paused", "the outgoing queue is paused", Severity.WARNING, hint)


def _locked(facts: OutgoingFacts) -> Cause | None:
    if facts.state is not OutgoingState.LOCKED:
        return None
    text = "the outgoing queue is locked: in hardened mode nothing is sent over the MSMQ port"
    hint = "to let them go: security.hardened = false, then restart the service"
    return Cause("locked", text, Severity.ERROR, hint)


# With a session


def _order_acks_missing(facts: OutgoingFacts) -> Cause | None:
    """The receiver has the messages and says so on the session, but its OrderAcks get lost."""
    situation, waited = facts.situation, facts.situation.unanswered_seconds
    if waited is None or waited <= facts.order_ack_delay or facts.messages <= situation.arrived:
        return None
    if not situation.without_order_ack and not facts.resend_count:
        return None
    if situation.session_state is not SessionState.OPEN:
        return None
    return Cause(
        "order-acks-missing",
        f"{facts.host or situation.address} has the transactional messages, but none of its order "
        f"acknowledgements came back in {age(waited)}",
        Severity.ERROR,
        "they do not come back over this connection: the receiver makes one of its own to the "
        "address it sees us at. Behind NAT or in a container set advertised_address in [manager] "
        f"and let port {facts.port} in; the receiver must reach us: falconmq ping, from there",
        facts.now - waited,
    )


def _window_full(facts: OutgoingFacts) -> Cause | None:
    situation = facts.situation
    if not situation.is_window_full or not situation.unsent:
        return None
    waited = situation.acknowledged_seconds
    since = situation.session_seconds if waited is None else waited
    return Cause(
        "window-full",
        f"{messages(situation.window)} are on the way and not acknowledged, and no more may be; "
        f"the last acknowledgement came {ago(waited)}",
        Severity.WARNING,
        "the receiver is slow, or its disk is: look there",
        None if since is None else facts.now - since,
    )


def _peer_not_reading(facts: OutgoingFacts) -> Cause | None:
    if facts.situation.is_peer_reading:
        return None
    text = f"{facts.host} does not read what it is sent"
    return Cause("peer-not-reading", text, Severity.WARNING, "the receiver hangs: look there")


def _not_acknowledged(facts: OutgoingFacts) -> Cause | None:
    situation = facts.situation
    if situation.session_state is not SessionState.OPEN or not situation.sent:
        return None
    waited = situation.acknowledged_seconds
    silent = situation.session_seconds if waited is None else waited
    if silent is None or silent < _SLOW_ACK_SECONDS or situation.without_order_ack:
        return None
    return Cause(
        "not-acknowledged",
        f"{messages(situation.sent)} were sent and not acknowledged for {age(silent)}",
        Severity.WARNING,
        f"the receiver is slow or hangs: falconmq ping {target_of(facts)}",
        facts.now - silent,
    )


# What may be true beside


def _refused_there(facts: OutgoingFacts) -> Cause | None:
    """What receivers said about messages that went this way."""
    if not facts.refusals:
        return None
    worst = facts.refusals[0]
    others = sum(answer.count for answer in facts.refusals[1:])
    more = f", and {others} for other reasons" if others else ""
    return Cause(
        _REFUSAL_CODES.get(worst.message_class, "refused-there"),
        f"{facts.host or 'the receiver'} refused {messages(worst.count)}{more}: "
        f"{reason_words(worst.message_class)}, the last {ago(worst.seconds)}",
        Severity.ERROR,
        class_hint(worst.message_class),
        facts.now - worst.seconds,
    )


_REFUSAL_CODES: Final = {
    int(MessageClass.NACK_NOT_TRANSACTIONAL_Q): "wrong-kind",
    int(MessageClass.NACK_NOT_TRANSACTIONAL_MSG): "wrong-kind",
    int(MessageClass.NACK_ACCESS_DENIED): "access-refused",
    int(MessageClass.NACK_Q_EXCEED_QUOTA): "receiver-full",
    int(MessageClass.NACK_BAD_DST_Q): "no-such-queue",
}


def _not_encrypted(facts: OutgoingFacts) -> Cause | None:
    """Messages that were to be encrypted have left, and not to the receiver; or wait for keys."""
    problem = facts.situation.encryption_problem
    if not problem:
        return None
    if facts.situation.waits_for_keys:
        return Cause(
            "waits-for-keys",
            f"a message is to be encrypted, and waits for the keys of its receiver: {problem}",
            Severity.WARNING,
            "it goes by itself when the directory is back; see: falconmq directory status",
        )
    return Cause(
        "not-encrypted",
        f"a message was to be encrypted and could not be, so it was not sent: {problem}",
        Severity.ERROR,
        class_hint(MessageClass.NACK_COULD_NOT_ENCRYPT),
    )


def _two_addresses(facts: OutgoingFacts) -> Cause | None:
    known = facts.situation.addresses
    if len(known) < _SEVERAL:
        return None
    return Cause(
        "two-addresses",
        f"queue manager {facts.situation.queue_manager} was seen at {len(known)} addresses: "
        f"{', '.join(known)}",
        Severity.WARNING,
        "it has several, or its data directory was copied: two queue managers must not share an id",
    )


def _awaiting_end(facts: OutgoingFacts) -> Cause | None:
    arrived = facts.situation.arrived
    if not arrived:
        return None
    return Cause(
        "awaiting-final-ack",
        f"{messages(arrived)} arrived at {facts.host}, and {_stays(arrived)} here until somebody "
        "there has received them: a journal or dead letter may come of it",
    )


def _going(facts: OutgoingFacts) -> Cause:
    """Nothing is wrong that can be seen from here."""
    situation = facts.situation
    if not facts.messages:
        return Cause("empty", "nothing waits here")
    if situation.session_state is SessionState.OPEN:
        what = f"{situation.sent} on the way, {situation.unsent} to go"
        return Cause("sending", f"connected to {situation.address}: {what}")
    return Cause("connecting", "the connection is being made")


_CHECKS: Final[tuple[Check, ...]] = (
    _no_transport,
    _unsupported,
    _paused,
    _locked,
    not_connected,
    opening,
    _order_acks_missing,
    _peer_not_reading,
    _window_full,
    _not_acknowledged,
    _refused_there,
    _not_encrypted,
    _two_addresses,
    _awaiting_end,
)


def _stays(count: int) -> str:
    return "it stays" if count == 1 else "they stay"


def _facts(facts: OutgoingFacts) -> list[Fact]:
    situation = facts.situation
    found = [
        Fact("destination", facts.destination),
        Fact("outgoing queue", f"number {facts.number}, {facts.state.value}"),
        Fact("waiting", f"{messages(facts.messages)}, {size(facts.size_bytes)}"),
    ]
    if facts.oldest_seconds is not None:
        found.append(Fact("first in line", f"queued {ago(facts.oldest_seconds)}"))
    if facts.messages and facts.has_transport:
        split = f"{situation.unsent} not sent, {situation.sent} sent, {situation.arrived} arrived"
        again = f"; {situation.resent} sent in vain before" if situation.resent else ""
        found.append(Fact("progress", split + again))
    found += route_lines(facts.route)
    if situation.address:
        found.append(Fact("address", situation.address))
    if situation.session_state is not None:
        opened = situation.session_seconds
        text = situation.session_state.name.lower().replace("_", " ")
        found.append(Fact("session", text if opened is None else f"{text} for {age(opened)}"))
    if situation.session_state is SessionState.OPEN:
        found.append(Fact("last acknowledgement", ago(situation.acknowledged_seconds)))
    if facts.is_transactional:
        found.append(Fact("last order acknowledgement", ago(facts.order_ack_seconds)))
        found.append(Fact("resent", f"{facts.resend_count} times"))
    found += [
        Fact(
            "try", f"{ago(attempt.seconds)}: {attempt.status.value} {', '.join(attempt.addresses)}"
        )
        for attempt in facts.history[-5:]
    ]
    return found
