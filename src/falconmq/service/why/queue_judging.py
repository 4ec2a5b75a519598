"""Why messages wait in a queue of ours: from facts to causes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from falconmq.service.why.explanation import Cause, Explanation, Fact, Kind, Severity
from falconmq.service.why.outgoing_judging import sentence
from falconmq.service.why.queue_facts import Consuming, Holding, QueueFacts
from falconmq.service.why.words import age, ago, class_hint, messages, reason_words, size, waits

POISON_ABORTS: Final = 3  # a message that was given back so often is probably not readable
NEARLY_FULL: Final = 0.9
FULL: Final = 0.99  # of the whole queue manager: hardly any message fits into what is left
_IDLE_SECONDS: Final = 60.0  # without a receive: nobody reads
_KILOBYTE: Final = 1024
_BATCH: Final = 3

Check = Callable[[QueueFacts], Iterator[Cause]]


def judge_queue(facts: QueueFacts, subject: str = "") -> Explanation:
    """Why the messages of a queue are still there, and what keeps others from coming."""
    causes = queue_causes(facts)
    if facts.messages:
        summary = f"{waits(facts.messages)} in {facts.name}."
    else:
        summary = f"{facts.name} is empty."
    if causes:
        summary += f" {sentence(causes[0].text)}"
    return Explanation(subject or facts.name, Kind.QUEUE, summary, _facts(facts), causes)


def queue_causes(facts: QueueFacts) -> list[Cause]:
    """All causes that are found; what stops everything comes first."""
    found = [cause for check in _CHECKS for cause in check(facts)]
    order = list(Severity)
    return sorted(found, key=lambda cause: -order.index(cause.severity))


# What keeps messages from coming in


def _full(facts: QueueFacts) -> Iterator[Cause]:
    used = _share(facts.size_bytes, facts.quota_kilobytes)
    if used is None:
        return
    quota = f"{facts.quota_kilobytes:,} KiB"
    hint = f"let its readers catch up, or: falconmq queue set '{facts.name}' --quota KIB"
    if _leaves_no_room(facts, facts.quota_kilobytes or 0):
        text = f"the queue is full: its quota is {quota}, and new messages are refused"
        yield Cause("queue-full", text, Severity.ERROR, hint)
    elif used >= NEARLY_FULL:
        text = f"{used:.0%} of its quota of {quota} are used"
        yield Cause("queue-nearly-full", text, Severity.WARNING, hint)


def _leaves_no_room(facts: QueueFacts, quota_kilobytes: int) -> bool:
    """Whether another message like those that are there would not fit."""
    usual = facts.size_bytes // max(1, facts.messages)
    return facts.size_bytes + usual > quota_kilobytes * _KILOBYTE or not quota_kilobytes


def _manager_full(facts: QueueFacts) -> Iterator[Cause]:
    if facts.is_throttled:
        text = "the queue manager takes no messages at the moment: it is throttled"
        yield Cause("manager-throttled", text, Severity.ERROR, "the log of the service says why")
    used = _share(facts.manager_bytes, facts.manager_quota_kilobytes)
    if used is None or used < NEARLY_FULL:
        return
    quota = size((facts.manager_quota_kilobytes or 0) * _KILOBYTE)
    text = f"{used:.0%} of the {quota} of the whole queue manager are used"
    hint = "receive or purge messages, or raise quota_kilobytes in [manager]"
    severity = Severity.ERROR if used >= FULL else Severity.WARNING
    yield Cause("manager-full" if used >= FULL else "manager-nearly-full", text, severity, hint)


def _journal_full(facts: QueueFacts) -> Iterator[Cause]:
    used = _share(facts.journal_bytes, facts.journal_quota_kilobytes)
    if not facts.is_journaling or used is None or used < NEARLY_FULL:
        return
    text = f"{used:.0%} of the quota of its journal are used: then copies are dropped"
    hint = f"falconmq queue purge '{facts.name};journal'"
    yield Cause("journal-full", text, Severity.WARNING, hint)


def _refused(facts: QueueFacts) -> Iterator[Cause]:
    for answer in facts.refusals[:_BATCH]:
        yield Cause(
            "refused-here",
            f"{messages(answer.count)} of other queue managers were refused: "
            f"{reason_words(answer.message_class)}, the last {ago(answer.seconds)}",
            Severity.WARNING,
            class_hint(answer.message_class),
            facts.now - answer.seconds,
        )


def _stalled(facts: QueueFacts) -> Iterator[Cause]:
    for stream in facts.streams:
        if stream.reject_count:
            yield Cause(
                "stream-stalled",
                f"{messages(stream.reject_count)} of {stream.sender} came out of order: this queue "
                f"waits for the one behind number {stream.number}",
                Severity.WARNING,
                "the sender sends it again by itself; if that lasts, ask there: falconmq why",
                facts.now - stream.seconds,
            )


# What keeps messages from going out


def _poison(facts: QueueFacts) -> Iterator[Cause]:
    if facts.head_aborts < POISON_ABORTS:
        return
    yield Cause(
        "poison-message",
        f"the first message was given back {facts.head_aborts} times: its readers fail on it",
        Severity.ERROR,
        f"look at it and move it away: falconmq why '{facts.head_id}'",
    )


def _held(facts: QueueFacts) -> Iterator[Cause]:
    for holding in facts.holdings[:_BATCH]:
        if holding.is_prepared:
            yield _in_doubt(holding)
        elif holding.is_sender:
            waited = holding.since_seconds or 0.0
            text = (
                f"{messages(holding.messages)} cannot be seen yet: {holding.holder} has sent "
                f"{_them(holding.messages)} {ago(waited)} and is not committed"
            )
            hint = "let its application commit or abort it"
            yield Cause("not-committed", text, Severity.WARNING, hint, facts.now - waited)
        else:
            text = f"{holding.holder} holds {messages(holding.messages)}"
            hint = "" if facts.readable else "let that reader commit or give up"
            yield Cause("held", text, Severity.INFO if facts.readable else Severity.WARNING, hint)


def _in_doubt(holding: Holding) -> Cause:
    return Cause(
        "in-doubt",
        f"{holding.holder} is prepared and holds {messages(holding.messages)} until its "
        "coordinator says how it ended",
        Severity.ERROR,
        "commit or abort it in the console, under Transactions",
    )


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _unread(facts: QueueFacts) -> Iterator[Cause]:
    """Nobody takes what is there."""
    if not facts.readable:
        return
    if facts.is_system:
        yield Cause("kept", "they are kept until somebody looks at them")
        return
    last = facts.last_receive_seconds
    if facts.readers_waiting:
        return  # they get it this moment
    if last is not None and last < _IDLE_SECONDS:
        yield Cause("slow-readers", f"readers are at work, the last receive was {ago(last)}")
        return
    known = f"in the {age(facts.log_seconds)} that are remembered"
    when = f"the last receive was {ago(last)}" if last is not None else f"no receive {known}"
    opened = facts.readers_open
    who = f"{opened} have it open" if opened else "nobody has it open to receive"
    yield Cause(
        "nobody-reads",
        f"nobody reads: {when}, {who}",
        Severity.WARNING,
        f"start the application that reads it; to look: falconmq peek '{facts.name}'",
        None if last is None else facts.now - last,
    )


def _expiring(facts: QueueFacts) -> Iterator[Cause]:
    if facts.expiring and facts.expires_seconds is not None:
        yield Cause(
            "expires-soon",
            f"{messages(facts.expiring)} near the front expire soon, the first in "
            f"{age(facts.expires_seconds)}",
            Severity.WARNING,
            "receive them, or they go to the dead letters if their senders asked for that",
        )


_CHECKS: Final[tuple[Check, ...]] = (
    _full,
    _manager_full,
    _poison,
    _held,
    _unread,
    _stalled,
    _refused,
    _expiring,
    _journal_full,
)


def _share(used: int, quota_kilobytes: int | None) -> float | None:
    if quota_kilobytes is None:
        return None
    return used / (quota_kilobytes * _KILOBYTE) if quota_kilobytes else 1.0


def _facts(facts: QueueFacts) -> list[Fact]:
    held = sum(holding.messages for holding in facts.holdings)
    found = [
        Fact("queue", facts.name + (", transactional" if facts.transactional else "")),
        Fact("messages", f"{facts.readable} readable, {held} held, {size(facts.size_bytes)}"),
        Fact("readers", f"{facts.readers_waiting} waiting, {facts.readers_open} have it open"),
        Fact("last arrival", _moment(facts.last_arrival_seconds, facts)),
        Fact("last receive", _moment(facts.last_receive_seconds, facts)),
    ]
    if facts.is_connector:
        found.append(Fact("for", "foreign systems: a connector program reads it, and passes on"))
    if facts.oldest_seconds is not None:
        found.append(Fact("first in line", f"arrived {ago(facts.oldest_seconds)}"))
    if facts.quota_kilobytes is not None:
        found.append(Fact("quota", f"{facts.quota_kilobytes:,} KiB"))
    if facts.journal_messages:
        journal = f"{messages(facts.journal_messages)}, {size(facts.journal_bytes)}"
        found.append(Fact("journal", journal))
    found += [Fact("held by", f"{h.holder}: {messages(h.messages)}") for h in facts.holdings]
    found += [Fact("consumer", _progress(consumer)) for consumer in facts.consumers]
    found += [
        Fact("stream", f"of {s.sender}: number {s.number}, {ago(s.seconds)}") for s in facts.streams
    ]
    return found


def _progress(consumer: Consuming) -> str:
    last = "never" if consumer.seconds is None else ago(consumer.seconds)
    return f"{consumer.name}: {messages(consumer.behind)} behind, acknowledged {last}"


def _moment(seconds: float | None, facts: QueueFacts) -> str:
    return f"not in the last {age(facts.log_seconds)}" if seconds is None else ago(seconds)
