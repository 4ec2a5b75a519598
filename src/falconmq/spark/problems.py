"""Errors as Spark's users see them.

Spark shows the text of a Python error and nothing else. So what an error of FalconMQ knows beside
it, the status and the hint, goes into the text where it leaves our code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from falconmq.errors import FalconMQError, MqStatus


class SourceError(FalconMQError):
    """An error with its hint in its text."""


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Around whatever Spark calls: errors leave with everything they know."""
    try:
        yield
    except SourceError:
        raise
    except FalconMQError as error:
        raise explain(error) from error


def explain(error: FalconMQError) -> SourceError:
    status = "" if error.status is MqStatus.ERROR else f" ({error.status.symbol})"
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return SourceError(f"{error}{status}{hint}", status=error.status, hint=error.hint)


def _say(message: str, hint: str, status: MqStatus = MqStatus.INVALID_PARAMETER) -> SourceError:
    return explain(FalconMQError(message, status=status, hint=hint))


def data_loss(what: str, start: int, stop: int, gone: int) -> SourceError:
    """Of a range, that was planned, messages are not there now."""
    return _say(
        f"{gone} of the messages {start} to {stop - 1} of {what} are gone: somebody else received, "
        "purged or deleted them, or they expired",
        "set failOnDataLoss to false to go on without them",
        MqStatus.MESSAGE_NOT_FOUND,
    )


def changed_manager(url: str, known: str, found: str) -> SourceError:
    return _say(
        f"at {url} is another queue manager than before: it was {known}, it is {found}. "
        "The offsets of one mean nothing to the other",
        "use the queue manager of before, or a new checkpoint",
    )


def unnamed_manager(manager: str, url: str) -> SourceError:
    return _say(
        f"the checkpoint goes on at the queue manager {manager}, which was at {url} and is at none "
        "of the urls now",
        "name its url again, or use a new checkpoint",
    )


def restored_manager(url: str, feed: str, known: int, highest: int) -> SourceError:
    return _say(
        f"{feed} at {url} is to be read from number {known}, but the queue manager has given "
        f"{highest - 1} at most: it was restored from an older backup",
        "start with a new checkpoint; what came since that backup may be read twice",
    )


def gone_queue(name: str) -> SourceError:
    return _say(
        f"the queue {name} was read and is not there any more: it was deleted, or the options name "
        "other queues now",
        "set failOnDataLoss to false to go on with the other queues",
        MqStatus.QUEUE_DELETED,
    )


def consumer_ahead(consumer: str, queue: str, position: int, known: int) -> SourceError:
    return _say(
        f"the consumer {consumer} has removed {queue} up to number {position - 1}, but this query "
        f"has read it up to {known - 1} only: another one used the same name",
        "give each query a consumer of its own, or set failOnDataLoss to false",
    )


def taken_over(consumer: str, where: str, told: object) -> SourceError:
    return _say(
        f"another query took over the consumer {consumer} at {where}, so this one ends: {told}",
        "give each query a consumer of its own; if one was started twice, stop one",
        MqStatus.STALE_HANDLE,
    )
