"""While the directory is being asked, messages wait for its answer and nobody else does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest

from falconmq.names import PublicFormatName, SingleFormatName
from falconmq.security.problems import RegistryAskedError, RegistryAwayError
from falconmq.transport import undecided
from falconmq.transport.routing import Destination, StaticRouter
from falconmq.transport.waiting import come_again
from tests.transport.estate import Node, bodies
from tests.transport.protected import (
    BODY,
    SEQUENCE,
    Scene,
    plain,
    protection_of,
    scene,
    signed,
)
from tests.transport.raw_peer import RawPeer, routed_estate, run
from tests.transport.test_sealing import pair

WAITED = "messages that waited for the directory"
PUBLIC = PublicFormatName(UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0"))


def asked(node: Node) -> RegistryAskedError:
    return RegistryAskedError("the directory is asked", since=node.core.clock.time())


def answer(node: Node) -> None:
    """The directory has answered: as the service does, in a turn and a timer of its own."""
    run(node, node.transport.after, 0.0, partial(come_again, node.transport))
    node.estate.advance(0.001)


def acknowledged(on: Scene) -> int:
    """How many messages the node has said it has."""
    on.node.estate.advance(20)
    return max((ack.ack_sequence_number for ack in on.peer.session_acks), default=0)


# Messages in


def test_a_message_of_somebody_new_waits_and_those_behind_it_too() -> None:
    # given a message of a user who is being asked for, and one in the clear behind it
    on = scene()
    on.registry.away = asked(on.node)
    on.send(signed)
    on.send(plain, b"second")
    # then nothing is taken, refused, or acknowledged, and the session stays
    assert acknowledged(on) == 0
    assert (on.taken, on.peer.classes, on.peer.is_closed) == ([], [], False)
    # others do not wait
    other = RawPeer(on.node, address="10.0.0.98", guid=UUID(int=7, version=4).bytes_le).open()
    other.send(on.queue, b"other")
    assert on.taken == [b"other"]
    # when the answer is there, both are, in their order and once
    on.registry.away = None
    answer(on.node)
    assert on.taken == [b"other", BODY, b"second"]
    assert acknowledged(on) == 2
    answer(on.node)
    on.send(plain, b"third")
    assert on.taken == [b"other", BODY, b"second", b"third"]
    assert acknowledged(on) == 3
    assert on.node.transport.counters[WAITED] == 2


def test_the_messages_of_a_transaction_keep_their_places() -> None:
    on = scene(transactional=True)
    on.registry.away = asked(on.node)
    for number in (1, 2, 3):
        on.send(signed, b"%d" % number, transaction=(SEQUENCE, number, number - 1))
    assert on.taken == []
    on.registry.away = None
    answer(on.node)
    assert on.taken == [b"1", b"2", b"3"]
    on.node.estate.advance(1)
    assert [ack.body.tx_sequence_number for ack in on.peer.order_acks][-1] == 3
    assert on.node.transport.counters["out of order"] == 0


def test_one_answer_is_not_the_other() -> None:
    # given two messages of one session that need an answer each
    on = scene()
    on.registry.away = asked(on.node)
    on.send(signed)
    on.send(plain, b"second")
    # when the one that came is not the one they need
    answer(on.node)
    # then they wait on, in their order
    assert on.taken == []
    on.registry.away = None
    answer(on.node)
    assert on.taken == [BODY, b"second"]
    assert acknowledged(on) == 2


def test_a_directory_that_is_away_after_all_sends_them_back() -> None:
    on = scene()
    on.registry.away = asked(on.node)
    on.send(signed)
    on.send(plain, b"second")
    on.registry.away = RegistryAwayError("away", since=on.node.core.clock.time())
    answer(on.node)
    assert (on.taken, on.peer.is_closed) == ([], True)
    assert on.node.transport.counters["sessions closed while the directory was away"] == 1


def test_a_session_that_ends_takes_its_messages_with_it() -> None:
    on = scene()
    on.registry.away = asked(on.node)
    packet = signed(on.peer.message(on.queue, BODY)).encode()
    on.peer.write(packet)
    on.peer.hang_up()
    on.registry.away = None
    answer(on.node)
    assert on.taken == []
    # its sender sends it again, and it is no duplicate
    on.peer = RawPeer(on.node).open()
    on.peer.write(packet)
    assert on.taken == [BODY]


@pytest.mark.parametrize(("limit", "value"), [("MESSAGES_MAX", 3), ("BYTES_MAX", 3_000)])
def test_who_sends_more_than_a_window_is_sent_away(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undecided, limit, value)
    on = scene()
    on.registry.away = asked(on.node)
    on.send(signed)
    while not on.peer.is_closed:
        assert on.node.transport.counters[WAITED] < 10
        on.send(plain)
    on.registry.away = None
    answer(on.node)
    assert on.taken == []
    # there is room again for the next
    on.peer = RawPeer(on.node).open()
    on.registry.away = asked(on.node)
    for _ in range(2):
        on.send(signed)
        on.registry.away, before = None, on.registry.away
        answer(on.node)
        on.registry.away = before
        protection_of(on.node).user_certs.clear()
    assert (on.taken, on.peer.is_closed) == ([BODY, BODY], False)


def test_a_weak_peer_waits_for_its_name() -> None:
    # given somebody who may use weak algorithms, by a name that only the directory knows
    on = scene(settings={"weak": frozenset({"old"})})
    name_of = on.registry.name_of

    def asking(queue_manager: UUID) -> str:
        raise asked(on.node)

    on.registry.name_of = asking  # type: ignore[method-assign]
    on.send(signed)
    assert (on.taken, on.peer.is_closed) == ([], False)
    on.registry.name_of = name_of  # type: ignore[method-assign]
    answer(on.node)
    assert on.taken == [BODY]


# Messages out


def test_a_private_message_goes_as_soon_as_its_keys_are_known() -> None:
    on = pair()
    other = on.b.queue("others")
    on.registry.away = asked(on.a)
    on.send()
    on.send(b"second")
    on.a.send(on.b.private_name(other), b"clear")
    on.a.estate.settle()
    assert (bodies(on.queue), bodies(other)) == ([], [b"clear"])
    situation = on.a.transport.situation(on.a.outgoing(on.name))
    assert situation.waits_for_keys
    on.registry.away = None
    answer(on.a)
    assert bodies(on.queue) == [BODY, b"second"]


# Messages on their way


@dataclass(frozen=True)
class AskingRouter(StaticRouter):
    """A router whose directory has not answered yet."""

    def is_asked(self, name: SingleFormatName) -> bool:
        return name == PUBLIC


def test_a_message_for_a_queue_that_is_asked_for_is_neither_refused_nor_passed_on() -> None:
    estate = routed_estate()
    node = estate.node("R", 1)
    before, node.transport.router = node.transport.router, AskingRouter()
    peer = RawPeer(node).open(direct=False)
    far = UUID(int=99, version=4).bytes_le
    peer.send(PUBLIC.queue.bytes_le, b"far", address=far)
    assert node.transport.counters[WAITED] == 1
    assert not node.core.outgoing
    assert not node.transport.refusals
    # when nobody is asked any more, it is decided: this one has no directory, and refuses it
    node.transport.router = before
    answer(node)
    assert sum(node.transport.refusals.values()) == 1
    assert not peer.is_closed


@dataclass(frozen=True)
class Forgetful(StaticRouter):
    """A router that has not been told yet where the queues of others are."""

    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        return None


def test_what_waits_for_the_place_of_its_queue_goes_when_that_is_known() -> None:
    # given a message to a queue of which nobody knows where it is, and one to a queue manager that
    # nobody knows a way to
    estate = routed_estate()
    a, b = estate.node("A", 1), estate.node("B", 2)
    queue, far = b.queue("orders"), f"PRIVATE={UUID(int=99, version=4)}\\7"
    a.send(far, b"lost")
    router, a.transport.router = a.transport.router, Forgetful()
    a.send(b.private_name(queue), b"found")
    estate.settle()
    lost = a.outgoing(far)
    tries = lost.connection_failures
    # when an answer comes that is about something else, nobody tries anything
    answer(a)
    waiting = a.outgoing(b.private_name(queue))
    assert (waiting.connection_failures, lost.connection_failures) == (1, tries)
    # when the directory says where the queue is, then its message goes, long before the next try;
    # the other one waits for a new map
    a.transport.router = router
    answer(a)
    assert bodies(queue) == [b"found"]
    assert lost.connection_failures == tries
    run(a, a.transport.after, 0.0, partial(come_again, a.transport, is_new_map=True))
    estate.advance(0.001)
    assert lost.connection_failures == tries + 1
