"""Telling systemd how we are: READY=1, RELOADING=1, STOPPING=1, WATCHDOG=1 (sd_notify).

A datagram to the socket that $NOTIFY_SOCKET names; nothing at all where it names none. A manager
that does not listen must not stop the service: failures are logged and forgotten.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

_log = logging.getLogger("falconmq.service")
_MICROSECONDS: Final = 1_000_000


class Readiness:
    """The line to whoever started the service, if there is one."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        path = given.get("NOTIFY_SOCKET", "")
        self._address = "\0" + path[1:] if path.startswith("@") else path  # @: an abstract name
        self._watchdog = given.get("WATCHDOG_USEC", "")
        self._watchdog_process = given.get("WATCHDOG_PID", "")

    @property
    def watchdog_interval(self) -> float | None:
        """Seconds between two signs of life: half of what is asked for; None if nobody asks."""
        if not self._address or not self._watchdog.isdecimal() or not int(self._watchdog):
            return None
        if self._watchdog_process not in ("", str(os.getpid())):
            return None  # another process was meant
        return int(self._watchdog) / _MICROSECONDS / 2

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def status(self, status: str) -> None:
        self._send(f"STATUS={_line(status)}")

    def reloading(self, status: str) -> None:
        """Until `ready` is said again; systemd wants to know since when."""
        since = time.monotonic_ns() // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={since}\nSTATUS={_line(status)}")

    def stopping(self, status: str) -> None:
        self._send(f"STOPPING=1\nSTATUS={_line(status)}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
                line.setblocking(False)  # a manager that does not read must not hold us
                line.connect(self._address)
                line.send(text.encode())
        except OSError as error:
            _log.warning("cannot notify the service manager problem=%s", error.strerror)


def _line(text: str) -> str:
    """One line: what follows a line break would be another message."""
    return " ".join(text.split())
