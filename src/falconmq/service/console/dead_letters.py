"""Dead letters: what died, why, and the way back."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api import dead_letters as api
from falconmq.service.console.drawing import plural, with_query
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import Fields, View
from falconmq.service.explaining_schemas import LetterFilters, LettersRequest, RedriveRequest
from falconmq.wire.field_words import class_words
from falconmq.wire.message_class import MessageClass

PAGE: Final = 50
_BATCH: Final = 500  # letters that one step of "all of them" works on
_SHOWN: Final = 100  # of a dry run
_HOUR: Final = 3600.0
_PATH: Final = "/dead-letters"
_FILTERS: Final = ("queue", "reason", "source", "q", "older", "newer")

REASONS: Final = tuple(
    (each.name, class_words(each) or each.name) for each in MessageClass if each.is_negative
)


async def show(view: View) -> Response:
    return await _page(view)


async def act(view: View) -> Response:
    """Redrive or delete: those that were ticked, or all that the filters let through."""
    action = view.field("work")
    back = with_query(_PATH, **{name: view.field(name) for name in _FILTERS})
    try:
        wanted = _wanted(view)
        if action.startswith("delete"):
            return await _delete(view, wanted, back)
        if action.startswith("try"):
            return await _page(view, trial=await _all(view, wanted, dry_run=True, most=_SHOWN))
        return await _redrive(view, wanted, back)
    except ValidationError as error:
        return view.refused(back, error)
    except FalconMQError as error:
        return view.refused(back, error)


async def redrive_one(view: View) -> Response:
    """The button on the page of a message."""
    name, lookup_id = view.path("name"), view.path("lookup_id")
    question = "Send this message again, and take the dead letter away?"
    if (asked := view.confirm(question, "Redrive", _PATH)) is not None:
        return asked
    try:
        request = RedriveRequest(queue=name, lookup_ids=[lookup_id])
        answer = await api.redrive(view.control, request)
    except (FalconMQError, ValidationError) as error:
        return view.refused(_PATH, error)
    return _told(view, answer["letters"], _PATH)


async def _redrive(view: View, wanted: list[dict[str, Any]], back: str) -> Response:
    target = view.field("to").strip()
    where = f"to {target}" if target else "each to its own destination"
    question = f"Send {_said(view, wanted)} again, {where}, and take the dead letters away?"
    if (asked := view.confirm(question, "Redrive", back)) is not None:
        return asked
    return _told(view, await _all(view, wanted), back)


async def _delete(view: View, wanted: list[dict[str, Any]], back: str) -> Response:
    question = f"Delete {_said(view, wanted)} for good?"
    if (asked := view.confirm(question, "Delete", back)) is not None:
        return asked
    return _told(view, await _all(view, wanted, delete=True), back)


def _wanted(view: View) -> list[dict[str, Any]]:
    """What the requests say: the ticked letters of each queue, or the filters."""
    if view.field("work").endswith("all"):
        return [_filters(view.values)]
    chosen: dict[str, list[str]] = {}
    for text in view.fields("letter"):
        lookup_id, _, queue = text.partition(":")
        chosen.setdefault(queue, []).append(lookup_id)
    if not chosen:
        raise FalconMQError("no dead letter was selected", hint="tick some, or choose all")
    return [{"queue": queue, "lookup_ids": ids} for queue, ids in chosen.items()]


def _said(view: View, wanted: list[dict[str, Any]]) -> str:
    if view.field("work").endswith("all"):
        return "all dead letters that the filters let through"
    return plural(sum(len(each["lookup_ids"]) for each in wanted), "dead letter")


async def _all(
    view: View,
    wanted: list[dict[str, Any]],
    *,
    delete: bool = False,
    dry_run: bool = False,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Go through all of them, batch by batch; each batch is durable before the next begins."""
    found: list[dict[str, Any]] = []
    extra = {} if delete else {"dry_run": dry_run, "target": view.field("to").strip() or None}
    for each in wanted:
        after, until = None, None
        while most is None or len(found) < most:
            limit = _BATCH if most is None else most - len(found)
            given = {**each, **extra, "limit": limit, "after": after, "until": until}
            if delete:
                request = LettersRequest.model_validate(given)
                answer = await api.delete_letters(view.control, request)
            else:
                answer = await api.redrive(view.control, RedriveRequest.model_validate(given))
            found += answer["letters"]
            after, until = answer["next"], until or answer["as_of"]
            if after is None or "lookup_ids" in each:
                break
    return found


def _told(view: View, letters: list[dict[str, Any]], back: str) -> Response:
    outcomes = Counter(letter["outcome"] for letter in letters)
    stayed = [letter for letter in letters if letter["outcome"] == "stays"]
    gone = f"{plural(len(letters) - len(stayed), 'dead letter')} "
    gone += "deleted" if outcomes["deleted"] else "sent again"
    if not stayed:
        return view.done(back, f"{gone}.")
    problem = stayed[0]["problem"]
    told = f"{gone}, {len(stayed)} stayed. The first of them: {problem}"
    return view.refused(back, HTTPException(409, told))


async def _page(
    view: View, trial: list[dict[str, Any]] | None = None, trouble: Trouble | None = None
) -> Response:
    given = view.values if trial is not None else Fields(view.request.query_params)
    found: dict[str, Any] = {"letters": [], "next": None}
    try:
        filters = LetterFilters.model_validate(_filters(given))
        after = given["after"] or None
        found = await api.get_dead_letters(view.control, filters, PAGE, after)
    except (FalconMQError, ValidationError) as error:
        trouble = trouble_of(error)
    return view.page(
        "dead_letters.html",
        status=200 if trouble is None else trouble.code,
        letters=found["letters"],
        next=found["next"],
        given=given,
        filtered=any(given[name] for name in _FILTERS),
        paged=bool(given["after"]),
        filters={name: given[name] for name in _FILTERS},
        reasons=REASONS,
        trial=trial,
        trouble=trouble,
    )


def _filters(given: Fields) -> dict[str, Any]:
    """The fields of the form as the API takes them; ages are in hours there."""
    names = {"queue": "queue", "reason": "reason", "source": "source", "contains": "q"}
    chosen: dict[str, Any] = {key: given[name].strip() or None for key, name in names.items()}
    for name, key in (("older", "older_than"), ("newer", "newer_than")):
        text = given[name].strip()
        try:
            chosen[key] = float(text) * _HOUR if text else None
        except ValueError:
            chosen[key] = text  # the check of the request says what is wrong with it
    return chosen
