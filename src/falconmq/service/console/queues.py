"""All queues: find one, see which are full, create another."""

from __future__ import annotations

from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service import schemas
from falconmq.service.api.queues import create_queue
from falconmq.service.console.drawing import queue_link
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.listing import COLUMNS, list_queues
from falconmq.service.console.view import View


async def show(view: View) -> Response:
    return _table(view)


async def create(view: View) -> Response:
    """Create a queue; a form that is refused is shown again with what was written in it.

    A plain name is a private queue, or a public one if that is ticked.
    """
    name = view.field("name").strip()
    if "\\" not in name and "=" not in name:
        name = f".\\{name}" if view.field("public") else f".\\private$\\{name}"
    given = {"name": name}
    try:
        request = schemas.CreateQueueRequest.model_validate({**given, **properties(view)})
        created = await create_queue(view.control, request)
    except (FalconMQError, ValueError) as error:
        trouble = trouble_of(error)
        return _table(view, trouble)
    return view.done(queue_link(created["name"]), f"{created['name']} was created.")


def properties(view: View) -> dict[str, object]:
    """What the form of a queue says about its properties; an empty quota is none."""
    quotas = {
        key: view.field(key).strip() or None
        for key in ("quota_kilobytes", "journal_quota_kilobytes")
    }
    return {
        "label": view.field("label"),
        "transactional": bool(view.field("transactional")),
        "journaling": bool(view.field("journaling")),
        "authentication": bool(view.field("authentication")),
        "privacy_level": view.field("privacy_level") or "OPTIONAL",
        "base_priority": view.field("base_priority").strip() or 0,
        **quotas,
    }


def _table(view: View, trouble: Trouble | None = None) -> Response:
    sort = view.query("sort", "name")
    column, descending = sort.removeprefix("-"), sort.startswith("-")
    contains, system = view.query("q"), bool(view.query("system"))
    listing = view.control.engine.look(
        list_queues,
        contains,
        column if column in COLUMNS else "name",
        view.number("page", 1),
        descending=descending,
        system=system,
    )
    return view.page(
        "queues.html",
        status=200 if trouble is None else trouble.code,
        listing=listing,
        contains=contains,
        system=system,
        sort=sort,
        has_directory=view.control.engine.core.directory.is_integrated,
        trouble=trouble,
        form=view.values,
    )
