"""Opening and closing queues (scenarios 9 to 15 of the guide)."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, FalconMQError, MqStatus, NameSyntaxError, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import open_cursor
from falconmq.manager.model import OpenQueueDescriptor, OutgoingQueue, Queue
from falconmq.manager.queues import (
    close_queue,
    create_queue,
    delete_queue,
    expand_format_name,
    get_queue_path,
    open_queue,
)
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType, OutgoingState, RemoteReadState, ShareMode
from falconmq.names import (
    DistributionListFormatName,
    MultipleElementFormatName,
    PathName,
    parse_format_name,
)
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import COMPUTER, IDENTIFIER, commit, given_queue, make_core

SEND, RECEIVE, PEEK = AccessType.SEND, AccessType.RECEIVE, AccessType.PEEK
NONE, DENY = ShareMode.DENY_NONE, ShareMode.DENY_RECEIVE
LOCAL = rf"DIRECT=OS:{COMPUTER}\private$\orders"
REMOTE = r"DIRECT=OS:other\private$\orders"
FAR_QUEUE = UUID("0f0f0f0f-0000-4000-8000-000000000001")
LIST = UUID("d1d1d1d1-0000-4000-8000-000000000001")


def open_it(
    core: QueueManagerCore,
    name: str,
    access: AccessType = SEND,
    share: ShareMode = NONE,
    **options: Any,
) -> OpenQueueDescriptor:
    return open_queue(core, parse_format_name(name), access, share, **options)


def status_of(core: QueueManagerCore, name: str, *access: Any) -> MqStatus:
    """How opening ends: the status of its refusal, or OK."""
    try:
        open_it(core, name, *access)
    except FalconMQError as refusal:
        return refusal.status
    return MqStatus.OK


def outgoing_of(descriptor: OpenQueueDescriptor) -> OutgoingQueue:
    assert isinstance(descriptor.queue, OutgoingQueue)
    return descriptor.queue


def is_refused(existing: tuple[AccessType, ShareMode], new: tuple[AccessType, ShareMode]) -> bool:
    """The sharing table of the guide's part 8.1, written down once more, row by row."""
    access, share = existing
    receives = {AccessType.RECEIVE, AccessType.RECEIVE_ADMIN}
    if access in receives and share is DENY:
        return new[1] is DENY or new[0] in receives
    if access in {AccessType.PEEK, AccessType.PEEK_ADMIN} and share is DENY:
        return new[0] in receives
    if access in receives and share is NONE:
        return new[1] is DENY
    return False


@pytest.mark.requirement("DM-3.1.7.1.5-29", "DM-3.1.7.1.5-30", "DM-3.1.7.1.5-31", "DM-3.1.7.1.5-32")
@pytest.mark.parametrize(
    "existing",
    list(itertools.product(AccessType, ShareMode)),
    ids=lambda m: f"{m[0].name}-{m[1].name}",
)
def test_who_has_a_queue_open_decides_who_may_open_it_too(
    existing: tuple[AccessType, ShareMode],
) -> None:
    for new in itertools.product(AccessType, ShareMode):
        # given a queue that somebody has open
        core = make_core()
        given_queue(core)
        open_it(core, LOCAL, *existing)
        # when somebody else opens it
        status = status_of(core, LOCAL, *new)
        # then the table decides
        wanted = MqStatus.SHARING_VIOLATION if is_refused(existing, new) else MqStatus.OK
        assert status is wanted, new


def test_the_first_row_of_the_table_that_matches_decides() -> None:
    # given a reader who shares and a peeker who keeps receivers out
    core = make_core()
    given_queue(core)
    open_it(core, LOCAL, RECEIVE, NONE)
    open_it(core, LOCAL, PEEK, NONE)
    queue = next(iter(core.descriptors.values())).queue
    assert queue is not None
    queue.descriptors[1].share = DENY
    # then the row of the peeker counts, and that of the reader is not asked
    assert status_of(core, LOCAL, SEND, DENY) is MqStatus.OK
    assert status_of(core, LOCAL, RECEIVE, NONE) is MqStatus.SHARING_VIOLATION


