"""Names of queues: the format name that a path name stands for, here or on another computer."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends
from pydantic import Field

from falconmq.embedded import actions
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.queues import find_queue
from falconmq.names import PathName, parse_queue_name
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.schemas import Strict

router: Final = APIRouter(dependencies=[Depends(require(Role.READ, Role.SEND))])


class NameOut(Strict):
    """What a name leads to."""

    name: str = Field(description="As it was asked for.")
    format_name: str = Field(description="How messages name the queue.")
    is_local: bool = Field(description="Whether it is a queue of this queue manager.")


@router.get("/names/{name:path}", response_model=NameOut)
async def resolve_name(control: Given, name: str) -> dict[str, Any]:
    """The format name of a queue; the directory is asked for public queues of other computers.

    Nothing is opened. A format name is answered as it is, whether or not its queue exists.
    """
    await ask_ahead(control.engine, name)
    return control.engine.look(_resolve, name)


def _resolve(core: QueueManagerCore, name: str) -> dict[str, Any]:
    parsed = parse_queue_name(name)
    queue = None
    if isinstance(parsed, PathName):
        queue = find_queue(core, parsed)
        if queue is not None:
            format_name = actions.opened_queue(core, queue).format_name
        else:
            format_name = actions.resolved(core, parsed)
    else:
        queue, format_name = find_queue(core, parsed), parsed
    return {"name": name, "format_name": str(format_name), "is_local": queue is not None}
