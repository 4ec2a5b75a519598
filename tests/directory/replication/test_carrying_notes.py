"""What the carrier remembers for people: whom it heard when, and who owes an answer."""

from __future__ import annotations

from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.directory.replication.carrying_notes import Notes
from falconmq.directory.replication.effects import Profile, Send
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    BSCAckMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from tests.directory.replication.carried_enterprise import SITES, three_sites

SITE, OTHER, MACHINE = SITES[1].bytes_le, SITES[2].bytes_le, UUID(int=7)


def request(machine: str = "PSC1") -> Send:
    return Send(machine, SyncRequestMessage(SITE, SITE, 3), Profile.WATCHED)


def test_a_request_waits_since_it_was_first_made() -> None:
    clock = VirtualClock()
    notes, begun = Notes(clock), clock.time()
    notes.sent(request())
    clock.advance(60)
    notes.sent(request("psc1"))
    asked = notes.asked[SITES[1]]
    assert (asked.machine, asked.since, asked.times) == ("PSC1", begun, 2)
    # another server is another question
    notes.sent(request("PSC9"))
    assert notes.asked[SITES[1]].since == begun + 60
    # only an answer about the same partition ends it
    notes.received(SyncReplyMessage(OTHER, OTHER, 3, 9, 0), MACHINE)
    notes.received(BSCAckMessage(SITE, MACHINE.bytes_le, "BSC"), None)
    assert SITES[1] in notes.asked
    notes.received(AlreadyPurgedMessage(SITE, SITE, 4), None)
    assert not notes.asked
    assert notes.heard == {MACHINE: clock.time()}


def test_servers_that_speak_are_heard_and_one_that_stopped_is_not() -> None:
    enterprise = three_sites()
    pec, psc = enterprise["PEC0"], enterprise["PSC1"]
    assert psc.carrier.notes.asked == {}
    heard = psc.carrier.notes.heard[pec.node.identifier]
    pec.node.run(pec.carrier.stop)
    enterprise.settle(4000)
    assert psc.carrier.notes.heard[pec.node.identifier] == heard
    others = enterprise["PSC2"].node.identifier
    assert psc.carrier.notes.heard[others] > heard
