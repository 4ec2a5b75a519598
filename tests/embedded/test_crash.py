"""A queue manager that is killed under load keeps its word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import crash


@pytest.mark.slow
def test_ten_kills_lose_nothing_acknowledged_and_bring_nothing_consumed_back(
    tmp_path: Path,
) -> None:
    told = crash.run(10, seed=20261116, directory=tmp_path, quiet=True)
    assert told.operations > 500
