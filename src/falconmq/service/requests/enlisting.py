"""Receiving in a transaction that lives longer than a request.

What is taken belongs to the transaction: its commit deletes it, its abort brings it back. A caller
that goes away while it waits has taken nothing; one that goes away later leaves its messages in the
transaction (see `service.requests.transactions`).
"""

from __future__ import annotations

from functools import partial

from falconmq import aio
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Wait
from falconmq.errors import MqStatus
from falconmq.manager import model
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Cursor, ReadResult
from falconmq.manager.positions import MessagePosition
from falconmq.service.requests import reading
from falconmq.service.requests.peeking import place_of
from falconmq.service.requests.reading import Outcome, durable, never_told, read_one, unwritten
from falconmq.service.schemas import ReceiveRequest


async def take(
    engine: Engine,
    opened: actions.Opened,
    transaction: aio.Transaction,
    given: ReceiveRequest,
    cursor: Cursor | None = None,
) -> list[MessagePosition]:
    """Take messages in a transaction; wait for the first, take the others if they are there."""
    owner = transaction.use()
    taken: list[MessagePosition] = []
    try:
        if given.has_place or cursor is not None:
            taken += await _take_one(engine, opened, owner, given, cursor)
            return taken
        await _take_more(engine, opened, owner, given.count, taken)
        if not taken and given.timeout > 0:
            taken += await _take_one(engine, opened, owner, given, None)
            if taken and given.count > 1:
                await _take_more(engine, opened, owner, given.count, taken)
    except Exception:
        raise
    except BaseException:  # cancelled: the caller has gone
        for position in taken:
            engine.give_up(ReadResult(MqStatus.OK, position), owner, peek=False)
        raise
    return taken


async def _take_one(
    engine: Engine,
    opened: actions.Opened,
    owner: model.Transaction,
    given: ReceiveRequest,
    cursor: Cursor | None,
) -> list[MessagePosition]:
    timeout = given.timeout
    if given.has_place:
        lookup_id, seek = place_of(given)

        def begin(wait: Wait) -> reading.Begun:
            read = partial(actions.read_by_lookup_id, peek=False)
            return engine.begin_read(wait, read, opened, lookup_id, seek, owner)
    else:

        def begin(wait: Wait) -> reading.Begun:
            return engine.begin_read(wait, actions.receive, opened, timeout, cursor, owner, wait)

    def give_up(outcome: Outcome) -> None:
        engine.give_up(outcome, owner, peek=False)

    position = await read_one(engine, opened, timeout, begin, give_up)
    return [] if position is None else [position]


async def _take_more(
    engine: Engine,
    opened: actions.Opened,
    owner: model.Transaction,
    count: int,
    taken: list[MessagePosition],
) -> None:
    """What is there, up to `count`, in one turn."""
    wait = Wait(never_told)
    _, commit = engine.begin_read(wait, _take_all, opened, owner, count, taken)
    engine.end_read(wait)
    if commit is not None:
        await durable(engine, commit)


def _take_all(
    core: QueueManagerCore,
    opened: actions.Opened,
    owner: model.Transaction,
    count: int,
    taken: list[MessagePosition],
) -> ReadResult:
    if taken and (core.transactions.get(owner.identifier) is not owner or owner.is_prepared):
        return ReadResult(MqStatus.OK)  # it ended with what was taken: nothing more belongs to it
    size = sum(position.size for position in taken)
    while len(taken) < count and size < reading.ANSWER_BYTES:
        result = actions.receive(core, opened, 0, None, owner, None)
        if not isinstance(result, ReadResult) or result.position is None:
            break
        taken.append(result.position)
        size += result.position.size
    return ReadResult(MqStatus.OK, unwritten(taken))
