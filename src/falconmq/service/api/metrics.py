"""`/metrics`, for Prometheus; at the root, where scrapers look for it."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.observation.metric_names import QUEUES_MAX

router: Final = APIRouter()


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[Depends(require(Role.READ))],
)
async def get_metrics(
    control: Given,
    request: Request,
    queues: Annotated[
        int, Query(ge=0, le=1_000_000, description="Queues that have series of their own.")
    ] = QUEUES_MAX,
) -> Response:
    """The numbers of this queue manager in the text format of Prometheus."""
    accept = request.headers.get("accept", "")
    content, content_type = await control.watch.metrics.scrape(accept, queues)
    return Response(content, media_type=content_type)
