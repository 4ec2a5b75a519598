"""Sessions with other queue managers."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from falconmq.service.api import sessions as api
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View
from falconmq.service.explaining_schemas import PingRequest


async def show(view: View) -> Response:
    return await _page(view)


async def ping(view: View) -> Response:
    """Ask another computer whether its queue manager can be reached from here."""
    try:
        request = PingRequest(address=view.field("address").strip())
    except ValidationError as error:
        return await _page(view, trouble=trouble_of(error))
    return await _page(view, pinged=await api.ping(view.control, request))


async def _page(
    view: View, pinged: dict[str, Any] | None = None, trouble: Trouble | None = None
) -> Response:
    status = view.control.status()
    return view.page(
        "sessions.html",
        status=200 if trouble is None else trouble.code,
        sessions=(await api.get_sessions(view.control))["sessions"],
        pinged=pinged,
        trouble=trouble,
        form=view.values,
        listening=status.get("listening", []),
        counters=status.get("counters", {}),
    )
