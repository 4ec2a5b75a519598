"""Where one message was, and where it is now."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from falconmq.errors import FalconMQError
from falconmq.message import MessageId
from falconmq.service.api.tracing import get_trace
from falconmq.service.console.drawing import trace_link
from falconmq.service.console.reasons import why_of
from falconmq.service.console.routes import picture
from falconmq.service.console.view import View


async def search(view: View) -> Response:
    """The form that asks for an id."""
    text = view.query("id")
    if text:
        try:
            id = str(MessageId.parse(text))
        except FalconMQError as error:
            return view.refused("/messages", error)
        return RedirectResponse(trace_link(id), 303)
    return view.page("trace_search.html")


async def show(view: View) -> Response:
    id = str(MessageId.parse(view.path("id")))
    route = await get_trace(view.control, id)
    drawn = picture(route["stops"], route["edges"]) if route["stops"] else None
    why = await why_of(view.control, id)
    return view.page("trace.html", id=id, route=route, picture=drawn, why=why)
