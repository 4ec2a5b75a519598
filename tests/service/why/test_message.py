"""Where one message is, and how it came there."""

from __future__ import annotations

import asyncio

import pytest

from falconmq import Message, MessageId
from falconmq.manager.events import EventKind
from falconmq.message import Acknowledge, Journal
from falconmq.service.daemon import Service
from falconmq.service.requests.reading import Hold
from falconmq.service.why import Explanation, Severity, explain, message_facts
from falconmq.service.why.holders import Holders
from falconmq.service.why.message_facts import search
from falconmq.store import MemoryStore
from tests.service.services import ORDERS, direct, loopback, outgoing, run, serving, until
from tests.service.why.situations import codes, lately, until_because, why


async def put(service: Service, name: str = ORDERS, body: str = "1", **properties: object) -> str:
    queue = await service.manager.queue(name)
    return str(await queue.send(Message(body, **properties)))  # type: ignore[arg-type]


async def put_in_transaction(service: Service, name: str, **properties: object) -> str:
    queue = await service.manager.queue(name)
    async with service.manager.transaction() as transaction:
        id = await queue.send(Message("1", **properties), transaction)  # type: ignore[arg-type]
    return str(id)


def kinds(found: Explanation) -> list[str]:
    return [step.kind for step in found.timeline]


def test_a_message_that_waits_says_where_and_how_many_are_ahead() -> None:
    async def main() -> None:
        async with serving() as service:
            await service.manager.create_queue(ORDERS)
            ids = [await put(service, label=f"number {number}") for number in range(3)]
            found = await why(service, ids[2])
            assert found.kind == "message"
            assert found.subject == ids[2]
            assert codes(found) == ["waiting", "no-reader-waits"]
            assert lately(found.summary).startswith(
                f"The message waits in {ORDERS}, where it arrived just now, "
                "2 messages ahead of it. No reader waits for it"
            )
            assert "first in line" in (await why(service, ids[0])).summary
            facts = {fact.label: fact.value for fact in found.facts}
            assert facts["label"] == "number 2"
            assert facts["sent by"] == "this queue manager"
            assert kinds(found) == ["arrived"]
            assert found.timeline[0].queue == ORDERS

    run(main())


def test_a_message_is_found_although_nothing_is_recorded_of_it() -> None:
    async def main() -> None:
        store, bind = MemoryStore(), loopback()
        async with serving(store, bind) as service:
            await service.manager.create_queue(ORDERS)
            ids = [await put(service) for _ in range(600)]
        store.crash()  # which opens it again
        async with serving(store, bind) as again:
            found = await why(again, ids[599])
            assert codes(found)[0] == "waiting"
            assert "599 messages ahead" in found.summary
            assert found.timeline == []
            spots, is_whole = await search(again.engine, MessageId.parse(ids[599]))
            assert (len(spots), is_whole) == (1, True)

    run(main())


def test_a_transaction_that_is_not_committed_hides_its_messages() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, transactional=True)
            transaction = service.manager.transaction()
            id = str(await queue.send(Message("1"), transaction))
            found = await why(service, id)
            assert codes(found) == ["not-committed"]
            assert f"transaction {transaction.id}, which is not committed" in found.summary
            await transaction.prepare()
            assert codes(await why(service, id)) == ["in-doubt"]
            await transaction.commit()
            assert codes(await why(service, id))[0] == "waiting"

    run(main())


def test_a_transaction_that_has_received_it_is_named() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, transactional=True)
            id = await put_in_transaction(service, ORDERS)
            transaction = service.manager.transaction()
            await queue.receive(transaction, timeout=0)
            found = await why(service, id)
            assert codes(found) == ["waiting", "held"]
            assert f"transaction {transaction.id} holds it" in found.causes[1].text
            await queue.purge()
            assert codes(await why(service, id)) == ["purge-pending"]
            await transaction.abort()
            assert codes(await why(service, id)) == ["purged"]

    run(main())


def test_a_reader_that_holds_it_is_named_with_its_lease() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            id = await put(service)
            async with Hold(service.engine, queue.opened) as hold:
                await hold.take(1, 0)
                found = await why(service, id)
                assert "a reader holds it" in found.causes[1].text
                lease = MessageId.parse(id).queue_manager  # any guid
                holders = Holders({hold.positions[0]: lease})
                found = await explain(service.engine, service.transport, id, holders=holders)
                assert f"lease {lease} holds it" in found.causes[1].text

    run(main())


def test_poison_and_expiry_are_said_of_the_message_itself() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, transactional=True)
            id = await put_in_transaction(service, ORDERS, time_to_be_received=300)
            for _ in range(3):
                failing = service.manager.transaction()
                await queue.receive(failing, timeout=0)
                await failing.abort()
            found = await why(service, id)
            assert codes(found) == [
                "waiting",
                "poison-message",
                "no-reader-waits",
                "expires-soon",
            ]
            assert kinds(found) == ["arrived", "returned", "returned", "returned"]

    run(main())


def test_a_message_on_its_way_has_the_cause_of_its_outgoing_queue() -> None:
    async def main() -> None:
        address = loopback()
        name = rf"DIRECT=TCP:{address}\private$\orders"
        async with serving() as service:
            ids = [await put(service, name) for _ in range(2)]
            found = await until_because(service, ids[1], "connection-refused")
            assert codes(found) == ["on-its-way", "connection-refused"]
            assert found.summary.startswith(
                f"The message waits here for {address} since 0 s, 1 message ahead of it. "
                "Connection refused on port 1801"
            )
            assert found.hints[0].endswith(f"falconmq ping {address}")
            (queue,) = outgoing(service)
            service.host.run(service.transport.pause, queue)
            assert codes(await why(service, ids[1])) == ["on-its-way", "paused"]

    run(main())


