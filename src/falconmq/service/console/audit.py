"""The audit log: who administered what, and who was refused."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.service.access.administration import NAMES
from falconmq.service.api.audit import get_audit
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View

PAGE: Final = 50  # entries
RESULTS: Final = ("done", "refused", "failed")
_FIELDS: Final = ("who", "action", "target", "result", "since", "until")


async def show(view: View) -> Response:
    given = {name: view.query(name) for name in _FIELDS}
    if given["result"] not in RESULTS:
        given["result"] = ""
    before = view.number("before", 0)
    trouble: Trouble | None = None
    try:
        found = await get_audit(
            view.control,
            action=given["action"],
            who=given["who"],
            target=given["target"],
            result=given["result"],  # type: ignore[arg-type]  # one of RESULTS, or ""
            since=_utc(given["since"]),
            until=_utc(given["until"]),
            before=before or None,
            count=PAGE,
        )
    except HTTPException as error:
        trouble, found = trouble_of(error), {"entries": [], "next": None}
    entries = found["entries"]
    return view.page(
        "audit.html",
        status=200 if trouble is None else trouble.code,
        entries=entries,
        next=found["next"],
        paged=bool(before),
        given=given,
        filtered=any(given.values()),
        actions=NAMES,
        people=sorted({entry["who"] for entry in entries if entry["who"]}),
        results=RESULTS,
        trouble=trouble,
    )


def _utc(text: str) -> str:
    """The field of a browser has no zone; the page says that UTC is meant."""
    has_zone = text.endswith("Z") or "+" in text
    return text if not text or has_zone else f"{text}{'' if 'T' in text else 'T00:00'}+00:00"
