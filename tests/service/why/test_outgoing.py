"""Why messages for other queue managers wait: each situation made with real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from falconmq import Message
from falconmq.manager.events import EventLog
from falconmq.message import Acknowledge, Journal
from falconmq.service.daemon import Service
from falconmq.service.why import Explanation, Severity
from falconmq.service.why.explaining import explain_queue
from falconmq.service.why.holders import Holders
from falconmq.transport.settings import PORT
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.service.services import ORDERS, direct, loopback, outgoing, run, send, serving, until
from tests.service.services import waiting as waiting_messages
from tests.service.why.situations import codes, lately, until_because, why
from tests.transport.estate import Estate, Node
from tests.transport.raw_peer import RawPeer

NOWHERE = r"DIRECT=TCP:{}\private$\orders"


async def only_number(service: Service) -> str:
    await until(lambda: len(outgoing(service)) == 1)
    return str(outgoing(service)[0].number)


def test_nobody_listens_there() -> None:
    async def main() -> None:
        address = loopback()
        name = NOWHERE.format(address)
        async with serving(try_connect_interval=30.0) as service:
            await send(service, name, "1", "2", "3")
            found = await until_because(service, name, "connection-refused")
        assert found.kind == "outgoing"
        assert lately(found.summary).startswith(
            f"3 messages wait for {address}. Connection refused on port {PORT}, last try just now, "
            "next in 2"
        )
        assert found.hints == [f"is the service running there? check: falconmq ping {address}"]
        assert found.severity is Severity.ERROR
        (cause,) = found.causes
        assert cause.since is not None
        labels = {fact.label: fact.value for fact in found.facts}
        assert labels["waiting"].startswith("3 messages, ")
        assert labels["progress"].startswith("3 not sent, 0 sent, 0 arrived")
        assert labels["try"].endswith(f"connection refused {address}")

    run(main())


def test_an_outgoing_queue_can_be_named_by_its_number() -> None:
    async def main() -> None:
        name = NOWHERE.format(loopback())
        async with serving() as service:
            await send(service, name, "1")
            number = await only_number(service)
            by_number = await until_because(service, number, "connection-refused")
            assert by_number.subject == number
            assert codes(await why(service, name)) == codes(by_number)

    run(main())


def test_a_name_that_nobody_knows() -> None:
    async def main() -> None:
        name = r"DIRECT=OS:no-such-host.invalid\private$\orders"
        async with serving() as service:
            await send(service, name, "1")
            found = await until_because(service, name, "name-not-resolved")
        assert "no-such-host.invalid" in found.summary
        assert "[hosts]" in found.hints[0]

    run(main())


def test_a_queue_manager_that_no_route_leads_to() -> None:
    async def main() -> None:
        name = r"PRIVATE=11111111-2222-3333-4444-555555555555\00000007"
        async with serving() as service:
            await send(service, name, "1")
            found = await until_because(service, name, "no-route")
        assert "[[computers]]" in found.hints[0]

    run(main())


def test_a_queue_that_is_paused_says_how_to_go_on() -> None:
    async def main() -> None:
        name = NOWHERE.format(loopback())
        async with serving() as service:
            await send(service, name, "1")
            (queue,) = outgoing(service)
            service.host.run(service.transport.pause, queue)
            found = await why(service, name)
            assert codes(found)[0] == "paused"
            assert found.hints[0] == f"falconmq outgoing resume {queue.number}"
            service.host.run(service.transport.resume, queue)
            assert "paused" not in codes(await why(service, name))

    run(main())


def test_a_ping_that_is_not_answered() -> None:
    async def main() -> None:
        name = NOWHERE.format(loopback())
        async with serving(ping_enabled=True, try_connect_interval=30.0) as service:
            await send(service, name, "1")
            found = await until_because(service, name, "ping-refused")
        assert "UDP" in found.hints[0]

    run(main())


@asynccontextmanager
async def listening(address: str, *, hangs_up: bool) -> AsyncIterator[None]:
    """Somebody has the port of MSMQ and is no queue manager."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not hangs_up:
            await stopping.wait()
        writer.close()

    stopping = asyncio.Event()
    server = await asyncio.start_server(serve, address, PORT)
    try:
        yield
    finally:
        stopping.set()
        server.close()
        await server.wait_closed()


