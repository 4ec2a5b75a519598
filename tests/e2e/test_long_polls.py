"""Many readers who wait over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.long_polls import measure

MEBIBYTE = 1 << 20


@pytest.mark.slow
def test_a_thousand_readers_wait_in_little_memory_and_each_message_reaches_one(
    tmp_path: Path,
) -> None:
    outcome = measure(tmp_path, readers=1000, queues=100, rate=200, messages=1000)
    assert outcome.is_exact
    assert max(outcome.idle_bytes, outcome.busy_bytes) < 500 * MEBIBYTE