def test_a_delivered_message_says_to_whom_and_its_receiver_knows_the_rest() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            queue = await there.manager.create_queue(ORDERS)
            id = await put(here, direct(there))
            found = await until_because(here, id, "delivered")
            address = there.configuration.manager.bind
            assert f"handed over to {address}" in found.summary
            assert kinds(found) == ["queued", "delivered"]
            assert codes(await why(there, id))[0] == "waiting"
            facts = {fact.label: fact.value for fact in (await why(there, id)).facts}
            assert facts["sent by"] == str(here.engine.core.identifier)
            await queue.receive(timeout=0)
            assert codes(await why(there, id)) == ["received"]

    run(main())


def test_a_message_that_arrived_waits_for_the_news_of_its_end() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            queue = await there.manager.create_queue(ORDERS, transactional=True)
            id = await put_in_transaction(here, direct(there), journal=Journal.JOURNAL)
            found = await until_because(here, id, "awaiting-final-ack")
            assert codes(found) == ["awaiting-final-ack"]
            await queue.receive(timeout=0)
            found = await until_because(here, id, "received-there")
            assert codes(found) == ["received-there", "journaled"]
            assert "received by its reader elsewhere" in found.summary

    run(main())


def test_what_its_receiver_refused() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS)  # not transactional
            id = await put_in_transaction(here, direct(there), journal=Journal.DEAD_LETTER)
            found = await until_because(here, id, "refused-there")
            assert codes(found) == ["refused-there", "dead-lettered"]
            assert "NACK_NOT_TRANSACTIONAL_Q" in found.summary
            assert found.severity is Severity.ERROR
            assert any(hint.startswith("falconmq dead-letter redrive") for hint in found.hints)
            there_found = await why(there, id)
            assert codes(there_found) == ["refused"]
            assert ORDERS[1:] in there_found.summary

    run(main())


def test_an_answer_in_an_administration_queue_says_that_it_reached_its_queue() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS)
            await here.manager.create_queue(r".\private$\acks")
            id = await put(
                here,
                direct(there),
                administration_queue=direct(here, "acks"),
                acknowledgements=Acknowledge.FULL_REACH_QUEUE,
            )
            found = await until_because(here, id, "reached-queue")
            assert "told" in kinds(found)

    run(main())


def test_how_a_message_left_its_queue() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            other = await service.manager.create_queue(r".\private$\other")
            received, moved, purged, deleted = [await put(service) for _ in range(4)]
            await queue.receive(timeout=0)
            await queue.move(await queue.peek(timeout=0), other)
            await queue.receive(timeout=0)
            assert codes(await why(service, purged)) == ["received"]
            await queue.purge()
            assert codes(await why(service, received)) == ["received"]
            assert codes(await why(service, deleted)) == ["purged"]
            found = await why(service, moved)
            assert codes(found)[0] == "waiting"
            assert r".\private$\other" in found.summary
            assert kinds(found) == ["arrived", "moved", "arrived"]
            await service.manager.delete_queue(other)
            assert codes(await why(service, moved)) == ["queue-deleted"]

    run(main())


def test_an_expired_message_and_its_dead_letter() -> None:
    async def main() -> None:
        async with serving() as service:
            await service.manager.create_queue(ORDERS)
            id = await put(service, time_to_be_received=1, journal=Journal.DEAD_LETTER)
            found = await until_because(service, id, "dead-lettered")
            assert codes(found) == ["expired", "dead-lettered"]
            assert "NACK_RECEIVE_TIMEOUT" in found.causes[0].text

    run(main())


def test_a_message_that_came_twice_says_so_in_its_timeline() -> None:
    async def main() -> None:
        async with serving() as service:
            await service.manager.create_queue(ORDERS)
            id = await put(service)
            events = service.engine.core.events
            assert events is not None
            parsed = MessageId.parse(id)
            source = parsed.queue_manager.bytes_le
            events.record(EventKind.DUPLICATE, source, parsed.ordinal, None, detail="10.0.0.9")
            found = await why(service, id)
            assert codes(found)[0] == "waiting"
            assert found.timeline[-1].text == "came again from 10.0.0.9, and was dropped"

    run(main())


def test_a_message_that_nobody_knows() -> None:
    async def main() -> None:
        async with serving() as service:
            stranger = "{11111111-2222-3333-4444-555555555555}\\7"
            found = await why(service, stranger)
            assert codes(found) == ["unknown"]
            assert "nothing is known of it since the start just now" in lately(found.summary)
            assert "sent by queue manager 11111111-2222-3333-4444-555555555555" in found.hints[0]
            own = str(MessageId.of(service.engine.core.identifier, 4711))
            assert (
                "ask the queue managers that it may have passed"
                in (await why(service, own)).hints[0]
            )

    run(main())


def test_a_search_that_takes_too_long_is_given_up_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        monkeypatch.setattr(message_facts, "SEARCHED_MAX", 1)
        async with serving() as service:
            found = await why(service, "{11111111-2222-3333-4444-555555555555}\\7")
            assert "only a part of the queues was searched" in found.summary

    run(main())


def test_many_may_ask_while_messages_come_and_go() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            ids = [await put(service) for _ in range(20)]

            async def read() -> None:
                for _ in ids:
                    await queue.receive(timeout=30)

            reading = asyncio.create_task(read())
            for id in ids:
                found = await why(service, id)
                assert codes(found)[0] in ("waiting", "received")
            await reading
            await until(lambda: queue.count == 0)

    run(main())
