"""Situations that somebody asks about, made for real: services on loopback addresses."""

from __future__ import annotations

import re

from falconmq.service.daemon import Service
from falconmq.service.why import Explanation, explain
from tests.service.services import PATIENCE as PATIENCE  # noqa: PLC0414
from tests.service.services import until


async def why(service: Service, subject: str) -> Explanation:
    return await explain(service.engine, service.transport, subject)


def lately(text: str) -> str:
    """The same whether a busy computer needed a second or none."""
    return re.sub(r"\b\d+ s ago", "just now", text)


def codes(found: Explanation) -> list[str]:
    return [cause.code for cause in found.causes]


async def until_because(service: Service, subject: str, code: str) -> Explanation:
    """Wait until a cause is found; the test's own time-out ends it otherwise."""
    found = await why(service, subject)
    while code not in codes(found):
        await _moment()
        found = await why(service, subject)
    return found


async def _moment() -> None:
    steps = iter((False, True))
    await until(lambda: next(steps))
