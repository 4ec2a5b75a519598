"""The last hour in curves, larger."""

from __future__ import annotations

from starlette.responses import Response

from falconmq.service.console.history import hour
from falconmq.service.console.view import View


async def show(view: View) -> Response:
    return view.page("charts.html", charts=hour(view.control).charts)
