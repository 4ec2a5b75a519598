"""Which directory this queue manager is a part of: to look at, to join, to leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from falconmq.errors import DirectoryError, MqStatus
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.configuration import DirectorySection
from falconmq.service.configuration.membership import directory_problems
from falconmq.service.directory.hub import DirectoryHub
from falconmq.service.schemas import Strict
from falconmq.service.tables import Table
from falconmq.service.web.audited import note

router: Final = APIRouter()
_READ: Final = [Depends(require(Role.READ))]
_MANAGE: Final = [Depends(require(Role.MANAGE))]
_TEXT_MAX: Final = 1024

Text = Annotated[str, Field(max_length=_TEXT_MAX, pattern=r"^[^\x00-\x1f\x7f]*$")]


class MembershipIn(Strict):
    """A directory to join; what is left out is as `[directory]` has it by default."""

    kind: Literal["embedded", "remote", "ldap"]
    servers: list[Text] = Field([], max_length=16, examples=[["https://hq.example.com:8018"]])
    site: Text = Field("", description="Name of the site; empty: the only one there is.")
    domain: Text = ""
    root: Text = Field("", description="Of LDAP: DC=example,DC=com.")
    bind_name: Text = ""
    password_file: Text = Field("", description="On the computer of the service.")
    token_file: Text = Field("", description="On the computer of the service.")
    start_tls: bool = False
    ca_file: Text = Field("", description="On the computer of the service.")
    routing_server: bool = False
    host_name: Text = Field("", description="Under which others reach this queue manager.")


class MapCounts(Strict):
    """The map of sites, links and queue managers that ways are found on."""

    sites: int
    links: int
    queue_managers: int
    read_at: str | None
    problem: str
    faults: list[str]


class MembershipOut(Strict):
    """The directory that a queue manager is a part of, and how it is with it."""

    kind: Literal["none", "embedded", "remote", "ldap"]
    is_joined: bool
    servers: list[str]
    sites: list[str] = Field(description="That this queue manager is in.")
    domain: str
    is_registered: bool
    is_away: bool = Field(description="Whether the directory cannot be reached now.")
    is_offline: bool = Field(description="Whether answers come from memory.")
    away_since: str | None
    problem: str = Field(description="Why it is away.")
    public_queues: int
    notifications_received: dict[str, int]
    notifications_sent: dict[str, int]
    map: MapCounts | None


@router.get("/membership", response_model=MembershipOut, dependencies=_READ)
async def get_membership(control: Given) -> dict[str, Any]:
    """Which directory this queue manager is a part of, and whether it can be reached."""
    return _hub(control).status()


@router.post("/membership", response_model=MembershipOut, dependencies=_MANAGE)
async def join(control: Given, given: MembershipIn) -> dict[str, Any]:
    """Become a part of a directory, now and at every start."""
    note(target=given.kind)
    values = given.model_dump()
    for name in ("password_file", "token_file", "ca_file"):
        values[name] = _path(name, values[name])
    section = DirectorySection(**{**values, "servers": tuple(given.servers)})
    for problem in directory_problems(Table("membership", "directory", {}), section):
        raise problem
    hub = _hub(control)
    await hub.join(section)
    return hub.status()


@router.delete("/membership", response_model=MembershipOut, dependencies=_MANAGE)
async def leave(
    control: Given,
    force: Annotated[
        bool, Query(description="Although there are public queues, or the directory is away.")
    ] = False,
) -> dict[str, Any]:
    """Be a workgroup from now on. Queues and messages stay."""
    hub = _hub(control)
    await hub.leave(force=force)
    return hub.status()


def _hub(control: Control) -> DirectoryHub:
    if control.hub is None:
        raise DirectoryError(
            "no service runs here: only a service is part of a directory",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="start it with: falconmq serve",
        )
    return control.hub


def _path(name: str, text: str) -> Path | None:
    path = Path(text)
    if text and not path.is_absolute():
        raise DirectoryError(
            f"{name}: {text} is no absolute path",
            status=MqStatus.INVALID_PARAMETER,
            hint="name the file on the computer of the service, from / on",
        )
    return path if text else None
