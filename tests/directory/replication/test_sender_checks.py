"""Who may say what (A-33): unverified, strange and false senders change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.directory.replication.state import PurgeState
from falconmq.wire.directory_change import CREATE, DirectoryChange
from falconmq.wire.property_ids import PROPERTIES
from falconmq.wire.replication_messages import (
    ChangeReplyMessage,
    ChangeRequestMessage,
    ReplicationMessage,
)
from falconmq.wire.variant import (
    VT_BLOB,
    VT_CLSID,
    VT_I2,
    VT_I4,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_VECTOR,
)
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    begin_enterprise,
    queue_manager,
    register,
)
from tests.directory.replication.told import (
    acked,
    already_purged,
    asked,
    authority,
    backup,
    hello,
    made,
    network,
    propagation,
    replica,
    reply,
)

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=5)
_GUIDS = st.binary(min_size=16, max_size=16)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    VT_UI1: st.integers(0, 255),
    VT_UI2: st.integers(0, 0xFFFF),
    VT_I2: st.integers(-0x8000, 0x7FFF),
    VT_UI4: st.integers(0, 0xFFFFFFFF),
    VT_I4: st.integers(-0x80000000, 0x7FFFFFFF),
    VT_LPWSTR: TEXTS,
    VT_BLOB: st.binary(max_size=9),
    VT_CLSID: _GUIDS,
    VT_CLSID | VT_VECTOR: st.lists(_GUIDS, max_size=2).map(tuple),
    VT_LPWSTR | VT_VECTOR: st.lists(TEXTS, max_size=2).map(tuple),
    VT_UI1 | VT_VECTOR: st.binary(max_size=9),
}
MESSAGES: list[ReplicationMessage] = [
    propagation(made(8)),
    hello(99),
    reply(7, 8, made(8, 7, 0)),
    already_purged(99),
]


def untouched(node: Node) -> bool:
    partition = node.partition(ENTERPRISE)
    return (
        node.get("ConnectedNetwork", network(8)) is None
        and (partition.last, partition.window, partition.pending) == (7, 0, [])
        and partition.purge_state is PurgeState.NORMAL
    )


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("sender", [None, "PSC2", "nobody"])
def test_only_its_authority_speaks_of_a_partition(
    message: ReplicationMessage, sender: str | None
) -> None:
    for node in (replica(last=7), backup(last=7)):
        assert node.tell(message, sender) == []
        assert untouched(node)
        node.tell(message, "PEC0")
        assert not untouched(node)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_nothing_from_outside_changes_an_own_partition(message: ReplicationMessage) -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    for sender in ("PSC1", "PEC0"):
        pec.tell(message, sender)
    partition = pec.partition(ENTERPRISE)
    assert (partition.last, partition.authority_name) == (last, "PEC0")
    assert partition.purge_state is PurgeState.NORMAL
    assert pec.get("ConnectedNetwork", network(8)) is None


def test_a_hello_in_another_name_is_not_believed() -> None:
    psc = replica(last=7)
    psc.tell(hello(99, name="PSC2"), "PEC0")
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    assert psc.engine.counters["dropped.hello_in_another_name"] == 1


def request(name: str = "PSC1") -> ChangeRequestMessage:
    change = DirectoryChange(
        CREATE, "net", ENTERPRISE.bytes_le, properties=[(503, network(8).bytes_le), (502, "net")]
    )
    return ChangeRequestMessage(SITES[1].bytes_le, ENTERPRISE.bytes_le, 1, name, None, change)


def test_only_directory_servers_ask_for_changes() -> None:
    pec = authority()
    plain = pec.add_machine("workstation", identifier=UUID(int=77))
    assert pec.engine.receive(request(), plain) == []
    assert pec.engine.receive(request(), UUID(int=78)) == []
    assert pec.engine.receive(request(), None) == []
    assert pec.get("ConnectedNetwork", network(8)) is None
    assert pec.engine.counters["dropped.change_request_of_a_stranger"] == 1
    assert pec.engine.counters["dropped.unknown_sender"] == 2
    assert len(pec.tell(request(), "PSC1")) == 1


def test_acks_and_requests_in_another_name_are_dropped() -> None:
    pec = authority()
    register(pec, "BSC01")
    pec.tell(acked(5), "BSC01")
    with pec.engine.turn() as server:
        assert server.state.pscs[0].acked_enterprise == 0
    assert pec.tell(asked(0), "BSC01") == []
    assert pec.engine.counters["dropped.ack_in_another_name"] == 1


def test_only_the_server_that_was_asked_may_answer() -> None:
    psc = replica(last=7)
    (send,) = psc.tell(request("PSC2"), "PSC2")
    assert send.machine == "PEC0"
    answer = ChangeReplyMessage(SITES[2].bytes_le, 1, 0, "PSC2")
    assert psc.tell(answer, "PSC2") == []
    assert psc.engine.counters["dropped.reply_of_a_stranger"] == 1
    assert [each.machine for each in psc.tell(answer, "PEC0")] == ["PSC2"]


def test_the_directory_says_who_a_server_is_before_setup_does() -> None:
    estate = Estate("PEC0", "PSC1")
    pec = estate["PEC0"].start()
    begin_enterprise(pec, 0, 1)
    register(pec, "PEC0")
    psc = estate["PSC1"].start()
    estate.settle()
    assert psc.get("QueueManager", queue_manager("PEC0")) is not None
    psc.trusted = False  # setup is over
    estate.restart("PSC1")
    last = psc.partition(ENTERPRISE).last
    psc.tell(propagation(made(last + 1)), "PSC2")
    assert psc.partition(ENTERPRISE).last == last
    psc.tell(propagation(made(last + 1)), "PEC0")
    assert psc.partition(ENTERPRISE).last == last + 1


@pytest.mark.requirement("RP-3.2.7.1-09")
def test_where_senders_are_not_required_anybody_is_believed() -> None:
    settings = replace(ReplicationSettings(), requires_sender=False)
    estate = Estate("PEC0", "PSC1", settings=settings)
    begin_enterprise(estate["PEC0"].start(), 0, 1)
    psc = estate["PSC1"].start()
    estate.settle()
    last = psc.partition(ENTERPRISE).last
    sends = psc.tell(hello(last + 2, name="PSC2"), None)
    assert psc.partition(ENTERPRISE).authority_name == "PSC2"
    assert [send.machine for send in sends] == ["PSC2"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_change_of_an_authority_breaks_the_engine(data: st.DataObject) -> None:
    """Whatever its properties are: it is applied, or counted and left."""
    psc = replica(last=7)
    numbers = data.draw(st.lists(st.sampled_from(sorted(PROPERTIES)), max_size=5))
    properties = [(n, data.draw(VALUES[PROPERTIES[n].vt])) for n in numbers]
    name = data.draw(st.one_of(st.binary(min_size=16, max_size=16), TEXTS))
    change = DirectoryChange(
        data.draw(st.integers(0, 3)), name, ENTERPRISE.bytes_le, 7, 8, 8, properties
    )
    psc.tell(propagation(change), "PEC0")
    applied = psc.partition(ENTERPRISE).last == 8
    assert applied is not bool(psc.engine.counters.get("dropped.cannot_apply", 0))
    pec = authority()
    asking = request()
    asking.directory_change = change
    (send,) = [
        each for each in pec.tell(asking, "PSC1") if isinstance(each.message, ChangeReplyMessage)
    ]
    assert send.machine == "PSC1"
