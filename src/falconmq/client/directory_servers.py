"""The servers of a directory, asked one after the other.

Several URLs are several ways to one directory. They are tried in order, beginning with the one that
answered last. One that cannot be reached, or that says it cannot work, is passed by; when none is
left, the directory is not connected. A change that was sent and not answered may have been made: it
is not sent again, and the caller is told.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

from falconmq.client.calls import Answer, BrokenError, Call
from falconmq.client.channel import Channel, tls_context
from falconmq.client.doors import Door
from falconmq.client.patience import AWAY
from falconmq.client.problems import ServiceError, refusal
from falconmq.directory.base import DirectoryRefusedError
from falconmq.errors import DirectoryError, FalconMQError, MqStatus
from falconmq.manager.states import DirectoryResult

_HEADERS: Final = {"Content-Type": "application/json"}
_RESULTS: Final[Mapping[MqStatus, DirectoryResult]] = {
    MqStatus.MQDS_OBJECT_NOT_FOUND: DirectoryResult.OBJECT_NOT_FOUND,
    MqStatus.QUEUE_EXISTS: DirectoryResult.OBJECT_ALREADY_EXISTS,
}
_MISUNDERSTANDINGS: Final = (ValueError, LookupError, TypeError, AttributeError)

Json = dict[str, Any]
_T = TypeVar("_T")


class DirectoryServers:
    """The HTTP APIs behind which one directory is. Any number of threads may ask."""

    def __init__(self, urls: Sequence[str], token: str, ca_file: str, seconds: float) -> None:
        doors = [Door.parse(url) for url in urls]
        if not doors:
            raise DirectoryError(
                "no server of the directory is named",
                status=MqStatus.INVALID_PARAMETER,
                hint="give the URL of a queue manager that keeps it: http://HOST:8018",
            )
        trust = _trusting(ca_file) if any(door.is_tls for door in doors) else None
        self._channels = [
            Channel(
                door,
                token or None,
                answer_seconds=seconds,
                tls=trust if door.is_tls else None,
            )
            for door in doors
        ]
        self._first = 0  # the one that answered last

    def ask(
        self, method: str, path: str, read: Callable[[Json], _T], body: Json | None = None
    ) -> _T:
        """What the first server that can be reached answers; DirectoryError if it refuses."""
        content = None if body is None else json.dumps(body).encode()
        call = Call(method, path, content, {} if content is None else _HEADERS)
        problems: list[FalconMQError] = []
        for turn in range(len(self._channels)):
            number = (self._first + turn) % len(self._channels)
            channel = self._channels[number]
            try:
                answer = channel.exchange(call)
            except BrokenError as error:
                problems.append(error.error)
                if error.was_sent and method != "GET":
                    break
                continue
            if answer.status in AWAY:
                problems.append(refusal(answer.status, answer.content))
                continue
            self._first = number
            return _understood(channel.door, answer, read)
        raise _not_connected(problems)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return tls_context(ca_file or None)
    except OSError as error:  # an SSLError is one too
        raise DirectoryError(
            f"the authority of the directory cannot be read from {ca_file}: {error}",
            status=MqStatus.INVALID_CERTIFICATE,
            hint="ca_file is a PEM file with the certificate that signed the server's",
        ) from error


def _understood(door: Door, answer: Answer, read: Callable[[Json], _T]) -> _T:
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise _refused(door, refusal(answer.status, answer.content))
    try:
        return read(json.loads(answer.content or b"{}"))
    except _MISUNDERSTANDINGS as error:  # whatever listens there, it is not our directory
        raise _not_connected([door.no_answer(f"{type(error).__name__} {error}")]) from error


def _refused(door: Door, error: ServiceError) -> DirectoryError:
    """What the other queue manager does not want, as it would be refused there."""
    if error.http_status == HTTPStatus.UNAUTHORIZED:
        return DirectoryError(
            f"the directory at {door.shown} does not take this token: {error}",
            status=MqStatus.ACCESS_DENIED,
            hint="make one there: falconmq token create NAME --role directory",
        )
    result = _RESULTS.get(error.status)
    if result is None:
        return DirectoryError(str(error), status=error.status, hint=error.hint)
    return DirectoryRefusedError(result, str(error), hint=error.hint)


def _not_connected(problems: Sequence[FalconMQError]) -> DirectoryRefusedError:
    """Nobody could be asked: why, server by server, and what to do about the last."""
    words = "; ".join(dict.fromkeys(str(problem) for problem in problems))
    return DirectoryRefusedError(
        DirectoryResult.DIRECTORY_NOT_CONNECTED, words, hint=problems[-1].hint
    )
