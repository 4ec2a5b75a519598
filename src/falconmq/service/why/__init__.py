"""Why a message or a backlog is where it is.

How to think about it. Three steps, each in modules of its own:

    subjects    what was asked about: a message, a queue of ours, an outgoing queue
    facts       what the queue manager and its transport know of it, read in one turn
    judging     what that means: pure functions from facts to an `Explanation`

Whoever wants another sentence changes the judging, and can test it with facts that nobody had to
make happen.
"""

from falconmq.service.why.explaining import explain
from falconmq.service.why.explanation import Cause, Explanation, Fact, Severity, Step

__all__ = ["Cause", "Explanation", "Fact", "Severity", "Step", "explain"]
