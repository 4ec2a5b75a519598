from __future__ import annotations

import subprocess
import sys

import pytest

from falconmq.simulation.run import run_seed
from tests.simulation.helpers import digest_of


@pytest.mark.slow
@pytest.mark.requirement("QB-3.1.5.8.1-03", "QB-A38-01", "QB-A39-01")
@pytest.mark.parametrize("first", range(1, 101, 10))
def test_queue_managers_keep_their_promises_whatever_goes_wrong(first: int) -> None:
    for seed in range(first, first + 10):
        result = run_seed(seed)
        story = "\n".join(result.story)
        assert not result.problem, (
            f"seed {seed}: {result.problem}\n{story}\n"
            f"replay: python -m falconmq.simulation --seed {seed} --trace"
        )


def test_a_seed_gives_the_same_run_again() -> None:
    assert digest_of(7) == digest_of(7)


def test_two_seeds_give_two_runs() -> None:
    assert digest_of(7) != digest_of(8)


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_another_process_with_other_hashes() -> None:
    script = "from tests.simulation.helpers import digest_of; print(digest_of(9))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ".:src"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert found == {digest_of(9)}


def test_a_run_says_what_happened_in_it() -> None:
    result = run_seed(3)
    assert result.messages > 10
    assert result.virtual_seconds > 6 * 3600
    assert result.counts["connections"]


def test_a_mistake_in_the_code_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("nothing here")

    monkeypatch.setattr("falconmq.transport.transport.Transport.data_received", broken)
    result = run_seed(3)
    assert result.problem.startswith("KeyError at test_seeds.py")
    assert result.story
