"""A directory that hangs or fails on command, and the cache that stands before it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from falconmq.clock import SystemClock, VirtualClock
from falconmq.directory import presence
from falconmq.directory.answers import NOT_THERE_SECONDS
from falconmq.directory.asking import Asker
from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.memory import DirectoryMemory
from falconmq.directory.queries import find_all
from falconmq.directory.schema import ObjectTable
from falconmq.directory.worker import TookTooLongError, Worker
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.store import MemoryStore
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import Sid

SUCCESS = DirectoryResult.SUCCESS
AWAY = DirectoryResult.DIRECTORY_NOT_CONNECTED
NOT_FOUND = DirectoryResult.OBJECT_NOT_FOUND
PATIENCE = 30.0


class MoodyDirectory(EmbeddedDirectory):
    """Answers, refuses to be reached, or hangs; it counts what it is asked."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(MemoryStore(), clock, Random(1))
        self.is_gone = False
        self.answers = threading.Event()  # clear: whoever asks hangs until it is set
        self.answers.set()
        self.asked = 0

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        self.asked += 1
        if not self.answers.wait(PATIENCE):
            raise AssertionError("nobody let the directory go on")
        if self.is_gone:
            raise DirectoryRefusedError(AWAY, "the server is gone")
        return super()._find(table, filters, attributes)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def moody(clock: VirtualClock) -> MoodyDirectory:
    directory = MoodyDirectory(clock)
    assert directory.create("Enterprise", {"name": "example.com"})[0] is SUCCESS
    assert directory.create("Site", {"name": "Berlin"})[0] is SUCCESS
    return directory


@pytest.fixture
def directory(
    moody: MoodyDirectory, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CachedDirectory]:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.02)
    found = CachedDirectory(moody, clock, cache_seconds=100.0, timeout_seconds=10.0)
    yield found
    moody.answers.set()
    found.close()


def watched(directory: CachedDirectory) -> threading.Event:
    """Set when the directory goes away or comes back, each time anew."""
    changed = threading.Event()
    directory.on_change = changed.set
    return changed


def is_away(directory: CachedDirectory) -> bool:
    return directory.is_away  # which changes while the test looks elsewhere


BERLIN = equals("name", "Berlin")


def test_an_answer_is_used_again_while_it_is_fresh(
    directory: CachedDirectory, moody: MoodyDirectory, clock: VirtualClock
) -> None:
    first = directory.read("Site", BERLIN, None)
    clock.advance(99)
    assert directory.read("Site", equals("name", "BERLIN"), None) == first  # names have no case
    by_identifier = equals("identifier", first[1]["identifier"])
    assert directory.read("Site", by_identifier, None) == first  # and are not the only key
    assert moody.asked == 1
    clock.advance(2)
    assert directory.read("Site", BERLIN, None)[0] is SUCCESS
    assert moody.asked == 2


def test_only_the_attributes_asked_for_are_answered(directory: CachedDirectory) -> None:
    _, row = directory.read("Site", BERLIN, ("name",))
    assert set(row) == {"identifier", "name"}
    assert "foreign_site" in directory.read("Site", BERLIN, None)[1]
    result, _ = directory.read("Site", BERLIN, ("security",))
    assert result is DirectoryResult.ATTRIBUTE_NOT_FOUND


def test_whoever_gets_an_answer_may_do_with_it_what_he_likes(directory: CachedDirectory) -> None:
    _, row = directory.read("Site", BERLIN, None)
    machine = {"computer_name": "alpha", "site_identifiers": [row["identifier"]]}
    directory.create("QueueManager", machine)
    alpha = equals("computer_name", "alpha")
    for found in (
        directory.fetch("QueueManager", alpha),
        directory.read("QueueManager", alpha, None)[1],
        directory.remembered("QueueManager", alpha),
    ):
        assert found is not None
        sites = found["site_identifiers"]
        assert isinstance(sites, list)
        sites.clear()
    assert directory.read("QueueManager", alpha, None)[1]["site_identifiers"]


