"""One message: its body in several views, its properties, its packet, what happened to it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.embedded.messages import from_position
from falconmq.errors import FalconMQError
from falconmq.service import schemas
from falconmq.service.api import browse
from falconmq.service.console.bodies import VIEWS, view_of, views_of
from falconmq.service.console.drawing import message_link, queue_link
from falconmq.service.console.listing import targets
from falconmq.service.console.packets import anatomy
from falconmq.service.console.reasons import why_of
from falconmq.service.console.view import View
from falconmq.service.requests.browsing import message_at
from falconmq.service.requests.messages import Shown, to_json

# What a page shows of a message, in this order; what is empty is left out.
_PROPERTIES: Final = (
    ("Destination", "destination"),
    ("Destinations", "destinations"),
    ("Class", "message_class"),
    ("Delivery", "delivery"),
    ("Priority", "priority"),
    ("Sent", "sent_at"),
    ("Arrived", "arrived_at"),
    ("To reach its queue within", "time_to_reach_queue"),
    ("To be received within", "time_to_be_received"),
    ("Response queue", "response_queue"),
    ("Administration queue", "administration_queue"),
    ("Acknowledgements", "acknowledgements"),
    ("Journal", "journal"),
    ("Correlation id", "correlation_id"),
    ("Application tag", "application_tag"),
    ("Extension", "extension"),
    ("Source queue manager", "source_queue_manager"),
    ("Hops", "hop_count"),
    ("Returned by aborts", "abort_count"),
    ("Moved", "move_count"),
    ("Dead-letter queue", "dead_letter_queue"),
    ("Connector", "connector_type"),
    ("Encryption", "privacy_level"),
)
_SECONDS: Final = frozenset({"time_to_reach_queue", "time_to_be_received"})
_MOMENTS: Final = frozenset({"sent_at", "arrived_at"})


async def show(view: View) -> Response:
    control, name = view.control, view.path("name")
    position = await message_at(control.engine, name, _lookup_id(view))
    message = from_position(position)
    body, body_type = message.body, message.body_type
    views = views_of(body, body_type)
    wanted = view.query("view")
    shown = view_of(body, body_type, wanted or views[0], view.number("offset", 0))
    described = to_json(message, Shown.NONE, control.principals.names)
    why = await why_of(control, described["id"]) if described["id"] else None
    return view.page(
        "message.html",
        queue_name=name,
        message=described,
        body=shown,
        views=views,
        view_names=VIEWS,
        properties=_properties(described),
        sender=_sender(described),
        anatomy=anatomy(position.message.data),
        why=why,
        steps=why["timeline"] if why else [],
        is_dead=position.message.is_dead_letter,
        targets=control.engine.look(targets, name),
    )


async def download(view: View) -> Response:
    """The body as it is. A browser is told to save it, never to show it."""
    lookup_id = _lookup_id(view)
    position = await message_at(view.control.engine, view.path("name"), lookup_id)
    headers = {"Content-Disposition": f'attachment; filename="message-{lookup_id}.bin"'}
    body = from_position(position).body
    return Response(body, media_type="application/octet-stream", headers=headers)


async def delete(view: View) -> Response:
    name, lookup_id = view.path("name"), str(_lookup_id(view))
    here = message_link(name, lookup_id)
    if (asked := view.confirm("Delete this message for good?", "Delete", here)) is not None:
        return asked
    try:
        await browse.delete_message(view.control, name, lookup_id)
    except FalconMQError as error:
        return view.refused(queue_link(name), error)
    return view.done(queue_link(name), "The message was deleted.")


async def move(view: View) -> Response:
    name, lookup_id = view.path("name"), str(_lookup_id(view))
    target = view.field("to").strip()
    try:
        request = schemas.MoveRequest(lookup_ids=[lookup_id], target=target)
        await browse.move_messages(view.control, name, request)
    except (FalconMQError, ValidationError) as error:
        return view.refused(message_link(name, lookup_id), error)
    return view.done(queue_link(name), f"The message was moved to {target}.")


def _lookup_id(view: View) -> int:
    text = view.path("lookup_id")
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no message {text[:40]}")
    return int(text)


def _sender(message: dict[str, Any]) -> dict[str, str] | None:
    """Who sent it, and what is known of that."""
    sender = message["sender"]
    if sender is None:
        return None
    level = message["authentication_level"]
    if level != "NONE":
        proof = f"Signed, and the signature was verified ({level}, {message['hash_algorithm']})."
    elif message["signature"] or message["multiple_destination_signature"]:
        proof = "Signed, but nobody here has verified the signature."
    else:
        proof = "Not signed: this is what the sender says of itself."
    return {**sender, "sid": sender["sid"] or "", "proof": proof}


def _properties(message: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, how it is written (text, time, seconds), value."""
    found = []
    for label, key in _PROPERTIES:
        value = message[key]
        if value in (None, "", [], 0, "NONE"):
            continue
        kind = "seconds" if key in _SECONDS else "time" if key in _MOMENTS else "text"
        found.append(
            (label, kind, ", ".join(map(str, value)) if isinstance(value, list) else value)
        )
    return found
