r"""Routes that tell a slash of their own from one in the name of a queue.

`GET /queues/.%5Cprivate%24%5Cx%2Fmessages` asks for the queue `.\private$\x/messages`, not for the
messages of `.\private$\x`. The path that routes are asked for is decoded, so both look alike there;
the path as it came tells them apart.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

_SLASH: Final = re.compile(rb"%2f", re.IGNORECASE)


class OwnSlashes(APIRoute):
    """A route behind the name of a queue, and in front of `GET /queues/{name}`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        raw: bytes = scope.get("raw_path") or b""
        if match is Match.NONE or not _SLASH.search(raw):
            return match, child
        kept = unquote(_SLASH.sub(b"%252F", raw).decode("ascii"))
        # What came holds the prefix of the API as well, the route need not.
        own = re.compile(self.path_regex.pattern.removeprefix("^"))
        return (match, child) if own.search(kept) else (Match.NONE, {})
