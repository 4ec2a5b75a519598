"""Why a change of the directory is not here, or not everywhere: from facts to an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from falconmq.service.why.explanation import Cause, Explanation, Fact, Kind, Severity
from falconmq.service.why.replication_facts import PartitionFacts, ReplicationFacts
from falconmq.service.why.words import age

_PATIENCE: Final = 90.0  # seconds after which an answer is late: it was asked for twice
_SILENCE: Final = 3 * 1200.0  # whoever says nothing for three hellos of 20 minutes is not there
_FACTS_MOST: Final = 20  # partitions whose numbers are shown
_NORMAL: Final = "NORMAL"
# How far a full synchronisation is, in words.
_STATES: Final = {
    "STARTSYNC0": "it is about to begin",
    "SYNC0": "the objects are on their way",
    "COMPLETESYNC0": "what is no longer there is being dropped",
}


def judge_replication(facts: ReplicationFacts) -> Explanation:
    """The worst cause first; what is known of the object itself always."""
    causes = [cause for partition in facts.partitions for cause in _causes(facts, partition)]
    if not facts.is_ready:
        causes = [_first_copy(facts), *causes]
    own = _object(facts, is_in_step=not causes)
    causes += _doubled(facts)
    order = list(Severity)
    causes.sort(key=lambda cause: -order.index(cause.severity))
    causes = [*causes, own] if own.severity is Severity.INFO else [own, *causes]
    sentences = [_sentence(own.text), *(_sentence(each.text) for each in causes if each is not own)]
    return Explanation(
        facts.subject, Kind.DIRECTORY, " ".join(sentences[:2]), _facts(facts), causes
    )


def _doubled(facts: ReplicationFacts) -> Iterator[Cause]:
    """Two sites have it: somebody has to say where it is."""
    if facts.also_in:
        others = " and ".join(facts.also_in)
        yield Cause(
            "in-two-sites",
            f"it is in {others} too; shown is the one that was made last",
            Severity.WARNING,
            f"to take it out of the wrong site: falconmq directory replication remove-claim "
            f"'{facts.subject}' SITE",
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _object(facts: ReplicationFacts, *, is_in_step: bool) -> Cause:
    """What this server has of it."""
    spot = facts.spot
    if spot is None:
        return _unknown(facts, is_in_step=is_in_step)
    partition = facts.partitions[0]
    place = f"with change {spot.number} of {_name(partition)}"
    if spot.is_deleted:
        text = f"the {spot.word} {spot.identifier} was deleted {place}, and that is known here"
        return Cause("deleted", text)
    if partition.is_own:
        text = f"the {spot.word} was last changed {place}, and this server decides about it"
        return Cause("decided-here", text)
    if not is_in_step:
        return Cause("older", f"the {spot.word} is here as it was {place}, of {partition.last}")
    text = (
        f"the {spot.word} is here as it was {place}, and this server has all {partition.last} "
        f"changes that it has heard of"
    )
    hint = f"if there is a newer one, ask who decides, on {partition.authority}: {_command(facts)}"
    return Cause("in-step", text, hint=hint)


def _unknown(facts: ReplicationFacts, *, is_in_step: bool) -> Cause:
    text = f"there is no {facts.subject} in the directory of {facts.machine}"
    if len(facts.partitions) == 1 and facts.partitions[0].is_own:
        decides = f"which decides about {_name(facts.partitions[0])}: never made, or deleted"
        hint = "a deletion is found by the GUID of what was deleted"
        return Cause("never-made", f"{text}, {decides}", Severity.WARNING, hint)
    if not is_in_step:
        return Cause("not-here", text)
    deciding = sorted({each.authority for each in facts.partitions if each.authority})
    text = f"{text}, and nothing that this server has heard of is missing"
    hint = f"see whether it was made, on the server that decides: {_command(facts)}"
    if len(deciding) == 1:
        hint = f"see whether it was made, on {deciding[0]}: {_command(facts)}"
    return Cause("unknown", text, Severity.WARNING, hint)


def _command(facts: ReplicationFacts) -> str:
    return f"falconmq directory replication why '{facts.subject}'"


def _first_copy(facts: ReplicationFacts) -> Cause:
    return Cause(
        "first-copy",
        "the first copy of the directory has not come yet",
        Severity.WARNING if facts.running_seconds < _PATIENCE else Severity.ERROR,
        "the servers have to know each other: falconmq key import FILE and [[computers]], on both",
        facts.now - facts.running_seconds,
    )


def _causes(facts: ReplicationFacts, partition: PartitionFacts) -> Iterator[Cause]:
    """What is wrong with one partition; nothing, if all is well."""
    if partition.is_own:
        if facts.spot is not None:
            yield from _not_sent(facts)
        return
    name = _name(partition)
    if not partition.source and len(facts.partitions) > 1:
        return  # a site that has no server yet: nothing can be missing
    if not partition.source:
        hint = f"falconmq directory set site '{partition.name}' primary_site_controller=SERVER"
        text = f"no server decides about {name} yet"
        yield Cause("no-authority", text, Severity.ERROR, hint)
        return
    if partition.state != _NORMAL:
        yield _full_sync(facts, partition)
    elif partition.lag:
        yield _behind(facts, partition)
    elif partition.asked_seconds is not None and partition.asked_seconds >= _PATIENCE:
        yield _unanswered(facts, partition)
    elif _is_silent(facts, partition):
        text = f"nothing was heard of {partition.source} for {age(_silence(facts, partition))}"
        yield Cause("silent", text, Severity.WARNING, _reach(partition))


def _not_sent(facts: ReplicationFacts) -> Iterator[Cause]:
    for machine, count in facts.to_send.items():
        if count:
            changes = "1 change waits" if count == 1 else f"{count:,} changes wait"
            yield Cause("to-send", f"{changes} to be sent to {machine} with the next message")


def _full_sync(facts: ReplicationFacts, partition: PartitionFacts) -> Cause:
    text = (
        f"this server missed so much of {_name(partition)} that it fetches all of it anew from "
        f"{partition.source}: {_STATES.get(partition.state, partition.state)}"
    )
    return Cause("full-sync", text, *_late(partition), _since(facts, partition))


def _behind(facts: ReplicationFacts, partition: PartitionFacts) -> Cause:
    text = (
        f"this server has the changes of {_name(partition)} up to {partition.last}, and has heard "
        f"of {partition.told_last}"
    )
    if partition.pending:
        text += f"; {partition.pending} came before others that are missing"
    if partition.asked_seconds is None:
        text += f"; {partition.source} is asked for them with the next hello"
    else:
        text += f"; {partition.source} was asked {age(partition.asked_seconds)} ago"
    return Cause("behind", text, *_late(partition), _since(facts, partition))


def _unanswered(facts: ReplicationFacts, partition: PartitionFacts) -> Cause:
    assert partition.asked_seconds is not None
    times = "once" if partition.asked_times == 1 else f"{partition.asked_times} times"
    text = (
        f"{partition.source} was asked {times} in {age(partition.asked_seconds)} for the changes "
        f"of {_name(partition)}, and has not answered"
    )
    return Cause("unanswered", text, *_late(partition), _since(facts, partition))


def _late(partition: PartitionFacts) -> tuple[Severity, str]:
    """Somebody has to act when an answer takes longer than answers take."""
    if partition.asked_seconds is None or partition.asked_seconds < _PATIENCE:
        return Severity.WARNING, "wait some seconds, then look again"
    return Severity.ERROR, _reach(partition)


def _reach(partition: PartitionFacts) -> str:
    address = rf"DIRECT=OS:{partition.source}\private$\mqis_queue$"
    return f"can it be reached? falconmq ping {partition.source}; falconmq why '{address}'"


def _since(facts: ReplicationFacts, partition: PartitionFacts) -> float | None:
    return None if partition.asked_seconds is None else facts.now - partition.asked_seconds


def _silence(facts: ReplicationFacts, partition: PartitionFacts) -> float:
    heard = partition.heard_seconds
    return facts.running_seconds if heard is None else heard


def _is_silent(facts: ReplicationFacts, partition: PartitionFacts) -> bool:
    return _silence(facts, partition) >= _SILENCE


def _name(partition: PartitionFacts) -> str:
    return "the enterprise" if partition.name == "enterprise" else f"site {partition.name}"


def _facts(facts: ReplicationFacts) -> list[Fact]:
    found = [Fact("server", f"{facts.machine}, {facts.role}")]
    if facts.spot is not None:
        found.append(Fact("object", f"{facts.spot.word} {facts.spot.identifier}"))
        what = "deleted with change" if facts.spot.is_deleted else "change"
        found.append(Fact("number", f"{what} {facts.spot.number}"))
    shown = facts.partitions[:_FACTS_MOST]
    return [*found, *(Fact("partition", f"{each.name}: {_numbers(each)}") for each in shown)]


def _numbers(partition: PartitionFacts) -> str:
    if partition.is_own:
        return f"this server decides, last change {partition.last}"
    heard = partition.heard_seconds
    parts = [
        f"{partition.authority or 'nobody'} decides",
        f"last change here {partition.last}, heard of {partition.told_last}",
        f"{partition.pending} pending",
        partition.state,
    ]
    if partition.source != partition.authority:
        parts.append(f"asks {partition.source}")
    if partition.asked_seconds is not None:
        parts.append(f"asked {age(partition.asked_seconds)} ago without an answer")
    parts.append("not heard since the start" if heard is None else f"heard {age(heard)} ago")
    return ", ".join(parts)
