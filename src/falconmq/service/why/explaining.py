"""`explain`: from the text that somebody typed to the explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.message import MessageId
from falconmq.service.why.explanation import Cause, Explanation, Kind
from falconmq.service.why.holders import Holders
from falconmq.service.why.message_facts import message_facts, search, spots_of
from falconmq.service.why.message_judging import judge_message
from falconmq.service.why.outgoing_facts import outgoing_facts
from falconmq.service.why.outgoing_judging import judge_outgoing
from falconmq.service.why.queue_facts import queue_facts
from falconmq.service.why.queue_judging import judge_queue
from falconmq.service.why.subjects import NothingWaits, find_subject
from falconmq.transport.settings import PORT

if TYPE_CHECKING:
    from falconmq.service.operating.outgoing import Outgoing


async def explain(
    engine: Engine,
    transport: Outgoing | None,
    text: str,
    *,
    holders: Holders | None = None,
    port: int = PORT,
) -> Explanation:
    """Why a message or a backlog is where it is; QueueError if there is no such thing."""
    known = Holders() if holders is None else holders
    subject = engine.look(find_subject, text)
    if isinstance(subject, MessageId):
        return await _explain_message(engine, transport, subject, known, port)
    if isinstance(subject, NothingWaits):
        return _nothing_waits(text, subject)
    return engine.look(explain_queue, transport, subject, known, port, text)


def explain_queue(
    core: QueueManagerCore,
    transport: Outgoing | None,
    queue: Queue,
    holders: Holders,
    port: int = PORT,
    subject: str = "",
) -> Explanation:
    """The same for a queue that is at hand; inside a turn."""
    if isinstance(queue, OutgoingQueue):
        return judge_outgoing(outgoing_facts(core, transport, queue, port), subject)
    return judge_queue(queue_facts(core, queue, holders), subject)


async def _explain_message(
    engine: Engine, transport: Outgoing | None, id: MessageId, holders: Holders, port: int
) -> Explanation:
    spots, is_whole = engine.look(spots_of, id), True
    if not spots:
        spots, is_whole = await search(engine, id)
    facts = engine.look(message_facts, transport, id, spots, holders, port)
    return judge_message(replace(facts, is_search_whole=is_whole))


def _nothing_waits(text: str, subject: NothingWaits) -> Explanation:
    summary = f"No message waits for {subject.destination}: nothing was sent there since the start."
    return Explanation(text, Kind.OUTGOING, summary, causes=[Cause("empty", "nothing waits here")])
