"""Who may do what: with a queue, which can be changed here, and with the queue manager itself."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from falconmq.errors import FalconMQError
from falconmq.manager.permissions import RIGHTS, WELL_KNOWN, name_of
from falconmq.service.api import permissions as api
from falconmq.service.configuration import ConfiguredPrincipal
from falconmq.service.console.drawing import queue_link
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View

SYSTEM: Final = ".\\system$"
_SHOWN: Final = 16  # characters of a fingerprint
# What each right lets somebody do; the last three are several of the others together.
RIGHT_TEXTS: Final = {
    "send": "put messages into it",
    "receive": "take messages out, and look at them",
    "peek": "look at messages",
    "receive-journal": "take messages out of its journal",
    "get-properties": "see its properties",
    "set-properties": "change its properties",
    "get-permissions": "see this list",
    "set-permissions": "change this list",
    "delete": "delete the queue",
    "take-ownership": "become its owner",
    "properties": "see and change its properties",
    "permissions": "see and change this list",
    "full": "everything",
}


async def show_manager(view: View) -> Response:
    """The queue manager itself, and everybody that the configuration knows."""
    control = view.control
    configuration, names = control.configuration, control.principals.names
    principals = () if configuration is None else configuration.principals
    return view.page(
        "permissions.html",
        found=await api.get_manager_permissions(control),
        security=None if configuration is None else configuration.security,
        principals=[(each.principal, _signs(each)) for each in principals],
        groups={
            each.principal.name: sorted(name_of(sid, names) for sid in each.principal.groups)
            for each in principals
        },
    )


async def show(view: View) -> Response:
    """Dead letters and the journal of the queue manager are guarded like the queue manager."""
    if view.path("name").lower().startswith(SYSTEM):
        return RedirectResponse("/permissions", HTTPStatus.SEE_OTHER)
    return await _page(view)


async def grant(view: View) -> Response:
    """Give rights to somebody; a form that is refused is shown again."""
    who, rights = view.field("who").strip(), view.fields("right")
    question = f"Let {who} {_listed(rights)} at {view.path('name')}?"
    if (asked := _asked(view, question, "Grant")) is not None:
        return asked
    return await _change(view, "grant", f"{who} may {_listed(rights)} now.")


async def revoke(view: View) -> Response:
    who, rights = view.field("who").strip(), view.fields("right")
    question = f"Take from {who} the rights to {_listed(rights)} at {view.path('name')}?"
    if (asked := _asked(view, question, "Revoke")) is not None:
        return asked
    return await _change(view, "revoke", f"{who} has lost the rights to {_listed(rights)}.")


async def replace(view: View) -> Response:
    """The whole list, as SDDL says it."""
    name = view.path("name")
    question = f"Replace all permissions of {name}? Whoever is not in the new list is out."
    if (asked := _asked(view, question, "Replace")) is not None:
        return asked
    try:
        given = api.PermissionsRequest(sddl=view.field("sddl").strip())
        await api.set_permissions(view.control, name, given)
    except (FalconMQError, ValidationError) as error:
        return await _page(view, trouble_of(error))
    return view.done(_link(view), "The permissions are replaced.")


async def _change(view: View, word: str, done: str) -> Response:
    change = {"who": view.field("who").strip(), "rights": view.fields("right")}
    try:
        given = api.PermissionsUpdate.model_validate({word: [change]})
        await api.change_permissions(view.control, view.path("name"), given)
    except (FalconMQError, ValidationError) as error:
        return await _page(view, trouble_of(error))
    return view.done(_link(view), done)


async def _page(view: View, trouble: Trouble | None = None) -> Response:
    control = view.control
    found: dict[str, Any] = await api.get_permissions(control, view.path("name"))
    return view.page(
        "queue_permissions.html",
        status=200 if trouble is None else trouble.code,
        found=found,
        people=[*control.principals.names, *WELL_KNOWN],
        rights={word: RIGHT_TEXTS[word] for word in RIGHTS},
        is_obeyed=control.engine.core.settings.access_control,
        trouble=trouble,
        form=view.values,
        ticked=[] if trouble is None else view.fields("right"),
    )


def _asked(view: View, question: str, button: str) -> Response | None:
    return view.confirm(question, button, _link(view))


def _link(view: View) -> str:
    return queue_link(view.path("name"), "permissions")


def _signs(known: ConfiguredPrincipal) -> list[str]:
    """How a caller is known to be that one."""
    return [
        *(f"token {name}" for name in known.tokens),
        *(f"certificate {text[:_SHOWN]}…" for text in known.certificates),
        *(["the control socket"] if known.socket else []),
    ]


def _listed(rights: list[str]) -> str:
    return ", ".join(rights) or "nothing"
