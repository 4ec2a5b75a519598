"""Start, stop, and what happens between the core and its store (MQDMPR 3.1.3, 3.1.4.1, 3.1.4.2).

    STOPPED -> INITIALIZING -> READY -> STOPPING -> STOPPED

A host makes a core, calls `initialize`, and from then on commits what `take_batch` gives it:
`settle` when a commit is durable, `restore` when it failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.coordinator import OutcomeOf, resolve_in_doubt
from falconmq.manager.core import QueueManagerCore, Timers
from falconmq.manager.creation import (
    DEAD_LETTER_NUMBER,
    JOURNAL_NUMBER,
    NOTIFY_QUEUE_NUMBER,
    ORDER_QUEUE_NUMBER,
    TRANSACTIONAL_DEAD_LETTER_NUMBER,
    create_system_queue,
)
from falconmq.manager.directory import (
    read_directory,
    start_directory_timers,
    update_local_queue_manager,
)
from falconmq.manager.directory_backend import (
    DirectoryBackend,
    NoDirectory,
    equals,
    remembered,
)
from falconmq.manager.directory_objects import INITIALIZATION_RETRY_SECONDS, Enterprise, Site
from falconmq.manager.model import NULL_UUID
from falconmq.manager.persistence import (
    check_identifier,
    forget_queue,
    load_counters,
    load_manager,
    load_queues,
    reserve_counters,
    store_counters,
    store_manager,
    store_queue,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.prepared import recover
from falconmq.manager.recovery import load_messages, rebuild
from falconmq.manager.registry import qualified_computer_name, unregister
from falconmq.manager.states import DirectoryResult, ManagerState, OutgoingState, PositionState
from falconmq.manager.transactions import abort_transaction
from falconmq.manager.waiting import end_waiting_read

_ENTERPRISE_FLAG = "non_ldap_capable_queue_manager_notification"


def initialize(
    core: QueueManagerCore, *, provisioning: bool = False, outcome_of: OutcomeOf | None = None
) -> None:
    """Bring a queue manager up (MQDMPR 3.1.3). `provisioning` is True only when it is set up.

    `outcome_of` asks the coordinator how a transaction ended that was left prepared; without it
    such transactions stay in doubt, and their messages locked, until somebody decides. It is for a
    queue manager without a transport; one that has a transport starts it first, so that it hears of
    the outcome, and then calls `coordinator.resolve_in_doubt`.
    Whatever goes wrong is raised; the queue manager is STOPPED then, and the caller may try again
    after `core.initialization_retry_seconds`.
    """
    core.state = ManagerState.INITIALIZING
    try:
        _forget_everything(core)
        check_identifier(core)
        load_manager(core)
        _identify(core)
        if core.directory.is_integrated:  # DM-3.1.3-11
            _integrate(core, provisioning=provisioning)
        load_counters(core)
        reserve_counters(core)
        load_queues(core)
        create_system_queues(core)
        load_messages(core)
        _restate_outgoing_queues(core)
        recover(core)  # DM-3.1.3-48; internal transactions left nothing to abort: DM-3.1.3-49
        if outcome_of is not None:
            resolve_in_doubt(core, outcome_of)  # DM-3.1.4.11-02
        _forget_empty_outgoing_queues(core)
        core.last_domain = core.machine_domain_id
        store_manager(core)
    except BaseException:
        core.state = ManagerState.STOPPED
        raise
    core.state = ManagerState.READY
    _announce_outgoing_messages(core)


def settle(core: QueueManagerCore, positions: Iterable[MessagePosition]) -> None:  # noqa: ARG001
    """A batch is durable: its messages need not be in memory any more."""
    for position in positions:
        if position.state is not PositionState.DELETED:
            position.queue.positions.settle(position)


def restore(core: QueueManagerCore) -> None:
    """A commit failed: memory goes back to what the store has.

    Express messages and waiting reads stay; live transactions are over, as if aborted. The caller
    has told everybody whose batch was not committed, and lets no batch taken before it commit.
    """
    rebuild(core)


def stop(core: QueueManagerCore) -> None:
    """Bring a queue manager down in order; the caller commits the last batch.

    Whoever waits for a message is told OPERATION_CANCELLED, internal transactions are aborted;
    prepared ones stay in the store until their coordinator decides.
    """
    core.state = ManagerState.STOPPING
    for queue in list(core.queues.values()):
        for read in list(queue.waiting):
            end_waiting_read(core, read, MqStatus.OPERATION_CANCELLED)
    for identifier, transaction in list(core.transactions.items()):
        if not (transaction.is_prepared and not transaction.single_phase):
            abort_transaction(core, identifier)
    core.timers = Timers()
    core.is_directory_online_timer_active = False
    store_counters(core)
    core.state = ManagerState.STOPPED


def join_directory(
    core: QueueManagerCore, directory: DirectoryBackend, *, provisioning: bool = False
) -> None:
    """Become part of a directory while the queue manager runs, as if it had started with it.

    DirectoryError if it cannot be read; then it is a workgroup still.
    """
    core.directory = directory
    try:
        _integrate(core, provisioning=provisioning)
    except BaseException:
        leave_directory(core)
        raise
    store_manager(core)


def leave_directory(core: QueueManagerCore) -> None:
    """Be a workgroup from now on; queues and messages stay as they are."""
    core.directory = NoDirectory()  # the timers of the other one end with it
    core.is_directory_offline = False  # DM-3.1.1.1-38
    core.is_directory_online_timer_active = False
    core.enterprise = None
    core.sites.clear()
    core.directory_servers.clear()
    core.local.site_identifiers = []
    core.local.out_routing_server_identifiers = []
    core.local.in_routing_server_identifiers = []
    core.local.connect([], [])
    store_manager(core)


def _integrate(core: QueueManagerCore, *, provisioning: bool) -> None:
    if provisioning:
        _provision(core)
    core.sites.clear()
    _synchronize(core, provisioning=provisioning)
    if provisioning:
        _publish_keys(core)
    start_directory_timers(core, provisioning=provisioning)


def take_offline(core: QueueManagerCore) -> None:
    """Break off the traffic with other queue managers (Take Offline, MQDMPR 3.1.4.1)."""
    core.is_connection_active = False


def bring_online(core: QueueManagerCore) -> None:
    """Take it up again (Bring Online, MQDMPR 3.1.4.2)."""
    core.is_connection_active = True


def create_system_queues(core: QueueManagerCore) -> None:
    """The queues that every queue manager has (DM-3.1.3-42, -43)."""
    core.dead_letter = create_system_queue(core, DEAD_LETTER_NUMBER, r".\system$;deadletter")
    core.transactional_dead_letter = create_system_queue(
        core, TRANSACTIONAL_DEAD_LETTER_NUMBER, r".\system$;deadxact"
    )
    core.journal = create_system_queue(core, JOURNAL_NUMBER, r".\system$;journal")
    for number, name in (
        (NOTIFY_QUEUE_NUMBER, r".\private$\notify_queue$"),  # DM-3.1.3-52
        (ORDER_QUEUE_NUMBER, r".\private$\order_queue$"),
    ):
        create_system_queue(core, number, name, is_internal=True)  # DM-3.1.3-44


def _forget_everything(core: QueueManagerCore) -> None:
    """A core that was stopped may be started again; nothing volatile is left of its first life."""
    core.queues.clear()
    core.paths.clear()
    core.private_numbers.clear()
    core.public.clear()
    core.connectors.clear()
    core.outgoing.clear()
    core.transactions.clear()
    core.descriptors.clear()
    core.cursors.clear()
    core.sites.clear()
    core.used_bytes = 0
    core.is_throttled = core.is_directory_offline = False


def _identify(core: QueueManagerCore) -> None:
    """Who this computer is: from the configuration, where Windows asks its LSA (DM-A52)."""
    settings, local = core.settings, core.local
    core.machine_domain_id = settings.domain_identifier  # DM-3.1.3-05
    local.computer_name = settings.computer_name  # DM-3.1.3-08
    local.qualified_computer_name = qualified_computer_name(settings)  # DM-3.1.3-09
    local.quota_kilobytes = settings.quota_kilobytes
    local.journal_quota_kilobytes = settings.journal_quota_kilobytes


def _provision(core: QueueManagerCore) -> None:
    """What is decided once, when a queue manager joins a directory."""
    core.initialization_retry_seconds = INITIALIZATION_RETRY_SECONDS  # DM-3.1.3-12
    sites, site = core.local.site_identifiers, core.settings.site_identifier
    if site is not None and site not in sites:
        sites.append(site)  # DM-3.1.3-13
    for server in core.directory.find_servers(core.settings.domain_name):  # DM-3.1.3-14
        if server not in core.directory_servers:
            core.directory_servers.append(server)


def _publish_keys(core: QueueManagerCore) -> None:
    """Let the directory's object of this queue manager hold its public keys.

    Behind the synchronization: keys that the directory has from an earlier life are not ours.
    """
    from falconmq.security.keys import ManagerKeys  # noqa: PLC0415 - few queue managers need it

    source = core.key_source
    keys = ManagerKeys.generate(core.random) if source is None else source()
    core.local.public_encryption_keys = keys.public_encryption_keys.encode()  # DM-3.1.3-17
    core.local.public_signing_keys = keys.public_signing_keys.encode()  # DM-3.1.3-23


def _synchronize(core: QueueManagerCore, *, provisioning: bool) -> None:
    """Read this queue manager, its sites and its enterprise from the directory."""
    filters = equals("identifier", core.identifier)
    result, row = read_directory(core, "QueueManager", filters)
    known = remembered(core.directory, "QueueManager", filters)
    if result is DirectoryResult.DIRECTORY_NOT_CONNECTED and known is not None:
        result, row = DirectoryResult.SUCCESS, known  # offline, with what it knew
    if result is DirectoryResult.SUCCESS:
        update_local_queue_manager(core, row)  # DM-3.1.3-33
        for identifier in core.local.site_identifiers:  # DM-3.1.3-34
            _read_site(core, identifier)
    elif not (result is DirectoryResult.OBJECT_NOT_FOUND and provisioning):  # DM-3.1.3-36
        raise _cannot_initialize("its own object", result)  # DM-3.1.3-37
    result, row = read_directory(core, "Enterprise", (), (_ENTERPRISE_FLAG,))  # DM-3.1.3-38
    core.enterprise = Enterprise(_identifier_of(row.get("identifier")))
    if result is DirectoryResult.SUCCESS:
        core.enterprise.update(row)  # DM-3.1.3-39
    elif result is not DirectoryResult.ATTRIBUTE_NOT_FOUND:  # then the flag is True: DM-3.1.3-40
        raise _cannot_initialize("the enterprise", result)  # DM-3.1.3-51


def _read_site(core: QueueManagerCore, identifier: UUID) -> None:
    result, row = read_directory(core, "Site", equals("identifier", identifier))
    if result is DirectoryResult.SUCCESS:  # DM-3.1.3-35
        site = Site(identifier)
        site.update(row)
        core.sites.append(site)


def _identifier_of(value: object) -> UUID:
    return value if isinstance(value, UUID) else NULL_UUID


def _cannot_initialize(what: str, result: DirectoryResult) -> DirectoryError:
    is_away = result is DirectoryResult.DIRECTORY_NOT_CONNECTED
    return DirectoryError(
        f"the queue manager cannot read {what} from the directory: {result.value}",
        status=MqStatus.NO_DS if is_away else MqStatus.DS_ERROR,
        hint="it can be tried again when the directory is there",
    )


def _restate_outgoing_queues(core: QueueManagerCore) -> None:
    """Hardened mode locks every way but HTTP; a change of it counts from a restart on."""
    is_hardened = core.settings.hardened_security
    for queue in core.outgoing.values():
        before = queue.state
        if queue.state is OutgoingState.LOCKED and not is_hardened:
            queue.state = OutgoingState.WAITING  # DM-3.1.3-45
        elif is_hardened and not queue.is_http:
            queue.state = OutgoingState.LOCKED  # DM-3.1.3-46, -47
        if queue.state is not before:
            store_queue(core, queue)


def _forget_empty_outgoing_queues(core: QueueManagerCore) -> None:
    """An outgoing queue lives for its messages; the next open makes it anew."""
    for queue in list(core.outgoing.values()):
        if not len(queue.positions):
            unregister(core, queue)
            forget_queue(core, queue)


def _announce_outgoing_messages(core: QueueManagerCore) -> None:
    """Tell the transport which messages wait for it since before the restart."""
    if not core.available_subscribers:
        return
    for queue in list(core.outgoing.values()):
        for lookup_id in list(queue.positions.available):
            position = queue.positions.find(lookup_id)
            if position is not None and position.state is PositionState.AVAILABLE:
                for subscriber in core.available_subscribers:
                    subscriber(queue, position)
