"""What only the directory in a store can promise: it is durable, and quick with many objects."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import find_all
from falconmq.errors import StoreError
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult, QueueScope
from falconmq.store import LmdbStore, MemoryStore, ProcessCrash, WriteBatch
from tests.directory.conftest import embedded_world
from tests.directory.worlds import SUCCESS

NOT_FOUND = DirectoryResult.OBJECT_NOT_FOUND


def reopened(store: MemoryStore | LmdbStore) -> EmbeddedDirectory:
    return EmbeddedDirectory(store, VirtualClock(), Random(2))


def test_what_was_created_is_there_after_a_restart(tmp_path: Path) -> None:
    with LmdbStore(tmp_path) as store:
        world = embedded_world(store)
        world.add_machine("alpha", connected_network_identifiers=[], network_addresses=b"\1\2")
        queue = world.add("Queue", path_name=r"alpha\a", scope=QueueScope.SITE)
        before = world.get("Queue", "identifier", queue)
        machine = world.get("QueueManager", "computer_name", "alpha")
    with LmdbStore(tmp_path) as store:
        after = reopened(store)
        assert after.read("Queue", equals("path_name", r"alpha\a"), None) == (SUCCESS, before)
        assert find_all(after, "QueueManager") == [machine]
        assert before["scope"] is QueueScope.SITE
        assert after.create("Queue", {"path_name": r"alpha\b"})[0] is SUCCESS


@pytest.mark.parametrize("durable", [False, True])
def test_a_crash_leaves_all_of_a_change_or_nothing(*, durable: bool) -> None:
    store = MemoryStore()
    world = embedded_world(store)
    site = world.add_site("Berlin")
    store.fail_commit(1, ProcessCrash(), durable=durable)
    with pytest.raises(ProcessCrash):
        world.directory.delete("Site", site)
    store.crash()
    after = reopened(store)
    by_name = after.read("Site", equals("name", "Berlin"), None)[0]
    by_guid = after.read("Site", equals("identifier", site), None)[0]
    by_place = after.create("Site", {"name": "Berlin"})[0]
    if durable:
        assert (by_name, by_guid, by_place) == (NOT_FOUND, NOT_FOUND, SUCCESS)
    else:
        exists = DirectoryResult.OBJECT_ALREADY_EXISTS
        assert (by_name, by_guid, by_place) == (SUCCESS, SUCCESS, exists)


def test_a_full_disk_is_a_result_and_not_a_crash() -> None:
    store = MemoryStore()
    world = embedded_world(store)
    store.is_full = True
    assert world.directory.create("Site", {"name": "Berlin"})[0] is DirectoryResult.GENERIC_ERROR
    assert world.directory.last_problem is not None
    store.is_full = False
    assert world.directory.create("Site", {"name": "Berlin"})[0] is SUCCESS


def test_many_queues_are_one_commit() -> None:
    store = MemoryStore()
    world = embedded_world(store)
    world.add_machine("alpha")
    before = store.commits
    rows = [{"path_name": f"alpha\\q{number}"} for number in range(1000)]
    results = world.directory.create_many("Queue", rows)
    assert {result for result, _ in results} == {SUCCESS}
    assert store.commits == before + 1


@pytest.mark.parametrize(
    ("name", "value"), [("path_name", r"alpha\q5"), ("full_path", ""), ("identifier", None)]
)
def test_a_look_up_reads_no_more_when_there_is_more(name: str, value: object) -> None:
    # given few queues, and then many
    store = _Counting()
    world = embedded_world(store)
    world.add_machine("alpha")
    queue = world.add("Queue", path_name=r"alpha\q5")
    asked = value or world.get("Queue", "identifier", queue)[name]
    store.reads = 0
    world.get("Queue", name, asked)
    few = store.reads
    world.directory.create_many("Queue", [{"path_name": f"alpha\\x{n}"} for n in range(300)])
    # then one is found with the same number of reads
    store.reads = 0
    assert world.get("Queue", name, asked)["identifier"] == queue
    assert store.reads == few


def test_what_no_longer_holds_leaves_nothing_behind() -> None:
    store = MemoryStore()
    world = embedded_world(store)
    sites = [world.add_site(name) for name in ("Berlin", "Paris")]
    before = records(store)
    machine = world.add_machine("alpha", sites[0])
    one_site = records(store)
    world.write("QueueManager", machine, site_identifiers=sites)
    world.write("QueueManager", machine, site_identifiers=sites[1:])
    assert records(store) == one_site
    world.directory.delete("QueueManager", machine)
    assert records(store) == before


def records(store: MemoryStore) -> dict[str, int]:
    return {
        table: len(list(store.scan(table)))
        for table in ("directory", "directory_index", "directory_places")
    }


def test_an_empty_directory_says_what_to_do_first() -> None:
    directory = reopened(MemoryStore())
    assert directory.create("Site", {"name": "Berlin"})[0] is NOT_FOUND
    assert directory.last_problem is not None
    assert "enterprise" in directory.last_problem.hint


def test_a_damaged_record_is_named_and_nothing_is_skipped() -> None:
    store = MemoryStore()
    world = embedded_world(store)
    site = world.add_site("Berlin")
    key, _ = next(iter(store.scan("directory", b"\3", b"\4")))
    batch = WriteBatch()
    batch.put("directory", key, b"{}")
    store.commit([batch])
    assert world.result("Site", "identifier", site) is DirectoryResult.GENERIC_ERROR
    problem = world.directory.last_problem
    assert problem is not None
    assert site.hex in str(problem)
    assert "backup" in problem.hint
    assert not isinstance(problem, StoreError)


class _Counting(MemoryStore):
    """A store that counts what is read."""

    reads = 0

    def get(self, table: str, key: bytes) -> bytes | None:
        self.reads += 1
        return super().get(table, key)

    def scan(self, table, start=b"", stop=None, *, reverse=False):  # type: ignore[no-untyped-def]
        for item in super().scan(table, start, stop, reverse=reverse):
            self.reads += 1
            yield item
