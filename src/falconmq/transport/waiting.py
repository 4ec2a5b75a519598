"""What waits in the transport for an answer of the directory, and comes again with it.

Three things do: an outgoing queue whose next message is private, for the keys of its receiver; one
to a queue of which nobody knows yet where it is; and messages of peers that cannot be judged before
it is known who has signed them (`undecided`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from falconmq.transport.peers import look_again
from falconmq.transport.receiving import decide_again
from falconmq.transport.sealing import look_at_keys_again

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def come_again(transport: Transport, *, is_new_map: bool = False) -> None:
    """The directory has answered something, or is away: whoever waits for it tries it once more."""
    look_at_keys_again(transport)
    look_again(transport, is_new_map=is_new_map)
    decide_again(transport)
