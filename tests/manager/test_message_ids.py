"""Message identifiers: 32 bits of a counter that never goes back."""

from __future__ import annotations

import pytest

from falconmq.manager.core import next_message_id
from tests.manager.helpers import commit, make_core, restart


@pytest.mark.requirement("QB-3.1.1.3-21")
@pytest.mark.requirement("QB-A45-01")
def test_the_first_identifier_is_one_and_none_is_zero() -> None:
    core = make_core()
    assert [next_message_id(core) for _ in range(3)] == [1, 2, 3]
    # and where the 32 bits begin again, zero is left out
    core.message_id.value = (1 << 32) - 2
    assert [next_message_id(core) for _ in range(3)] == [0xFFFFFFFF, 1, 2]


def test_numbers_are_reserved_long_before_they_are_used() -> None:
    """An express message waits for no commit: its number must be safe from a crash all the same."""
    core = make_core()
    for _ in range(10_000):
        given = next_message_id(core)
        stored = core.store.get("meta", b"message_id")
        assert stored is not None
        assert int.from_bytes(stored, "big") >= given
        if given % 1000 == 0:  # a commit comes now and then, not with every number
            commit(core)
    assert next_message_id(restart(core)) > given
