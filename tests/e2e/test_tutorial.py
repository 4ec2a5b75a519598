"""The tutorial works as it stands, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.walk import Walk, fits, steps

DOCS = Path(__file__).parents[2] / "docs"
SPARK_SECONDS = 240.0  # that a step with Spark may take on a busy computer


@pytest.mark.slow
def test_a_reader_gets_through_the_tutorial(tmp_path: Path) -> None:
    found = list(steps((DOCS / "tutorial.md").read_text("utf-8")))
    assert len(found) > 15
    with Walk(tmp_path) as walk:
        for step in found:
            walk.take(step)


@pytest.mark.slow
def test_a_reader_gets_from_a_queue_to_a_chart(tmp_path: Path) -> None:
    found = list(steps((DOCS / "spark-tutorial.md").read_text("utf-8")))
    assert len(found) == 7
    with Walk(tmp_path, SPARK_SECONDS) as walk:
        for step in found:
            walk.take(step)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<svg" in page


def test_a_walk_notices_a_command_that_prints_something_else(tmp_path: Path) -> None:
    (step,) = steps("```console\n$ echo here\nthere\n```\n")
    with Walk(tmp_path) as walk, pytest.raises(AssertionError, match="instead of"):
        walk.take(step)


@pytest.mark.parametrize(
    ("printed", "expected", "is_so"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\nb\nc\n", "a\n...\nc", True),
        ("sent 7 of 9\n", "sent ... of 9", True),
        ("a\nb\n", "a", False),
        ("", "...", True),
    ],
)
def test_dots_stand_for_anything(printed: str, expected: str, is_so: bool) -> None:
    assert fits(printed, expected) is is_so
