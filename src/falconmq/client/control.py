r"""The control client: one method for each thing the service does, JSON in and out.

    client = ControlClient(Path("./data") / CONTROL_SOCKET)
    client.create_queue(r".\private$\orders")
    client.send(r".\private$\orders", [{"text": "hello"}])
    client.receive(r".\private$\orders", timeout=5)

It needs the standard library alone and starts fast: the command line lives on it. The dictionaries
are those of the HTTP API (`/api/v1/openapi.json` of the service describes them).
"""

from __future__ import annotations

import http.client
import json
import shlex
import socket
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from falconmq.client.location import socket_name
from falconmq.errors import FalconMQError, MqStatus

ANSWER_SECONDS: Final = 60.0  # until an answer must have come, beside the time it may wait
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

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            with socket_name(self._path) as name:
                self.sock.connect(name)
        except BaseException:
            self.close()
            raise


class ControlClient:
    """Calls the service behind a control socket. For one thread; close it, or use `with`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _UnixConnection(path)

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
        self._connection.close()

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
        connection = self._connect(timeout + ANSWER_SECONDS)
        content = None if body is None else json.dumps(body).encode()
        try:
            connection.request(
                method, _PREFIX + path, content, {"Content-Type": "application/json"}
            )
            with connection.getresponse() as response:
                data = response.read()
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise _refusal(response.status, data)
            answer: Json = {} if response.status == HTTPStatus.NO_CONTENT else json.loads(data)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise UnreachableError(
                f"the service at {self._path.parent} did not answer: {error}",
                status=MqStatus.SERVICE_NOT_AVAILABLE,
                hint="it may have done what it was asked; look before asking again",
            ) from error
        return answer

    def _connect(self, seconds: float) -> _UnixConnection:
        connection = self._connection
        connection.close()  # the service closes idle ones: a new one is cheap and always fresh
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
        return connection


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
