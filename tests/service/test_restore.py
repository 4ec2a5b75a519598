"""A queue manager that comes back from a backup: its peers take what it sends for what it is."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from falconmq import Message
from falconmq.service.backup import Backup
from falconmq.service.daemon import Service
from falconmq.service.restore import Restored, restore
from tests.service.services import Undoored, configured, loopback, run, until, waiting

TRANSACTIONAL = r".\private$\transactional"
RECOVERABLE = r".\private$\recoverable"
FAST = {"order_ack_timeout": 0.05, "resend_short": 0.3}


@asynccontextmanager
async def served(data: Path, bind: str) -> AsyncIterator[Service]:
    service = await Undoored.start(configured(bind, data, **FAST))
    try:
        yield service
    finally:
        await service.stop()


async def send(sender: Service, receiver_bind: str, *texts: str) -> None:
    """Each text once in a transaction, and once without."""
    host = f"DIRECT=TCP:{receiver_bind}\\private$"
    transactional = await sender.manager.queue(rf"{host}\transactional")
    recoverable = await sender.manager.queue(rf"{host}\recoverable")
    for text in texts:
        async with sender.manager.transaction() as transaction:
            await transactional.send(Message(text), transaction)
        await recoverable.send(Message(text, recoverable=True))


async def make_queues(receiver: Service) -> None:
    await receiver.manager.create_queue(TRANSACTIONAL, transactional=True)
    await receiver.manager.create_queue(RECOVERABLE)


async def texts(receiver: Service, name: str) -> list[str | None]:
    queue = await receiver.manager.queue(name)
    return [message.text async for message in queue]


async def arrived(receiver: Service, count: int) -> None:
    queues = [await receiver.manager.queue(name) for name in (TRANSACTIONAL, RECOVERABLE)]
    await until(lambda: all(queue.count >= count for queue in queues))


def back_up(service: Service) -> bytes:
    with Backup(service.engine.store, "A", None, time.time()) as making:
        return b"".join(iter(making.next, None))


def bring_back(archive: bytes, data: Path) -> Restored:
    return restore(io.BytesIO(archive), data, time.time())


def test_nothing_that_a_restored_sender_sends_is_taken_for_a_duplicate(tmp_path: Path) -> None:
    ours, theirs = loopback(), loopback()

    async def main() -> None:
        async with served(tmp_path / "receiver", theirs) as receiver:
            await make_queues(receiver)
            async with served(tmp_path / "sender", ours) as sender:
                # given a backup, and messages that were sent and acknowledged after it
                await send(sender, theirs, "a1", "a2", "a3")
                await until(lambda: not waiting(sender))
                archive = back_up(sender)
                await send(sender, theirs, "b1", "b2", "b3", "b4")
                await until(lambda: not waiting(sender))
            # when the sender is brought back as it was at the backup, and sends others
            assert bring_back(archive, tmp_path / "restored").sent_again == 0
            async with served(tmp_path / "restored", ours) as sender:
                await send(sender, theirs, "c1", "c2")
                # then they arrive, once and in order
                await arrived(receiver, 9)
                await until(lambda: not waiting(sender))
            expected = ["a1", "a2", "a3", "b1", "b2", "b3", "b4", "c1", "c2"]
            assert await texts(receiver, TRANSACTIONAL) == expected
            assert await texts(receiver, RECOVERABLE) == expected

    run(main())


def test_what_waited_at_the_backup_is_sent_again_and_what_comes_later_is_behind_it(
    tmp_path: Path,
) -> None:
    ours, theirs = loopback(), loopback()

    async def main() -> None:
        async with served(tmp_path / "receiver", theirs) as receiver:
            await make_queues(receiver)
        async with served(tmp_path / "sender", ours) as sender:
            # given messages that wait for a receiver that is away, and a backup of that
            await send(sender, theirs, "a1", "a2")
            archive = back_up(sender)
            async with served(tmp_path / "receiver", theirs) as receiver:
                await arrived(receiver, 2)
                await until(lambda: not waiting(sender))
        # when the sender is brought back after they have arrived
        assert bring_back(archive, tmp_path / "restored").sent_again == 2
        async with (
            served(tmp_path / "receiver", theirs) as receiver,
            served(tmp_path / "restored", ours) as sender,
        ):
            await send(sender, theirs, "b1")
            await until(lambda: not waiting(sender))
            # then the transactional ones arrive again, in order; of the others the receiver knows
            found = await texts(receiver, TRANSACTIONAL)
            assert found == ["a1", "a2", "a1", "a2", "b1"]
            assert await texts(receiver, RECOVERABLE) == ["a1", "a2", "b1"]

    run(main())


def test_what_waited_at_the_backup_and_never_left_arrives_once(tmp_path: Path) -> None:
    ours, theirs = loopback(), loopback()

    async def main() -> None:
        async with served(tmp_path / "receiver", theirs) as receiver:
            await make_queues(receiver)
        async with served(tmp_path / "sender", ours) as sender:
            await send(sender, theirs, "a1", "a2")
            archive = back_up(sender)
        bring_back(archive, tmp_path / "restored")
        async with (
            served(tmp_path / "receiver", theirs) as receiver,
            served(tmp_path / "restored", ours) as sender,
        ):
            await send(sender, theirs, "b1")
            await until(lambda: not waiting(sender))
            for name in (TRANSACTIONAL, RECOVERABLE):
                assert await texts(receiver, name) == ["a1", "a2", "b1"]

    run(main())


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_restored_receiver_takes_what_its_senders_send_next(tmp_path: Path, is_cut: bool) -> None:
    """It has lost what came since the backup, and is not stuck behind it."""
    ours, theirs = loopback(), loopback()

    async def main() -> None:
        async with served(tmp_path / "sender", ours) as sender:
            async with served(tmp_path / "receiver", theirs) as receiver:
                await make_queues(receiver)
                await send(sender, theirs, "a1")
                await until(lambda: not waiting(sender))
                archive = back_up(receiver)
                await send(sender, theirs, "b1", "b2")
                if not is_cut:  # else the receiver goes before it could say that it has them
                    await until(lambda: not waiting(sender))
            await send(sender, theirs, "c1")
            bring_back(archive, tmp_path / "restored")
            async with served(tmp_path / "restored", theirs) as receiver:
                await until(lambda: not waiting(sender))
                await send(sender, theirs, "d1")
                await until(lambda: not waiting(sender))
                for name in (TRANSACTIONAL, RECOVERABLE):
                    found = await texts(receiver, name)
                    assert found[0] == "a1"
                    assert found[-2:] == ["c1", "d1"]

    run(main())