@pytest.mark.requirement(
    "DM-3.1.7.1.5-01",
    "DM-3.1.7.1.5-33",
    "DM-3.1.7.1.5-34",
    "DM-3.1.7.1.5-36",
    "DM-3.1.7.1.5-37",
    "DM-3.1.1.16-03",
    "DM-3.1.1.16-04",
    "DM-3.1.1.16-05",
    "DM-3.1.1.16-06",
    "DM-3.1.1.2-28",
)
def test_a_descriptor_says_how_its_queue_was_opened() -> None:
    # given a queue, when it is opened
    core = make_core()
    queue = given_queue(core)
    descriptor = open_it(core, LOCAL, PEEK, DENY)
    # then the descriptor says how, and the queue knows it and is active
    assert (descriptor.access, descriptor.share) == (PEEK, DENY)
    assert descriptor.queue is queue
    assert descriptor.format_name == parse_format_name(LOCAL)
    assert not descriptor.is_multiple
    assert descriptor.remote_read_state is RemoteReadState.NONE
    assert queue.descriptors == [descriptor]
    assert queue.is_active
    # and no longer when it is closed
    close_queue(core, descriptor)
    assert not queue.is_active


@pytest.mark.requirement("DM-3.1.7.1.5-35", "DM-3.1.1.16-01", "DM-3.1.1.16-02")
def test_handles_and_context_values_belong_to_one_descriptor_each() -> None:
    core = make_core()
    given_queue(core)
    opened = [open_it(core, LOCAL) for _ in range(50)]
    close_queue(core, opened.pop())
    opened += [open_it(core, LOCAL) for _ in range(50)]
    assert len({d.handle for d in opened}) == len(opened)
    assert len({d.context_value for d in opened}) == len(opened)
    assert not {d.handle for d in opened} & {d.context_value for d in opened}


@pytest.mark.requirement("DM-3.1.7.1.5-13", "DM-3.1.7.1.5-14", "DM-3.1.7.1.5-15")
@pytest.mark.parametrize(
    ("name", "access"),
    [
        *(("DIRECT=HTTP://h/MSMQ/q", access) for access in AccessType if access is not SEND),
        ("DIRECT=HTTPS://h/MSMQ/q", RECEIVE),
        (f"MACHINE={IDENTIFIER};JOURNAL", SEND),
        *(("MULTICAST=234.1.1.1:8001", access) for access in AccessType if access is not SEND),
        (LOCAL + ";journal", SEND),
        (LOCAL + ";sub", SEND),
        (rf"DIRECT=OS:{COMPUTER}\SYSTEM$;DEADLETTER", SEND),
    ],
)
def test_a_name_that_does_not_go_with_the_access_is_refused(name: str, access: AccessType) -> None:
    core = make_core()
    given_queue(core)
    assert status_of(core, name, access) is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION


@pytest.mark.requirement("DM-3.1.7.1.5-16")
@pytest.mark.parametrize("access", [a for a in AccessType if a is not SEND])
@pytest.mark.parametrize(
    "name", [LOCAL, LOCAL + ";journal", LOCAL + ";sub", f"MACHINE={IDENTIFIER};DEADXACT"]
)
def test_queues_of_this_computer_can_be_read(name: str, access: AccessType) -> None:
    core = make_core()
    given_queue(core)
    assert status_of(core, name, access) is MqStatus.OK


def test_a_subqueue_comes_to_be_when_it_is_opened() -> None:
    core = make_core()
    queue = given_queue(core)
    first = open_it(core, LOCAL + ";retry", RECEIVE)
    assert queue.subqueues == {"retry": first.queue}
    assert open_it(core, LOCAL + ";RETRY", AccessType.MOVE).queue is first.queue
    assert status_of(core, LOCAL + "x;retry", RECEIVE) is MqStatus.QUEUE_NOT_FOUND


