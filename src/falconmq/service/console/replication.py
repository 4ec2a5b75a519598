"""The copies of the directory: which servers keep it, how far they are, what is missing and why."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api.replication import explain_change, replication_of
from falconmq.service.api.why import explanation_json
from falconmq.service.console.explaining import trouble_of
from falconmq.service.console.replication_map import Picture, draw
from falconmq.service.console.view import View
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.replication_servers import directory_sites
from falconmq.service.directory.replication_view import status_json

_ROWS_MOST: Final = 500  # partitions and neighbours in the tables
_SUBJECT_MOST: Final = 400  # letters


async def show(view: View) -> Response:
    """All of it; a service without a role says how to get one."""
    template = "directory_replication.html"
    try:
        replication = replication_of(view.control)
        status, picture, sites = await asyncio.to_thread(_look, view, replication)
        subject = view.query("subject")[:_SUBJECT_MOST]
        why = explanation_json(await explain_change(view.control, subject)) if subject else None
    except FalconMQError as error:
        trouble = trouble_of(error)
        return view.page(template, status=trouble.code, trouble=trouble, found=None)
    return view.page(
        template,
        found=status,
        picture=picture,
        site_count=sites,
        subject=subject,
        why=why,
        rows_most=_ROWS_MOST,
    )


def _look(view: View, replication: Replication) -> tuple[dict[str, Any], Picture | None, int]:
    status = status_json(replication, view.control.engine.core.clock)
    sites = directory_sites(replication.own, status)
    return status, draw(sites), len(sites)
