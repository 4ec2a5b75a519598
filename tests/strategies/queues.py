"""Strategies for queues: what may stand in them, and what readers do with them."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.manager.states import SeekAction

PRIORITIES = 8

priorities = st.integers(0, PRIORITIES - 1)

lookup_ids = st.builds(
    lambda band, number: band << 56 | number, st.sampled_from((0, 4, 7)), st.integers(1, 9)
)
"""Few of them, so that they meet; in several bands of priority."""

seek_actions = st.sampled_from(SeekAction)

timeouts = st.sampled_from((0.0, 1.0, 5.0, None))
"""Seconds that a reader waits: not at all, a while, for ever."""
