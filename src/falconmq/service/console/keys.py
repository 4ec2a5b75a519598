"""Keys and certificates: whose they are, and the fingerprints to compare. No private halves."""

from __future__ import annotations

from starlette.responses import Response

from falconmq.service.api.certificates import get_certificates
from falconmq.service.api.keys import get_keys
from falconmq.service.console.view import View


async def show(view: View) -> Response:
    certificates = (await get_certificates(view.control))["certificates"]
    return view.page("keys.html", keys=await get_keys(view.control), certificates=certificates)
