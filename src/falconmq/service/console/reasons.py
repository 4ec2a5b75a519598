"""The sentence that says why something is where it is, for a page."""

from __future__ import annotations

from typing import Any

from falconmq.errors import FalconMQError
from falconmq.service.api.context import Control
from falconmq.service.api.why import get_why


async def why_of(control: Control, subject: str) -> dict[str, Any] | None:
    """The explanation of a queue or a message; None if there is nothing to explain."""
    try:
        return await get_why(control, subject)
    except FalconMQError:  # it has gone meanwhile: the page says so by itself
        return None
