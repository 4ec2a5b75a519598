"""Where a message is, and why: from facts to an explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from falconmq.manager.events import EventKind, MessageEvent
from falconmq.service.observation.event_texts import message_id_text, queue_text
from falconmq.service.why.explanation import Cause, Explanation, Fact, Kind, Severity, Step
from falconmq.service.why.message_facts import MessageFacts, Place, Role
from falconmq.service.why.outgoing_judging import outgoing_causes, sentence
from falconmq.service.why.queue_judging import POISON_ABORTS
from falconmq.service.why.words import (
    age,
    ago,
    class_hint,
    event_words,
    messages,
    reason_words,
    size,
)
from falconmq.transport.situations import Progress
from falconmq.wire.message_class import NEGATIVE, MessageClass

_ORDER: Final = (Role.OUTGOING, Role.QUEUE, Role.DEAD_LETTER, Role.JOURNAL)
_EXPIRES_SOON: Final = 3600.0
# What a message went through on its way, but did not end with.
_PASSING: Final = frozenset({EventKind.RESTORED, EventKind.DUPLICATE, EventKind.JOURNALED})


def judge_message(facts: MessageFacts) -> Explanation:
    """Where a message is, and why it is not further."""
    places = sorted(facts.places, key=lambda place: _ORDER.index(place.role))
    causes = [cause for place in places for cause in _PLACES[place.role](place, facts)]
    ended = _ending(facts)
    if ended is not None and not any(p.role in (Role.QUEUE, Role.OUTGOING) for p in places):
        causes.insert(0, ended)
    if not causes:
        causes = [_unknown(facts)]
    return Explanation(
        facts.id,
        Kind.MESSAGE,
        " ".join(sentence(cause.text) for cause in causes[:2]),
        _facts(facts, places),
        causes,
        [_step(event) for event in facts.events],
    )


# Where it is


def _waiting_here(place: Place, facts: MessageFacts) -> list[Cause]:
    since = facts.now - place.seconds
    if place.is_being_sent:
        return [_not_visible(place, since)]
    where = f"the message waits in {place.queue}, where it arrived {ago(place.seconds)}"
    if place.is_purged:
        text = f"{place.queue} was purged: the message goes when {place.holder} lets go of it"
        return [Cause("purge-pending", text, Severity.INFO, "", since)]
    causes = [Cause("waiting", f"{where}, {_line(place)}", Severity.INFO, "", since)]
    causes += _poison(place)
    if place.holder:
        causes.insert(1, _held(place))
    elif not place.readers_waiting:
        causes.append(_unread(place))
    return causes + _expiring(place)


def _not_visible(place: Place, since: float) -> Cause:
    if place.is_in_doubt:
        text = (
            f"nobody can see the message in {place.queue} yet: {place.holder} is prepared, and its "
            "coordinator has not said how it ended"
        )
        hint = "commit or abort it in the console, under Transactions"
        return Cause("in-doubt", text, Severity.ERROR, hint, since)
    text = (
        f"nobody can see the message in {place.queue} yet: it was sent {ago(place.seconds)} in "
        f"{place.holder}, which is not committed"
    )
    hint = "let its application commit or abort it"
    return Cause("not-committed", text, Severity.WARNING, hint, since)


def _held(place: Place) -> Cause:
    if place.is_in_doubt:
        text = (
            f"{place.holder} has taken it and is prepared: its coordinator has to say how it ended"
        )
        hint = "commit or abort it in the console, under Transactions"
        return Cause("in-doubt", text, Severity.ERROR, hint)
    text = f"{place.holder} holds it: nobody else can read it until that ends"
    return Cause("held", text, Severity.INFO, "let that reader commit or give up")


def _unread(place: Place) -> Cause:
    last = place.last_receive_seconds
    when = f"the last receive from this queue was {ago(last)}"
    if last is None:
        when = "nothing was received from this queue since the start"
    hint = f"start the application that reads it; to look: falconmq why '{place.queue}'"
    return Cause("no-reader-waits", f"no reader waits for it; {when}", Severity.WARNING, hint)


def _poison(place: Place) -> list[Cause]:
    if place.aborts < POISON_ABORTS:
        return []
    text = f"its readers gave it back {place.aborts} times: they fail on it"
    hint = f"look at it and move it away: falconmq peek '{place.queue}'"
    return [Cause("poison-message", text, Severity.ERROR, hint)]


def _expiring(place: Place) -> list[Cause]:
    seconds = place.expires_seconds
    if seconds is None or seconds > _EXPIRES_SOON:
        return []
    return [Cause("expires-soon", f"it expires in {age(seconds)}", Severity.WARNING)]


def _on_its_way(place: Place, facts: MessageFacts) -> list[Cause]:
    outgoing = place.outgoing
    assert outgoing is not None
    since, where = facts.now - place.seconds, outgoing.host or place.queue
    if place.is_being_sent:
        return [_not_visible(place, since)]
    progress = place.whereabouts.progress
    if progress is Progress.ARRIVED:
        text = (
            f"the message arrived at {where}, and nobody has received it there yet: it stays here "
            "until that is known, for its journal or dead letter"
        )
        return [Cause("awaiting-final-ack", text, Severity.INFO, "", since)]
    text = f"the message waits here for {where} since {age(place.seconds)}, "
    if progress is Progress.UNSENT:
        text += f"{messages(place.whereabouts.ahead)} ahead of it"
    else:
        text += progress.value
    if place.whereabouts.in_vain:
        text += f"; it was sent {_times(place.whereabouts.in_vain)} before, in vain"
    first = Cause("on-its-way", text, Severity.INFO, "", since)
    return [first, *outgoing_causes(outgoing), *_expiring(place)]


def _dead(place: Place, facts: MessageFacts) -> list[Cause]:
    text = (
        f"a copy is in {place.queue} since {age(place.seconds)}: "
        f"{reason_words(place.reason) if place.reason else 'it was not delivered'}"
    )
    hint = f"falconmq dead-letter redrive --id '{facts.id}'"
    since = facts.now - place.seconds
    return [Cause("dead-lettered", text, Severity.ERROR, hint, since)]


def _journaled(place: Place, facts: MessageFacts) -> list[Cause]:
    text = f"a copy is in the journal {place.queue} since {age(place.seconds)}"
    return [Cause("journaled", text, Severity.INFO, "", facts.now - place.seconds)]


_PLACES: Final[Mapping[Role, Callable[[Place, MessageFacts], list[Cause]]]] = {
    Role.QUEUE: _waiting_here,
    Role.OUTGOING: _on_its_way,
    Role.DEAD_LETTER: _dead,
    Role.JOURNAL: _journaled,
}


# How it ended


def _ending(facts: MessageFacts) -> Cause | None:
    """What happened to it last, if that says where it went."""
    events = [event for event in facts.events if event.kind not in _PASSING]
    told = next((event for event in reversed(events) if event.kind is EventKind.TOLD), None)
    if told is not None:
        return _told(told, facts)
    ends = [event for event in events if event.kind is not EventKind.DEAD_LETTERED]
    if ends:
        return _end(ends[-1], facts)
    return None


def _told(event: MessageEvent, facts: MessageFacts) -> Cause:
    when = ago(facts.now - event.time)
    if event.reason & NEGATIVE:
        text = f"its receiver did not keep it: {reason_words(event.reason)}, told {when}"
        return Cause("refused-there", text, Severity.ERROR, class_hint(event.reason), event.time)
    if event.reason == MessageClass.ACK_RECEIVE:
        text = f"the message was received by its reader elsewhere, told {when}"
        return Cause("received-there", text, Severity.INFO, "", event.time)
    text = f"the message reached its queue elsewhere, told {when}"
    return Cause("reached-queue", text, Severity.INFO, "", event.time)


def _end(event: MessageEvent, facts: MessageFacts) -> Cause:
    code, text, severity, hint = _described(event)
    when = ago(facts.now - event.time)
    return Cause(code, f"{text} {when}", severity, hint, event.time)


def _described(event: MessageEvent) -> tuple[str, str, Severity, str]:
    where = "" if event.queue is None else f" from {queue_text(event.queue)}"
    there = "" if event.queue is None else f" in {queue_text(event.queue)}"
    reason, info, error = reason_words(event.reason), Severity.INFO, Severity.ERROR
    match event.kind:
        case EventKind.RECEIVED:
            return "received", f"the message was received{where}", info, ""
        case EventKind.DELIVERED:
            text = f"the message was handed over to {event.detail or 'the next queue manager'}"
            hint = f"ask there: falconmq why '{message_id_text(event.source, event.message_id)}'"
            return "delivered", text, info, hint
        case EventKind.EXPIRED:
            text = f"the message expired{there}: {reason},"
            return "expired", text, error, class_hint(event.reason)
        case EventKind.PURGED:
            return "purged", f"the message was purged{where}", error, ""
        case EventKind.QUEUE_DELETED:
            return "queue-deleted", f"the message was deleted with its queue{there}", error, ""
        case EventKind.REJECTED:
            return "rejected", f"its reader rejected the message{there}", error, ""
        case EventKind.MOVED:
            return "moved", f"the message was moved{where} to {event.detail}", info, ""
        case EventKind.REFUSED:
            text = f"the message was refused here, on its way to {event.detail}: {reason},"
            return "refused", text, error, class_hint(event.reason)
        case _:
            text = f"the message left without a record; the last one: {event_words(event)}{there}"
            hint = "a failed write may have undone it, or a delivery was not remembered"
            return "lost-track", text, Severity.WARNING, hint


def _unknown(facts: MessageFacts) -> Cause:
    since = f"in the {age(facts.log_reaches_seconds)} that are remembered"
    if facts.is_log_whole:
        since = f"since the start {ago(facts.log_seconds)}"
    elsewhere = "ask the queue managers that it may have passed"
    if not facts.is_ours:
        elsewhere = f"it was sent by queue manager {facts.source}: ask there first"
    part = "" if facts.is_search_whole else " (only a part of the queues was searched)"
    text = f"this message is in no queue here{part}, and nothing is known of it {since}"
    hint = f"{elsewhere}; journals and dead letters keep copies only if the sender asked for them"
    return Cause("unknown", text, Severity.WARNING, hint)


# What it rests on


def _line(place: Place) -> str:
    if not place.is_readable:
        return "and cannot be read now"
    return "first in line" if not place.ahead else f"{messages(place.ahead)} ahead of it"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _step(event: MessageEvent) -> Step:
    queue = "" if event.queue is None else queue_text(event.queue)
    return Step(event.time, event.kind.name.lower(), event_words(event), queue)


def _facts(facts: MessageFacts, places: list[Place]) -> list[Fact]:
    found = [Fact("message", facts.id)]
    if facts.label:
        found.append(Fact("label", facts.label))
    found.append(Fact("sent by", "this queue manager" if facts.is_ours else facts.source))
    if facts.size_bytes:
        found.append(Fact("size", size(facts.size_bytes)))
    for place in places:
        text = f"{place.queue}, lookup id {place.lookup_id}, {ago(place.seconds)}"
        found.append(Fact(place.role.value, text))
        if place.expires_seconds is not None:
            found.append(Fact("expires", f"in {age(place.expires_seconds)}"))
        if place.aborts:
            found.append(Fact("given back", _times(place.aborts)))
    return found
