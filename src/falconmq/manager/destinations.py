"""How many destinations others may make us reach for.

How to think about it. A peer says in its message where answers go, and whom a message is to be
passed on to. Each new name costs an outgoing queue, and somebody to call again and again: a peer
that invents names would fill the memory and keep us busy for ever. So there is an end to what the
queue manager opens on behalf of others. What users of this computer send is not counted against
it and is never refused here.
"""

from __future__ import annotations

import logging
from typing import Final

from falconmq.errors import MqStatus, ResourceError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.states import OutgoingState
from falconmq.names import SingleFormatName

UNREACHED_MAX: Final = 2_000  # destinations with messages that are not connected
DESTINATIONS_MAX: Final = 10_000  # in all; those without messages go after an hour
_TOLD_EVERY: Final = 10_000  # refusals; a line for each would fill the disk instead

_log = logging.getLogger("falconmq.manager")


def check_room(core: QueueManagerCore, name: SingleFormatName) -> None:
    """ResourceError if one more destination, which nobody of this computer asked for, is too many.

    Counting takes a moment, but only somebody who invents names gets us to do it often.
    """
    outgoing = core.outgoing.values()
    if len(outgoing) < UNREACHED_MAX:
        return
    unreached = sum(
        1
        for queue in outgoing
        if queue.state is not OutgoingState.CONNECTED and len(queue.positions)
    )
    if unreached < UNREACHED_MAX and len(outgoing) < DESTINATIONS_MAX:
        return
    if core.refused_destinations % _TOLD_EVERY == 0:
        _log.warning(
            "too many destinations destinations=%d unreached=%d: answers to new ones are dropped; "
            "falconmq outgoing list shows them",
            len(outgoing),
            unreached,
        )
    core.refused_destinations += 1
    raise ResourceError(
        f"{name} would be one destination too many: there are {len(outgoing)}, and messages wait "
        f"for {unreached} that cannot be reached",
        status=MqStatus.INSUFFICIENT_RESOURCES,
        hint="falconmq outgoing list shows what waits, falconmq outgoing purge gives it up",
    )
