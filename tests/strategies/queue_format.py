"""Strategies for QUEUE_FORMAT and the structures it holds."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.queue_format import DlId, MulticastId, ObjectId
from tests.strategies.wire import guids, texts, u32

object_ids = st.builds(ObjectId, guids, u32)
dl_ids = st.builds(DlId, guids, texts())
multicast_ids = st.builds(MulticastId, u32, u32)
