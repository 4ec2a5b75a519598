"""The directory events and their timers (scenarios 61 to 67 of the guide)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import falconmq
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import (
    AttributeFilter,
    FilterOperator,
    NoDirectory,
    SortKey,
    check_directory_online,
    create_directory_object,
    delete_directory_object,
    directory_site_gates_update,
    equals,
    read_directory,
    read_directory_begin,
    read_directory_end,
    read_directory_next,
    write_directory,
)
from falconmq.manager.directory_objects import NULL_UUID, QueueManager, Site
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.queues import create_queue, find_queue, set_queue_properties
from falconmq.manager.states import ChangeOperation, DirectoryResult
from falconmq.names import PathName
from tests.manager.directories import SITE, make_directory, make_integrated_core
from tests.manager.helpers import COMPUTER, IDENTIFIER, commit, make_core, pass_time

SUCCESS = DirectoryResult.SUCCESS
NOT_CONNECTED = DirectoryResult.DIRECTORY_NOT_CONNECTED
NOT_FOUND = DirectoryResult.OBJECT_NOT_FOUND
GATE = UUID("6a7e6a7e-0000-4000-8000-000000000001")


def public(core: QueueManagerCore, name: str = r".\b", **properties: Any) -> Queue:
    return create_queue(core, PathName.parse(name), QueueProperties(**properties))


def reads(directory: MemoryDirectory) -> int:
    return directory.calls.count("read QueueManager")


Operation = Callable[[QueueManagerCore, Queue], DirectoryResult]
OPERATIONS: dict[str, Operation] = {
    "create": lambda core, queue: create_directory_object(core, queue)[0],
    "delete": delete_directory_object,
    "write": write_directory,
    "read": lambda core, queue: read_directory(core, "Queue")[0],
}


@pytest.mark.requirement(
    "DM-3.1.7.1.18-06",
    "DM-3.1.7.1.19-05",
    "DM-3.1.7.1.20-11",
    "DM-3.1.7.1.24-03",
    "DM-3.1.2.5-01",
)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_directory_out_of_reach_takes_the_queue_manager_offline(operation: Operation) -> None:
    # given a directory that cannot be reached
    core, directory, _ = make_integrated_core()
    queue = public(core)
    directory.is_connected = False
    # when anything is asked of it, twice
    assert operation(core, queue) is NOT_CONNECTED
    assert core.is_directory_offline
    pass_time(core, 30)
    core.is_directory_offline = False
    operation(core, queue)
    # then one timer runs for a minute from the first time, and asks for it
    directory.calls.clear()
    pass_time(core, 29.9)
    assert reads(directory) == 0
    pass_time(core, 0.1)
    assert reads(directory) == 1
    pass_time(core, 59.9)
    assert reads(directory) == 1


@pytest.mark.requirement("DM-3.1.7.1.25-04", "DM-3.1.2.5-01")
def test_while_the_directory_stays_away_it_is_asked_every_minute() -> None:
    core, directory, _ = make_integrated_core()
    directory.is_connected = False
    read_directory(core, "Queue")
    directory.calls.clear()
    for minutes in range(1, 4):
        pass_time(core, 60)
        assert reads(directory) == minutes
        assert core.is_directory_offline


@pytest.mark.requirement("DM-3.1.7.1.25-01", "DM-3.1.7.1.25-02", "DM-3.1.7.1.25-03")
def test_when_the_directory_is_back_everything_is_read_again() -> None:
    # given a queue manager offline, and a directory where things have changed meanwhile
    core, directory, _ = make_integrated_core()
    queue, other = public(core), public(core, r".\c")
    directory.is_connected = False
    read_directory(core, "Queue")
    directory.rows["QueueManager"][IDENTIFIER].update(quota_kilobytes=99, routing_server=True)
    directory.rows["Queue"][queue.identifier].update(label="New", transactional=True)
    # when it is back and the timer fires
    directory.is_connected = True
    directory.calls.clear()
    pass_time(core, 60)
    # then the queue manager and each public queue are as the directory says
    assert not core.is_directory_offline
    assert directory.calls == ["read QueueManager", "read Queue", "read Queue"]
    assert core.local.routing_server
    assert core.settings.quota_kilobytes == 99
    assert queue.properties.label == "New"
    assert other.properties.label == ""
    # but a queue never changes its nature, and the timer runs no more
    assert not queue.properties.transactional
    pass_time(core, 600)
    assert directory.calls.count("read QueueManager") == 1


@pytest.mark.requirement("DM-3.1.7.1.25-05")
def test_a_public_queue_that_the_directory_has_lost_is_kept() -> None:
    core, directory, _ = make_integrated_core()
    queue = public(core)
    directory.rows["Queue"].clear()
    check_directory_online(core)
    assert find_queue(core, PathName.parse(r".\b")) is queue


@pytest.mark.requirement("DM-3.1.7.1.20-07", "DM-3.1.7.1.20-08", "DM-3.1.7.1.20-09")
def test_offline_the_queue_manager_answers_from_what_it_knows() -> None:
    # given a queue manager offline
    core, directory, _ = make_integrated_core()
    queue = public(core, label="Here")
    core.is_directory_offline = True
    directory.calls.clear()
    # then it knows its own queues
    result, row = read_directory(core, "Queue", equals("identifier", queue.identifier))
    assert (result, row["label"]) == (SUCCESS, "Here")
    assert read_directory(core, "Queue", equals("identifier", UUID(int=1)))[0] is NOT_FOUND
    # and itself
    result, row = read_directory(core, "QueueManager", equals("identifier", IDENTIFIER))
    assert (result, row["computer_name"]) == (SUCCESS, COMPUTER)
    # but nobody and nothing else
    other = equals("identifier", UUID(int=1))
    assert read_directory(core, "QueueManager", other)[0] is NOT_CONNECTED
    assert read_directory(core, "Site", equals("identifier", SITE))[0] is NOT_CONNECTED
    assert directory.calls == []


@pytest.mark.requirement("DM-3.1.7.1.20-14")
def test_offline_a_reader_gets_a_copy() -> None:
    core, _, _ = make_integrated_core()
    queue = public(core)
    core.is_directory_offline = True
    _, row = read_directory(core, "Queue", equals("identifier", queue.identifier))
    assert isinstance(row, dict)
    row["label"] = "changed"
    assert queue.properties.label == ""


@pytest.mark.requirement("DM-3.1.7.1.20-01", "DM-3.1.7.1.20-10", "DM-3.1.7.1.20-12")
def test_a_forced_read_asks_the_directory_and_changes_nothing() -> None:
    # given a queue manager offline whose directory is there
    core, directory, _ = make_integrated_core()
    core.is_directory_offline = True
    # then a forced read reaches it
    filters = equals("identifier", SITE)
    assert read_directory(core, "Site", filters, force=True)[0] is SUCCESS
    # and one that fails neither takes it offline nor starts the timer
    core.is_directory_offline = False
    directory.is_connected = False
    assert read_directory(core, "Site", filters, force=True)[0] is NOT_CONNECTED
    assert not core.is_directory_offline
    assert not core.is_directory_online_timer_active


@pytest.mark.requirement(
    "DM-3.1.7.1.20-13", "DM-3.1.7.1.20-06", "DM-3.1.7.1.20-10", "DM-3.1.7.1.20-03"
)
def test_online_the_answer_of_the_directory_is_passed_on() -> None:
    core, _, _ = make_integrated_core()
    result, row = read_directory(core, "Site", equals("identifier", SITE), ("name",))
    assert (result, dict(row)) == (SUCCESS, {"identifier": SITE, "name": "Berlin"})
    result, row = read_directory(core, "Site", equals("identifier", SITE))
    assert row.keys() == Site().row().keys() | {"directory_path"}
    result, row = read_directory(core, "Site", equals("name", "Paris"))
    assert (result, dict(row)) == (NOT_FOUND, {})
    assert not core.is_directory_offline


@pytest.mark.requirement("DM-3.1.7.1.18-01", "DM-3.1.7.1.18-05", "DM-3.1.7.1.18-07")
def test_an_object_is_created_with_all_attributes_or_with_those_that_were_asked_for() -> None:
    core, directory, notices = make_integrated_core()
    result, guid = create_directory_object(core, Site(name="Paris", foreign_site=True))
    assert result is SUCCESS
    assert directory.rows["Site"][guid]["foreign_site"] is True
    result, guid = create_directory_object(core, Site(name="Rome", foreign_site=True), ("name",))
    assert directory.rows["Site"][guid]["name"] == "Rome"
    assert "foreign_site" not in directory.rows["Site"][guid]
    assert notices == []


@pytest.mark.requirement("DM-3.1.7.1.18-02", "DM-3.1.7.1.18-07")
def test_an_object_that_was_not_created_has_no_guid() -> None:
    core, directory, _ = make_integrated_core()
    queue = public(core)
    result = create_directory_object(core, queue)
    assert result == (DirectoryResult.OBJECT_ALREADY_EXISTS, NULL_UUID)
    assert not core.is_directory_offline
    directory.is_connected = False
    assert create_directory_object(core, queue) == (NOT_CONNECTED, NULL_UUID)


@pytest.mark.requirement("DM-3.1.7.1.18-03", "DM-3.1.7.1.19-02")
def test_creation_and_deletion_of_a_public_queue_are_announced_before_they_happen() -> None:
    # given a directory that is away
    core, directory, notices = make_integrated_core()
    queue = public(core)
    notices.clear()
    directory.calls.clear()
    notices.calls_before.clear()
    directory.is_connected = False
    # when a public queue is deleted and created there
    delete_directory_object(core, queue)
    create_directory_object(core, queue)
    # then both were announced, each before its call
    assert notices == [
        (ChangeOperation.QUEUE_DELETION, queue),
        (ChangeOperation.QUEUE_CREATION, queue),
    ]
    assert notices.calls_before == [0, 1]
    assert directory.calls == ["delete Queue", "create Queue"]


@pytest.mark.requirement("DM-3.1.7.1.19-01", "DM-3.1.7.1.19-04", "DM-3.1.7.1.19-06")
def test_the_result_of_a_deletion_is_passed_on() -> None:
    core, directory, notices = make_integrated_core()
    site = Site(SITE)
    assert delete_directory_object(core, site) is SUCCESS
    assert directory.rows["Site"] == {}
    assert delete_directory_object(core, site) is NOT_FOUND
    assert notices == []


@pytest.mark.requirement(
    "DM-3.1.7.1.24-01",
    "DM-3.1.7.1.24-02",
    "DM-3.1.7.1.24-04",
    "DM-3.1.7.1.24-05",
    "DM-3.1.7.1.24-06",
    "DM-3.1.7.1.24-07",
)
def test_a_write_is_announced_after_it_succeeded() -> None:
    # given a public queue and our own object
    core, directory, notices = make_integrated_core()
    queue = public(core)
    queue.properties.label = "New"
    queue.properties.base_priority = 5
    notices.clear()
    notices.calls_before.clear()
    directory.calls.clear()
    # when one attribute of the queue, the queue manager and a site are written
    assert write_directory(core, queue, ("label",)) is SUCCESS
    assert write_directory(core, core.local) is SUCCESS
    assert write_directory(core, Site(SITE, name="Bern")) is SUCCESS
    # then the first two are announced, after the write
    assert notices == [
        (ChangeOperation.QUEUE_UPDATE, queue),
        (ChangeOperation.QUEUE_MANAGER_UPDATE, core.local),
    ]
    assert notices.calls_before == [1, 2]
    assert directory.rows["Queue"][queue.identifier]["label"] == "New"
    assert directory.rows["Queue"][queue.identifier]["base_priority"] == 0
    assert directory.rows["Site"][SITE]["name"] == "Bern"
    # and a write that fails is not announced
    directory.rows["Queue"].clear()
    assert write_directory(core, queue) is NOT_FOUND
    directory.is_connected = False
    assert write_directory(core, core.local) is NOT_CONNECTED
    assert len(notices) == 2


@pytest.mark.requirement(
    "DM-3.1.7.1.21-01",
    "DM-3.1.7.1.21-02",
    "DM-3.1.7.1.21-03",
    "DM-3.1.7.1.21-04",
    "DM-3.1.7.1.21-05",
    "DM-3.1.7.1.21-07",
    "DM-3.1.7.1.22-01",
    "DM-3.1.7.1.22-02",
    "DM-3.1.7.1.22-03",
    "DM-3.1.7.1.23-01",
)
def test_a_query_gives_its_objects_in_order_and_then_ends() -> None:
    # given four sites
    core, directory, _ = make_integrated_core()
    directory.rows["Site"].clear()
    for name, interval in (("a", 2), ("b", 1), ("c", 2), ("d", 3), ("e", 9)):
        site = Site(name=name, intra_site_replication_interval=interval, full_path=name)
        create_directory_object(core, site)
    # when they are asked for by interval rising, and among equals by name falling
    attributes = ("name", "intra_site_replication_interval", "foreign_site")
    order = (SortKey(1, ascending=False), SortKey(2, ascending=True), SortKey(0))
    few = (AttributeFilter("intra_site_replication_interval", FilterOperator.LESS_THAN, 9),)
    result, handle = read_directory_begin(core, "Site", few, attributes, order)
    assert result is SUCCESS
    rows = [read_directory_next(core, handle) for _ in range(4)]
    # then they come in that order, with those attributes, and then no more
    assert [result for result, _ in rows] == [SUCCESS] * 4
    assert [row["name"] for _, row in rows] == ["b", "c", "a", "d"]
    assert rows[0][1].keys() == {"identifier", *attributes}
    assert read_directory_next(core, handle) == (DirectoryResult.END_OF_DATA, {})
    assert read_directory_end(core, handle) is SUCCESS
    # and without a filter, all of them, with everything
    _, handle = read_directory_begin(core, "Site")
    assert len([read_directory_next(core, handle) for _ in range(5)]) == 5
    assert read_directory_next(core, handle)[0] is DirectoryResult.END_OF_DATA


@pytest.mark.requirement("DM-3.1.7.1.21-06")
def test_a_query_of_a_directory_out_of_reach_is_refused() -> None:
    core, directory, _ = make_integrated_core()
    directory.is_connected = False
    assert read_directory_begin(core, "Site")[0] is NOT_CONNECTED


@pytest.mark.requirement("DM-3.1.7.1.20-04", "DM-3.1.7.1.20-05")
@pytest.mark.parametrize(
    ("operator", "passing"),
    [
        (FilterOperator.EQUALS, {2}),
        (FilterOperator.NOT_EQUALS, {1, 3}),
        (FilterOperator.LESS_THAN, {1}),
        (FilterOperator.GREATER_THAN, {3}),
        (FilterOperator.LESS_THAN_OR_EQUAL, {1, 2}),
        (FilterOperator.GREATER_THAN_OR_EQUAL, {2, 3}),
    ],
)
def test_a_filter_compares_the_attribute_with_the_value(
    operator: FilterOperator, passing: set[int]
) -> None:
    expression = AttributeFilter("cost", operator, 2)
    assert {n for n in (1, 2, 3) if expression.matches({"cost": n})} == passing
    assert not expression.matches({"other": 2})


@pytest.mark.requirement("DM-3.1.7.1.20-02")
@pytest.mark.parametrize("offline", [True, False])
def test_the_first_object_that_passes_every_expression_is_read(offline: bool) -> None:
    core, _, _ = make_integrated_core()
    for n, name in enumerate("abc"):
        public(core, rf".\{name}", label=name, base_priority=n)
    core.is_directory_offline = offline

    def read(*filters: AttributeFilter) -> object:
        return read_directory(core, "Queue", filters)[1].get("label")

    above = AttributeFilter("base_priority", FilterOperator.GREATER_THAN, 0)
    not_b = AttributeFilter("label", FilterOperator.NOT_EQUALS, "b")
    is_a = AttributeFilter("label", FilterOperator.EQUALS, "a")
    assert read(above) == "b"
    assert read(above, not_b) == "c"
    assert read(above, is_a) is None
    assert read() is not None


@pytest.mark.requirement("DM-3.1.1.1-38")
def test_a_workgroup_is_never_offline_whatever_fails() -> None:
    # given a queue manager in no directory
    core = make_core()
    queue = create_queue(core, PathName.parse(r".\b"), skip_directory=True)
    # when everything is tried
    for operation in OPERATIONS.values():
        operation(core, queue)
    check_directory_online(core)
    # then it is not offline and no timer waits
    assert not core.is_directory_offline
    assert core.next_deadline() is None
    # and it knows itself and its queues
    assert read_directory(core, "Queue", equals("identifier", queue.identifier))[0] is SUCCESS
    own = equals("identifier", IDENTIFIER)
    assert read_directory(core, "QueueManager", own)[0] is SUCCESS
    assert read_directory(core, "Site")[0] is NOT_CONNECTED


def test_no_directory_refuses_everything() -> None:
    directory = NoDirectory()
    assert directory.begin("Site")[0] is NOT_CONNECTED
    assert directory.next(1)[0] is NOT_CONNECTED
    assert directory.end(1) is NOT_CONNECTED
    assert directory.computer_sid(COMPUTER) is None
    assert directory.find_servers("") == ()


@pytest.mark.requirement("DM-3.1.2.1-01", "DM-3.1.2.1-02", "DM-3.1.6.1-01", "DM-3.1.6.1-02")
def test_sites_are_read_again_every_twelve_hours() -> None:
    # given a site that has changed in the directory
    core, directory, _ = make_integrated_core()
    (site,) = core.sites
    directory.rows["Site"][SITE]["name"] = "Bern"
    # then it changes here after twelve hours, in place, and again after twelve more
    pass_time(core, 43_199)
    assert site.name == "Berlin"
    pass_time(core, 1)
    assert site.name == "Bern"
    directory.rows["Site"][SITE]["name"] = "Basel"
    pass_time(core, 43_200)
    assert site.name == "Basel"
    # and stays as it is when the directory has lost it
    directory.rows["Site"].clear()
    pass_time(core, 43_200)
    assert core.sites == [site]
    assert site.name == "Basel"


@pytest.mark.requirement("DM-3.1.2.2-01", "DM-3.1.2.2-02", "DM-3.1.6.2-01", "DM-3.1.6.2-02")
def test_site_gates_are_read_again_every_hour() -> None:
    # given a site with two gates, of which the directory knows one
    core, directory, _ = make_integrated_core()
    gate, unknown = QueueManager(GATE, computer_name="OLD"), QueueManager(UUID(int=1))
    core.sites[0].site_gates = [unknown, gate]
    directory.create("QueueManager", QueueManager(GATE, computer_name="NEW").row())
    # then that one changes after an hour
    pass_time(core, 3_599)
    assert gate.computer_name == "OLD"
    pass_time(core, 1)
    assert gate.computer_name == "NEW"
    assert unknown.computer_name == ""
    # and again after another
    directory.rows["QueueManager"][GATE]["computer_name"] = "NEWER"
    pass_time(core, 3_600)
    assert gate.computer_name == "NEWER"
    directory_site_gates_update(core)
    assert core.sites[0].site_gates == [unknown, gate]


@pytest.mark.requirement("DM-3.1.2.1-03", "DM-3.1.2.2-03")
def test_the_periods_can_be_configured() -> None:
    core, directory, _ = make_integrated_core(
        directory_sites_update_seconds=10, directory_site_gates_update_seconds=7
    )
    gate = QueueManager(GATE)
    core.sites[0].site_gates = [gate]
    directory.create("QueueManager", QueueManager(GATE, computer_name="NEW").row())
    directory.rows["Site"][SITE]["name"] = "Bern"
    pass_time(core, 7)
    assert (gate.computer_name, core.sites[0].name) == ("NEW", "Berlin")
    pass_time(core, 3)
    assert core.sites[0].name == "Bern"


@pytest.mark.requirement("DM-3.1.1-02")
def test_a_public_queue_can_be_published_and_read_back_with_all_its_attributes() -> None:
    core, directory, _ = make_integrated_core(make_directory())
    queue = public(core, label="L", journaling=True, base_priority=4)
    set_queue_properties(core, queue, authentication=True)
    commit(core)
    _, row = read_directory(core, "Queue", equals("identifier", queue.identifier))
    assert row["label"] == "L"
    assert row["journaling"] is True
    assert row["base_priority"] == 4
    assert row["authentication"] is True
    assert row["security"] == queue.properties.security
    assert row["path_name"] == rf"{COMPUTER}\b"
    assert directory.rows["Queue"].keys() == {queue.identifier}


@pytest.mark.requirement("DM-2.3-01")
def test_nobody_asks_a_directory_but_through_its_events() -> None:
    """Only the events call a back end; the package of the back ends itself is left out."""
    source = Path(falconmq.__file__).parent
    call = re.compile(r"\bdirectory\.(create|delete|read|begin|next|end|write)\(")
    callers = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if call.search(path.read_text("utf-8")) and path.parent.name != "directory"
    }
    # the API of the directory that a queue manager keeps for others is no protocol of MSMQ
    api = {"service/api/directory.py", "service/api/directory_rows.py"}
    api.add("cli/directory_beginning.py")  # an empty LDAP server, before anybody is in it
    assert callers == {"manager/directory.py", *api}
