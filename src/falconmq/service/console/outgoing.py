"""The way to other queue managers: what waits, for whom, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api import outgoing as api
from falconmq.service.api.context import Control
from falconmq.service.console.drawing import plural
from falconmq.service.console.reasons import why_of
from falconmq.service.console.view import View

_ROWS_MOST: Final = 500


async def show(view: View) -> Response:
    """All of them, those with problems first."""
    found = (await api.get_outgoing(view.control))["outgoing"]
    contains = view.query("q").lower()
    chosen = [
        queue
        for queue in found
        if contains in queue["destination"].lower() or contains in queue["path_name"].lower()
    ]
    chosen.sort(key=lambda queue: (not queue["problem"], -queue["messages"]))
    return view.page(
        "outgoing_list.html",
        outgoing=chosen[:_ROWS_MOST],
        found=len(chosen),
        contains=view.query("q"),
    )


async def show_one(view: View) -> Response:
    queue = await _queue(view)
    why = await why_of(view.control, queue["destination"])
    return view.page("outgoing.html", queue=queue, why=why)


async def pause(view: View) -> Response:
    return await _act(view, api.pause, "Nothing more is sent from this queue until it is resumed.")


async def resume(view: View) -> Response:
    return await _act(view, api.resume, "It is sent again.")


async def purge(view: View) -> Response:
    """Delete what waits; it is asked first, for the receivers will never see it."""
    queue = await _queue(view)
    path = f"/outgoing/{queue['number']}"
    question = (
        f"Delete {plural(queue['messages'], 'message')} on the way to {queue['destination']}? "
        "They will never arrive."
    )
    if (asked := view.confirm(question, "Purge", path)) is not None:
        return asked
    try:
        answer = await api.purge(view.control, queue["number"])
    except FalconMQError as error:
        return view.refused(path, error)
    return view.done("/outgoing", f"{plural(answer['purged'], 'message')} deleted.")


async def _act(
    view: View, action: Callable[[Control, int], Awaitable[None]], text: str
) -> Response:
    queue = await _queue(view)
    path = f"/outgoing/{queue['number']}"
    try:
        await action(view.control, queue["number"])
    except FalconMQError as error:
        return view.refused(path, error)
    return view.done(path, text)


async def _queue(view: View) -> dict[str, Any]:
    number = view.path("number")
    for queue in (await api.get_outgoing(view.control))["outgoing"]:
        if str(queue["number"]) == number:
            found: dict[str, Any] = queue
            return found
    raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no outgoing queue {number} any more")
