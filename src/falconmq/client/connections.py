"""One connection to a service, kept open between requests: TCP, TLS or a unix socket."""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import time
from typing import Final

from falconmq.client.doors import Door
from falconmq.client.location import socket_name

ANSWER_SECONDS: Final = 60.0  # until an answer must have come, beside the time it may wait
IDLE_SECONDS: Final = 2.0  # a connection is used again for so long; the service closes it after 5


class Connection(http.client.HTTPConnection):
    """A connection that knows whether it may be used again."""

    def __init__(self, door: Door, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(door.host, door.port or None, timeout=ANSWER_SECONDS)
        self._door = door
        self._tls = tls
        self._owner = 0  # the process that connected it; a fork must not speak over it too
        self.last_used = 0.0
        self.used_for: object = None  # the queue whose read waits on it

    def connect(self) -> None:
        self._owner = os.getpid()
        try:
            if self._door.socket is not None:
                self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.sock.settimeout(self.timeout)
                with socket_name(self._door.socket) as name:
                    self.sock.connect(name)
            else:
                super().connect()
            if self._tls is not None:
                self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._door.host)
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