def test_somebody_answers_who_is_no_queue_manager() -> None:
    async def main() -> None:
        address = loopback()
        name = NOWHERE.format(address)
        async with listening(address, hangs_up=True), serving(try_connect_interval=30.0) as service:
            await send(service, name, "1")
            found = await until_because(service, name, "session-not-opened")
        assert "falconmq ping" in found.hints[0]

    run(main())


def test_somebody_takes_the_connection_and_says_nothing() -> None:
    async def main() -> None:
        address = loopback()
        name = NOWHERE.format(address)
        async with listening(address, hangs_up=False), serving() as service:
            await send(service, name, "1")
            found = await until_because(service, name, "no-answer-to-greeting")
            assert f"{address} took the connection" in found.summary

    run(main())


def test_a_receiver_without_room_closes_the_session() -> None:
    async def main() -> None:
        async with serving() as there, serving(try_connect_interval=30.0) as here:
            await there.manager.create_queue(ORDERS)
            there.engine.core.settings.quota_kilobytes = 0
            name = direct(there)
            await send(here, name, "1")
            found = await until_because(here, name, "session-closed")
            assert "no room" in found.hints[0]
            assert there.transport.counters["sessions closed for lack of room"] == 1

    run(main())


def test_messages_of_the_wrong_kind_are_named() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS, transactional=True)
            await here.manager.create_queue(r".\private$\acks")
            queue = await here.manager.queue(direct(there))
            await queue.send(
                Message(
                    "1",
                    administration_queue=direct(here, "acks"),
                    acknowledgements=Acknowledge.FULL_REACH_QUEUE,
                )
            )
            found = await until_because(here, direct(there), "wrong-kind")
            assert "NACK_NOT_TRANSACTIONAL_MSG" in found.summary
            assert found.hints == ["send it in a transaction"]
            # and another queue of the same receiver is not blamed for it
            await there.manager.create_queue(r".\private$\other")
            await send(here, direct(there, "other"), "2")
            assert "wrong-kind" not in codes(await why(here, direct(there, "other")))

    run(main())


def test_a_full_queue_at_the_receiver_is_named() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS, quota_kilobytes=0, transactional=True)
            queue = await here.manager.queue(direct(there))
            async with here.manager.transaction() as transaction:
                await queue.send(Message("1", journal=Journal.DEAD_LETTER), transaction)
            found = await until_because(here, direct(there), "receiver-full")
            assert found.causes[0].severity is Severity.ERROR

    run(main())


def test_what_arrived_and_was_not_read_stays_for_its_journal() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS, transactional=True)
            queue = await here.manager.queue(direct(there))
            async with here.manager.transaction() as transaction:
                await queue.send(Message("1", journal=Journal.JOURNAL), transaction)
            found = await until_because(here, direct(there), "awaiting-final-ack")
            assert codes(found) == ["awaiting-final-ack"]
            assert found.severity is Severity.INFO
            assert found.summary.startswith("1 message arrived at ")

    run(main())


def test_a_queue_that_everything_left_says_so() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS)
            await send(here, direct(there), "1")
            await until(lambda: not waiting_messages(here))
            found = await why(here, direct(there))
            assert codes(found) == ["empty"]
            assert found.summary.startswith("No message waits for ")
            assert found.hints == []

    run(main())


def test_a_destination_that_nothing_was_sent_to() -> None:
    async def main() -> None:
        async with serving() as service:
            found = await why(service, r"DIRECT=OS:FAR\private$\orders")
            assert "nothing was sent there" in found.summary
            assert not outgoing(service)  # asking does not make one

    run(main())


def test_a_way_that_is_not_served_is_named() -> None:
    async def main() -> None:
        name = "DIRECT=HTTP://far/msmq/private$/orders"
        async with serving() as service:
            await send(service, name, "1")
            found = await why(service, name)
            assert codes(found) == ["destination-not-supported"]
            assert "falconmq outgoing purge" in found.hints[0]

    run(main())


def test_a_directory_that_is_not_served_sends_nothing() -> None:
    async def main() -> None:
        name = NOWHERE.format(loopback())
        async with serving() as service:
            await send(service, name, "1")
            (queue,) = outgoing(service)
            found = service.engine.look(explain_queue, None, queue, Holders())
            assert codes(found) == ["no-transport"]
            assert found.hints == ["start the service: falconmq serve"]

    run(main())


# What takes time: an estate whose clock the test turns


