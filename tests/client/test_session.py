"""How a request is repeated, without a socket: the answers and the clock are the test's."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from falconmq.client.calls import Answer, BrokenError, Call, Operation, Pause
from falconmq.client.doors import Door
from falconmq.client.session import Outcome, Session, ask, post
from falconmq.errors import MqStatus, UnreachableError

DOOR = Door.parse("http://there:1")
LOOK = Call("GET", "/queues")


class Played:
    """Gives an operation answers one after the other, and lets time pass when it pauses."""

    def __init__(self, **options: Any) -> None:
        self.now = 100.0
        self.pauses: list[float] = []
        self.session = Session(DOOR, lambda: self.now, 10.0, 60.0, chance=Random(7))
        self.options = options

    def run(self, *answers: Answer | BrokenError) -> Outcome:
        left = list(answers)
        asking: Operation[Outcome] = ask(self.session, LOOK, **self.options)
        try:
            step = next(asking)
            while True:
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    self.now += step.seconds
                    step = asking.send(Answer())
                    continue
                assert step == LOOK
                answer = left.pop(0) if len(left) > 1 else left[0]
                if isinstance(answer, BrokenError):
                    step = asking.throw(answer)
                else:
                    step = asking.send(answer)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


def broken(*, was_sent: bool, is_hopeless: bool = False) -> BrokenError:
    error = DOOR.no_answer("broken")
    return BrokenError(error, was_sent=was_sent, is_hopeless=is_hopeless)


def refused(code: int, status: MqStatus, family: str) -> Answer:
    problem = {"hresult": f"0x{status:08X}", "detail": "no", "hint": "", "family": family}
    return Answer(code, json.dumps(problem).encode())


DONE = Answer(200, b"{}")


@pytest.mark.parametrize("was_sent", [False, True])
def test_what_can_be_repeated_is_repeated(was_sent: bool) -> None:
    outcome = Played().run(broken(was_sent=was_sent), broken(was_sent=False), DONE)
    assert outcome == Outcome(DONE, was_tried=was_sent)


def test_what_cannot_be_repeated_is_repeated_if_nothing_of_it_was_sent() -> None:
    played = Played(is_repeatable=False)
    assert played.run(broken(was_sent=False), DONE) == Outcome(DONE, was_tried=False)
    with pytest.raises(UnreachableError):
        played.run(broken(was_sent=True), DONE)


def test_pauses_grow_and_end_with_the_patience() -> None:
    played = Played()
    with pytest.raises(UnreachableError, match="broken"):
        played.run(broken(was_sent=False))
    assert played.now == pytest.approx(110.0)
    assert played.pauses[0] <= 0.02
    assert 0.5 <= max(played.pauses) <= 1.0


def test_the_first_contact_is_not_repeated() -> None:
    played = Played(patience=0)
    with pytest.raises(UnreachableError):
        played.run(broken(was_sent=False), DONE)
    assert played.pauses == []


def test_what_is_hopeless_is_not_repeated() -> None:
    played = Played()
    with pytest.raises(UnreachableError):
        played.run(broken(was_sent=False, is_hopeless=True), DONE)
    assert played.pauses == []


@pytest.mark.parametrize("code", [429, 503])
def test_a_service_that_stops_or_is_overloaded_is_asked_again(code: int) -> None:
    busy = refused(code, MqStatus.OPERATION_CANCELLED, "ReadError")
    played = Played(is_repeatable=False)
    assert played.run(busy, busy, DONE) == Outcome(DONE, was_tried=False)
    assert len(played.pauses) == 2


def test_a_proxy_that_cannot_reach_the_service_may_have_passed_the_request_on() -> None:
    for code in (502, 504):
        assert Played().run(Answer(code), DONE) == Outcome(DONE, was_tried=True)
        with pytest.raises(UnreachableError, match=f"HTTP status {code}"):
            Played(is_repeatable=False).run(Answer(code), DONE)


def test_a_directory_that_is_not_there_is_a_refusal_and_no_reason_to_wait() -> None:
    answer = refused(503, MqStatus.NO_DS, "DirectoryError")
    played = Played()
    assert played.run(answer) == Outcome(answer, was_tried=False)
    assert played.pauses == []


def test_nobody_asks_for_a_client_that_was_closed() -> None:
    played = Played()
    played.session.is_closed = True
    with pytest.raises(Exception, match="was closed"):
        played.run(DONE)


def test_a_body_is_json() -> None:
    call = post("/queues", {"name": "x"}, wait_seconds=3.0)
    assert (call.method, call.content, call.wait_seconds) == ("POST", b'{"name": "x"}', 3.0)
