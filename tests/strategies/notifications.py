"""Strategies for the messages of MQCN."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.change_notification import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import NotificationUpdate
from tests.strategies.properties import properties
from tests.strategies.wire import guids, texts

server_names = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1).filter(
    lambda name: len(name) <= 256
)
notification_bodies = st.builds(
    NotificationBody,
    event=st.sampled_from(NotificationEvent),
    object_guid=guids,
    domain_controller=server_names,
)
notification_updates = st.builds(
    NotificationUpdate,
    command=st.integers(0, 2),
    identifier=st.one_of(texts(), guids),
    guid_master_id=guids,
    properties=properties(min_size=2),
    reserved=st.binary(min_size=24, max_size=24),
)
change_notifications = st.builds(
    ChangeNotificationMessage,
    data=st.one_of(notification_bodies, st.lists(notification_updates, min_size=1, max_size=3)),
)
