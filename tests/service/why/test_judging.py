"""From facts to causes, without anything that has to be made happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.manager.events import EventKind, MessageEvent
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.service.why import Severity
from falconmq.service.why.explanation import Cause, Explanation, Kind
from falconmq.service.why.message_facts import MessageFacts, Place, Role
from falconmq.service.why.message_judging import judge_message
from falconmq.service.why.outgoing_facts import Answer, Attempt, OutgoingFacts, answers
from falconmq.service.why.outgoing_judging import judge_outgoing, outgoing_causes
from falconmq.service.why.words import age, event_words, reason_words, size
from falconmq.transport.session import SessionState
from falconmq.transport.situations import Progress, Situation, Whereabouts
from falconmq.wire.message_class import MessageClass

FACTS = OutgoingFacts(7, r"DIRECT=OS:far\private$\orders", now=1000.0, host="far", messages=2)
ID = "{11111111-2222-3333-4444-555555555555}\\7"


def failed(status: ConnectionStatus, problem: str = "", next_try: float = 3.0) -> OutgoingFacts:
    return replace(
        FACTS,
        history=(
            Attempt(ConnectionStatus.ESTABLISHED, 100.0),
            Attempt(status, 50.0),
            Attempt(status, 12.0, ("10.0.0.7",)),
        ),
        situation=Situation(problem, next_try, unsent=2),
    )


@pytest.mark.parametrize(
    ("status", "problem", "code"),
    [
        (ConnectionStatus.CONNECTION_REFUSED, "connection refused", "connection-refused"),
        (ConnectionStatus.DNS_FAILURE, "unknown", "name-not-resolved"),
        (ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, "no way", "no-route"),
        (ConnectionStatus.PING_FAILURE, "refuses", "ping-refused"),
        (ConnectionStatus.SOCKET_CONNECT_FAILURE, "10.0.0.7:1801: no answer", "no-answer"),
        (ConnectionStatus.SOCKET_CONNECT_FAILURE, "connection timed out", "no-answer"),
        (ConnectionStatus.SOCKET_CONNECT_FAILURE, "no route to host", "unreachable"),
        (ConnectionStatus.SOCKET_BIND_FAILURE, "cannot assign", "no-local-resource"),
        (ConnectionStatus.LOW_RESOURCE, "too many open files", "no-local-resource"),
        (ConnectionStatus.CONNECTION_NOT_READY, "closed", "session-not-opened"),
        (ConnectionStatus.ESTABLISHED, "the peer closed the connection", "session-closed"),
        (ConnectionStatus.UNKNOWN_FAILURE, "", "session-closed"),
    ],
)
def test_each_way_to_fail_has_its_cause_with_the_tries(
    status: ConnectionStatus, problem: str, code: str
) -> None:
    (cause,) = outgoing_causes(failed(status, problem))
    assert cause.code == code
    assert cause.text.endswith("last try 12 s ago, next in 3 s")
    assert cause.severity is not Severity.INFO
    assert cause.hint


def test_the_sentence_is_the_one_of_the_style_page() -> None:
    facts = replace(failed(ConnectionStatus.CONNECTION_REFUSED), messages=3)
    found = judge_outgoing(facts)
    assert found.summary == (
        "3 messages wait for far. Connection refused on port 1801, last try 12 s ago, next in 3 s."
    )
    assert found.hints == ["is the service running there? check: falconmq ping far"]
    assert found.causes[0].since == 950.0  # the first try since there was a session


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"is_http": True}, "destination-not-supported"),
        ({"is_multicast": True}, "destination-not-supported"),
        ({"has_transport": False}, "no-transport"),
        ({"state": OutgoingState.ON_HOLD}, "paused"),
        ({"state": OutgoingState.LOCKED}, "locked"),
        ({"refusals": (Answer(MessageClass.NACK_ACCESS_DENIED, 1, 5.0),)}, "access-refused"),
        ({"refusals": (Answer(MessageClass.NACK_BAD_DST_Q, 1, 5.0),)}, "no-such-queue"),
        ({"refusals": (Answer(MessageClass.NACK_BAD_SIGNATURE, 1, 5.0),)}, "refused-there"),
    ],
)
def test_what_else_can_be_wrong(changes: dict[str, object], code: str) -> None:
    facts = replace(FACTS, **changes)  # type: ignore[arg-type]
    assert [cause.code for cause in outgoing_causes(facts)] == [code]


def test_a_pause_hides_the_tries_that_failed_before_it() -> None:
    facts = replace(failed(ConnectionStatus.CONNECTION_REFUSED), state=OutgoingState.ON_HOLD)
    assert [cause.code for cause in outgoing_causes(facts)] == ["paused"]


def test_old_failures_are_no_cause_when_nothing_waits() -> None:
    facts = replace(failed(ConnectionStatus.CONNECTION_REFUSED), messages=0)
    assert [cause.code for cause in outgoing_causes(facts)] == ["empty"]


def test_a_session_that_is_being_opened() -> None:
    situation = Situation(session_state=SessionState.WAITING_ECR_MSG, address="10.0.0.7")
    facts = replace(FACTS, situation=situation)
    assert [cause.code for cause in outgoing_causes(facts)] == ["connecting"]
    facts = replace(facts, history=(Attempt(ConnectionStatus.IN_PROCESS, 9.0),))
    (cause,) = outgoing_causes(facts)
    assert (cause.code, cause.since) == ("no-answer-to-greeting", 991.0)


def test_answers_are_summed_up_by_class() -> None:
    assert answers([(0x8000, 5.0), (0x8004, 6.0), (0x8000, 9.0)], 10.0) == (
        Answer(0x8000, 2, 1.0),
        Answer(0x8004, 1, 4.0),
    )


# Messages


@pytest.mark.parametrize(
    ("whereabouts", "words"),
    [
        (Whereabouts(Progress.UNSENT, 3), "3 messages ahead of it"),
        (Whereabouts(Progress.UNSENT, 0, 2), "it was sent 2 times before, in vain"),
        (Whereabouts(Progress.SENT), "sent, and not acknowledged"),
        (Whereabouts(Progress.RECEIVED), "received by the next queue manager"),
    ],
)
def test_how_far_a_message_on_its_way_is(whereabouts: Whereabouts, words: str) -> None:
    place = Place("x", Role.OUTGOING, 5, 60.0, whereabouts=whereabouts, outgoing=FACTS)
    found = judge_message(MessageFacts(ID, now=1000.0, places=(place,)))
    assert words in found.causes[0].text
    assert found.causes[0].since == 940.0


def test_a_message_that_left_without_a_record_says_what_was_recorded_last() -> None:
    event = MessageEvent(1, 990.0, EventKind.QUEUED, bytes(16), 7, None, 0, 10, 0, "")
    found = judge_message(MessageFacts(ID, now=1000.0, events=(event,)))
    assert [cause.code for cause in found.causes] == ["lost-track"]
    assert "put into an outgoing queue" in found.summary


def test_a_search_that_was_given_up_says_so() -> None:
    found = judge_message(MessageFacts(ID, is_search_whole=False, is_log_whole=False))
    assert "only a part of the queues was searched" in found.summary
    assert "that are remembered" in found.summary


def test_the_copy_in_a_journal_comes_behind_what_matters_more() -> None:
    places = (
        Place("journal", Role.JOURNAL, 1, 5.0),
        Place("queue", Role.QUEUE, 2, 5.0, readers_waiting=1),
    )
    found = judge_message(MessageFacts(ID, now=1000.0, places=places))
    assert [cause.code for cause in found.causes] == ["waiting", "journaled"]


# Words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_ages_have_the_two_units_that_matter(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_sizes_and_reasons_in_words() -> None:
    assert [size(n) for n in (0, 1023, 1536, 3 << 20, 5 << 40)] == [
        "0 bytes",
        "1,023 bytes",
        "1.5 KiB",
        "3.0 MiB",
        "5120.0 GiB",
    ]
    assert reason_words(MessageClass.NACK_Q_PURGED) == "the queue was purged (NACK_Q_PURGED)"
    assert reason_words(0x0100) == "0x0100"


def test_every_kind_of_event_has_words() -> None:
    for kind in EventKind:
        event = MessageEvent(1, 0.0, kind, bytes(16), 7, None, 0, 0, 0, "there")
        assert event_words(event)


def test_the_worst_cause_decides_and_hints_are_said_once() -> None:
    found = Explanation(
        "x",
        Kind.QUEUE,
        "",
        causes=[
            Cause("a", "", Severity.WARNING, "do this"),
            Cause("b", "", Severity.ERROR, "do this"),
            Cause("c", ""),
        ],
    )
    assert (found.severity, found.hints) == (Severity.ERROR, ["do this"])
    assert Explanation("x", Kind.QUEUE, "").severity is Severity.INFO
