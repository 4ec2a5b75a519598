"""Why messages wait in a queue of ours, and why others do not come in."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from falconmq import Message
from falconmq.errors import FalconMQError, QueueError
from falconmq.service.why import Severity, explain
from falconmq.service.why.queue_facts import Holding, QueueFacts, Stream
from falconmq.service.why.queue_judging import judge_queue, queue_causes
from falconmq.transport.settings import PORT
from tests.service.services import ORDERS, direct, run, send, serving, until
from tests.service.why.situations import codes, lately, until_because, why


def test_nobody_reads() -> None:
    async def main() -> None:
        async with serving() as service:
            await service.manager.create_queue(ORDERS)
            await send(service, ORDERS, "1", "2")
            found = await why(service, ORDERS)
            assert found.kind == "queue"
            assert found.summary.startswith(
                f"2 messages wait in {ORDERS}. Nobody reads: no receive"
            )
            assert codes(found) == ["nobody-reads"]
            assert f"falconmq peek '{ORDERS}'" in found.hints[0]
            facts = {fact.label: fact.value for fact in found.facts}
            assert lately(facts["first in line"]) == "arrived just now"
            assert lately(facts["last arrival"]) == "just now"

    run(main())


def test_readers_at_work_are_told_from_none() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            await send(service, ORDERS, "1", "2")
            await queue.receive(timeout=0)
            found = await why(service, ORDERS)
            assert codes(found) == ["slow-readers"]
            assert found.severity is Severity.INFO
            await queue.receive(timeout=0)
            found = await why(service, ORDERS)
            assert found.summary == f"{ORDERS} is empty."
            assert found.causes == []

    run(main())


def test_a_reader_who_waits_is_counted() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            reading = asyncio.create_task(queue.receive())
            core_queue = queue.opened.queue
            assert core_queue is not None
            await until(lambda: bool(core_queue.waiting))
            facts = {fact.label: fact.value for fact in (await why(service, ORDERS)).facts}
            assert facts["readers"] == "1 waiting, 1 have it open"
            await send(service, ORDERS, "1")
            await reading

    run(main())


def test_transactions_that_hold_messages_are_named() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, transactional=True)
            async with service.manager.transaction() as transaction:
                await queue.send(Message("1"), transaction)
            reader = service.manager.transaction()
            await queue.receive(reader, timeout=0)
            sender = service.manager.transaction()
            await queue.send(Message("2"), sender)
            found = await why(service, ORDERS)
            assert codes(found) == ["held", "not-committed"] or codes(found) == [
                "not-committed",
                "held",
            ]
            texts = {cause.code: cause.text for cause in found.causes}
            assert texts["held"] == f"transaction {reader.id} holds 1 message"
            assert f"transaction {sender.id}" in texts["not-committed"]
            await reader.abort()
            await sender.prepare()
            found = await why(service, ORDERS)
            assert codes(found)[0] == "in-doubt"
            assert found.severity is Severity.ERROR
            await sender.abort()

    run(main())


def test_a_message_that_readers_fail_on_is_found() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, transactional=True)
            async with service.manager.transaction() as transaction:
                id = await queue.send(Message("1"), transaction)
            for _ in range(3):
                failing = service.manager.transaction()
                await queue.receive(failing, timeout=0)
                await failing.abort()
            found = await why(service, ORDERS)
            assert codes(found)[0] == "poison-message"
            assert "given back 3 times" in found.summary
            assert f"falconmq why '{id}'" in found.hints[0]

    run(main())


def test_a_full_queue_and_what_it_refused() -> None:
    async def main() -> None:
        async with serving() as there, serving() as here:
            await there.manager.create_queue(ORDERS, quota_kilobytes=1)
            queue = await there.manager.queue(ORDERS)
            for _ in range(4):
                await queue.send(Message(b"x" * 100))
            with pytest.raises(FalconMQError, match="full"):
                await queue.send(Message(b"x" * 100))
            await send(here, direct(there), "y" * 500)
            found = await until_because(there, ORDERS, "refused-here")
            assert codes(found)[0] == "queue-full"
            refused = next(cause for cause in found.causes if cause.code == "refused-here")
            assert "1 message of other queue managers were refused" in refused.text
            assert "NACK_Q_EXCEED_QUOTA" in refused.text

    run(main())


def test_messages_that_expire_soon() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            await queue.send(Message("1", time_to_be_received=100))
            await queue.send(Message("2", time_to_be_received=100_000))
            found = await why(service, ORDERS)
            soon = next(cause for cause in found.causes if cause.code == "expires-soon")
            assert soon.text.startswith("1 message near the front expire soon, the first in 1 min")

    run(main())


def test_a_queue_that_is_not_there_is_an_error_with_the_one_that_was_meant() -> None:
    async def main() -> None:
        async with serving() as service:
            await service.manager.create_queue(ORDERS)
            with pytest.raises(QueueError) as error:
                await why(service, r".\private$\ordres")
            assert ORDERS in error.value.hint
            with pytest.raises(QueueError, match="no outgoing queue 4711"):
                await why(service, "4711")
            with pytest.raises(FalconMQError):
                await why(service, "no queue name at all")

    run(main())


def test_system_queues_and_journals_can_be_asked_about() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS, journaling=True)
            await send(service, ORDERS, "1")
            await queue.receive(timeout=0)
            found = await why(service, f"{ORDERS};journal")
            assert codes(found) == ["kept"]
            found = await explain(service.engine, None, r".\system$;deadletter", port=PORT)
            assert found.summary.endswith("is empty.")

    run(main())


# The judging, table-wise


BACKLOG = QueueFacts(ORDERS, now=1000.0, readable=5, last_receive_seconds=5.0)


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({}, "slow-readers", Severity.INFO),
        ({"last_receive_seconds": 61.0}, "nobody-reads", Severity.WARNING),
        ({"last_receive_seconds": None}, "nobody-reads", Severity.WARNING),
        ({"is_system": True}, "kept", Severity.INFO),
        (
            {"quota_kilobytes": 10, "size_bytes": 9_216, "readable": 99},
            "queue-nearly-full",
            Severity.WARNING,
        ),
        ({"quota_kilobytes": 10, "size_bytes": 10_240}, "queue-full", Severity.ERROR),
        ({"quota_kilobytes": 0}, "queue-full", Severity.ERROR),
        ({"is_throttled": True}, "manager-throttled", Severity.ERROR),
        (
            {"manager_quota_kilobytes": 10, "manager_bytes": 10_240},
            "manager-full",
            Severity.ERROR,
        ),
        (
            {"manager_quota_kilobytes": 10, "manager_bytes": 9_300},
            "manager-nearly-full",
            Severity.WARNING,
        ),
        (
            {"is_journaling": True, "journal_quota_kilobytes": 1, "journal_bytes": 1000},
            "journal-full",
            Severity.WARNING,
        ),
        ({"head_aborts": 3}, "poison-message", Severity.ERROR),
        ({"streams": (Stream("A", 7, 2, 5.0),)}, "stream-stalled", Severity.WARNING),
        ({"holdings": (Holding("a reader", 1),)}, "held", Severity.INFO),
        ({"holdings": (Holding("a reader", 1),), "readable": 0}, "held", Severity.WARNING),
        ({"expiring": 1, "expires_seconds": 30.0}, "expires-soon", Severity.WARNING),
    ],
)
def test_each_fact_has_its_cause(changes: dict[str, object], code: str, severity: Severity) -> None:
    facts = replace(BACKLOG, **changes)  # type: ignore[arg-type]
    causes = {cause.code: cause for cause in queue_causes(facts)}
    assert causes[code].severity is severity


@pytest.mark.parametrize(
    "changes",
    [
        {"quota_kilobytes": 10, "size_bytes": 5_000},
        {"quota_kilobytes": None, "size_bytes": 1 << 40},
        {"journal_quota_kilobytes": 1, "journal_bytes": 1024},  # it keeps no journal
        {"head_aborts": 2},
        {"streams": (Stream("A", 7, 0, 5.0),)},
        {"last_receive_seconds": 59.0},
    ],
)
def test_what_is_in_order_is_no_cause(changes: dict[str, object]) -> None:
    assert [cause.code for cause in queue_causes(replace(BACKLOG, **changes))] == [  # type: ignore[arg-type]
        "slow-readers"
    ]


def test_a_reader_who_waits_is_no_cause_and_the_worst_cause_comes_first() -> None:
    assert queue_causes(replace(BACKLOG, readers_waiting=1)) == []
    facts = replace(BACKLOG, last_receive_seconds=None, head_aborts=9)
    found = judge_queue(facts)
    assert codes(found) == ["poison-message", "nobody-reads"]
    assert found.severity is Severity.ERROR


def test_a_stalled_stream_says_what_it_waits_for() -> None:
    facts = replace(BACKLOG, streams=(Stream("SENDER", 7, 2, 5.0),))
    cause = next(cause for cause in queue_causes(facts) if cause.code == "stream-stalled")
    assert "2 messages of SENDER came out of order" in cause.text
    assert "behind number 7" in cause.text
    assert cause.since == 995.0
