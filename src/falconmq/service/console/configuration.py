"""What the service was told, where from, and telling it again."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api.configuration import get_configuration, reload_configuration
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View


async def show(view: View) -> Response:
    return await _page(view)


async def reload(view: View) -> Response:
    """Read the file again; the page says for each change whether it took effect."""
    try:
        report = await reload_configuration(view.control)
    except FalconMQError as error:
        return await _page(view, trouble=trouble_of(error))
    if not report["changes"] and not _touched(report):
        return view.done("/configuration", "The configuration was read: nothing has changed.")
    return await _page(view, report=report)


async def _page(
    view: View, report: dict[str, Any] | None = None, trouble: Trouble | None = None
) -> Response:
    shown = await get_configuration(view.control)
    sections: dict[str, list[dict[str, Any]]] = {}
    for setting in shown["settings"]:
        section, _, key = setting["name"].partition(".")
        sections.setdefault(section, []).append({**setting, "key": key})
    return view.page(
        "configuration.html",
        status=200 if trouble is None else trouble.code,
        shown=shown,
        sections=sections,
        report=report,
        touched=_touched(report) if report else [],
        trouble=trouble,
    )


def _touched(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [queue for queue in report["queues"] if queue["outcome"] != "unchanged"]
