"""Joining and leaving a directory while the queue manager runs, and what it remembers of it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import (
    check_directory_online,
    directory_sites_update,
    read_directory,
)
from falconmq.manager.directory_backend import Filters, NoDirectory, equals
from falconmq.manager.directory_objects import QueueManager, Row
from falconmq.manager.lifecycle import initialize, join_directory, leave_directory
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.states import DirectoryResult
from falconmq.wire.sddl import parse_sddl
from tests.manager.directories import SITE, build_core, make_directory, make_integrated_core
from tests.manager.helpers import IDENTIFIER, commit, make_core, pass_time

SUCCESS = DirectoryResult.SUCCESS
NOT_CONNECTED = DirectoryResult.DIRECTORY_NOT_CONNECTED
GATE = UUID("6a7e6a7e-0000-4000-8000-000000000001")
OTHER = UUID("07e207e2-0000-4000-8000-000000000001")
DAY = 86_400.0  # seconds


class Remembering(MemoryDirectory):
    """A directory that remembers all that it ever had, for the time when it is away."""

    def remembered(self, type_name: str, filters: Filters) -> Row | None:
        was, self.is_connected = self.is_connected, True
        result, row = self.read(type_name, filters, None)
        self.is_connected = was
        return row if result is SUCCESS else None


def remembering() -> Remembering:
    directory = Remembering()
    directory.rows = make_directory().rows
    return directory


def is_online(core: QueueManagerCore) -> bool:
    return not core.is_directory_offline


def test_a_workgroup_joins_and_leaves() -> None:
    core = make_core()
    directory = make_directory(quota_kilobytes=77)
    join_directory(core, directory)
    assert core.directory is directory
    assert [site.name for site in core.sites] == ["Berlin"]
    assert core.settings.quota_kilobytes == 77
    directory.is_connected = False
    read_directory(core, "Enterprise")
    assert core.is_directory_offline
    leave_directory(core)
    assert isinstance(core.directory, NoDirectory)
    assert core.sites == []
    assert core.enterprise is None
    assert core.local.site_identifiers == []
    assert is_online(core)  # DM-3.1.1.1-38
    # its timers end with it, and with the next one only those of that one run
    directory.calls.clear()
    pass_time(core, 1)
    second = make_directory()
    join_directory(core, second)
    second.calls.clear()
    pass_time(core, core.settings.directory_sites_update_seconds)
    assert directory.calls == []
    assert second.calls == ["read Site"]


def test_a_directory_that_cannot_be_read_is_not_joined() -> None:
    core = make_core()
    directory = make_directory()
    directory.is_connected = False
    with pytest.raises(DirectoryError) as refused:
        join_directory(core, directory)
    assert refused.value.status is MqStatus.NO_DS
    assert not core.directory.is_integrated
    assert not core.is_directory_offline


@pytest.mark.requirement("DM-3.1.3-16")
def test_the_list_of_servers_is_read_again_once_it_was_set_up() -> None:
    directory = make_directory()
    directory.servers = ["DC1"]
    core = build_core(directory, domain_name="example.com")
    initialize(core, provisioning=True)
    commit(core)
    assert core.directory_servers == ["DC1"]
    for servers in (["DC1", "DC2"], ["DC3"]):
        directory.servers = servers
        pass_time(core, core.settings.directory_server_list_update_seconds)
        assert core.directory_servers == servers
    directory.servers = []  # nobody answers: better the old ones than none
    pass_time(core, core.settings.directory_server_list_update_seconds)
    assert core.directory_servers == ["DC3"]


def test_nobody_asks_for_servers_who_was_not_set_up_now() -> None:
    core, directory, _ = make_integrated_core()
    pass_time(core, 2 * DAY)
    assert not [call for call in directory.calls if call.startswith("find servers")]


@pytest.mark.requirement("DM-3.1.1.1-55", "DM-3.1.1.1-56")
def test_routing_servers_are_those_that_the_identifiers_name() -> None:
    machine = QueueManager(IDENTIFIER)
    machine.out_routing_server_identifiers = [GATE]
    machine.in_routing_server_identifiers = [OTHER]
    machine.connect([QueueManager(GATE)], [QueueManager(OTHER)])
    assert [server.identifier for server in machine.out_routing_servers] == [GATE]
    assert [server.identifier for server in machine.in_routing_servers] == [OTHER]
    with pytest.raises(DirectoryError, match="OutRoutingServerIdentifierList"):
        machine.connect([QueueManager(OTHER)], [])
    with pytest.raises(DirectoryError, match="InRoutingServerIdentifierList"):
        machine.connect([], [QueueManager(GATE)])
    assert [server.identifier for server in machine.out_routing_servers] == [GATE]
    assert "out_routing_servers" not in machine.row()  # they are ours, not the directory's


def test_offline_it_answers_from_what_is_remembered() -> None:
    directory = remembering()
    directory.create("Queue", {"identifier": OTHER, "path_name": r"beta\bills"})
    core, _, _ = make_integrated_core(directory)
    directory.is_connected = False
    assert read_directory(core, "Site", equals("identifier", SITE))[0] is NOT_CONNECTED
    assert core.is_directory_offline
    assert read_directory(core, "Site", equals("identifier", SITE))[1]["name"] == "Berlin"
    assert read_directory(core, "Queue", equals("path_name", r"beta\bills"))[0] is SUCCESS
    missing = read_directory(core, "Queue", equals("path_name", r"beta\none"))
    assert missing[0] is DirectoryResult.OBJECT_NOT_FOUND
    assert read_directory(core, "Site", equals("identifier", GATE))[0] is NOT_CONNECTED


def test_it_starts_with_what_is_remembered() -> None:
    directory = remembering()
    directory.is_connected = False
    core = build_core(directory)
    initialize(core)
    assert core.is_directory_offline
    assert [site.name for site in core.sites] == ["Berlin"]
    assert core.enterprise is not None
    directory.is_connected = True
    pass_time(core, 60)
    assert not core.is_directory_offline


def test_a_host_may_ask_first() -> None:
    core, directory, _ = make_integrated_core()
    events: list[Callable[[QueueManagerCore], None]] = []
    core.directory_beside = events.append
    directory.calls.clear()
    pass_time(core, core.settings.directory_sites_update_seconds)
    assert directory.calls == []
    assert directory_sites_update in events
    directory.is_connected = False
    read_directory(core, "Enterprise")
    pass_time(core, 60)
    assert events[-1] is check_directory_online
    assert core.is_directory_offline
    directory.is_connected = True
    events[-1](core)
    assert not core.is_directory_offline


def test_a_directory_without_a_descriptor_leaves_our_permissions_alone() -> None:
    core = make_core()
    ours = core.local.security = parse_sddl("O:BAD:(A;;GA;;;BA)")
    directory = make_directory(security=None)
    join_directory(core, directory)
    assert core.local.security is ours
    said = parse_sddl("O:BAD:(A;;GA;;;WD)")
    directory.write("QueueManager", {"identifier": IDENTIFIER, "security": said})
    check_directory_online(core)
    assert core.local.security is said
