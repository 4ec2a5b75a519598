"""Why a message or a backlog is where it is."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query

from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.explaining_schemas import ExplanationOut
from falconmq.service.why import Explanation, explain
from falconmq.service.why.holders import Holders
from falconmq.transport.settings import PORT

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])


@router.get("/why", response_model=ExplanationOut)
async def get_why(
    control: Given,
    subject: Annotated[
        str,
        Query(
            min_length=1,
            max_length=1024,
            description="A message id, a queue, or the number or destination of an outgoing queue.",
        ),
    ],
) -> dict[str, Any]:
    """Where it is, why it is not further, and what to do about it."""
    await ask_ahead(control.engine, subject)
    found = await explain(
        control.engine,
        control.transport,
        subject,
        holders=holders_of(control),
        port=port_of(control),
    )
    return explanation_json(found)


def holders_of(control: Control) -> Holders:
    """Those who hold messages, with the leases that the service knows."""
    return Holders(control.leases.holders())


def port_of(control: Control) -> int:
    """The port of MSMQ, ours and our peers'."""
    return PORT if control.configuration is None else control.configuration.manager.port


def explanation_json(found: Explanation) -> dict[str, Any]:
    return {
        "subject": found.subject,
        "kind": found.kind.value,
        "summary": found.summary,
        "severity": found.severity.value,
        "facts": [asdict(fact) for fact in found.facts],
        "causes": [
            {
                "code": cause.code,
                "text": cause.text,
                "severity": cause.severity.value,
                "hint": cause.hint,
                "since": None if cause.since is None else utc(cause.since),
            }
            for cause in found.causes
        ],
        "hints": found.hints,
        "timeline": [{**asdict(step), "time": utc(step.time)} for step in found.timeline],
    }


def utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
