"""The API against requests made from its own description: `make fuzz` has the long version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.api import FuzzedDaemon, fuzz, operations

EXAMPLES = 4  # of each operation


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedDaemon]:
    with FuzzedDaemon(tmp_path_factory.mktemp("fuzzed")) as running:
        yield running


@pytest.mark.slow
def test_no_request_brings_the_api_to_a_server_error(daemon: FuzzedDaemon) -> None:
    described = operations(daemon.url)
    assert len(described) > 30
    for operation in described:
        fuzz(operation, daemon, EXAMPLES)
    assert daemon.is_alive()
