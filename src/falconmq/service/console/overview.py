"""How the queue manager is: problems first, then numbers and the last hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from falconmq.service.api.context import Control
from falconmq.service.api.outgoing import get_outgoing
from falconmq.service.api.status import get_manager
from falconmq.service.console.drawing import plural, size
from falconmq.service.console.history import hour
from falconmq.service.console.reasons import why_of
from falconmq.service.console.view import View
from falconmq.service.file_modes import find
from falconmq.service.observation.sampling import Totals, totals

_STUCK_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that somebody should look at."""

    severity: str  # bad, warn
    title: str
    text: str
    path: str
    link: str
    hint: str = ""


async def show(view: View) -> Response:
    control = view.control
    manager = await get_manager(control)
    now = totals(control.engine, control.transport)
    history = hour(control)
    return view.page(
        "overview.html",
        manager=manager,
        now=now,
        rates=history.rates,
        charts=history.charts,
        problems=[
            *_service_problems(view),
            *_security_problems(view),
            *_space_problems(manager),
            *await _outgoing_problems(control),
            *_waiting_problems(now),
        ],
    )


def _service_problems(view: View) -> list[Problem]:
    return [
        Problem("bad", "The service is not ready", text, "/configuration", "Configuration")
        for text in view.control.troubles()
    ]


def _security_problems(view: View) -> list[Problem]:
    """Files that others may read or change; and a mode in which nothing comes or goes."""
    control = view.control
    found = []
    if control.engine.core.settings.hardened_security:
        text = "No message comes or goes over the MSMQ port; local queues and the HTTP API work."
        place = ("/configuration#section-security", "Configuration")
        found.append(Problem("warn", "Hardened mode", text, *place))
    if control.configuration is not None:
        found += [
            Problem(
                "bad" if finding.is_refused else "warn",
                "A file is open to others",
                f"{finding.text}.",
                "/configuration",
                "Configuration",
                finding.hint,
            )
            for finding in find(control.configuration)
        ]
    return found


def _space_problems(manager: dict[str, Any]) -> list[Problem]:
    found = []
    quota = 1024 * manager["quota_kilobytes"]
    for used, limit, what in (
        (manager["message_bytes"], quota, "the quota of all messages"),
        (manager["used_bytes"], manager["limit_bytes"], "the store"),
    ):
        if limit and used > 0.9 * limit:
            text = f"{size(used)} of {size(limit)} are used. Messages are refused when it is full."
            severity = "bad" if used > 0.98 * limit else "warn"
            link = ("/queues?sort=-size", "The largest queues")
            found.append(Problem(severity, f"Little room in {what}", text, *link))
    return found


async def _outgoing_problems(control: Control) -> list[Problem]:
    """Where messages are stuck, and the sentence that says why; the longest backlogs first."""
    outgoing = (await get_outgoing(control))["outgoing"]
    stuck = [queue for queue in outgoing if queue["messages"] and queue["problem"]]
    stuck.sort(key=lambda queue: -queue["messages"])
    found = []
    for queue in stuck[:_STUCK_SHOWN]:
        why = await why_of(control, str(queue["number"]))
        title = f"{plural(queue['messages'], 'message')} cannot leave for {queue['destination']}"
        text = queue["problem"] if why is None else why["summary"]
        hint = why["hints"][0] if why and why["hints"] else ""
        found.append(Problem("bad", title, text, f"/outgoing/{queue['number']}", "Look", hint))
    if len(stuck) > _STUCK_SHOWN:
        text = f"{plural(len(stuck) - _STUCK_SHOWN, 'more outgoing queue')} cannot be sent."
        found.append(Problem("bad", "More is stuck", text, "/outgoing", "All outgoing queues"))
    return found


def _waiting_problems(now: Totals) -> list[Problem]:
    if not now.dead_letters:
        return []
    title = f"{plural(now.dead_letters, 'dead letter')}"
    text = "Messages that could not be delivered or were not read in time."
    return [Problem("warn", title, text, "/dead-letters", "See why, and send them again")]
