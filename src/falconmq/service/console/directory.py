"""The directory: what all queue managers of an enterprise know, to look at.

Changes are made with `falconmq directory`: an entry is easier to write there than in a form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api.directory import Kind, asked_directory, get_object, list_objects
from falconmq.service.api.routes import refresh_routes
from falconmq.service.console.directory_map import map_of
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View

PAGE: Final = 50  # objects
_SITES_MOST: Final = 1000  # whose names are shown instead of their GUIDs

# What a table shows of each type; the first is what people call an object.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "enterprise": ("name", "default_time_to_live", "weakened_security"),
    "site": ("name", "foreign_site", "identifier"),
    "routing-link": ("identifier", "site1_identifier", "site2_identifier", "actual_cost"),
    "connected-network": ("name", "network_protocol", "identifier"),
    "queue-manager": ("computer_name", "site_identifiers", "routing_server", "identifier"),
    "queue": ("path_name", "label", "transactional", "modify_time"),
    "user": ("security_identifier", "identifier"),
    "distribution-list": ("name", "identifier"),
    "queue-alias": ("name", "format_name"),
}
_FIRST: Final = "queue-manager"


async def show(view: View) -> Response:
    """Objects of one type, a page at a time."""
    kind = view.query("type", _FIRST)
    if kind not in COLUMNS:
        kind = _FIRST
    where, page = view.query("where"), max(1, view.number("page", 1, 10**6))
    objects: list[dict[str, Any]] = []
    trouble: Trouble | None = None
    directory = await asked_directory(view.request, view.control)
    try:
        found = await list_objects(
            directory, cast("Kind", kind), [where] if where else None, (page - 1) * PAGE, PAGE + 1
        )
        objects = found["objects"]
    except FalconMQError as error:
        trouble = trouble_of(error)
    return view.page(
        "directory.html",
        status=200 if trouble is None else trouble.code,
        kinds=tuple(COLUMNS),
        kind=kind,
        where=where,
        columns=COLUMNS[kind],
        objects=objects[:PAGE],
        is_more=len(objects) > PAGE,
        page=page,
        names=await _site_names(view),
        trouble=trouble,
        map=await map_of(view, directory),
        has_copies=view.control.hub is not None and view.control.hub.replication is not None,
    )


async def refresh(view: View) -> Response:
    """Read the map of sites and links now, not when the hour is over."""
    await refresh_routes(view.control, await asked_directory(view.request, view.control))
    return view.done("/directory", "Sites, links and gates were read from the directory.")


async def show_one(view: View) -> Response:
    """Every attribute of one object."""
    kind, name = view.path("kind"), view.path("name")
    if kind not in COLUMNS:
        raise HTTPException(404, f"a directory has no {kind}")
    directory = await asked_directory(view.request, view.control)
    found = (await get_object(directory, cast("Kind", kind), name))["attributes"]
    title = str(found.get(COLUMNS[kind][0]) or found["identifier"])
    return view.page(
        "directory_object.html",
        kind=kind,
        title=title,
        attributes=found,
        names=await _site_names(view),
    )


async def _site_names(view: View) -> dict[str, str]:
    """Sites by their GUID: managers and links name them so."""
    directory = await asked_directory(view.request, view.control)
    try:
        sites = (await list_objects(directory, "site", None, 0, _SITES_MOST))["objects"]
    except FalconMQError:
        return {}
    return {str(site["identifier"]): str(site["name"]) for site in sites}
