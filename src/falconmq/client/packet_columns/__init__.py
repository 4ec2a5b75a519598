"""Packets become Arrow columns, all of them at once.

It needs numpy and pyarrow, which are optional: import it where it is used.
"""

from falconmq.client.packet_columns.batch import packets_to_batch
from falconmq.client.packet_columns.buffers import Packed, packed, packed_of

__all__ = ["Packed", "packed", "packed_of", "packets_to_batch"]