def test_what_is_not_there_is_asked_for_again_soon(
    directory: CachedDirectory, moody: MoodyDirectory, clock: VirtualClock
) -> None:
    paris = equals("name", "Paris")
    assert directory.read("Site", paris, None)[0] is NOT_FOUND
    moody.create("Site", {"name": "Paris"})  # by somebody else
    assert directory.read("Site", paris, None)[0] is NOT_FOUND
    clock.advance(NOT_THERE_SECONDS)
    assert directory.read("Site", paris, None)[0] is SUCCESS


def test_our_own_changes_are_seen_at_once(directory: CachedDirectory) -> None:
    paris = equals("name", "Paris")
    assert directory.read("Site", paris, None)[0] is NOT_FOUND
    result, identifier = directory.create("Site", {"name": "Paris"})
    assert result is SUCCESS
    assert directory.read("Site", paris, None)[1]["foreign_site"] is False
    directory.write("Site", {"identifier": identifier, "foreign_site": True})
    assert directory.read("Site", paris, None)[1]["foreign_site"] is True
    assert directory.delete("Site", identifier) is SUCCESS
    assert directory.read("Site", paris, None)[0] is NOT_FOUND
    assert directory.remembered("Site", equals("identifier", identifier)) is None


def test_what_is_forgotten_is_asked_for_again(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    _, row = directory.read("Site", BERLIN, None)
    directory.read("Enterprise", (), None)
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    moody.write("Site", {"identifier": identifier, "foreign_site": True})
    directory.forget("Site", uuid4())
    assert directory.read("Site", BERLIN, None)[1]["foreign_site"] is False
    directory.forget("Site", identifier)
    assert directory.read("Site", BERLIN, None)[1]["foreign_site"] is True
    asked = moody.asked
    assert directory.read("Enterprise", (), None)[0] is SUCCESS
    assert moody.asked == asked  # nobody said anything about that one


def test_a_directory_that_hangs_is_away_until_it_answers(
    moody: MoodyDirectory, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that hangs keeps its own thread; nobody else waits for it."""
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    directory = CachedDirectory(moody, clock, cache_seconds=100.0, timeout_seconds=PATIENCE)
    changed = watched(directory)
    directory.read("Site", BERLIN, None)
    moody.answers.clear()
    directory.timeout_seconds = 0.05
    try:
        assert directory.read("Enterprise", (), None)[0] is AWAY
        assert changed.wait(PATIENCE)
        assert is_away(directory)
        assert directory.away_since == clock.time()
        assert "no answer within 0.05 seconds" in directory.problem
        before = moody.asked
        for _ in range(20):  # at once: 20 time-outs would show in `asked`
            assert directory.read("Site", BERLIN, None)[0] is AWAY
            assert directory.begin("Site", (), None, None) == (AWAY, 0)
            assert directory.create("Site", {"name": "Paris"})[0] is AWAY
            assert directory.write("Site", {"identifier": uuid4(), "name": "x"}) is AWAY
            assert directory.computer_sid("alpha") is None
        assert moody.asked - before <= 1  # the prober
        assert isinstance(directory.last_problem, DirectoryError)
        assert directory.last_problem.status is MqStatus.NO_DS
        assert directory.last_problem.hint
    finally:
        changed.clear()
        directory.timeout_seconds = PATIENCE
        moody.answers.set()
    assert changed.wait(PATIENCE)
    assert not is_away(directory)
    assert directory.problem == ""
    assert directory.read("Enterprise", (), None)[0] is SUCCESS  # by a worker that does not hang
    directory.close()


def test_a_worker_that_hangs_is_left_to_itself() -> None:
    worker, answers = Worker("test"), threading.Event()
    with pytest.raises(TookTooLongError):
        worker.do(answers.wait, 0.01)
    assert worker.do(lambda: 7, PATIENCE) == 7  # another thread does it
    with pytest.raises(ZeroDivisionError):
        worker.do(lambda: 1 // 0, PATIENCE)
    answers.set()
    worker.close()
    assert worker.do(lambda: 8, PATIENCE) == 8
    worker.close()


def test_a_directory_out_of_reach_is_away_and_what_it_said_is_remembered(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    changed = watched(directory)
    _, row = directory.read("Site", BERLIN, None)
    moody.is_gone = True
    assert directory.read("Enterprise", (), None)[0] is AWAY
    assert is_away(directory)
    assert directory.problem == "the server is gone"
    assert directory.read("Site", BERLIN, None)[0] is AWAY  # the queue manager has to know
    assert directory.remembered("Site", BERLIN) == row
    assert directory.remembered("Site", equals("identifier", row["identifier"])) == row
    assert directory.remembered("Site", equals("name", "Paris")) is None
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    changed.clear()
    moody.write("Site", {"identifier": identifier, "foreign_site": True})
    moody.is_gone = False
    assert changed.wait(PATIENCE)
    assert not is_away(directory)
    # Whatever was fresh before is asked for again: it may have changed in the dark.
    assert directory.read("Site", BERLIN, None)[1]["foreign_site"] is True


def test_whoever_may_wait_asks_in_its_own_thread(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    assert directory.fetch("Site", equals("name", "Paris")) is None
    row = directory.fetch("Site", BERLIN)
    assert row is not None
    asked = moody.asked
    assert directory.read("Site", BERLIN, None) == (SUCCESS, row)
    assert moody.asked == asked
    assert [each["name"] for each in directory.fetch_all("Site")] == ["Berlin"]
    moody.is_gone = True
    with pytest.raises(DirectoryError, match="the server is gone"):
        directory.fetch("Site", BERLIN)
    assert is_away(directory)


def test_a_failed_query_of_many_takes_it_away_too(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    moody.is_gone = True
    with pytest.raises(DirectoryError, match="the server is gone"):
        directory.fetch_all("Site")
    assert is_away(directory)


def test_queries_give_all_rows_and_end(directory: CachedDirectory, moody: MoodyDirectory) -> None:
    for name in ("Paris", "Rome", "Oslo"):
        directory.create("Site", {"name": name})
    rows = find_all(directory, "Site", (), ("name",))
    assert sorted(str(row["name"]) for row in rows) == ["Berlin", "Oslo", "Paris", "Rome"]
    assert moody._queries == {}  # nothing stays open there
    assert directory.next(99)[0] is DirectoryResult.GENERIC_ERROR
    assert directory.end(99) is DirectoryResult.GENERIC_ERROR
    assert directory.begin("Site", equals("colour", "red"), None, None)[0] is not SUCCESS
    assert not is_away(directory)  # a wrong question is no sign of that


def test_servers_and_accounts_that_were_fetched_are_not_asked_for_again(
    directory: CachedDirectory, moody: MoodyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid, calls = Sid.parse("S-1-5-21-1-2-3-1000"), list[str]()

    def computer_sid(name: str) -> Sid | None:
        calls.append(name)
        return {"alpha": sid}.get(name)

    def failing(name: str) -> Sid | None:
        calls.append(name)
        moody._refused(DirectoryError("gone for a moment"))
        return None

    monkeypatch.setattr(moody, "computer_sid", computer_sid)
    for name in ("alpha", "beta"):  # that there is none is an answer, too
        directory.fetch_computer_sid(name)
    assert (directory.computer_sid("alpha"), directory.computer_sid("beta")) == (sid, None)
    assert calls == ["alpha", "beta"]
    # a failure is none: it is asked again, and what was found stays
    monkeypatch.setattr(moody, "computer_sid", failing)
    for name in ("alpha", "gamma"):
        directory.fetch_computer_sid(name)
    assert directory.computer_sid("alpha") == sid
    monkeypatch.setattr(moody, "computer_sid", computer_sid)
    assert directory.computer_sid("gamma") is None
    assert calls == ["alpha", "beta", "alpha", "gamma", "gamma"]
    # servers: nobody serves it, and that is known
    directory.fetch_servers("")
    asked = moody.asked
    assert not directory.find_servers("")
    assert moody.asked == asked


def test_an_asker_goes_on_after_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    asker, told = Asker("test"), [threading.Event(), threading.Event()]
    asker.ask("wrong", lambda: 1 // 0, told[0].set)
    asker.ask("right", lambda: 1, told[1].set)
    assert all(each.wait(PATIENCE) for each in told)
    assert "could not be asked" in caplog.text
    asker.close()


def test_who_asks_in_a_turn_does_not_wait_behind_what_is_asked_beside(
    directory: CachedDirectory, moody: MoodyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    moody.answers.clear()
    begun, answered = threading.Event(), threading.Event()
    read = moody.read

    def begin(*question: Any) -> Any:
        begun.set()
        return read(*question)

    monkeypatch.setattr(moody, "read", begin)
    directory.ask_beside("Site", BERLIN, answered.set)
    assert begun.wait(PATIENCE)
    assert directory.is_asked("Site", BERLIN)
    assert directory.computer_sid("alpha") is None  # which needs no answer
    assert not answered.is_set()
    assert not is_away(directory)
    moody.answers.set()
    assert answered.wait(PATIENCE)
    assert not directory.is_asked("Site", BERLIN)


def test_closed_it_asks_nobody(directory: CachedDirectory, moody: MoodyDirectory) -> None:
    directory.close()
    asked = moody.asked
    assert directory.read("Site", BERLIN, None)[0] is AWAY
    assert moody.asked == asked


def test_closed_while_it_looks_it_tells_nobody(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    moody.is_gone = True
    changed = watched(directory)
    directory.read("Site", BERLIN, None)
    assert changed.wait(PATIENCE)
    changed.clear()
    moody.answers.clear()  # the prober hangs from now on
    prober = directory._presence._prober
    assert prober is not None
    directory.timeout_seconds = 0.01
    directory.close()
    moody.is_gone = False
    moody.answers.set()
    prober.join(PATIENCE)
    assert not prober.is_alive()
    assert not changed.is_set()


def test_rows_of_another_day_are_remembered_but_not_fresh(
    directory: CachedDirectory, moody: MoodyDirectory
) -> None:
    row: dict[str, Any] = {"identifier": uuid4(), "computer_name": "Alpha", "routing_server": True}
    directory.know([("QueueManager", row)], are_fresh=False)
    assert directory.remembered("QueueManager", equals("computer_name", "ALPHA")) == row
    assert directory.read("QueueManager", equals("computer_name", "alpha"), None)[0] is NOT_FOUND
    assert moody.asked == 1


def test_what_is_kept_in_the_store_comes_back_as_it_was() -> None:
    store = MemoryStore()
    memory = DirectoryMemory(store)
    security: SecurityDescriptor = parse_sddl("O:BAD:(A;;GA;;;BA)")
    site = uuid4()
    machine: dict[str, Any] = {
        "identifier": uuid4(),
        "computer_name": "alpha",
        "site_identifiers": [site],
        "public_signing_keys": b"\0\1\2",
        "security": security,
    }
    memory.keep([("QueueManager", machine), ("Site", {"identifier": site, "name": "Berlin"})])
    found = dict(DirectoryMemory(store).rows())
    assert found["Site"] == {"identifier": site, "name": "Berlin"}
    assert found["QueueManager"] == machine
    memory.keep([("Site", {"identifier": site, "name": "Paris"})])
    assert memory.rows() == [("Site", {"identifier": site, "name": "Paris"})]
    commits = store.statistics().commits
    memory.keep([("Site", {"identifier": site, "name": "Paris"})])
    assert store.statistics().commits == commits  # nothing new, nothing written
    memory.clear()
    assert memory.rows() == []


def test_the_real_clock_will_do(moody: MoodyDirectory) -> None:
    directory = CachedDirectory(moody, SystemClock())
    assert directory.read("Site", BERLIN, None)[0] is SUCCESS
    assert directory.find_servers("") == []
    directory.close()