@pytest.mark.requirement("DM-3.1.7.1.5-17")
@pytest.mark.parametrize("access", [a for a in AccessType if a is not SEND])
@pytest.mark.parametrize("name", [LOCAL, REMOTE, rf"PRIVATE={UUID(int=4)}\2", f"PUBLIC={LIST}"])
def test_a_queue_that_is_not_here_cannot_be_read(name: str, access: AccessType) -> None:
    assert status_of(make_core(), name, access) is MqStatus.QUEUE_NOT_FOUND


@pytest.mark.requirement("DM-3.1.7.1.5-18", "DM-3.1.7.1.5-38")
@pytest.mark.parametrize(
    "host",
    [
        f"OS:{COMPUTER}",
        f"OS:{COMPUTER.lower()}",
        f"OS:{COMPUTER}.example.com",
        "OS:.",
        "OS:LocalHost",
        "OS:alias",
        "TCP:10.0.0.5",
        "TCP:fe80:0:0::1",
    ],
)
def test_no_outgoing_queue_is_made_for_a_name_of_this_computer(host: str) -> None:
    core = make_core(
        domain_name="example.com", local_names=frozenset({"10.0.0.5", "FE80::1", "Alias"})
    )
    assert status_of(core, rf"DIRECT={host}\private$\x") is MqStatus.QUEUE_NOT_FOUND
    assert core.outgoing == {}


@pytest.mark.requirement("DM-3.1.7.1.5-18", "DM-3.1.7.1.5-38")
def test_the_host_of_a_url_may_be_this_computer_too() -> None:
    core = make_core()
    name = f"DIRECT=HTTP://{COMPUTER}/msmq/private$/x"
    assert status_of(core, name) is MqStatus.QUEUE_NOT_FOUND


@pytest.mark.requirement("DM-3.1.7.1.5-21")
def test_an_unknown_private_number_of_this_computer_is_not_found() -> None:
    core = make_core()
    assert status_of(core, rf"PRIVATE={IDENTIFIER}\fff") is MqStatus.QUEUE_NOT_FOUND
    assert status_of(core, rf"PRIVATE={UUID(int=4)}\fff") is MqStatus.OK


def test_a_misspelt_queue_is_refused_with_the_right_spelling() -> None:
    core = make_core()
    given_queue(core)
    with pytest.raises(QueueError) as refused:
        open_it(core, r"DIRECT=OS:.\private$\ordres", RECEIVE)
    assert str(refused.value) == rf"no queue .\private$\ordres on {COMPUTER}"
    assert refused.value.hint.startswith(r"did you mean .\private$\orders? to create it: falconmq")


@pytest.mark.requirement(
    "DM-3.1.7.1.5-22",
    "DM-3.1.7.1.5-23",
    "DM-3.1.7.1.5-24",
    "DM-3.1.7.1.5-28",
    "DM-3.1.7.1.5-16",
)
def test_a_queue_elsewhere_gets_one_outgoing_queue() -> None:
    # given nothing, when a queue of another computer is opened, twice, in two spellings
    core = make_core()
    first, again = (
        open_it(core, REMOTE),
        open_it(core, REMOTE.upper().replace("DIRECT=OS", "DIRECT=os")),
    )
    other = open_it(core, REMOTE + "2")
    # then one outgoing queue leads there, as the specification wants it to be
    queue = outgoing_of(first)
    assert again.queue is queue
    assert core.queues[queue.number] is queue
    assert queue.properties.label == REMOTE
    assert str(queue.destination) == REMOTE
    assert queue.next_hops is None
    assert queue.state is OutgoingState.INACTIVE
    assert not queue.is_multicast
    # and another queue there gets another, with another identifier
    assert outgoing_of(other).identifier not in (queue.identifier, UUID(int=0))


