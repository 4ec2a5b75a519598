"""Ping: asking a queue manager, before connecting, whether it would take a session (MQQB 3.1.7.6).

One datagram each way; whoever is silent for a second would not. Both directions look alike on the
wire, so only the socket tells a request from an answer: requests come to port 3527, answers to the
port that the request left from (QB-2.1.2-06). What arrives there must never be handed to `answer`,
or two queue managers answer each other's answers for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from falconmq.wire.ping import Ping, PingCookies, received_answer, received_ping

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

RESPONSE_SECONDS: Final = 1.0  # Ping Response Timer, QB-3.1.2.9-01


@dataclass(slots=True)
class _Waiting:
    """A request without its answer."""

    request: Ping
    deadline: float


class Pinger:
    """The side that asks. One request at a time for each address: a new one replaces the old."""

    def __init__(self, queue_manager: bytes, *, server_class: bool = True) -> None:
        self._queue_manager = queue_manager
        self._server_class = server_class
        self._cookies = PingCookies()  # PingCookie, of the queue manager: QB-A46-01
        self._waiting: dict[str, _Waiting] = {}

    @property
    def deadline(self) -> float | None:
        """When `expired` has something to tell; None if no request waits."""
        return min((waiting.deadline for waiting in self._waiting.values()), default=None)

    def request(self, address: str, now: float) -> bytes:
        """The datagram that asks this address (Send Ping Request, MQQB 3.1.7.6).

        The answer is what `received` finds; none within a second means no: `expired`.
        """
        cookie = self._cookies.next()  # QB-3.1.7.6-02, QB-3.1.1.3-23
        ping = Ping.request(cookie, self._queue_manager, server_class=self._server_class)
        self._waiting[address] = _Waiting(ping, now + RESPONSE_SECONDS)  # QB-3.1.7.6-05, -06
        return ping.encode()  # QB-3.1.7.6-03

    def received(self, data: bytes, address: str) -> bool | None:
        """Whether that address would take a session; None if this is no answer we wait for.

        Ping Response, MQQB 3.1.7.8 and 3.1.7.9.
        """
        waiting = self._waiting.get(address)
        if waiting is None:  # QB-3.1.7.8-04
            return None
        answer = received_answer(data, waiting.request)  # QB-3.1.7.8-01, QB-3.1.7.8-02
        if answer is None:
            return None
        del self._waiting[address]  # its timer too: QB-3.1.7.6-08
        return not answer.refused  # QB-3.1.7.8-03, QB-3.1.7.9-01

    def expired(self, now: float) -> list[str]:
        """The addresses whose second is over: they would not (QB-3.1.6.8-01, QB-3.1.7.6-07)."""
        late = [address for address, waiting in self._waiting.items() if waiting.deadline <= now]
        for address in late:
            del self._waiting[address]
        return late


def answer(data: bytes, queue_manager: bytes, *, refused: bool) -> bytes | None:
    """The response to a Ping Request, for the address and port it came from; None: ignore it.

    Ping Request, MQQB 3.1.7.7. `refused` says that we would not take a session now.
    """
    request = received_ping(data)
    if request is None or request.qm_guid == queue_manager:  # QB-3.1.7.7-01; or an echo of our own
        return None
    return request.response(queue_manager, refused=refused).encode()  # QB-3.1.7.7-02 to -06


class Pings:
    """The pings of a transport: its own, one for all who ask for the same address, and others'."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pinger = Pinger(transport.guid)
        self._waiting: dict[str, list[Callable[[bool], None]]] = {}

    def ask(self, address: str, done: Callable[[bool], None]) -> None:
        """Send Ping Request, MQQB 3.1.7.6; `done` is told whether a session would be taken."""
        waiting = self._waiting.setdefault(address, [])
        waiting.append(done)
        if len(waiting) == 1:
            transport = self._transport
            datagram = self._pinger.request(address, transport.now)
            transport.network.send_datagram(datagram, address, transport.settings.ping_port)
            transport.after(RESPONSE_SECONDS, self._expired)

    def asked(self, data: bytes, address: str, port: int) -> None:
        """A peer asks (MQQB 3.1.7.7)."""
        transport = self._transport
        if transport.settings.ping_answered:
            is_full = len(transport.connections) >= transport.settings.sessions_max
            response = answer(data, transport.guid, refused=is_full)
            if response is not None:
                transport.network.send_datagram(response, address, port)

    def answered(self, data: bytes, address: str) -> None:
        """An answer to one of ours, it seems (MQQB 3.1.7.8)."""
        is_welcome = self._pinger.received(data, address)
        if is_welcome is not None:
            self._tell(address, is_welcome)

    def _expired(self) -> None:
        for address in self._pinger.expired(self._transport.now):
            self._tell(address, False)

    def _tell(self, address: str, is_welcome: bool) -> None:
        for done in self._waiting.pop(address, []):
            done(is_welcome)
