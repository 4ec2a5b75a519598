"""One daemon for all attacks that leave it as it was, in each process that runs tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.scene import Scene, attacked


@pytest.fixture(scope="session")
def scene() -> Iterator[Scene]:
    with attacked() as scene:
        yield scene