def ask(node: Node, name: str) -> Explanation:
    return explain_queue(node.core, node.transport, node.outgoing(name), Holders())


def given_peer() -> tuple[Estate, Node, RawPeer, str]:
    """A node with a session to a peer that is played by hand."""
    estate = Estate()
    node = estate.node("A", 1)
    node.core.events = EventLog(node.core.clock.time)
    peer = RawPeer(node).open()
    return estate, node, peer, rf"DIRECT=TCP:{peer.address}\private$\orders"


def test_order_acks_that_never_come_back_point_at_the_network_in_between() -> None:
    # given a receiver that acknowledges on the session, but whose OrderAcks get lost
    estate, node, peer, name = given_peer()
    node.send_transaction(name, b"1", b"2")
    estate.settle()
    peer.write(SessionAck(SessionHeader(2, 0, 0, 0, 0, 64)).encode())
    estate.advance(5.0)
    assert codes(ask(node, name)) == ["sending"]  # they may take their time
    # when they are overdue
    estate.advance(15.0)
    found = ask(node, name)
    # then it is said what to look for
    assert codes(found)[0] == "order-acks-missing"
    assert "advertised_address" in found.hints[0]
    assert found.causes[0].since == pytest.approx(node.core.clock.time() - 20.0)
    # and an OrderAck ends it
    header = peer.messages[-1].transaction
    assert header is not None
    peer.write(peer.order_ack(header.tx_sequence_id, header.tx_sequence_number).encode())
    estate.settle()
    assert "order-acks-missing" not in codes(ask(node, name))


def test_an_order_ack_for_a_part_starts_the_wait_anew() -> None:
    estate, node, peer, name = given_peer()
    node.send_transaction(name, b"1", b"2")
    estate.settle()
    facts = {fact.label: fact.value for fact in ask(node, name).facts}
    assert facts["last acknowledgement"] == "never"
    peer.write(SessionAck(SessionHeader(2, 0, 0, 0, 0, 64)).encode())
    estate.advance(20.0)
    assert codes(ask(node, name))[0] == "order-acks-missing"
    facts = {fact.label: fact.value for fact in ask(node, name).facts}
    assert facts["last acknowledgement"] == "20 s ago"
    header = peer.messages[0].transaction
    assert header is not None
    peer.write(peer.order_ack(header.tx_sequence_id, header.tx_sequence_number).encode())
    estate.settle()
    assert node.transport.situation(node.outgoing(name)).unanswered_seconds == 0.0
    assert codes(ask(node, name)) == ["sending"]


def test_a_peer_that_acknowledges_nothing_fills_the_window() -> None:
    estate, node, _, name = given_peer()
    for number in range(70):
        node.send(name, b"%d" % number)
    estate.advance(1.0)
    found = ask(node, name)
    assert codes(found)[0] == "window-full"
    assert "64 messages are on the way" in found.summary
    estate.advance(31.0)
    assert "not-acknowledged" in codes(ask(node, name))


def test_a_peer_that_does_not_read() -> None:
    estate, node, peer, name = given_peer()
    peer.line.is_writable = False
    node.send(name, b"1")
    estate.settle()
    assert "peer-not-reading" in codes(ask(node, name))
    peer.line.is_writable = True
    assert "peer-not-reading" not in codes(ask(node, name))


def test_one_queue_manager_at_two_addresses() -> None:
    estate, node, peer, name = given_peer()
    RawPeer(node, address="10.0.0.98", guid=peer.guid).open()
    node.send(name, b"1")
    estate.settle()
    found = next(cause for cause in ask(node, name).causes if cause.code == "two-addresses")
    assert "10.0.0.98" in found.text
    assert "copied" in found.hint


def test_messages_that_were_sent_in_vain_are_counted() -> None:
    estate, node, peer, name = given_peer()
    node.send(name, b"1")
    estate.settle()
    assert len(peer.messages) == 1
    peer.hang_up()
    facts = {fact.label: fact.value for fact in ask(node, name).facts}
    assert facts["progress"] == "1 not sent, 0 sent, 0 arrived; 1 sent in vain before"


def test_a_session_that_goes_well_is_no_problem() -> None:
    estate, node, _, name = given_peer()
    node.send(name, b"1")
    estate.settle()
    found = ask(node, name)
    assert codes(found) == ["sending"]
    assert found.severity is Severity.INFO
