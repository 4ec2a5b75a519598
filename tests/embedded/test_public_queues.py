"""Public queues of a queue manager in a directory, and the names of queues elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest

from falconmq import Message, QueueManager
from falconmq.directory import presence
from falconmq.directory.cached import CachedDirectory
from falconmq.embedded.manager import start_engine
from falconmq.embedded.messages import from_position
from falconmq.errors import (
    DirectoryError,
    FalconMQError,
    MqStatus,
    NameSyntaxError,
    QueueError,
    StoreError,
)
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory_backend import equals
from falconmq.manager.path_names import in_full, known_path, resolve_path_name
from falconmq.manager.public_queues import host_of
from falconmq.manager.queue_names import find_queue
from falconmq.names import PathName, PrivateFormatName, PublicFormatName, parse_format_name
from falconmq.store import MemoryStore, WriteBatch
from tests.embedded.helpers import COMPUTER, PATIENCE, threaded, wait_until
from tests.embedded.members import FAR, FAR_MANAGER, Enterprise, member
from tests.manager.directories import make_integrated_core

HERE = r".\orders"
AT_HOME = r"sales01\orders"  # as the directory has it
ELSEWHERE = r"sales02\far"


@pytest.fixture
def enterprise() -> Enterprise:
    return Enterprise()


@pytest.fixture
def manager(enterprise: Enterprise) -> Iterator[QueueManager]:
    with member(enterprise) as opened:
        yield opened


@pytest.fixture
def remembering(enterprise: Enterprise) -> Iterator[QueueManager]:
    """A manager that asks its directory as the service does: answers are kept."""
    with member(enterprise, is_cached=True) as opened:
        directory = core_of(opened).directory
        assert isinstance(directory, CachedDirectory)
        yield opened
        directory.close()


class FailingStore(MemoryStore):
    """A store that cannot write at one moment."""

    is_broken = False

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        if self.is_broken and any(batch.operations for batch in batches):
            self.is_broken = False
            raise StoreError("the disk is full", status=MqStatus.MESSAGE_STORAGE_FAILED)
        super().commit(batches)


def core_of(manager: QueueManager) -> QueueManagerCore:
    return manager._engine.core


def path(text: str) -> PathName:
    return PathName.parse(text)


def refused(manager: QueueManager, name: str) -> FalconMQError:
    with pytest.raises(FalconMQError) as raised:
        manager.queue(name)
    return raised.value


def waiting(manager: QueueManager, queue: UUID) -> list[Message]:
    """Messages that wait for a queue elsewhere, as they would leave."""
    positions = core_of(manager).outgoing[PublicFormatName(queue)].positions
    found = [positions.find(lookup_id) for lookup_id in positions.lookup_ids()]
    return [from_position(position) for position in found if position is not None]


# A public queue here


def test_a_public_queue_is_in_the_store_and_in_the_directory(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    queue = manager.create_queue(HERE, label="Orders", quota_kilobytes=500, transactional=True)
    row = enterprise.find("Queue", "path_name", AT_HOME)
    assert row is not None
    assert queue.format_name == f"PUBLIC={str(row['identifier']).upper()}"
    assert (row["label"], row["quota_kilobytes"], row["transactional"]) == ("Orders", 500, True)
    assert row["security"] is not None
    assert row["queue_manager_identifier"] == manager.id
    assert [each.name for each in manager.queues()] == [HERE]


def test_a_public_queue_is_used_by_all_its_names(manager: QueueManager) -> None:
    queue = manager.create_queue(HERE, journaling=True)
    for name in (HERE, rf"{COMPUTER}\Orders", queue.format_name, rf"DIRECT=OS:{COMPUTER}\orders"):
        manager.queue(name).send(Message("x", response_queue=queue.format_name))
        received = manager.queue(name).receive(timeout=0)
        assert str(received.response_queue) == queue.format_name
        assert received.destination_queue_manager in (manager.id, None)
    assert manager.queue(rf"{HERE};journal").count == 4
    assert manager.queue(f"{queue.format_name};JOURNAL").count == 4
    late = queue.subqueue("late")
    queue.send(Message("y"))
    moved = queue.peek(timeout=0)
    assert moved.lookup_id is not None
    queue.move(moved.lookup_id, late)
    assert manager.queue(rf"{HERE};late").receive(timeout=0).text == "y"


def test_changing_and_deleting_happen_in_the_directory_too(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    queue = manager.create_queue(HERE)
    queue.update(label="New", journaling=True)
    row = enterprise.find("Queue", "path_name", AT_HOME)
    assert row is not None
    assert (row["label"], row["journaling"]) == ("New", True)
    manager.delete_queue(queue)
    assert enterprise.find("Queue", "path_name", AT_HOME) is None
    assert manager.queues() == []


def test_public_queues_come_back_without_the_directory(enterprise: Enterprise) -> None:
    store = MemoryStore()
    with member(enterprise, store) as manager:
        queue = manager.create_queue(HERE, label="Orders")
        queue.send(Message("kept"))
        name = queue.format_name
    # when the same data are opened where no directory is
    store.crash()  # opens it again
    with QueueManager(start_engine(store, Settings(computer_name=COMPUTER))) as alone:
        again = alone.queue(HERE)
        assert (again.format_name, again.label) == (name, "Orders")
        assert alone.queue(name).receive(timeout=0).text == "kept"
        alone.delete_queue(HERE)  # nobody has to be told
        assert alone.queues() == []


# When the directory is away, or forgot


def test_a_public_queue_is_not_half_created_while_the_directory_is_away(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    enterprise.is_connected = False
    with pytest.raises(DirectoryError, match="the directory is away") as raised:
        manager.create_queue(HERE)
    assert raised.value.status is MqStatus.NO_DS
    assert "private queues need no directory" in raised.value.hint
    assert manager.queues() == []
    enterprise.is_connected = True
    assert enterprise.find("Queue", "path_name", AT_HOME) is None
    assert manager.create_queue(HERE).name == HERE


def test_a_queue_that_the_store_could_not_keep_is_created_by_the_next_try(
    enterprise: Enterprise,
) -> None:
    store = FailingStore()
    with member(enterprise, store) as manager:
        store.is_broken = True
        with pytest.raises(StoreError):
            manager.create_queue(HERE, label="first")
        # then the directory has it, and nobody else does
        left = enterprise.find("Queue", "path_name", AT_HOME)
        assert left is not None
        assert manager.queues() == []
        # when it is tried again, then it is taken over, as it is wanted now
        queue = manager.create_queue(HERE, label="second")
        assert queue.format_name == f"PUBLIC={str(left['identifier']).upper()}"
        row = enterprise.find("Queue", "path_name", AT_HOME)
        assert row is not None
        assert row["label"] == "second"


def test_a_directory_that_answers_too_late_leaves_what_the_next_try_takes_over(
    enterprise: Enterprise, remembering: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    directory = core_of(remembering).directory
    assert isinstance(directory, CachedDirectory)
    directory.timeout_seconds = 0.05
    enterprise.gate.clear()
    with pytest.raises(DirectoryError, match="the directory is away"):
        remembering.create_queue(HERE)
    assert remembering.queues() == []
    # when it creates the queue all the same, after we had given up
    directory.timeout_seconds = PATIENCE
    enterprise.gate.set()
    wait_until(lambda: enterprise.find("Queue", "path_name", AT_HOME) is not None)
    wait_until(lambda: not directory.is_away)
    left = enterprise.find("Queue", "path_name", AT_HOME)
    assert left is not None
    made = remembering.create_queue(HERE)
    assert made.format_name == str(PublicFormatName(UUID(str(left["identifier"]))))


def test_what_is_left_of_a_queue_of_the_other_kind_makes_room(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    left = enterprise.add_queue(rf"{COMPUTER}\orders", transactional=True)
    queue = manager.create_queue(HERE)
    row = enterprise.find("Queue", "path_name", AT_HOME)
    assert row is not None
    assert row["identifier"] != left
    assert (row["transactional"], queue.is_transactional) == (False, False)


def test_a_queue_that_is_here_is_not_created_again(manager: QueueManager) -> None:
    manager.create_queue(HERE)
    with pytest.raises(QueueError) as raised:
        manager.create_queue(rf"{COMPUTER}\ORDERS")
    assert raised.value.status is MqStatus.QUEUE_EXISTS


def test_why_the_directory_refuses_a_queue_is_said_in_its_words(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    enterprise.delete("QueueManager", manager.id)  # somebody cleaned up
    with pytest.raises(DirectoryError, match="the directory has no QueueManager") as raised:
        manager.create_queue(HERE)
    assert raised.value.status is MqStatus.DS_ERROR
    assert manager.queues() == []


def test_properties_stay_as_they_were_while_the_directory_is_away(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    queue = manager.create_queue(HERE, label="old")
    enterprise.is_connected = False
    with pytest.raises(DirectoryError) as raised:
        queue.update(label="new")
    assert (raised.value.status, queue.label) == (MqStatus.NO_DS, "old")


def test_what_is_deleted_while_the_directory_is_away_can_be_created_again(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    name = manager.create_queue(HERE).format_name
    enterprise.is_connected = False
    with pytest.raises(DirectoryError, match="is deleted here, but not in the directory") as raised:
        manager.delete_queue(HERE)
    assert rf"falconmq directory delete queue '{COMPUTER}\orders'" in raised.value.hint
    assert manager.queues() == []
    enterprise.is_connected = True
    assert manager.create_queue(HERE).format_name == name


def test_a_queue_that_the_directory_has_lost_can_be_deleted(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    manager.create_queue(HERE)
    row = enterprise.find("Queue", "path_name", AT_HOME)
    assert row is not None
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    enterprise.delete("Queue", identifier)
    manager.delete_queue(HERE)
    assert manager.queues() == []


# Names of queues elsewhere


def test_path_names_become_format_names(enterprise: Enterprise, manager: QueueManager) -> None:
    far = enterprise.add_queue(rf"{FAR}\far")
    public = manager.create_queue(HERE)
    private = manager.create_queue(r".\private$\p")
    expected = {
        HERE: public.format_name,
        rf"{COMPUTER}\ORDERS": public.format_name,
        rf"{HERE};journal": f"{public.format_name};JOURNAL",
        r"localhost\private$\p": private.format_name,
        r".\system$;deadletter": f"MACHINE={str(manager.id).upper()};DEADLETTER",
        r"sales02\FAR": f"PUBLIC={str(far).upper()}",
        r"sales02\far;journal": f"PUBLIC={str(far).upper()};JOURNAL",
        r"sales02\private$\q": r"DIRECT=OS:sales02\private$\q",  # its number nobody here knows
        r"sales02\far;late": r"DIRECT=OS:sales02\far;late",
    }
    core = core_of(manager)
    found = {name: str(resolve_path_name(core, path(name))) for name in expected}
    assert found == expected


@pytest.mark.parametrize("name", [r"sales02\nothing", r"nowhere\far"])
def test_a_queue_that_the_directory_does_not_know_is_not_found(
    manager: QueueManager, name: str
) -> None:
    error = refused(manager, name)
    assert error.status is MqStatus.QUEUE_NOT_FOUND
    assert str(error) == f"the directory knows no queue {name}"
    computer, _, queue = name.partition("\\")
    assert rf"a private one is named {computer}\private$\{queue}" in error.hint


def test_a_computer_is_named_by_its_host_name_too(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    far = enterprise.add_queue(rf"{FAR}\far")
    row = {"identifier": FAR_MANAGER, "qualified_computer_name": "sales02.example.com"}
    enterprise.write("QueueManager", row)
    found = resolve_path_name(core_of(manager), path(r"Sales02.Example.com\far"))
    assert found == PublicFormatName(far)
    # and its namesake elsewhere is somebody else
    for name in (r"sales02.example.org\far", r"sales02.example.com\nothing"):
        assert refused(manager, name).status is MqStatus.QUEUE_NOT_FOUND


def test_a_misspelt_public_queue_of_ours_is_refused_with_the_nearest_name(
    manager: QueueManager,
) -> None:
    manager.create_queue(HERE)
    assert rf"did you mean {HERE}?" in refused(manager, r".\ordres").hint


def test_in_a_workgroup_a_path_elsewhere_is_refused_with_the_name_to_use() -> None:
    with threaded() as alone:
        for name in (ELSEWHERE, r"sales02\private$\q"):
            error = refused(alone, name)
            assert error.status is MqStatus.QUEUE_NOT_FOUND
            assert f"DIRECT=OS:{name}" in error.hint
        with pytest.raises(QueueError, match="no queue"):
            resolve_path_name(core_of(alone), path(HERE))


def test_a_message_to_a_path_elsewhere_names_queue_and_queue_manager(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    identifier = enterprise.add_queue(rf"{FAR}\far", base_priority=9)
    far = PublicFormatName(identifier)
    queue = manager.queue(ELSEWHERE)
    assert (queue.name, queue.is_local) == (str(far), False)
    queue.send(Message("hello"))
    (message,) = waiting(manager, identifier)
    assert (message.destination, message.destination_queue_manager) == (far, FAR_MANAGER)
    assert core_of(manager).outgoing[far].properties.base_priority == 9


def test_several_queues_here_and_elsewhere_get_the_message(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    far = enterprise.add_queue(rf"{FAR}\far")
    here = manager.create_queue(HERE)
    manager.queue(f"PUBLIC={far},{here.format_name}").send(Message("both"))
    assert here.receive(timeout=0).text == "both"
    assert [message.text for message in waiting(manager, far)] == ["both"]


@pytest.mark.requirement("MQ-2.1.5-03")
def test_a_distribution_list_reaches_its_public_queues(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    here = manager.create_queue(HERE)
    row = enterprise.find("Queue", "path_name", AT_HOME)
    assert row is not None
    members = [str(row["full_path"])]
    group = enterprise.add("DistributionList", name="all", members=members)
    manager.queue(f"DL={group}").send(Message("everybody"))
    assert here.receive(timeout=0).text == "everybody"


def test_a_queue_that_somebody_lists_for_us_and_we_do_not_have_is_not_found(
    enterprise: Enterprise, manager: QueueManager
) -> None:
    ghost = enterprise.add_queue(rf"{COMPUTER}\ghost")
    assert refused(manager, f"PUBLIC={ghost}").status is MqStatus.QUEUE_NOT_FOUND
    assert refused(manager, r".\ghost").status is MqStatus.QUEUE_NOT_FOUND


def test_who_has_a_public_queue(enterprise: Enterprise, manager: QueueManager) -> None:
    far = enterprise.add_queue(rf"{FAR}\far")
    manager.create_queue(HERE)
    own = find_queue(core_of(manager), path(HERE))
    assert own is not None
    core = core_of(manager)
    assert host_of(core, PublicFormatName(own.identifier)) == manager.id
    assert host_of(core, PublicFormatName(far)) == FAR_MANAGER
    assert host_of(core, PublicFormatName(UUID(int=1))) is None


def test_a_directory_that_only_says_on_which_computer_a_queue_is_will_do() -> None:
    core, directory, _ = make_integrated_core()
    _, far = directory.create("Queue", {"path_name": r"x\far", "computer_name": "x"})
    assert host_of(core, PublicFormatName(far)) is None
    directory.create("QueueManager", {"identifier": FAR_MANAGER, "computer_name": "x"})
    assert host_of(core, PublicFormatName(far)) == FAR_MANAGER


def test_what_was_asked_before_is_sent_to_while_the_directory_is_away(
    enterprise: Enterprise, remembering: QueueManager
) -> None:
    manager = remembering
    far = enterprise.add_queue(rf"{FAR}\far")
    other = enterprise.add_queue(rf"{FAR}\other")
    manager.queue(ELSEWHERE).send(Message("one"))
    # when the directory goes, which shows when it is asked for something new
    enterprise.is_connected = False
    error = refused(manager, rf"{FAR}\other")
    assert (error.status, type(error)) == (MqStatus.NO_DS, DirectoryError)
    assert "the directory is away" in str(error)
    assert rf"DIRECT=OS:{FAR}\other" in error.hint
    # then what is known is sent to by all its names
    for name in (ELSEWHERE, f"PUBLIC={far}"):
        manager.queue(name).send(Message("two"))
    assert [message.text for message in waiting(manager, far)] == ["one", "two", "two"]
    # and what is not known is refused, as the documents have it, with the reason
    error = refused(manager, f"PUBLIC={other}")
    assert error.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    assert "the directory is away" in str(error)
    assert "try again when it is back" in error.hint


def test_the_very_question_that_finds_the_directory_away_is_answered_from_memory(
    enterprise: Enterprise, remembering: QueueManager
) -> None:
    core = core_of(remembering)
    directory = core.directory
    assert isinstance(directory, CachedDirectory)
    far = enterprise.add_queue(rf"{FAR}\far")
    remembering.queue(ELSEWHERE).close()
    # given a directory of which everybody but the core has noticed that it is away
    enterprise.is_connected = False
    directory.read("Site", equals("name", "Paris"), None)
    assert directory.is_away
    remembering.queue(ELSEWHERE).send(Message("x"))
    assert core.is_directory_offline
    assert [each.destination_queue_manager for each in waiting(remembering, far)] == [FAR_MANAGER]


def test_the_path_of_a_queue_that_was_asked_for_is_known(
    enterprise: Enterprise, remembering: QueueManager
) -> None:
    core, mine = core_of(remembering), remembering.create_queue(HERE)
    far = PublicFormatName(enterprise.add_queue(rf"{FAR}\far"))
    own = parse_format_name(mine.format_name)
    assert isinstance(own, PublicFormatName)
    assert (known_path(core, own), known_path(core, far)) == (rf"{COMPUTER}\orders", "")
    remembering.queue(str(far)).close()
    assert known_path(core, far) == ELSEWHERE
    assert known_path(core, PrivateFormatName(remembering.id, 4)) == ""


def test_a_queue_of_another_computer_is_not_created_from_here(manager: QueueManager) -> None:
    with pytest.raises(QueueError, match="on another computer") as raised:
        manager.create_queue(rf"{FAR}\new")
    assert rf"falconmq directory create queue '{FAR}\new'" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("orders", r".\orders"),
        ("late orders", r".\late orders"),
        (r".\private$\orders", r".\private$\orders"),
        (".private$orders", ".private$orders"),  # what a shell leaves of it
        ("DIRECT=OS:x", "DIRECT=OS:x"),
        ("", ""),
    ],
)
def test_a_plain_word_is_a_public_queue(text: str, full: str) -> None:
    assert in_full(text) == full


def test_a_plain_word_is_no_path_name_to_programs(manager: QueueManager) -> None:
    with pytest.raises(NameSyntaxError):
        manager.create_queue("orders")
