"""The HTTP API of a queue manager: queues and messages as JSON, under /api/v1.

    GET    /status                         queues, outgoing queues, sessions
    GET    /queues                         POST creates one
    GET    /queues/{name}                  DELETE deletes it
    POST   /queues/{name}/purge
    POST   /queues/{name}/messages         send, one or many
    POST   /queues/{name}/packets          send many, as MSMQ packets: the fast door
    POST   /queues/{name}/receive          receive or peek; waits if asked to; packets if accepted
    GET    /outgoing
    POST   /outgoing/{number}/pause        and /resume

`{name}` is a path name or format name, URL-quoted: `.%5Cprivate%24%5Corders`. It may hold slashes;
Errors are problems (`service.problems`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fastapi import FastAPI

from falconmq import aio
from falconmq.service import problems, schemas
from falconmq.service.api import messages, outgoing, queues, status
from falconmq.service.api.context import Control
from falconmq.service.configuration import Configuration
from falconmq.service.outgoing import Outgoing
from falconmq.service.shortcut import Shortcut

PREFIX: Final = "/api/v1"
_ROUTERS: Final = (status.router, outgoing.router, messages.router, queues.router)


def create_app(
    manager: aio.QueueManager,
    *,
    status: Callable[[], dict[str, Any]] = dict,
    transport: Outgoing | None = None,
    configuration: Configuration | None = None,
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
        responses={"default": {"model": schemas.Problem, "description": "a problem"}},
    )
    app.state.control = control = Control(
        manager, status=status, transport=transport, configuration=configuration
    )
    for router in _ROUTERS:
        app.include_router(router, prefix=PREFIX)
    app.add_middleware(
        Shortcut,
        queues=f"{PREFIX}/queues",
        send=partial(messages.send_packets, control),
        receive=partial(messages.receive, control),
    )
    problems.install(app)
    return app


def end_waits(app: FastAPI) -> None:
    """The service stops: requests that wait for messages are answered now."""
    app.state.control.stopping.set()