@pytest.mark.requirement("DM-3.1.7.1.5-27")
def test_a_multicast_address_gets_a_multicast_queue() -> None:
    assert outgoing_of(open_it(make_core(), "MULTICAST=234.1.1.1:8001")).is_multicast


@pytest.mark.requirement("DM-3.1.7.1.5-26", "DM-3.1.1.3-14")
def test_in_hardened_mode_all_ways_but_http_are_locked() -> None:
    core = make_core(hardened_security=True)
    assert outgoing_of(open_it(core, REMOTE)).state is OutgoingState.LOCKED
    assert outgoing_of(open_it(core, "MULTICAST=234.1.1.1:8001")).state is OutgoingState.LOCKED
    for name in ("DIRECT=HTTP://h/msmq/q", "DIRECT=HTTPS://h/msmq/q"):
        assert outgoing_of(open_it(core, name)).state is OutgoingState.INACTIVE


def given_far_queue(computer: str = "OTHER", **attributes: Any) -> tuple[QueueManagerCore, Any]:
    core, directory, _ = make_integrated_core()
    row = {
        "identifier": FAR_QUEUE,
        "path_name": rf"{computer}\far",
        "computer_name": computer,
        "base_priority": 0,
    }
    directory.create("Queue", {**row, **attributes})
    directory.calls.clear()
    return core, directory


@pytest.mark.requirement("DM-3.1.7.1.5-19", "DM-3.1.7.1.5-25")
def test_a_public_queue_elsewhere_is_known_by_the_directory_or_not_at_all() -> None:
    # given a public queue of another computer with a priority of its own
    core, directory = given_far_queue(base_priority=17)
    # then opening it makes an outgoing queue with that priority, out of one read
    queue = outgoing_of(open_it(core, f"PUBLIC={FAR_QUEUE}"))
    assert queue.properties.base_priority == 17
    assert directory.calls == ["read Queue"]
    # and one that the directory does not know is refused
    unsupported = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    assert status_of(core, f"PUBLIC={LIST}") is unsupported
    # as it is without a directory
    assert status_of(make_core(), f"PUBLIC={FAR_QUEUE}") is unsupported


@pytest.mark.requirement("DM-3.1.7.1.5-20")
def test_a_public_queue_that_should_be_here_and_is_not_is_not_found() -> None:
    core, _ = given_far_queue(computer=COMPUTER)
    assert status_of(core, f"PUBLIC={FAR_QUEUE}") is MqStatus.QUEUE_NOT_FOUND


@pytest.mark.requirement(
    "DM-3.1.7.1.5-07",
    "DM-3.1.7.1.5-08",
    "DM-3.1.7.1.5-09",
    "DM-3.1.7.1.5-10",
    "DM-3.1.7.1.5-12",
    "DM-3.1.1.16-07",
    "DM-3.1.1.16-08",
    "DM-3.1.1.16-09",
    "DM-3.1.1.16-10",
    "DM-3.1.1.16-11",
)
def test_several_queues_are_opened_as_children_of_one_descriptor() -> None:
    # given two names in one, when they are opened
    core = make_core()
    queue = given_queue(core)
    name = f"{LOCAL},{REMOTE}"
    parent = open_it(core, name)
    # then a parent without a queue has a child for each, all for sending
    assert parent.is_multiple
    assert parent.queue is None
    assert parent.format_name == expand_format_name(core, parse_format_name(name))
    assert (parent.access, parent.share) == (SEND, NONE)
    assert parent.remote_read_state is RemoteReadState.NONE
    assert {str(c.format_name) for c in parent.children} == {LOCAL, REMOTE}
    assert {(c.access, c.share, c.is_multiple) for c in parent.children} == {(SEND, NONE, False)}
    assert len({parent.handle, *(c.handle for c in parent.children)}) == 3
    assert len({parent.context_value, *(c.context_value for c in parent.children)}) == 3
    assert core.descriptors[parent.handle] is parent
    assert len(queue.descriptors) == 1


