"""Is it alive, is it ready: for whoever watches the process. Nobody needs a token for that."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, Literal

from fastapi import APIRouter, Response

from falconmq.service.api.context import Given
from falconmq.service.schemas import Strict

router: Final = APIRouter()


class Health(Strict):
    """The process lives."""

    status: Literal["ok"]


class Ready(Strict):
    """Whether messages can be taken now."""

    status: Literal["ready", "not ready"]
    reasons: list[str]


@router.get("/healthz", response_model=Health)
async def get_healthz() -> dict[str, Any]:
    """Whoever reads this lives: no reason to start it again."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    response_model=Ready,
    responses={HTTPStatus.SERVICE_UNAVAILABLE.value: {"model": Ready, "description": "not now"}},
)
async def get_readyz(control: Given, response: Response) -> dict[str, Any]:
    """Whether it can take messages now; 503 with the reasons if not."""
    reasons = control.troubles()
    if control.stopping.is_set():
        reasons = ["the service stops", *reasons]
    if reasons:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return {"status": "not ready" if reasons else "ready", "reasons": reasons}
