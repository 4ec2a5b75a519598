r"""Where a feed begins or ends, in the user's words: earliest, latest, a number, a time.

Numbers are JSON: `{".\\private$\\orders": 4711, "events": "latest"}`, by queue; or the offset of
another query as Spark shows it. -2 is earliest and -1 latest, as Kafka's users know it. A queue
that is not named begins at its beginning and ends at its end.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from falconmq.spark.feeds import ManagerFeeds
from falconmq.spark.offsets import Feed, Offsets
from falconmq.spark.option_table import EARLIEST, LATEST, refuse

_WORDS: Final = {-2: EARLIEST, -1: LATEST}


def edge(
    manager: ManagerFeeds,
    feed: Feed,
    wanted: str | dict[str, Any],
    at: datetime | None,
    otherwise: str,
) -> int:
    """A number of the feed; `otherwise` is for those that are not named."""
    if at is not None:
        return manager.number_at(feed, at)
    found = wanted if isinstance(wanted, str) else _named(feed, wanted, otherwise)
    if isinstance(found, int):
        return found
    bounds = manager.bounds(feed)
    return bounds.first if found == EARLIEST else bounds.next


def _named(feed: Feed, wanted: dict[str, Any], otherwise: str) -> int | str:
    if "managers" in wanted:
        position = Offsets.from_json(wanted).positions.get(feed)
        return otherwise if position is None else position.next
    names = {str(name).lower(): value for name, value in wanted.items()}
    value = names.get(feed.name.lower(), otherwise)
    value = _WORDS.get(value, value) if isinstance(value, int) else value
    if value in (EARLIEST, LATEST) or (isinstance(value, int) and value >= 0):
        return value
    raise refuse(f"{value!r} is no offset of {feed.name}", "write a number, earliest or latest")