@pytest.mark.requirement("DM-3.1.7.1.6-01", "DM-3.1.7.1.6-03")
def test_closing_the_parent_closes_the_children() -> None:
    core = make_core()
    queue = given_queue(core)
    close_queue(core, open_it(core, f"{LOCAL},{REMOTE}"))
    assert queue.descriptors == []
    assert core.descriptors == {}


@pytest.mark.requirement("DM-3.1.7.1.5-05", "DM-3.1.7.1.5-06")
def test_several_queues_can_only_be_sent_to_and_not_denied() -> None:
    core = make_core()
    given_queue(core)
    name = f"{LOCAL},{REMOTE}"
    for access in AccessType:
        if access is not SEND:
            unsupported = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
            assert status_of(core, name, access) is unsupported
            assert status_of(core, name, access, DENY) is unsupported
    assert status_of(core, name, SEND, DENY) is MqStatus.UNSUPPORTED_ACCESS_MODE


@pytest.mark.requirement("DM-3.1.7.1.5-11")
def test_one_queue_that_cannot_be_opened_closes_the_others() -> None:
    # given a queue that is there, one that is not, and one that nobody has asked for yet
    core = make_core()
    queue = given_queue(core, "a")
    names = rf"DIRECT=OS:.\private$\a,DIRECT=OS:.\private$\b,{REMOTE}"
    # then the status of the bad one is the answer, and nothing stays open or is opened
    assert status_of(core, names) is MqStatus.QUEUE_NOT_FOUND
    assert queue.descriptors == []
    assert core.descriptors == {}
    assert core.outgoing == {}


@pytest.mark.requirement("DM-3.1.3-44")
@pytest.mark.parametrize("name", ["notify_queue$", "order_queue$"])
def test_applications_cannot_open_the_queues_of_the_protocols(name: str) -> None:
    core = make_core()
    direct = rf"DIRECT=OS:.\private$\{name}"
    for access in AccessType:
        assert status_of(core, direct, access) is MqStatus.ACCESS_DENIED
    number = {"notify_queue$": 3, "order_queue$": 4}[name]
    assert status_of(core, rf"PRIVATE={IDENTIFIER}\{number}", RECEIVE) is MqStatus.ACCESS_DENIED
    assert open_it(core, direct, RECEIVE, internal=True).queue is core.queues[number]


@pytest.mark.requirement("DM-3.1.7.1.6-04", "DM-3.1.7.1.6-05", "DM-3.1.7.1.6-06", "DM-3.1.7.1.6-07")
def test_closing_a_queue_ends_its_waiting_reads_and_its_cursors() -> None:
    # given two descriptors with waiting reads, and a cursor
    core = make_core()
    queue = given_queue(core)
    closing, staying = open_it(core, LOCAL, RECEIVE), open_it(core, LOCAL, RECEIVE)
    tagged = dequeue_message(core, closing, timeout=None, tag="mine")
    untagged = dequeue_message(core, closing, timeout=None)
    other = dequeue_message(core, staying, timeout=None, tag="other")
    cursor = open_cursor(core, closing)
    assert closing.cursors == [cursor]
    # when the first is closed
    close_queue(core, closing)
    # then its reads end as cancelled, its cursor is closed, and the other waits on
    assert commit(core) == [tagged, untagged]
    for read in (tagged, untagged):
        result = getattr(read, "result", None)
        assert result is not None
        assert result.status is MqStatus.OPERATION_CANCELLED
    assert closing.cursors == []
    assert list(queue.waiting) == [other]
    assert queue.descriptors == [staying]
    # and closing it again changes nothing
    close_queue(core, closing)
    assert queue.descriptors == [staying]


