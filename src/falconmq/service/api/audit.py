"""The audit log: who administered what, and who was refused."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.exceptions import HTTPException

from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.requests.audit import Wanted
from falconmq.service.schemas import Strict

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])
COUNT_MAX: Final = 1000
NUMBER_MAX: Final = (1 << 63) - 1


class AuditEntryOut(Strict):
    """One thing that somebody did, or tried to do."""

    number: int
    time: str
    who: str = Field(description="`token NAME`, owner, loopback; empty: nobody known.")
    origin: str = Field(description="The address, or `control socket`.")
    action: str
    target: str
    result: Literal["done", "refused", "failed"]
    code: int = Field(description="The status of the HTTP answer.")
    problem: str
    details: str
    principal: str = Field(description="Whose permissions counted; empty: the role alone did.")
    skipped: int = Field(description="Refusals before this one that were too many to write down.")


class AuditList(Strict):
    """Entries, the newest first."""

    entries: list[AuditEntryOut]
    next: int | None = Field(description="There may be more: ask again with `before`.")


@router.get("/audit", response_model=AuditList)
async def get_audit(
    control: Given,
    action: Annotated[str, Query(description="Only this one: `queue delete`.")] = "",
    who: Annotated[str, Query(description="Only this one: `token web-shop`.")] = "",
    target: Annotated[str, Query(description="Only what has this in its name.")] = "",
    result: Annotated[Literal["", "done", "refused", "failed"], Query()] = "",
    since: Annotated[str, Query(description="Not before this time, ISO 8601.")] = "",
    until: Annotated[str, Query(description="Before this time, ISO 8601.")] = "",
    before: Annotated[int | None, Query(ge=0, le=NUMBER_MAX, description="A number.")] = None,
    count: Annotated[int, Query(ge=1, le=COUNT_MAX)] = 100,
) -> dict[str, Any]:
    """Who administered what, when, from where, and how it ended; the newest first."""
    times = _moment("since", since, 0.0), _moment("until", until, math.inf)
    wanted = Wanted(action, who, target, result, *times)
    entries, following = await asyncio.to_thread(control.audit.newest, wanted, count, before)
    return {"entries": entries, "next": following}


def _moment(name: str, text: str, default: float) -> float:
    if not text:
        return default
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise HTTPException(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"{name}: {text!r} is no time, like 2026-05-01T12:00Z"
        ) from error
