"""A queue manager over its data, as the configuration wants it, before it has a port or a door."""

from __future__ import annotations

from random import SystemRandom
from uuid import UUID

from falconmq.clock import SystemClock
from falconmq.embedded import blocking
from falconmq.embedded.engine import Engine
from falconmq.manager import lifecycle
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.event_keeping import EventKeeper
from falconmq.manager.events import EventLog
from falconmq.manager.persistence import stored_identifier
from falconmq.security.key_store import KeyStore
from falconmq.security.signing_keys import SigningKeys
from falconmq.service.addresses import local_addresses
from falconmq.service.configuration import ALL_INTERFACES, Configuration
from falconmq.service.observation.event_texts import queue_text
from falconmq.service.securing import secure
from falconmq.store import GroupCommitter, Store


def start_hosted_engine(store: Store, configuration: Configuration) -> Engine:
    """A queue manager over a store, whose timers the host runs."""
    try:
        chance = SystemRandom()
        identifier = stored_identifier(store) or UUID(int=chance.getrandbits(128), version=4)
        settings = Settings(
            computer_name=configuration.manager.name,
            local_names=local_names(configuration),
            quota_kilobytes=configuration.manager.quota_kilobytes,
        )
        core = QueueManagerCore(identifier, store, SystemClock(), chance, settings)
        prepare(configuration, core)
        lifecycle.initialize(core)
        committer = GroupCommitter(store)
    except BaseException:
        store.close()
        raise
    engine = Engine(core, store, committer, housekeeping=False)
    try:
        blocking.call(engine, _nothing)  # what the initialization wrote
    except BaseException:
        engine.close()
        raise
    return engine


def prepare(configuration: Configuration, core: QueueManagerCore) -> None:
    """Make a queue manager what the configuration says, before anything happens in it."""
    remember(configuration, core)
    secure(core, configuration.security)
    core.key_source = KeyStore(configuration.manager.data).keys
    core.signing_keys = SigningKeys(configuration.manager.data)


def remember(configuration: Configuration, core: QueueManagerCore) -> None:
    """Let a queue manager record what happens to messages, as far as it is wanted."""
    events = configuration.events
    if configuration.history.events or events.keep:
        core.events = EventLog(core.clock.time, configuration.history.events)
        if events.keep:
            core.events.keeper = EventKeeper(core.store, events.retention, queue_text)


def local_names(configuration: Configuration) -> frozenset[str]:
    """The names and addresses that mean us in a direct format name."""
    manager, advertised = configuration.manager, configuration.transport.advertised_address
    names = {*manager.local_names, manager.bind}
    if manager.bind == ALL_INTERFACES:
        names = {*manager.local_names, *local_addresses()}
    return frozenset(names | {advertised} if advertised else names)


def _nothing(core: QueueManagerCore) -> None:
    """A turn that only commits what is there."""
