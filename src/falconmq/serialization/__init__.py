"""Message to packet and back: Serialize and Deserialize (MQDMPR 3.1.7.1.30 to .32).

Two functions, called once per message. What the tables of MQDMPR get wrong is put right here:
LabelLength counts the NUL, 0x8003 is MD5, the kind of a verified signature stands in AS and not in
AU, and a SecurityHeader is there whenever it has something to carry (DM-A42 to DM-A47).

A private queue is named by what the packet says anyway: a number on the source, on the destination
or on the host of the administration queue. Such a name cannot be resolved if the packet does not
name that host, as a direct destination does not; it then reads back with the null GUID as its
computer. FalconMQ never sends one like that.
"""

from falconmq.serialization.receiving import from_user_message
from falconmq.serialization.sending import to_user_message

__all__ = ["from_user_message", "to_user_message"]
