"""The HTTP API of a queue manager: queues and messages as JSON, under /api/v1.

    GET    /status                         queues, outgoing queues, sessions
    GET    /queues                         POST creates one
    GET    /queues/{name}                  PATCH changes it, DELETE deletes it
    POST   /queues/{name}/purge
    GET    /queues/{name}/permissions      PUT sets them, PATCH grants and revokes
    GET    /queues/{name}/messages         look through them, page by page
    POST   /queues/{name}/messages         send, one or many
    POST   /queues/{name}/packets          send many, as MSMQ packets: the fast door
    POST   /queues/{name}/receive          receive or peek; waits if asked to; packets if accepted
    POST   /transactions                   begin one; send and receive in it
    POST   /leases/{id}/commit             the end of a receive that was to be sure
    POST   /queues/{name}/cursors          and /handles: what stays open between requests
    POST   /ingests/{key}/{batch}/commit   a batch from many writers, exactly once
    GET    /queues/{name}/arrivals         how far a queue is; /plan cuts it into ranges
    POST   /consumers/{name}/claim         and /acknowledge: for who reads queues by ranges
    GET    /names/{name}                   the format name of a queue, here or elsewhere
    GET    /outgoing
    POST   /outgoing/{number}/pause        and /resume; DELETE /outgoing/{number}/messages
    GET    /why                            where a message or a backlog is, and why
    GET    /dead-letters                   POST .../redrive sends them again, .../delete
    GET    /messages/{id}/trace            the route of a message
    GET    /event-log                      what happened to messages, from the store
    GET    /permissions                    who may do what with the queue manager itself
    GET    /audit                          who administered what, and who was refused
    GET    /keys                           of this queue manager and of others; /keys/export
    GET    /certificates                   of users; POST creates one, .../register takes one
    GET    /sessions                       POST /ping asks whether a computer can be reached
    GET    /directory/{type}               objects of an enterprise; POST creates one
    GET    /directory/{type}/{name}        PATCH changes it, DELETE deletes it
    GET    /membership                     POST joins a directory, DELETE leaves it
    GET    /routes/{name}                  the way to a queue manager; POST /routes/refresh
    GET    /directory/rows/{type}          the same, exact and many, for other queue managers
    GET    /directory-replication          how far the copies of the directory are; .../why

`{name}` is a path name or format name, URL-quoted: `.%5Cprivate%24%5Corders`. It may hold slashes.
Errors are problems (`service.web.problems`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, Final

from fastapi import APIRouter, FastAPI

from falconmq import aio
from falconmq.service import schemas
from falconmq.service.access import Access
from falconmq.service.api import (
    arrivals,
    audit,
    backup,
    browse,
    bulk_arrow,
    certificates,
    consumers,
    cursors,
    dead_letters,
    directory,
    directory_rows,
    event_log,
    events,
    handles,
    health,
    ingests,
    keys,
    leases,
    membership,
    messages,
    metrics,
    names,
    outgoing,
    permissions,
    queues,
    replication,
    routes,
    sessions,
    status,
    tokens,
    tracing,
    transactions,
    why,
)
from falconmq.service.api import configuration as configuration_router
from falconmq.service.api.context import Control
from falconmq.service.api.description import describe
from falconmq.service.configuration import Configuration
from falconmq.service.directory.hub import DirectoryHub
from falconmq.service.observation.http_meter import MeteredApp
from falconmq.service.operating.outgoing import Outgoing
from falconmq.service.reload import Report
from falconmq.service.requests.idempotency import SameRun
from falconmq.service.web import problems
from falconmq.service.web.audited import AuditedApp, refused_at_door
from falconmq.service.web.shortcut import Shortcut

PREFIX: Final = "/api/v1"
_ROOT_ROUTERS: Final = (health.router, metrics.router)  # without the prefix
_ROUTERS: Final = (
    status.router,
    events.router,
    event_log.router,
    tokens.router,
    keys.router,
    certificates.router,
    directory_rows.router,
    directory.router,
    replication.router,
    membership.router,
    routes.router,
    audit.router,
    configuration_router.router,
    backup.router,
    names.router,
    outgoing.router,
    why.router,
    dead_letters.router,
    tracing.router,
    sessions.router,
    transactions.router,
    leases.router,
    cursors.router,
    handles.router,
    ingests.router,
    consumers.router,
    arrivals.router,
    bulk_arrow.router,  # takes what speaks Arrow, before those who speak JSON
    browse.router,
    messages.router,
    permissions.router,
    queues.router,
)


@cache
def _handlers() -> APIRouter:
    """All routers together. FastAPI prepares them at the first request: once for all applications.

    That takes a tenth of a second, which tests with an application each would pay every time.
    """
    together = APIRouter(
        responses={"default": {"model": schemas.Problem, "description": "a problem"}}
    )
    for router in _ROOT_ROUTERS:
        together.include_router(router)
    for router in _ROUTERS:
        together.include_router(router, prefix=PREFIX)
    return together


def create_app(
    manager: aio.QueueManager,
    *,
    status: Callable[[], dict[str, Any]] = dict,
    transport: Outgoing | None = None,
    configuration: Configuration | None = None,
    access: Access | None = None,
    troubles: Callable[[], list[str]] = list,
    reload: Callable[[], Awaitable[Report]] | None = None,
    hub: DirectoryHub | None = None,
) -> FastAPI:
    """The application. `status` adds to GET /status what only the service knows.

    It trusts the door in front of it to say who asks: see `service.access`.
    """
    app = FastAPI(
        title="FalconMQ",
        description="Queues and messages of one queue manager.",
        version="1",
        docs_url=None,  # it would load scripts from the network
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
    )
    app.state.control = control = Control(
        manager,
        status=status,
        transport=transport,
        configuration=configuration,
        access=access,
        troubles=troubles,
        reload=reload,
    )
    control.hub = hub
    if access is not None:
        access.on_refusal = partial(refused_at_door, control)
    app.router.routes += _handlers().routes
    from falconmq.service.console.app import install  # noqa: PLC0415 - it stands on our handlers

    install(app)
    app.add_middleware(
        Shortcut,
        queues=f"{PREFIX}/queues",
        send=partial(messages.send_packets, control),
        receive=partial(messages.receive, control),
    )
    app.add_middleware(SameRun, run_id=control.run_id)
    app.add_middleware(AuditedApp, control=control)
    app.add_middleware(MeteredApp, meter=control.watch.meter)  # the last one added is outermost
    problems.install(app)
    describe(app, {"": _ROOT_ROUTERS, PREFIX: _ROUTERS})
    return app


def end_waits(app: FastAPI) -> None:
    """The service stops: requests that wait for messages are answered now."""
    app.state.control.stopping.set()
    app.state.control.expiring.stop()
