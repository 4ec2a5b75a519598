r"""The control client: one method for each thing the service does, JSON in and out.

    client = ControlClient(Path("./data") / CONTROL_SOCKET)
    client.create_queue(r".\private$\orders")
    client.send(r".\private$\orders", [{"text": "hello"}])
    client.receive(r".\private$\orders", timeout=5)

It needs no library beside the standard one: the command line lives on it. The dictionaries
are those of the HTTP API (`/api/v1/openapi.json` of the service describes them).

Many messages go faster as the MSMQ packets they are, with `send_packets` and `receive_packets`:
those take and give `falconmq.Message`.

    client.send_packets(r".\private$\orders", [Message("a"), Message("b")])
    client.receive_packets(r".\private$\orders", count=100, timeout=5)
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import shlex
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode
from uuid import UUID
from weakref import WeakSet

from falconmq.client import packets
from falconmq.client.location import socket_name
from falconmq.errors import FalconMQError, MqStatus, WireError
from falconmq.message import Message, MessageId

ANSWER_SECONDS: Final = 60.0  # until an answer must have come, beside the time it may wait
IDLE_SECONDS: Final = 2.0  # a connection is used again for so long; the service closes it after 5
_JSON: Final = "application/json"
_PREFIX: Final = "/api/v1"

Json = dict[str, Any]


class UnreachableError(FalconMQError):
    """No service answers at the socket."""


class ServiceError(FalconMQError):
    """The service refused; status and hint are its own, `http_status` says it the HTTP way."""

    def __init__(self, message: str, *, status: MqStatus, hint: str, http_status: int) -> None:
        super().__init__(message, status=status, hint=hint)
        self.http_status = http_status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._path = path
        self.last_used = 0.0
        self._owner = 0  # the process that connected it; a fork must not speak over it too

    def connect(self) -> None:
        self._owner = os.getpid()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            with socket_name(self._path) as name:
                self.sock.connect(name)
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        self.close()  # its thread has ended

    def is_fresh(self) -> bool:
        """Whether the service still listens at the other end, as far as one can tell."""
        if self.sock is None or self._owner != os.getpid():
            return False
        if time.monotonic() - self.last_used > IDLE_SECONDS:
            return False
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)  # it says nothing unasked: what could be read is its good-bye


class ControlClient:
    """Calls the service behind a control socket. Close it, or use `with`.

    Each thread that uses it has a connection of its own, which stays open between requests.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own = threading.local()
        self._connections: WeakSet[_UnixConnection] = WeakSet()  # those of threads that live
        self._identifier: UUID | None = None  # of the queue manager, when it was asked for
        self._known: dict[str, tuple[str, bool]] = {}  # format name, is transactional

    def status(self) -> Json:
        return self._get("/status")

    def queues(self, *, system: bool = False) -> list[Json]:
        """All queues; with `system` the dead-letter queues and the journal too."""
        found: list[Json] = self._get("/queues" + ("?system=true" if system else ""))["queues"]
        return found

    def queue(self, name: str) -> Json:
        return self._get(f"/queues/{_quoted(name)}")

    def create_queue(self, name: str, **properties: object) -> Json:
        return self._post("/queues", {"name": name, **properties})

    def delete_queue(self, name: str, *, only_if_empty: bool = False) -> None:
        query = urlencode({"only_if_empty": str(only_if_empty).lower()})
        self._request("DELETE", f"/queues/{_quoted(name)}?{query}")

    def purge_queue(self, name: str) -> int:
        """Delete all messages; how many."""
        purged: int = self._post(f"/queues/{_quoted(name)}/purge")["purged"]
        return purged

    def send(
        self, name: str, messages: Iterable[Mapping[str, object]], transaction: bool | None = None
    ) -> list[str]:
        """Send messages with one sync; their ids. None: in a transaction if the queue needs one."""
        body = {"messages": list(messages), "transaction": transaction}
        ids: list[str] = self._post(f"/queues/{_quoted(name)}/messages", body)["ids"]
        return ids

    def receive(
        self,
        name: str,
        *,
        count: int = 1,
        timeout: float = 0,
        peek: bool = False,
        lookup_id: str | None = None,
        after: str | None = None,
    ) -> list[Json]:
        """Messages, at most `count`; none if none came within `timeout` seconds."""
        body: Json = {"count": count, "timeout": timeout, "peek": peek}
        body.update({"lookup_id": lookup_id} if lookup_id is not None else {})
        body.update({"after": after} if after is not None else {})
        path = f"/queues/{_quoted(name)}/receive"
        messages: list[Json] = self._post(path, body, timeout)["messages"]
        return messages

    def send_packets(
        self, name: str, messages: Sequence[Message], *, transaction: bool | None = None
    ) -> list[MessageId]:
        """Send messages as packets, all or none; their ids.

        None: in a transaction if the queue is one of the service's and needs it.
        """
        if not messages:
            return []
        is_known = name in self._known
        try:
            answer = self._send_packets(name, messages, transaction)
        except ServiceError:
            # Nothing was sent. If the queue was deleted and made anew, it has another format name.
            before = self._known.pop(name, None)
            if not is_known or self._ask_about(name) == before:
                raise
            answer = self._send_packets(name, messages, transaction)
        ids = packets.ids_of(answer)
        for message, id in zip(messages, ids, strict=True):
            message.id = id
        return ids

    def receive_packets(
        self,
        name: str,
        *,
        count: int = 1,
        timeout: float = 0,
        peek: bool = False,
        lookup_id: int | None = None,
        after: int | None = None,
    ) -> list[Message]:
        """`receive`, the messages as packets; `lookup_id` and `after` are `Message.lookup_id`."""
        body: Json = {"count": count, "timeout": timeout, "peek": peek}
        body.update({"lookup_id": str(lookup_id)} if lookup_id is not None else {})
        body.update({"after": str(after)} if after is not None else {})
        path = f"/queues/{_quoted(name)}/receive"
        headers = {"Content-Type": _JSON, "Accept": packets.MEDIA_TYPE}
        data = self._exchange("POST", path, json.dumps(body).encode(), headers, timeout)
        try:
            return packets.from_packets(data)
        except (WireError, ValueError, KeyError, TypeError) as error:
            raise self._no_answer(error) from error

    def outgoing(self) -> list[Json]:
        found: list[Json] = self._get("/outgoing")["outgoing"]
        return found

    def pause(self, number: int) -> None:
        """Send nothing more from this outgoing queue until it is resumed."""
        self._post(f"/outgoing/{number}/pause")

    def resume(self, number: int) -> None:
        self._post(f"/outgoing/{number}/resume")

    def close(self) -> None:
        """A request that waits ends; no message is lost with it."""
        for connection in list(self._connections):
            if connection.sock is not None:
                with contextlib.suppress(OSError):  # it has ended before
                    connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._own = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _get(self, path: str) -> Json:
        return self._request("GET", path)

    def _post(self, path: str, body: Json | None = None, timeout: float = 0) -> Json:
        return self._request("POST", path, body, timeout)

    def _request(
        self, method: str, path: str, body: Json | None = None, timeout: float = 0
    ) -> Json:
        content = None if body is None else json.dumps(body).encode()
        return self._json(self._exchange(method, path, content, {"Content-Type": _JSON}, timeout))

    def _json(self, data: bytes) -> Json:
        try:
            answer: Json = json.loads(data)
        except ValueError as error:
            raise self._no_answer(error) from error
        return answer

    def _send_packets(
        self, name: str, messages: Sequence[Message], transaction: bool | None
    ) -> Json:
        format_name, is_transactional = self._known.get(name) or self._ask_about(name)
        wanted = is_transactional if transaction is None else transaction
        source = packets.NOBODY
        if packets.names_private_queues(messages):
            source = self._identifier = self._identifier or UUID(self.status()["id"])
        destination = packets.destination_of(format_name)
        body = packets.to_packets(messages, destination, in_transaction=wanted, source=source)
        path = f"/queues/{_quoted(name)}/packets?transaction={str(wanted).lower()}"
        headers = {"Content-Type": packets.MEDIA_TYPE}
        return self._json(self._exchange("POST", path, body, headers))

    def _ask_about(self, name: str) -> tuple[str, bool]:
        """How packets name a queue, and whether it is transactional as far as is known here."""
        try:
            queue = self.queue(name)
            known = str(queue["format_name"]), bool(queue["transactional"])
        except ServiceError as error:
            if error.status is not MqStatus.UNSUPPORTED_FORMATNAME_OPERATION:
                raise
            known = name, False  # of another computer: nobody here knows its kind
        self._known[name] = known
        return known

    def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: float = 0,
    ) -> bytes:
        """Ask; the content of the answer, or ServiceError if it is a refusal."""
        connection = self._ask(method, _PREFIX + path, content, headers, timeout + ANSWER_SECONDS)
        try:
            with connection.getresponse() as response:
                data = response.read()
            connection.last_used = time.monotonic()
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise self._no_answer(error) from error
        except BaseException:  # Ctrl-C: the answer would come to the next request
            connection.close()
            raise
        if response.status >= HTTPStatus.BAD_REQUEST:
            connection.close()  # the service may do the same, if it has not read all
            raise _refusal(response.status, data)
        return b"{}" if response.status == HTTPStatus.NO_CONTENT else data

    def _ask(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> _UnixConnection:
        """Send a request; over a new connection if the old one turns out to be closed.

        A request of which a part was not sent was not carried out, so it may be sent again. One
        that was sent may have been, whatever became of the answer.
        """
        connection = self._connection()
        for is_reused in (True, False) if connection.is_fresh() else (False,):
            if is_reused:
                assert connection.sock is not None
                connection.sock.settimeout(seconds)
            else:
                self._connect(connection, seconds)
            try:
                connection.request(method, path, content, dict(headers))
                break
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                is_stale = isinstance(error, BrokenPipeError | ConnectionResetError)
                if not (is_reused and is_stale):
                    raise self._no_answer(error) from error
            except BaseException:
                connection.close()
                raise
        return connection

    def _connection(self) -> _UnixConnection:
        found: _UnixConnection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = _UnixConnection(self._path)
            self._connections.add(found)
        return found

    def _connect(self, connection: _UnixConnection, seconds: float) -> None:
        connection.close()
        connection.timeout = seconds
        try:
            connection.connect()
        except PermissionError as error:
            raise UnreachableError(
                f"the service at {self._path.parent} belongs to another user",
                status=MqStatus.ACCESS_DENIED,
                hint="run the command as that user",
            ) from error
        except OSError as error:
            raise UnreachableError(
                f"no service is running at {self._path.parent}",
                status=MqStatus.SERVICE_NOT_AVAILABLE,
                hint=f"start it: falconmq serve --data {shlex.quote(str(self._path.parent))}",
            ) from error

    def _no_answer(self, error: BaseException) -> UnreachableError:
        return UnreachableError(
            f"the service at {self._path.parent} did not answer: {error}",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="it may have done what it was asked; look before asking again",
        )


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _refusal(code: int, data: bytes) -> ServiceError:
    try:
        problem = json.loads(data)
        status = MqStatus(int(problem["hresult"], 16))
        return ServiceError(
            str(problem["detail"]), status=status, hint=str(problem["hint"]), http_status=code
        )
    except (ValueError, KeyError, TypeError):  # whatever listens there, it is not our service
        return ServiceError(
            f"the service answered with HTTP status {code}",
            status=MqStatus.ERROR,
            hint="is it another version of FalconMQ?",
            http_status=code,
        )
