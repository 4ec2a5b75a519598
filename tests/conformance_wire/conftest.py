"""The stages: a daemon is started when the first conversation needs it, one for each worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance_wire.stage import Stage


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """A daemon as it comes, but quick."""
    with Stage.started(ping_answered=True) as stage:
        yield stage


@pytest.fixture(scope="session")
def frank_stage() -> Iterator[Stage]:
    """A daemon that tells everybody why their messages were refused."""
    with Stage.started(send_insecure_nacks=True) as stage:
        yield stage


@pytest.fixture
def wide_stage() -> Iterator[Stage]:
    """A daemon whose window is larger than what 32 bits can acknowledge."""
    with Stage.started(window_size=200) as stage:
        yield stage


@pytest.fixture
def narrow_stage() -> Iterator[Stage]:
    """A daemon that takes two sessions at a time, and closes them soon if nothing happens."""
    with Stage.started(sessions_max=2, cleanup_interval=2.0, ping_answered=True) as stage:
        yield stage


@pytest.fixture(scope="session")
def asking_stage() -> Iterator[Stage]:
    """A daemon that pings before it calls."""
    with Stage.started(ping_enabled=True) as stage:
        yield stage
