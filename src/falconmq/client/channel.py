"""The channel for threads: carries calls over connections of the standard library.

Each thread has a connection of its own, which stays open between requests.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Final, TypeVar
from weakref import WeakSet

from falconmq.client.calls import Answer, BrokenError, Call, Later, Operation, Pause, Step
from falconmq.client.connections import ANSWER_SECONDS, Connection
from falconmq.client.doors import Door
from falconmq.errors import FalconMQError, MqStatus

_PIECE_BYTES: Final = 65536  # of a streamed answer, at most
_LATER_SECONDS: Final = 0.05  # until a Ctrl-C that had to wait is raised in the caller's own code

_T = TypeVar("_T")
_FAILURES: Final = (OSError, http.client.HTTPException, ValueError)


class Channel:
    """Asks one service. Any number of threads may use it."""

    def __init__(
        self,
        door: Door,
        token: str | None = None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.door = door
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._answer_seconds = answer_seconds
        self._tls = tls
        self._own = threading.local()
        self._connections: WeakSet[Connection] = WeakSet()  # those of threads that live
        self._pause = threading.Event()  # set when it is closed: nobody sleeps any longer

    def run(self, operation: Operation[_T]) -> _T:
        """Do what an operation asks for until it ends."""
        try:
            step = next(operation)
            while True:
                try:
                    answer = self._do(step)
                except BaseException as error:  # noqa: BLE001  # the operation decides
                    step = operation.throw(error)
                else:
                    step = operation.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    def exchange(self, call: Call) -> Answer:
        """Ask once; BrokenError if there is no answer."""
        connection = self._ask(call)
        try:
            with connection.getresponse() as response:
                data = response.read()
            connection.last_used = time.monotonic()
        except _FAILURES as error:
            connection.close()
            raise BrokenError(self.door.no_answer(error), was_sent=True) from error
        except BaseException:  # Ctrl-C: the answer would come to the next request
            connection.close()
            raise
        finally:
            connection.used_for = None
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            connection.close()  # the service may do the same, if it has not read all
        return Answer(response.status, data)

    @contextlib.contextmanager
    def stream(self, call: Call) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The status of an answer, and its content in pieces as they come.

        It has a connection of its own, so that the thread can ask other things meanwhile. Silence
        that is longer than the call allows is a BrokenError.
        """
        connection = Connection(self.door, self._tls)
        self._connections.add(connection)
        seconds = call.wait_seconds + (call.answer_seconds or self._answer_seconds)
        try:
            self._connect(connection, seconds)
            with self._broken_if_it_fails():
                self._send(connection, call)
                response = connection.getresponse()
            with response:
                yield response.status, self._pieces(response)
        finally:
            connection.close()

    def _pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        while True:
            with self._broken_if_it_fails():
                piece = response.read1(_PIECE_BYTES)
            if not piece:
                return
            yield piece

    @contextlib.contextmanager
    def _broken_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise BrokenError(self.door.no_answer(error), was_sent=True) from error

    def connection(self) -> Connection:
        """The one of this thread."""
        found: Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = Connection(self.door, self._tls)
            self._connections.add(found)
        return found

    def stop(self, owner: object) -> None:
        """End the requests that wait for a queue."""
        for connection in list(self._connections):
            if connection.used_for is owner:
                _hang_up(connection)

    def close(self) -> None:
        """A request that waits ends; no message is lost with it."""
        self._pause.set()
        for connection in list(self._connections):
            _hang_up(connection)
            connection.close()
        self._own = threading.local()

    def _do(self, step: Step) -> Answer:
        if isinstance(step, Call):
            return self.exchange(step)
        if isinstance(step, Pause):
            self._pause.wait(step.seconds)
        elif isinstance(step, Later):
            _interrupt_later()
        return Answer()

    def _ask(self, call: Call) -> Connection:
        """Send a request; over a new connection if the old one turns out to be closed.

        A request of which a part was not sent was not carried out, so it may be sent again. One
        that was sent may have been, whatever became of the answer.
        """
        connection = self.connection()
        seconds = call.wait_seconds + (call.answer_seconds or self._answer_seconds)
        if connection.is_fresh():
            assert connection.sock is not None
            connection.sock.settimeout(seconds)
            try:
                self._send(connection, call)
                return connection
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was closed in this moment
            except _FAILURES as error:
                raise BrokenError(self.door.no_answer(error), was_sent=True) from error
        self._connect(connection, seconds)
        try:
            self._send(connection, call)
        except _FAILURES as error:
            raise BrokenError(self.door.no_answer(error), was_sent=True) from error
        return connection

    def _send(self, connection: Connection, call: Call) -> None:
        connection.used_for = call.owner
        path, headers = self.door.prefix + call.path, {**self._headers, **call.headers}
        try:
            connection.request(call.method, path, call.content, headers)
        except BaseException:
            connection.close()
            raise

    def _connect(self, connection: Connection, seconds: float) -> None:
        connection.close()
        connection.timeout = seconds
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            problem = self.door.untrusted(error)
            raise BrokenError(problem, was_sent=False, is_hopeless=True) from error
        except OSError as error:
            raise BrokenError(self.door.unreachable(error), was_sent=False) from error


def _hang_up(connection: Connection) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):  # it has ended before
            connection.sock.shutdown(socket.SHUT_RDWR)


def _interrupt_later() -> None:
    """Ctrl-C came when a message was received already: the caller gets that first."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(_LATER_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
    timer.daemon = True
    timer.start()


def tls_context(
    ca_file: str | os.PathLike[str] | None,
    certificate_file: str | os.PathLike[str] | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> ssl.SSLContext:
    """Trusts the authorities of this computer, or the one in a file; shows a certificate.

    That is the one of the environment, FALCONMQ_CERTIFICATE, if none is named.
    """
    context = ssl.create_default_context(cafile=ca_file)
    certificate_file = certificate_file or os.environ.get("FALCONMQ_CERTIFICATE")
    if certificate_file:
        try:
            context.load_cert_chain(certificate_file, key_file, password=_no_password)
        except OSError as error:  # an SSLError is one too
            raise FalconMQError(
                f"the certificate {os.fspath(certificate_file)} cannot be shown: "
                f"{getattr(error, 'reason', None) or error.strerror or error}",
                status=MqStatus.INVALID_CERTIFICATE,
                hint="certificate_file and key_file are PEM files that belong together",
            ) from error
    return context


def _no_password() -> str:
    """OpenSSL would ask at the terminal."""
    return ""
