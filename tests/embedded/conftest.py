from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import falconmq
from falconmq import QueueManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[QueueManager]:
    """A manager over a data directory, as users have it."""
    with falconmq.open(tmp_path / "data", computer_name="SALES01") as manager:
        yield manager
