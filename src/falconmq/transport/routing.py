"""Where the messages for a queue go next (MQQB 3.1.7.4, 3.1.7.5).

A `Router` knows which queue manager has a queue, over which queue managers it is reached, and whom
no session leads to, because it is foreign. `StaticRouter` answers from a table in the
configuration, `directory.routing` from sites and links in the directory.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.model import NULL_UUID
from falconmq.manager.next_hops import Destination, NextHopName, direct_destination
from falconmq.names import DirectFormatName, PrivateFormatName, SingleFormatName

__all__ = ["Destination", "NextHopName", "Router", "StaticRouter"]

_HOST_NAME: Final = re.compile(r"[\w.-]+")


class Router(Protocol):
    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        """Get Destination Info, MQQB 3.1.7.4; None if nobody knows."""
        ...

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        """Get Next Hops, MQQB 3.1.7.5, the best first; none if there is no way."""
        ...

    def connector_site(self, queue_manager: UUID) -> UUID | None:
        """The foreign site whose connector queue here takes messages for a queue manager."""
        ...

    def is_foreign(self, queue_manager: UUID) -> bool:
        """Whether a connector acknowledges messages for a queue manager in its place."""
        ...

    def is_asked(self, name: SingleFormatName) -> bool:
        """Whether a directory is being asked for a queue: then a message for it can wait."""
        ...


@dataclass(frozen=True, slots=True)
class StaticRouter:
    """Ways from a table: `hosts` says where queue managers are, `routes` over which others to go.

    A queue manager without a route is reached directly. The table is checked and copied when the
    router is made: DirectoryError says what is wrong with it.
    """

    hosts: Mapping[UUID, str] = field(default_factory=dict)
    routes: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hosts = dict(self.hosts)
        routes = {goal: tuple(hops) for goal, hops in self.routes.items()}
        for queue_manager, host in hosts.items():
            _check_host(queue_manager, host)
        for goal, hops in routes.items():
            _check_route(goal, hops, hosts)
        object.__setattr__(self, "hosts", MappingProxyType(hosts))
        object.__setattr__(self, "routes", MappingProxyType(routes))

    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        match name:
            case DirectFormatName():
                return direct_destination(name)  # QB-3.1.7.4-02, QB-3.1.7.4-07
            case PrivateFormatName():
                return Destination("", name.computer)  # QB-3.1.7.4-06, QB-3.1.7.4-07
            case _:
                return None  # public names need a directory, QB-3.1.7.4-04

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        hops = self.routes.get(queue_manager, (queue_manager,))
        return [NextHopName(hop, self.hosts[hop]) for hop in hops if hop in self.hosts]

    def connector_site(self, queue_manager: UUID) -> UUID | None:  # noqa: ARG002
        return None  # a table has no sites

    def is_foreign(self, queue_manager: UUID) -> bool:  # noqa: ARG002
        return False

    def is_asked(self, name: SingleFormatName) -> bool:  # noqa: ARG002
        return False  # nor a directory


def _check_host(queue_manager: UUID, host: str) -> None:
    if queue_manager == NULL_UUID:
        raise _refusal(f"the null GUID is no queue manager, but has the host {host!r}")
    if not _HOST_NAME.fullmatch(host) and not _is_ip_address(host):
        raise _refusal(
            f"queue manager {queue_manager}: {host!r} is no host name or IP address",
            hint="write the bare name or address: sales01, sales01.example.com, 10.0.0.7",
        )


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_route(goal: UUID, hops: tuple[UUID, ...], hosts: Mapping[UUID, str]) -> None:
    if not hops:
        raise _refusal(
            f"the route to queue manager {goal} goes over nobody",
            hint="name the queue managers it goes over, or leave the route out to go directly",
        )
    for hop in hops:
        if hop not in hosts:
            raise _refusal(
                f"the route to queue manager {goal} goes over {hop}, whose host is not known",
                status=MqStatus.MACHINE_NOT_FOUND,
                hint=f"add {hop} and its host name to the hosts",
            )


def _refusal(
    problem: str, *, status: MqStatus = MqStatus.INVALID_PARAMETER, hint: str = ""
) -> DirectoryError:
    return DirectoryError(problem, status=status, hint=hint)
