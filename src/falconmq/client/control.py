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
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, urlencode
from uuid import UUID

from falconmq.client import packets
from falconmq.client.calls import BrokenError, Call
from falconmq.client.channel import Channel, tls_context
from falconmq.client.doors import Door
from falconmq.client.problems import ServiceError, refusal
from falconmq.closing import Closing
from falconmq.errors import MqStatus, WireError
from falconmq.message import Message, MessageId

_JSON: Final = "application/json"

Json = dict[str, Any]


class ControlClient(Closing):
    """Calls a service, over its control socket or its HTTP port. Close it, or use `with`.

    Each thread that uses it has a connection of its own, which stays open between requests.
    """

    def __init__(self, place: Path | Channel) -> None:
        self.channel = Channel(Door.of_socket(place)) if isinstance(place, Path) else place
        self._identifier: UUID | None = None  # of the queue manager, when it was asked for
        self._known: dict[str, tuple[str, bool]] = {}  # format name, is transactional

    @classmethod
    def connect(cls, url: str, token: str | None = None, *, ca_file: str | None = None) -> Self:
        """A client of the service at a URL: `http://host:8018`, `unix:/path/to/data`.

        Nothing is asked yet: the first request tells whether anybody is there.
        """
        door = Door.parse(url)
        return cls(Channel(door, token, tls=tls_context(ca_file) if door.is_tls else None))

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
        self.request("DELETE", f"/queues/{_quoted(name)}?{query}")

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
            raise self.channel.door.no_answer(error) from error

    def outgoing(self) -> list[Json]:
        found: list[Json] = self._get("/outgoing")["outgoing"]
        return found

    def pause(self, number: int) -> None:
        """Send nothing more from this outgoing queue until it is resumed."""
        self._post(f"/outgoing/{number}/pause")

    def resume(self, number: int) -> None:
        self._post(f"/outgoing/{number}/resume")

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        timeout: float = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Anything of the API: `client.request("GET", "/sessions")`; `timeout` is what it waits."""
        content = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": _JSON, **(headers or {})}
        return self._json(self._exchange(method, path, content, sent, timeout))

    @contextlib.contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        timeout: float = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """An answer that goes on: `with client.stream("GET", "/events") as pieces`.

        The pieces are as they came. `timeout` is how much longer than for any other answer nothing
        may come. UnreachableError if the line breaks, ServiceError if it is refused.
        """
        try:
            with self.channel.stream(Call(method, path, None, headers or {}, timeout)) as answer:
                status, pieces = answer
                if status >= HTTPStatus.BAD_REQUEST:
                    raise refusal(status, b"".join(pieces))
                yield pieces
        except BrokenError as error:
            raise error.error from error.__cause__

    def close(self) -> None:
        """A request that waits ends; no message is lost with it."""
        self.channel.close()

    def _get(self, path: str) -> Json:
        return self.request("GET", path)

    def _post(self, path: str, body: Json | None = None, timeout: float = 0) -> Json:
        return self.request("POST", path, body, timeout=timeout)

    def _json(self, data: bytes) -> Json:
        try:
            answer: Json = json.loads(data)
        except ValueError as error:
            raise self.channel.door.no_answer(error) from error
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
            found = self._get(f"/names/{_quoted(name)}")
            known = str(found["format_name"]), False  # elsewhere: nobody here knows its kind
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
        try:
            answer = self.channel.exchange(Call(method, path, content, headers, timeout))
        except BrokenError as error:
            raise error.error from error.__cause__
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise refusal(answer.status, answer.content)
        return b"{}" if answer.status == HTTPStatus.NO_CONTENT else answer.content


def _quoted(name: str) -> str:
    return quote(name, safe="")
