"""A short run of `python -m fuzz.peers`, and whether it would notice."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from fuzz.peer_talk import Vocabulary
from fuzz.peers import Attack, Peers, attacked, tell_end
from tests.conformance_wire.stage import Stage

SEED = 20_261_116
EXCHANGES = 3_000
ROUND = 100


def quiet(_: Attack) -> None:
    """Nobody reads the progress of a test."""


def test_a_daemon_survives_damaged_conversations() -> None:
    with attacked() as (stage, vocabulary):
        attack = Attack(stage, vocabulary, SEED)
        is_well = attack.run(EXCHANGES, quiet, ROUND)
        assert is_well, (attack.last, attack.watch.problems, stage.daemon.story())
        assert attack.watch.read >= EXCHANGES
        # and the damage was of many kinds, but not of so many that nothing else was read
        assert len(attack.watch.reasons) > 20
        assert attack.watch.reasons["the peer closed the connection"] > attack.watch.sessions / 4
        assert attack.watch.purged > EXCHANGES / 10
        # and it stops in order, and has what it had
        assert stage.daemon.stop() == 0
        stage.daemon.start()
        assert attack.watch.look(), attack.watch.problems
        _check_that_it_can_be_repeated(stage, vocabulary)
        _check_that_it_notices(attack, stage)


def _told(attack: Attack, stage: Stage) -> str:
    """What a run says that found something behind its first conversation."""
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.chdir(place),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
        assert tell_end(attack, 0.0, False, stage, 1) == 1
        assert Path(".work/fuzz/findings/peers.log").read_text(encoding="utf-8")
    return out.getvalue()


def _check_that_it_can_be_repeated(stage: Stage, vocabulary: Vocabulary) -> None:
    first, again, other = (Peers(stage, vocabulary, seed) for seed in (1, 1, 2))
    for number in range(50):
        assert first.conversation(number) == again.conversation(number)
        assert first.datagrams(number) == again.datagrams(number)
    assert first.conversation(1) != other.conversation(1)
    assert first.conversation(1) != first.conversation(1, answers=True)


def _check_that_it_notices(attack: Attack, stage: Stage) -> None:
    """A fuzzer that finds nothing has to show that it could."""
    assert attack.replay(range(3)) is None
    log = stage.daemon.log

    def writes(line: str) -> Callable[[], None]:
        def write() -> None:
            with log.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

        return write

    def grows() -> None:
        attack.watch.memory_limit = 1

    def loses() -> None:
        stage.client.purge_queue(stage.path("safe"))

    for happens, problem in (
        (writes("2026-01-01 00:00:00,000 ERROR falconmq.service event failed"), "event failed"),
        (writes("Traceback (most recent call last):"), "Traceback"),
        (writes("2026-01-01 00:00:00,000 INFO falconmq.service x\x1b[1m"), "x1b"),
        (writes("a line of a stranger"), "stranger"),
        (loses, "safe messages"),
        (grows, "MiB of memory"),
        (stage.daemon.kill, "never started"),
    ):
        happens()
        assert attack.replay([1]) == 1
        assert any(problem in found for found in attack.watch.problems), attack.watch.problems
        told = _told(attack, stage)
        assert problem in told
        assert f"--seed {SEED} --replay 1-1" in told
        attack.watch.problems.clear()
