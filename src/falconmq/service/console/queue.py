"""One queue: its numbers, its messages, and what can be done with them."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.names import PublicFormatName, parse_format_name
from falconmq.service import schemas
from falconmq.service.api import browse, messages, queues
from falconmq.service.console.composing import message_of
from falconmq.service.console.drawing import plural, queue_link
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.listing import targets
from falconmq.service.console.queues import properties
from falconmq.service.console.reasons import why_of
from falconmq.service.console.view import View

PAGE: Final = 50  # messages
_LOOKUP_ID_MOST: Final = 20  # digits


async def show(view: View) -> Response:
    return await _page(view)


async def purge(view: View) -> Response:
    name = view.path("name")
    queue = await queues.get_queue(view.control, name)
    question = f"Purge {name}? {plural(queue['messages'], 'message')} will be deleted for good."
    if (asked := view.confirm(question, "Purge", queue_link(name))) is not None:
        return asked
    purged = (await queues.purge_queue(view.control, name))["purged"]
    return view.done(queue_link(name), f"{plural(purged, 'message')} deleted.")


async def delete(view: View) -> Response:
    name = view.path("name")
    queue = await queues.get_queue(view.control, name)
    holding = plural(queue["messages"], "message")
    question = f"Delete the queue {name} with {holding}? This cannot be undone."
    if (asked := view.confirm(question, "Delete queue", queue_link(name))) is not None:
        return asked
    await queues.delete_queue(view.control, name)
    return view.done("/queues", f"{name} was deleted.")


async def change(view: View) -> Response:
    """Change the properties; a form that is refused is shown again."""
    name = view.path("name")
    given = properties(view)
    del given["transactional"]  # that is for good
    try:
        update = schemas.QueueUpdate.model_validate(given)
        await queues.update_queue(view.control, name, update)
    except (FalconMQError, ValidationError) as error:
        return await _page(view, trouble_of(error))
    return view.done(queue_link(name), "The properties are changed.")


async def send(view: View) -> Response:
    """Send what is written in the form; if it is refused, it is still there to be corrected."""
    name = view.path("name")
    try:
        request = schemas.SendRequest.model_validate({"messages": [message_of(view)]})
        sent = await messages.send(view.control, name, request)
    except (FalconMQError, ValidationError) as error:
        return await _page(view, trouble_of(error))
    return view.done(queue_link(name), f"Sent: {sent['ids'][0]}")


async def selected(view: View) -> Response:
    """Do something with the messages that were ticked."""
    name = view.path("name")
    back = queue_link(name)
    chosen = [text for text in view.fields("lookup_id") if _is_lookup_id(text)]
    if not chosen:
        return view.refused(back, HTTPException(400, "no message was selected"))
    if view.field("work") == "move":
        return await _move(view, name, chosen, back)
    question = f"Delete {plural(len(chosen), 'selected message')} for good?"
    if (asked := view.confirm(question, "Delete selected", back)) is not None:
        return asked
    return await _delete(view, name, chosen, back)


async def _move(view: View, name: str, chosen: list[str], back: str) -> Response:
    target = view.field("to").strip()
    if not target:
        return view.refused(back, HTTPException(400, "name the queue to move them to"))
    try:
        request = schemas.MoveRequest(lookup_ids=chosen, target=target)
        moved = (await browse.move_messages(view.control, name, request))["moved"]
    except (FalconMQError, ValidationError) as error:
        return view.refused(back, error)
    return view.done(back, f"{plural(moved, 'message')} moved to {target}.")


async def _delete(view: View, name: str, chosen: list[str], back: str) -> Response:
    """One by one: what somebody holds or has received meanwhile stays, and is told."""
    deleted, refusal = 0, None
    for lookup_id in chosen:
        try:
            await browse.delete_message(view.control, name, lookup_id)
            deleted += 1
        except FalconMQError as error:
            refusal = error
    if refusal is not None:
        told = (
            f"{plural(deleted, 'message')} of {len(chosen)} deleted; one of the others: {refusal}"
        )
        return view.refused(back, HTTPException(409, told))
    return view.done(back, f"{plural(deleted, 'message')} deleted.")


async def _page(view: View, trouble: Trouble | None = None) -> Response:
    control, name = view.control, view.path("name")
    found = await queues.get_queue(control, name)
    page: dict[str, Any] = await browse.message_page(
        control, name, PAGE, after=_place(view, "after"), before=_place(view, "before")
    )
    return view.page(
        "queue.html",
        status=200 if trouble is None else trouble.code,
        queue=found,
        directory_id=_directory_id(view, found["format_name"]),
        page=page,
        paged=bool(view.request.query_params),
        is_system=";" in name.rpartition("\\")[2],
        why=await why_of(control, name),
        targets=control.engine.look(targets, name),
        trouble=trouble,
        form=view.values,
    )


def _directory_id(view: View, format_name: str) -> str:
    """The GUID under which the directory has a public queue; nothing for others."""
    name = parse_format_name(format_name)
    is_integrated = view.control.engine.core.directory.is_integrated
    if isinstance(name, PublicFormatName) and is_integrated and not name.is_read_only:
        return str(name.queue)
    return ""


def _place(view: View, name: str) -> str | None:
    text = view.query(name)
    return text if _is_lookup_id(text) else None


def _is_lookup_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LOOKUP_ID_MOST
