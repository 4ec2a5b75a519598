"""How far the copies of the directory are: partitions, neighbours, and what differs."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from falconmq.errors import DirectoryError, MqStatus
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.sessions import where_of
from falconmq.service.api.why import explanation_json
from falconmq.service.directory.claim_removal import remove_claim
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.replication_view import fingerprint_page, status_json
from falconmq.service.directory.role_moves import move_role, take_over_roles
from falconmq.service.directory.site_removal import remove_site
from falconmq.service.explaining_schemas import ExplanationOut
from falconmq.service.operating.reaching import answer
from falconmq.service.schemas import Strict
from falconmq.service.why.explanation import Explanation
from falconmq.service.why.replication_facts import replication_facts
from falconmq.service.why.replication_judging import judge_replication

router: Final = APIRouter(dependencies=[Depends(require(Role.READ, Role.DIRECTORY))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]
_PAGE_MAX: Final = 50_000
_REACH_SECONDS: Final = 3.0


class PartitionOut(Strict):
    """A part of the directory that one server decides about."""

    id: str
    name: str = Field(description="Of the site; of the part above all sites, the enterprise.")
    authority: str = Field(description="The server that decides.")
    own: bool = Field(description="Whether that is this one.")
    taken_over_at: str | None = Field(
        description="When somebody took it over from a server that was gone; null if never."
    )
    last: int = Field(description="Number of the last change that is here.")
    number: int = Field(description="The same, counted since somebody took it over.")
    lag: int = Field(description="How many changes are known of that are not here yet.")
    pending: int = Field(description="Changes that came too early, and wait for others.")
    purged: int = Field(description="Deletions up to this number are forgotten.")
    state: str
    waiting: bool = Field(description="Whether an answer to a request for changes is awaited.")
    asked_seconds: float | None = Field(description="Since when; null if nobody was asked.")


class NeighbourOut(Strict):
    """A server that changes are sent to."""

    machine: str
    kind: str
    site: str
    waiting_changes: int = Field(description="Changes that go with the next message.")
    acked: int
    acked_enterprise: int
    last_acked_at: str | None = Field(description="When a backup controller last said it lives.")
    last_hello_seconds: float | None = Field(description="How long ago it was told our numbers.")
    last_heard_seconds: float | None = Field(description="How long ago it said anything.")
    silent: bool = Field(description="A backup controller that missed too many signs of life.")


class DoubleOut(Strict):
    """An object that is in two sites, or more, by what their servers say."""

    kind: str
    name: str
    id: str
    shown: str = Field(description="The site whose word is shown: of the object made last.")
    others: list[str] = Field(description="The other sites that have it.")


class ReplicationOut(Strict):
    """This directory server."""

    role: str = Field(description="What it is now: pec, psc or bsc.")
    configured_role: str = Field(description="What its configuration says.")
    awaits_role: bool = Field(
        description="It is named as the PSC of its site, and the old one has not handed over yet."
    )
    machine: str
    site: str
    primary_site_controller: str = Field(description="Of a backup controller: whom it asks.")
    ready: bool = Field(description="Whether the first copy of the directory is here.")
    waiting_writes: int = Field(description="Writes that another server is asked for.")
    doubles: list[DoubleOut] = Field(description="Objects that are in two sites; at most 100.")
    partitions: list[PartitionOut]
    neighbours: list[NeighbourOut]
    counters: dict[str, dict[str, int]]


class MoveIn(Strict):
    """Which role goes where."""

    subject: str = Field(max_length=200, description="The name of a site, or `enterprise`.")
    server: str = Field(max_length=200, description="The server that decides from then on.")
    dry_run: bool = Field(False, description="Only look whether it can be done.")


class MoveOut(Strict):
    """The new one begins when it has everything that the old one has decided."""

    subject: str
    old_server: str
    new_server: str
    done: bool = Field(description="False: it was only looked at.")


class TakeOverIn(Strict):
    """Which server is gone for good."""

    server: str = Field(max_length=200, description="The server that is gone for good.")
    pec: str = Field("", max_length=200, description="The PEC, if that has moved meanwhile.")
    accept_loss: bool = Field(False, description="What nobody else has heard of may be lost.")
    ignore_others: bool = Field(False, description="Do not wait for servers that do not answer.")
    dry_run: bool = Field(False, description="Only say what would be taken over.")


class TakeOverOut(Strict):
    """What this server decides about now."""

    roles: list[str] = Field(description="Names of sites, or `enterprise`.")
    old_server: str
    pec: str = Field(description="The server that named this one; empty if it is one itself.")
    asked: list[str] = Field(description="Servers that were asked for what they have heard.")
    silent: list[str] = Field(description="Those that did not answer.")
    done: bool = Field(description="False: it was only looked at.")


class RemoveSiteIn(Strict):
    """Which site is given up."""

    site: str = Field(max_length=200, description="Its name.")
    accept_loss: bool = Field(False, description="All that is in the site is deleted with it.")
    dry_run: bool = Field(False, description="Only say what would be removed.")


class RemoveSiteOut(Strict):
    """What goes with a site."""

    site: str
    servers: list[str] = Field(description="Its directory servers; none of them runs.")
    queue_managers: int
    queues: int
    done: bool = Field(description="False: it was only looked at.")


class RemoveClaimIn(Strict):
    """Which site lets go of what."""

    object: str = Field(max_length=400, description="Its name or its GUID.")
    site: str = Field(max_length=200, description="The name of the site that has it no more.")
    dry_run: bool = Field(False, description="Only look whether it can be done.")


class RemoveClaimOut(Strict):
    """Where the object is then."""

    name: str
    id: str
    site: str
    server: str = Field(description="The server that decides about this site.")
    rest: list[str] = Field(description="The sites that have it then.")
    done: bool = Field(description="False: it was only looked at.")


class FingerprintsOut(Strict):
    """Objects and deletions in a few bytes each, in the order of their names."""

    fingerprints: dict[str, str]
    next: str = Field(description="Ask for what is after this; empty at the end.")


@router.get("/directory-replication", response_model=ReplicationOut)
async def get_replication(control: Given) -> dict[str, Any]:
    """How far this directory server is, and the servers it tells of changes."""
    replication = replication_of(control)
    return await asyncio.to_thread(status_json, replication, control.engine.core.clock)


@router.get("/directory-replication/fingerprints", response_model=FingerprintsOut)
async def get_fingerprints(
    control: Given,
    after: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=_PAGE_MAX)] = 10_000,
) -> dict[str, Any]:
    """What this server has, to be compared with another one."""
    replication = replication_of(control)
    return await asyncio.to_thread(fingerprint_page, replication, after, limit)


@router.get("/directory-replication/why", response_model=ExplanationOut)
async def get_why(
    control: Given,
    subject: Annotated[
        str,
        Query(
            min_length=1,
            max_length=400,
            description="The name or the GUID of an object of the directory.",
        ),
    ],
) -> dict[str, Any]:
    """Why a change is not here: who decides, what is missing, who was asked, what to do."""
    return explanation_json(await explain_change(control, subject))


@router.post("/directory-replication/move", response_model=MoveOut, dependencies=_MANAGE)
async def move(control: Given, given: MoveIn) -> dict[str, Any]:
    """Let another server decide about a site, or about the enterprise; both servers are there."""
    replication, reach = replication_of(control), partial(_reach, control)
    found = await move_role(replication, given.subject, given.server, reach, dry_run=given.dry_run)
    return {
        "subject": found.subject,
        "old_server": found.old,
        "new_server": found.new,
        "done": not given.dry_run,
    }


@router.post("/directory-replication/take-over", response_model=TakeOverOut, dependencies=_MANAGE)
async def take_over(control: Given, given: TakeOverIn) -> dict[str, Any]:
    """Decide here instead of a server that is gone for good. What nobody else has is lost."""
    if not given.accept_loss and not given.dry_run:
        raise DirectoryError(
            f"changes that only {given.server} has, also acknowledged ones, are lost by this",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="say accept_loss if that is what you want; dry_run says what would be done",
        )
    replication, reach = replication_of(control), partial(_reach, control)
    found = await take_over_roles(
        replication,
        given.server,
        reach,
        pec=given.pec,
        ignores_others=given.ignore_others,
        dry_run=given.dry_run,
    )
    return {
        "roles": found.roles,
        "old_server": found.dead,
        "pec": found.pec,
        "asked": found.asked or [],
        "silent": found.silent or [],
        "done": not given.dry_run,
    }


@router.post(
    "/directory-replication/remove-site", response_model=RemoveSiteOut, dependencies=_MANAGE
)
async def remove(control: Given, given: RemoveSiteIn) -> dict[str, Any]:
    """Take a site out of the enterprise, with all that is in it; its servers are gone."""
    if not given.accept_loss and not given.dry_run:
        raise DirectoryError(
            f"all queue managers and queues of {given.site} are deleted by this",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="say accept_loss if that is what you want; dry_run says how many there are",
        )
    replication, reach = replication_of(control), partial(_reach, control)
    found = await remove_site(replication, given.site, reach, dry_run=given.dry_run)
    return {
        "site": found.name,
        "servers": found.servers,
        "queue_managers": found.queue_managers,
        "queues": found.queues,
        "done": not given.dry_run,
    }


@router.post(
    "/directory-replication/remove-claim", response_model=RemoveClaimOut, dependencies=_MANAGE
)
async def remove_one_claim(control: Given, given: RemoveClaimIn) -> dict[str, Any]:
    """Of an object that is in two sites, delete what one of them says; the other word stays."""
    replication = replication_of(control)
    found = await remove_claim(replication, given.object, given.site, dry_run=given.dry_run)
    return {
        "name": found.name,
        "id": str(found.identifier),
        "site": found.site,
        "server": found.server,
        "rest": found.rest,
        "done": not given.dry_run,
    }


async def _reach(control: Control, machine: str) -> str:
    """Why a computer cannot be reached; "" if it can."""
    found = await answer(machine, where_of(control), _REACH_SECONDS)
    if found["is_reachable"]:
        return ""
    return found["problem"] or "nobody answers there"


async def explain_change(control: Control, subject: str) -> Explanation:
    """The same for a page."""
    replication, clock = replication_of(control), control.engine.core.clock
    facts = await asyncio.to_thread(replication_facts, replication, clock, subject)
    return judge_replication(facts)


def replication_of(control: Control) -> Replication:
    """The copies that this service keeps with others; DirectoryError if it has no such role."""
    found = None if control.hub is None else control.hub.replication
    if found is None:
        raise DirectoryError(
            "this queue manager keeps no copy of a directory that others keep too",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="directory.role makes it a directory server: pec, psc or bsc",
        )
    return found