@pytest.mark.requirement("DM-3.1.7.1.6-02")
def test_closing_after_the_queue_was_deleted_does_nothing() -> None:
    core = make_core()
    queue = given_queue(core)
    descriptor = open_it(core, LOCAL, RECEIVE)
    delete_queue(core, queue)
    close_queue(core, descriptor)
    assert core.descriptors == {}


# Distribution lists


def lists(core: QueueManagerCore, directory: Any, **members: list[str]) -> dict[str, str]:
    """Distribution lists in a directory; a member that names a list is that list."""
    guids = {name: UUID(int=100 + n) for n, name in enumerate(members)}
    for name, texts in members.items():
        elements = [
            DistributionListFormatName(guids[text]) if text in guids else parse_format_name(text)
            for text in texts
        ]
        directory.distribution_lists[DistributionListFormatName(guids[name])] = elements
    return {name: f"DL={guid}" for name, guid in guids.items()}


@pytest.mark.requirement("DM-3.1.7.3.8-02")
@pytest.mark.parametrize("name", [LOCAL, f"PUBLIC={LIST}", "MULTICAST=234.1.1.1:8001"])
def test_a_single_name_is_its_own_expansion(name: str) -> None:
    parsed = parse_format_name(name)
    assert expand_format_name(make_core(), parsed) is parsed


@pytest.mark.requirement(
    "DM-3.1.7.3.8-01",
    "DM-3.1.7.3.8-03",
    "DM-3.1.7.3.8-04",
    "DM-3.1.7.3.8-05",
    "DM-3.1.7.3.8-06",
    "DM-3.1.7.3.8-08",
    "DM-3.1.7.3.8-09",
    "DM-3.1.7.3.8-16",
)
def test_lists_are_replaced_by_their_queues_sorted_and_without_doubles() -> None:
    # given lists in lists, one that holds itself, and queues in two spellings
    core, directory, _ = make_integrated_core()
    z, a, b = (rf"DIRECT=OS:{c}\q" for c in ("zoo", "Ant", "bee"))
    names = lists(
        core,
        directory,
        outer=[z, "inner", "outer"],
        inner=[b, a.lower().replace("direct=os", "DIRECT=OS")],
    )
    # when a name with a list and a queue of that list is expanded
    expanded = expand_format_name(core, parse_format_name(f"{a},{names['outer']}"))
    # then each queue is there once, in the order of the alphabet, and no list
    assert isinstance(expanded, MultipleElementFormatName)
    assert [str(e) for e in expanded.elements] == [a, b, z]
    # and the list alone has the same queues
    alone = expand_format_name(core, parse_format_name(names["outer"]))
    assert alone == expanded


@pytest.mark.requirement("DM-3.1.7.3.8-07", "DM-3.1.7.1.5-04")
def test_a_list_of_one_queue_is_that_queue() -> None:
    core, directory, _ = make_integrated_core()
    given_queue(core)
    names = lists(core, directory, one=[LOCAL])
    assert expand_format_name(core, parse_format_name(names["one"])) == parse_format_name(LOCAL)
    descriptor = open_it(core, names["one"], RECEIVE)
    assert not descriptor.is_multiple
    assert descriptor.format_name == parse_format_name(LOCAL)


@pytest.mark.requirement("DM-3.1.7.1.5-03", "DM-3.1.7.3.8-04")
def test_a_list_that_cannot_be_resolved_cannot_be_opened() -> None:
    core, directory, _ = make_integrated_core()
    with pytest.raises(DirectoryError) as refused:
        open_it(core, f"DL={LIST}")
    assert refused.value.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    directory.is_connected = False
    assert status_of(core, f"DL={LIST}") is MqStatus.NO_DS
    assert status_of(make_core(), f"DL={LIST},{REMOTE}") is MqStatus.NO_DS


def test_a_list_without_queues_cannot_be_opened() -> None:
    core, directory, _ = make_integrated_core()
    names = lists(core, directory, empty=[])
    assert status_of(core, names["empty"]) is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION


