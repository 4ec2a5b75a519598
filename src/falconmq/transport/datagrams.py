"""The two sockets of pings: one on which peers ask us, one on which we ask them (MQQB 2.1.2).

Questions and answers look alike: the socket that one comes to tells which it is. What is sent while
one of them is heard goes out of the same socket; all else is a question of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from falconmq.transport.settings import TransportSettings
from falconmq.transport.socket_errors import cannot_listen

Heard = Callable[[bytes, str, int, bool], None]
"""Data, address, port, and whether it came to the socket that asks."""


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, str, int], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:
        self._received(data, address[0], address[1])


class PingSockets:
    """Datagrams on the running event loop; a socket is opened only for what is enabled."""

    def __init__(self, settings: TransportSettings, bind: str, heard: Heard) -> None:
        self._settings = settings
        self._bind = bind
        self._heard = heard
        self._asking: asyncio.DatagramTransport | None = None
        self._answering: asyncio.DatagramTransport | None = None
        self._speaking: asyncio.DatagramTransport | None = None  # the one that sends now

    async def listen(self) -> None:
        """Take the ports; ListenError if somebody has them."""
        if self._settings.ping_answered:  # QB-2.1.2-07
            port = self._settings.ping_port  # QB-2.1.2-08
            self._answering = await self._open(port, self._question_came)
        if self._settings.ping_enabled:
            # The answers come back to the port the question left from: QB-2.1.2-06
            self._speaking = self._asking = await self._open(0, self._answer_came)

    def send(self, data: bytes, address: str, port: int) -> None:
        """A ping, or the answer to the one that is being heard."""
        if self._speaking is not None:
            self._speaking.sendto(data, (address, port))  # QB-2.1.2-09

    def close(self) -> None:
        for datagrams in (self._answering, self._asking):
            if datagrams is not None:
                datagrams.close()

    def _question_came(self, data: bytes, address: str, port: int) -> None:
        self._speaking = self._answering
        self._heard(data, address, port, False)
        self._speaking = self._asking

    def _answer_came(self, data: bytes, address: str, port: int) -> None:
        self._heard(data, address, port, True)

    async def _open(
        self, port: int, received: Callable[[bytes, str, int], None]
    ) -> asyncio.DatagramTransport:
        loop = asyncio.get_running_loop()
        try:
            opened, _ = await loop.create_datagram_endpoint(
                lambda: _Datagrams(received), local_addr=(self._bind, port)
            )
        except OSError as error:
            raise cannot_listen(error, "UDP", self._bind, port) from error
        return opened
