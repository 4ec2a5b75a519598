"""While the directory is away nobody knows whose keys are whose: messages wait where they are."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.manager.events import EventKind
from falconmq.message import Journal
from falconmq.security import rsa
from falconmq.security.keys import public_keys
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.problems import RegistryAwayError
from falconmq.security.providers import ADVANCED
from falconmq.transport.protection import AWAY_PATIENCE_SECONDS
from falconmq.transport.sealing import HOLD_SECONDS
from falconmq.wire.message_class import MessageClass
from tests.security import known
from tests.transport.estate import bodies
from tests.transport.protected import BODY, Scene, scene, signed
from tests.transport.raw_peer import RawPeer
from tests.transport.test_sealing import pair

_BAD = MessageClass.NACK_BAD_SIGNATURE


def away(since: float) -> RegistryAwayError:
    return RegistryAwayError("the directory is away: no answer", since=since, hint="wait")


@pytest.mark.parametrize("transactional", [False, True])
def test_a_private_message_waits_for_the_keys_and_those_behind_it_too(transactional: bool) -> None:
    # given a receiver whose keys nobody can look up now
    on = pair(transactional=transactional)
    on.registry.away = away(on.a.core.clock.time())
    on.send(transactional=transactional, journal=Journal.DEAD_LETTER)
    on.send(b"clear", 0, transactional=transactional)
    on.a.estate.advance(1_000)  # however long: there is no limit but that of the message
    # then nothing is lost, nothing is sent, and it is explained
    assert (bodies(on.queue), on.sent) == ([], [])
    outgoing = on.a.outgoing(on.name)
    assert len(outgoing.positions) == 2
    situation = on.a.transport.situation(outgoing)
    assert situation.waits_for_keys
    assert "the directory is away" in situation.encryption_problem
    assert on.a.core.events is not None
    assert all(e.kind is not EventKind.REFUSED for e in on.a.core.events.newest_first())
    # when the directory is back, both go, in their order
    on.registry.away = None
    on.a.estate.advance(HOLD_SECONDS)
    assert bodies(on.queue) == [BODY, b"clear"]
    assert BODY not in bytes(on.sent[0].properties.message_body)
    situation = on.a.transport.situation(on.a.outgoing(on.name))
    assert (situation.encryption_problem, situation.waits_for_keys) == ("", False)


def test_a_queue_that_waits_holds_up_no_other() -> None:
    on = pair()
    other = on.b.queue("others")
    on.registry.away = away(on.a.core.clock.time())
    on.send()
    on.a.send(on.b.private_name(other), b"clear")
    on.a.estate.settle()
    assert bodies(other) == [b"clear"]
    assert bodies(on.queue) == []


def test_a_message_that_waits_for_keys_may_expire_and_the_next_one_goes() -> None:
    on = pair()
    on.registry.away = away(on.a.core.clock.time())
    on.send(b"short", time_to_reach_queue=30)
    on.send(b"long", time_to_reach_queue=10_000)
    on.a.estate.advance(60)
    assert len(on.a.outgoing(on.name).positions) == 1
    on.registry.away = None
    on.a.estate.advance(HOLD_SECONDS)
    assert bodies(on.queue) == [b"long"]


def test_keys_that_change_while_they_are_asked_for_are_used_at_once() -> None:
    # given a key that was made for the receiver's first public key
    on = pair()
    on.send(b"first")
    newer = rsa.generate(1024)
    # when the registry learns of the new one by being asked
    keys_of = on.registry.keys_of

    def learning(queue_manager: object) -> object:
        on.registry.keys[on.b.identifier] = {ADVANCED: newer.public}
        on.registry.version += 1
        return keys_of(on.b.identifier)

    on.registry.keys_of = learning  # type: ignore[method-assign,assignment]
    on.send(b"second")
    # then no key of before is used again
    first, second = (packet.security for packet in on.sent)
    assert first is not None
    assert second is not None
    assert first.encryption_key != second.encryption_key


# Messages in


def test_a_signed_message_has_to_come_again_while_nobody_can_verify_it() -> None:
    # given a message of a user whom nobody can look up now
    on = scene()
    packet = signed(on.peer.message(on.queue, BODY)).encode()
    on.registry.away = away(on.node.core.clock.time())
    on.peer.write(packet)
    # then it is neither taken nor refused: its sender keeps it
    assert on.peer.is_closed
    assert (on.taken, on.peer.classes) == ([], [])
    assert on.node.transport.counters["sessions closed while the directory was away"] == 1
    # others are not concerned
    on.peer = RawPeer(on.node, address="10.0.0.98", guid=UUID(int=7, version=4).bytes_le).open()
    on.peer.write(on.peer.message(on.queue, b"clear").encode())
    assert on.taken == [b"clear"]
    # and when somebody can say whose it is, it is taken, once
    on.registry.away = None
    on.peer = RawPeer(on.node).open()
    on.peer.write(packet)
    assert on.taken == [b"clear", BODY]


@pytest.mark.requirement("QB-3.1.5.8.3-16")
def test_a_directory_that_stays_away_counts_as_a_failure() -> None:
    on = scene()
    on.registry.away = away(on.node.core.clock.time() - AWAY_PATIENCE_SECONDS)
    on.send(signed)
    assert (on.taken, on.peer.classes, on.peer.is_closed) == ([], [_BAD], False)


def test_who_was_verified_before_need_not_be_looked_up() -> None:
    on = scene()
    on.send(signed)
    on.registry.away = away(on.node.core.clock.time())
    on.send(signed)
    assert on.taken == [BODY, BODY]


def test_a_queue_manager_that_has_renewed_its_keys_is_believed() -> None:
    # given a queue manager that signs with a key which is not the one that we know
    on = scene()
    manager = UUID(bytes_le=on.peer.guid)
    on.registry.keys[manager] = {}
    newer = rsa.generate(1024)
    assert newer.public != known.PAIR_1024.public
    _send_as(on, manager, newer)
    assert on.peer.classes == [_BAD]
    # when the directory is asked again, it has the new one
    on.registry.renewed = public_keys({ADVANCED: newer.public})
    _send_as(on, manager, newer)
    assert on.taken == [BODY]
    # somebody else's key does not fit all the same
    _send_as(on, manager, rsa.generate(1024))
    assert on.taken == [BODY]
    assert on.peer.classes == [_BAD, _BAD]


def _send_as(on: Scene, manager: UUID, pair: rsa.RsaKeyPair) -> None:
    on.send(lambda packet: sign_as_manager(packet, pair, manager))