# Get Queue Path


@pytest.mark.requirement(
    "DM-3.1.7.1.26-01", "DM-3.1.7.1.26-02", "DM-3.1.7.1.26-03", "DM-3.1.7.1.26-04"
)
def test_a_direct_name_says_path_and_computer_itself() -> None:
    core = make_core()
    paths = {
        r"DIRECT=OS:h\private$\q": (r"h\private$\q", "h"),
        r"DIRECT=TCP:10.1.1.1\q": (r"10.1.1.1\q", "10.1.1.1"),
        r"DIRECT=TCP:fe80::1\q;journal": (r"fe80::1\q;journal", "fe80::1"),
        "DIRECT=HTTP://host:8080/msmq/private$/q": ("", "host"),
        "DIRECT=HTTPS://host/msmq/q": ("", "host"),
    }
    assert {name: get_queue_path(core, parse_format_name(name)) for name in paths} == paths


@pytest.mark.requirement("DM-3.1.7.1.26-05", "DM-3.1.7.1.26-06")
def test_the_path_of_a_public_queue_comes_from_the_directory() -> None:
    core, _ = given_far_queue()
    assert get_queue_path(core, parse_format_name(f"PUBLIC={FAR_QUEUE}")) == (r"OTHER\far", "OTHER")
    with pytest.raises(NameSyntaxError) as refused:
        get_queue_path(core, parse_format_name(f"PUBLIC={LIST}"))
    assert refused.value.status is MqStatus.ILLEGAL_FORMATNAME


@pytest.mark.requirement("DM-3.1.7.1.26-07", "DM-3.1.7.1.26-08", "DM-3.1.7.1.26-09")
def test_the_path_of_a_private_queue_is_known_on_its_own_computer_alone() -> None:
    # given a private queue here, and another queue manager in the directory
    core, directory, _ = make_integrated_core()
    queue = given_queue(core)
    other = UUID(int=44)
    directory.create("QueueManager", {"identifier": other, "computer_name": "OTHER"})
    number = queue.private_queue_number

    def ask(computer: UUID, number: int) -> tuple[str, str]:
        return get_queue_path(core, parse_format_name(rf"PRIVATE={computer}\{number:x}"))

    # then the queue here has a path, a number nobody has and one elsewhere have none
    assert ask(IDENTIFIER, number) == (rf"{COMPUTER}\private$\orders", COMPUTER)
    assert ask(IDENTIFIER, 0xFFFF) == ("", COMPUTER)
    assert ask(other, number) == ("", "OTHER")
    # and a computer that the directory does not know is refused
    with pytest.raises(NameSyntaxError) as refused:
        ask(UUID(int=45), number)
    assert refused.value.status is MqStatus.ILLEGAL_FORMATNAME


def test_in_a_workgroup_the_path_of_our_own_queues_is_known() -> None:
    core = make_core()
    queue = given_queue(core)
    name = parse_format_name(rf"PRIVATE={IDENTIFIER}\{queue.private_queue_number:x}")
    assert get_queue_path(core, name) == (rf"{COMPUTER}\private$\orders", COMPUTER)


@pytest.mark.requirement("DM-3.1.7.1.26-10")
@pytest.mark.parametrize(
    "name", [f"MACHINE={LIST};JOURNAL", f"CONNECTOR={LIST}", "MULTICAST=234.1.1.1:8001"]
)
def test_other_names_have_neither_path_nor_computer(name: str) -> None:
    assert get_queue_path(make_core(), parse_format_name(name)) == ("", "")


def test_a_public_queue_of_ours_is_opened_by_its_path() -> None:
    core, _, _ = make_integrated_core()
    queue: Queue = create_queue(core, PathName.parse(r".\b"))
    assert open_it(core, rf"DIRECT=OS:{COMPUTER}\b").queue is queue
