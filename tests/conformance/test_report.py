"""The report counts a row as proven only while every test that names it passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.catalogue import Requirement, load_catalogue, load_gaps, load_owners
from conformance.report import State, judge, main, section_key

pytest_plugins = ["pytester"]

CATALOGUE = {
    id: Requirement(id, "mqmq", "2.1", level, "both", "text")
    for id, level in [("MQ-1", "MUST"), ("MQ-2", "MUST"), ("MQ-3", "MUST"), ("MQ-4", "FACT")]
}


def outcome(passed: int = 0, failed: int = 0) -> dict[str, list[str]]:
    return {"passed": ["p"] * passed, "failed": ["f"] * failed}


def test_a_row_is_proven_by_passing_tests_only() -> None:
    results = {
        "MQ-1": outcome(passed=2),
        "MQ-2": outcome(passed=1, failed=1),
        "MQ-4": outcome(passed=1),
    }
    report = judge(results, CATALOGUE, {"MQ-3": "left out"})
    assert report.states == {
        "MQ-1": State.PROVEN,
        "MQ-2": State.OPEN,
        "MQ-3": State.GAP,
        "MQ-4": State.PROVEN,
    }
    assert not report.problems


def test_the_last_line_counts_must_rows() -> None:
    report = judge({"MQ-1": outcome(passed=1)}, CATALOGUE, {"MQ-3": "left out"})
    assert report.last_line == "conformance: 1 of 3 MUST rows proven, 1 stated gaps, 1 open"


def test_an_unknown_id_is_a_problem() -> None:
    assert judge({"MQ-9": outcome(passed=1)}, CATALOGUE, {}).problems
    assert judge({}, CATALOGUE, {"MQ-9": "why"}).problems


def test_a_gap_that_is_proven_is_a_problem() -> None:
    assert judge({"MQ-1": outcome(passed=1)}, CATALOGUE, {"MQ-1": "left out"}).problems


def test_sections_sort_as_numbers() -> None:
    assert sorted(["2.10", "A01", "2.9", "2"], key=section_key) == ["2", "2.9", "2.10", "A01"]


def test_the_catalogue_and_the_gaps_are_sound() -> None:
    catalogue = load_catalogue()
    assert len(catalogue) > 4400
    assert {row.level for row in catalogue.values()} == {"MUST", "SHOULD", "MAY", "FACT"}
    assert not load_gaps().keys() - catalogue.keys()
    assert not load_owners().keys() - catalogue.keys()
    assert not load_owners().keys() & load_gaps().keys()


def test_results_that_cannot_be_read_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_the_report_fails_on_an_unknown_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"MQ-0.0-99": outcome(passed=1)}))
    assert main([str(results)]) == 1
    output = capsys.readouterr()
    assert "MQ-0.0-99" in output.err
    assert output.out.splitlines()[-1].startswith("conformance: ")


CONFTEST = (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")


def run(pytester: pytest.Pytester, test_file: str) -> tuple[pytest.RunResult, Path]:
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    requirement: row")
    pytester.makepyfile(test_file)
    path = pytester.path / "results.json"
    return pytester.runpytest_inprocess("--requirements-json", str(path), "-p", "no:xdist"), path


def test_outcomes_are_recorded_per_row(pytester: pytest.Pytester) -> None:
    _, path = run(
        pytester,
        """
        import pytest

        @pytest.mark.requirement("MQ-2.1.1-01")
        def test_good(): pass

        @pytest.mark.requirement("MQ-2.1.1-02")
        def test_bad(): assert False

        @pytest.mark.requirement("MQ-2.1.1-03")
        def test_skipped(): pytest.skip("not here")

        @pytest.mark.parametrize("x", [
            pytest.param(1, marks=pytest.mark.requirement("MQ-2.1.1-04")), 2])
        def test_rows(x): pass
        """,
    )
    outcomes = json.loads(path.read_text())
    assert len(outcomes["MQ-2.1.1-01"]["passed"]) == 1
    assert len(outcomes["MQ-2.1.1-02"]["failed"]) == 1
    assert outcomes["MQ-2.1.1-03"]["passed"] == []
    assert len(outcomes["MQ-2.1.1-04"]["passed"]) == 1


def test_a_marker_with_an_unknown_id_stops_the_run(pytester: pytest.Pytester) -> None:
    result, _ = run(
        pytester,
        """
        import pytest

        @pytest.mark.requirement("MQ-9.9-99")
        def test_good(): pass
        """,
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
