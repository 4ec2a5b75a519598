"""Queue names as text and as values: path names and format names (MQMQ 2.1).

    >>> parse_queue_name(r".\\private$\\orders").kind
    <QueueKind.PRIVATE: 'private$'>

`PathName` is how people write a queue, `FormatName` how programs address it; both compare without
case. `to_queue_format` and its kin give the form that remote procedure calls carry.
"""

from falconmq.names.conversion import (
    from_queue_format,
    from_queue_formats,
    to_queue_format,
    to_queue_formats,
)
from falconmq.names.direct import DirectFormatName, Protocol
from falconmq.names.format_name import (
    ConnectorFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MulticastFormatName,
    MultipleElementFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
    parse_format_name,
    parse_queue_name,
)
from falconmq.names.path_name import PathName
from falconmq.names.syntax import MsmqVersion, QueueKind, Suffix

__all__ = [
    "ConnectorFormatName",
    "DirectFormatName",
    "DistributionListFormatName",
    "FormatName",
    "MachineFormatName",
    "MsmqVersion",
    "MulticastFormatName",
    "MultipleElementFormatName",
    "PathName",
    "PrivateFormatName",
    "Protocol",
    "PublicFormatName",
    "QueueKind",
    "SingleFormatName",
    "Suffix",
    "from_queue_format",
    "from_queue_formats",
    "parse_format_name",
    "parse_queue_name",
    "to_queue_format",
    "to_queue_formats",
]
