"""Ingests: many writers hand in the parts of a batch, one of them commits it, exactly once.

How to think about it. A batch has a key (who sends) and a number (which batch of that sender).
Writers stage its messages; they may fail, run twice or never come back. Whoever knows which stages
are the right ones commits them: then all their messages become true in their queues with one commit
of the store, and with them the record that the key has done this batch. So a commit that is asked
for again, because its answer got lost or because its sender started anew, finds the record and
changes nothing; so does the commit of a sender that everybody had given up.

Inside, a commit is one transaction of the queue manager (`ingest_sending`). The commits of one key
come one after the other: what one of them has done is durable before the next one looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final
from uuid import UUID, uuid4

from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, QueueError, TransactionError
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.requests import ingest_sending as turns
from falconmq.service.requests.expiring import Expiring
from falconmq.service.requests.ingest_records import Record, Records
from falconmq.service.requests.ingest_stages import STAGED_BYTES, Piece, Stage, Stages
from falconmq.service.requests.reading import durable
from falconmq.service.web.problems import NotKnownError

TURN_MESSAGES: Final = 500  # that are sent without letting others work

Json = dict[str, Any]


class UnknownIngestError(NotKnownError, TransactionError):
    """Nobody has committed a batch with this key."""


class Ingests:
    """Stages and commits; for one event loop."""

    def __init__(
        self, engine: Engine, expiring: Expiring, staged_bytes: int = STAGED_BYTES
    ) -> None:
        self._engine = engine
        self.records = Records(engine.store)
        self.stages = Stages(expiring, staged_bytes)
        self._commits: dict[str, asyncio.Task[Json]] = {}  # that are going on, by key

    async def stage(
        self,
        key: str,
        batch: int,
        id: UUID | None,
        queue: str,
        body: bytes,
        *,
        seconds: float,
        keep_ids: bool,
    ) -> Json:
        """Open a stage with its first packets, or with none: the answer says what they must be.

        A batch that is done needs no stage: the answer says so before any message is made. A caller
        that names the stage may ask again.
        """
        await ask_ahead(self._engine, queue)
        target, _ = self._engine.run(turns.find_target, queue)
        if keep_ids and target.is_transactional is None:
            raise QueueError(
                f"{queue} is on another computer: messages sent there get new ids",
                status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
                hint="leave keep_ids out, or send at that computer",
            )
        stage = None if id is None else self.stages.known(id)
        if stage is not None:
            stage = self.stages.find(stage.id, key, batch)
            return await self.add(stage, 0, body) if body else self.view(stage)
        stage = Stage(uuid4() if id is None else id, key, batch, target, keep_ids, seconds)
        record = self.records.get(key)
        if record is not None and batch <= record.batch:
            return self.view(stage, is_repeated=True)
        self.stages.open(stage)
        if not body:
            stage.next_sequence = 1
            return self.view(stage)
        try:
            return await self.add(stage, 0, body)
        except BaseException:
            if not stage.next_sequence:
                self.stages.drop(stage)
            raise

    async def more(self, key: str, batch: int, id: UUID, sequence: int, body: bytes) -> Json:
        """The next packets of a stage; a request that comes again changes nothing."""
        return await self.add(self.stages.find(id, key, batch), sequence, body)

    async def add(self, stage: Stage, sequence: int, body: bytes) -> Json:
        self._check_turn(stage, sequence)
        if sequence == stage.next_sequence:
            self.stages.check_room(len(body))
            piece = await asyncio.to_thread(
                Piece.take,
                body,
                stage.target,
                in_transaction=stage.in_transaction,
                keep_ids=stage.keep_ids,
            )
            self._check_turn(stage, sequence)  # again: others may have come first meanwhile
            if sequence == stage.next_sequence:
                self.stages.add(stage, piece)
                stage.next_sequence += 1
        self.stages.touch(stage)
        return self.view(stage)

    def view(self, stage: Stage, *, is_repeated: bool = False) -> Json:
        target = stage.target
        return {
            "stage": str(stage.id),
            "count": stage.count,
            "bytes": stage.bytes,
            "repeated": is_repeated,
            "format_name": str(target.form.format_name),
            "transactional": target.is_transactional,
            "manager": str(self._engine.core.identifier),
            "expires_at": None if stage.deadline is None else stage.deadline.moment,
        }

    async def commit(self, key: str, batch: int, stages: list[UUID]) -> Json:
        """Send the stages, in this order; durable when it returns.

        It goes on if its caller goes away.
        """
        await self._until_quiet(key)
        task = asyncio.ensure_future(self._commit(key, batch, stages))
        self._commits[key] = task
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    def abort(self, key: str, batch: int, stages: Iterable[UUID]) -> None:
        """Drop stages; those that are unknown, or being sent, are left as they are."""
        for id in stages:
            stage = self.stages.known(id)
            if stage is not None and (stage.key, stage.batch) == (key, batch) and not stage.is_busy:
                self.stages.drop(stage)

    async def forget(self, key: str) -> None:
        """Forget what a key has done; UnknownIngestError if there is none."""
        await self._until_quiet(key)
        if self.records.get(key) is None:
            raise UnknownIngestError(
                f"no ingest {key} is known",
                status=MqStatus.INVALID_PARAMETER,
                hint="GET /ingests lists those that are",
            )
        _, commit = self._engine.run(self.records.delete, key)
        assert commit is not None
        await durable(self._engine, commit)

    async def _until_quiet(self, key: str) -> None:
        while (running := self._commits.get(key)) is not None:
            await asyncio.wait([running])

    async def _commit(self, key: str, batch: int, ids: list[UUID]) -> Json:
        try:
            record = self.records.get(key)
            if record is not None and batch <= record.batch:
                self.stages.drop_up_to(key, batch)
                return {"committed": 0, "repeated": True}
            stages = [self.stages.find(id, key, batch) for id in dict.fromkeys(ids)]
            for stage in stages:
                stage.is_busy = True
            try:
                await self._send(key, batch, stages)
            finally:
                for stage in stages:
                    stage.is_busy = False
                    self.stages.touch(stage)
            count = sum(stage.count for stage in stages)
            self.stages.drop_up_to(key, batch)
            return {"committed": count, "repeated": False}
        finally:
            del self._commits[key]

    async def _send(self, key: str, batch: int, stages: list[Stage]) -> None:
        """All messages of all stages, and the record; or nothing."""
        engine = self._engine
        sending, _ = engine.run(turns.begin, stages)
        try:
            for stage in stages:
                part, messages = sending.part_of(stage), stage.messages()
                while some := list(islice(messages, TURN_MESSAGES)):
                    engine.run(turns.put, sending, part, some)
                    await asyncio.sleep(0)  # let others work
            count = sum(stage.count for stage in stages)
            record = Record(key, batch, engine.core.clock.time(), count)
            _, commit = engine.run(turns.finish, sending, self.records, record)
        except BaseException:
            engine.run(turns.give_up, sending)
            raise
        assert commit is not None
        try:
            await durable(engine, commit)
        except BaseException:
            self.records.read_again()
            raise

    def _check_turn(self, stage: Stage, sequence: int) -> None:
        """Refuse a request that comes too early, or for a stage that cannot grow any more."""
        if stage.is_busy or self.stages.known(stage.id) is not stage:
            raise TransactionError(
                f"the stage {stage.id} has been committed or dropped",
                status=MqStatus.STALE_HANDLE,
                hint="begin another stage",
            )
        if sequence > stage.next_sequence:
            raise TransactionError(
                f"the stage {stage.id} waits for request {stage.next_sequence}, not {sequence}",
                status=MqStatus.TRANSACTION_SEQUENCE,
                hint="send the requests of a stage one after the other",
            )
