from __future__ import annotations

import pytest

from falconmq.simulation.__main__ import main
from falconmq.simulation.mutations import mutated


def test_one_seed_is_replayed_with_everything_that_happened(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seed", "3", "--trace"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seed 3\n")
    assert "everything is repaired" in out
    assert "1 runs" in out
    assert "0 failures" in out


def test_many_seeds_end_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1-4", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert "4 runs" in out
    assert "virtual hours" in out
    assert "what happened:" in out


def test_a_failure_tells_its_story_and_how_to_replay_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mutated("drop every FinalAck"):
        assert main(["--seeds", "1-20", "--failures", "1"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: " in out
    assert "replay: python -m falconmq.simulation --seed " in out
    assert "1 failures" in out


def test_no_seed_at_all_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["--seeds", "many"])
    assert error.value.code == 2
    assert "no range of seeds" in capsys.readouterr().err
