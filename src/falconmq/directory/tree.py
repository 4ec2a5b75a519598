"""The tree that all directories have: where each type of object stands (directory guide 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from falconmq.directory.distinguished_names import (
    child,
    domain_components,
    link_component,
    queue_component,
)
from falconmq.directory.schema import refusal
from falconmq.errors import MqStatus
from falconmq.names import PathName, QueueKind
from falconmq.wire.sid import Sid


@dataclass(frozen=True, slots=True)
class Tree:
    """Places below one root, such as DC=example,DC=com."""

    root: str
    configuration: str

    @classmethod
    def below(cls, root: str) -> Tree:
        return cls(root, child("Configuration", root))

    @classmethod
    def of_domain(cls, domain: str) -> Tree:
        return cls.below(domain_components(domain))

    @property
    def computers(self) -> str:
        return child("Computers", self.root)

    @property
    def users(self) -> str:
        return child("Users", self.root)

    @property
    def sites(self) -> str:
        return child("Sites", self.configuration)

    @property
    def services(self) -> str:
        return child("Services", self.configuration)

    @property
    def enterprise(self) -> str:
        return child("MsmqServices", self.services)

    def computer(self, name: str) -> str:
        return child(name, self.computers)

    def queue_manager(self, computer: str) -> str:
        return child("msmq", self.computer(computer))

    def queue(self, path: PathName) -> str:
        return child(queue_component(path.name)[0], self.queue_manager(path.computer))

    def site(self, name: str) -> str:
        return child(name, self.sites)

    def routing_link(self, site1: UUID, site2: UUID) -> str:
        return child(link_component(site1, site2), self.enterprise)

    def user(self, sid: bytes) -> str:
        return child(str(Sid.decode(sid)), self.users)

    def recipient(self, name: str) -> str:
        """A distribution list or an alias."""
        return child(name, self.users)

    def server(self, site_name: str, computer: str) -> str:
        """Where a site keeps what one of its servers does."""
        return child(computer, child("Servers", self.site(site_name)))

    def settings(self, site_name: str, computer: str) -> str:
        return child("MSMQ Settings", self.server(site_name, computer))


def public_path(text: str) -> PathName:
    """The path name of a public queue on a computer that it names."""
    path = PathName.parse(text)
    is_public = path.kind is QueueKind.PUBLIC and path.subqueue is None and not path.journal
    if not is_public or path.is_local:
        raise refusal(
            f"{text} is not the path name of a public queue",
            MqStatus.ILLEGAL_QUEUE_PATHNAME,
            r"a directory takes computer\queue, with the name of the computer",
        )
    return path
