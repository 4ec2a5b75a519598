"""Property ids: number, name, type and first MSMQ version of every property (MQMQ 2.3).

No type tag travels with a value, so one wrong row here shifts everything behind it: notifications,
replication and the directory all read this one table. Numbers are unique within one kind of object
only (the two management groups overlap), therefore each kind is an enumeration of its own. Members
are ints: `QueueProperty.PROPID_Q_QUOTA == 105`.

Numbers that are missing between the listed ones are unassigned. MQDSRP also writes PROPID_Q_ID,
QM_ID, S_ID and CN_ID, which exist nowhere: read Q_INSTANCE, QM_MACHINE_ID, S_SITEID and CN_GUID.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Self

from falconmq.wire.variant import (
    VT_BLOB,
    VT_CLSID,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_VARIANT,
    VT_VECTOR,
)


class ObjectType(IntEnum):
    """Kinds of directory objects, as PROPID_D_OBJTYPE numbers them (MQMQ 2.3.13.4)."""

    MQDS_QUEUE = 1
    MQDS_MACHINE = 2
    MQDS_SITE = 3
    MQDS_DELETEDOBJECT = 4
    MQDS_CN = 5
    MQDS_ENTERPRISE = 6
    MQDS_USER = 7
    MQDS_ROUTINGLINK = 8


def object_type_of(property_id: int) -> int:
    """The kind of object that a property belongs to, by its number alone (MQCN 3.2.5.1).

    An ObjectType for the properties that notifications and replication carry; any other number
    means that the object is of a kind they know nothing of.
    """
    return (property_id - 1000) // 100 if property_id > 1000 else property_id // 100


class Property(IntEnum):
    """A property id: the number on the wire; `name`, type `vt`, first MSMQ version `since`."""

    vt: int
    since: int

    def __new__(cls, number: int, vt: int, since: int = 1) -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.vt = vt
        member.since = since
        return member

    @classmethod
    def find(cls, number: int) -> Self | None:
        """The property with that number among those of this kind of object."""
        return next((member for member in cls if member == number), None)

    @property
    def object_type(self) -> int:
        return object_type_of(self.value)


class QueueProperty(Property):
    """Queue objects (MQMQ 2.3.1)."""

    PROPID_Q_INSTANCE = 101, VT_CLSID
    PROPID_Q_TYPE = 102, VT_CLSID
    PROPID_Q_PATHNAME = 103, VT_LPWSTR
    PROPID_Q_JOURNAL = 104, VT_UI1
    PROPID_Q_QUOTA = 105, VT_UI4
    PROPID_Q_BASEPRIORITY = 106, VT_I2
    PROPID_Q_JOURNAL_QUOTA = 107, VT_UI4
    PROPID_Q_LABEL = 108, VT_LPWSTR
    PROPID_Q_CREATE_TIME = 109, VT_I4
    PROPID_Q_MODIFY_TIME = 110, VT_I4
    PROPID_Q_AUTHENTICATE = 111, VT_UI1
    PROPID_Q_PRIV_LEVEL = 112, VT_UI4
    PROPID_Q_TRANSACTION = 113, VT_UI1
    PROPID_Q_SCOPE = 114, VT_UI1
    PROPID_Q_QMID = 115, VT_CLSID
    PROPID_Q_PARTITIONID = 116, VT_CLSID
    PROPID_Q_SEQNUM = 117, VT_BLOB
    PROPID_Q_HASHKEY = 118, VT_UI4
    PROPID_Q_LABEL_HASHKEY = 119, VT_UI4
    PROPID_Q_FULL_PATH = 121, VT_LPWSTR, 2
    PROPID_Q_NAME_SUFFIX = 123, VT_LPWSTR, 2
    PROPID_Q_PATHNAME_DNS = 124, VT_LPWSTR, 2
    PROPID_Q_MULTICAST_ADDRESS = 125, VT_LPWSTR, 3
    PROPID_Q_ADS_PATH = 126, VT_LPWSTR, 3
    PROPID_Q_SECURITY = 1101, VT_BLOB
    PROPID_Q_OBJ_SECURITY = 1102, VT_BLOB, 2
    PROPID_Q_SECURITY_INFORMATION = 1103, VT_UI4


class MachineProperty(Property):
    """Machine objects, that is queue managers (MQMQ 2.3.2)."""

    PROPID_QM_SITE_ID = 201, VT_CLSID
    PROPID_QM_MACHINE_ID = 202, VT_CLSID
    PROPID_QM_PATHNAME = 203, VT_LPWSTR
    PROPID_QM_ENCRYPTION_PK = 205, VT_UI1 | VT_VECTOR
    PROPID_QM_ADDRESS = 206, VT_BLOB
    PROPID_QM_CNS = 207, VT_CLSID | VT_VECTOR
    PROPID_QM_OUTFRS = 208, VT_CLSID | VT_VECTOR
    PROPID_QM_INFRS = 209, VT_CLSID | VT_VECTOR
    PROPID_QM_SERVICE = 210, VT_UI4
    PROPID_QM_PARTITIONID = 211, VT_CLSID
    PROPID_QM_HASHKEY = 212, VT_UI4
    PROPID_QM_SEQNUM = 213, VT_BLOB
    PROPID_QM_QUOTA = 214, VT_UI4
    PROPID_QM_JOURNAL_QUOTA = 215, VT_UI4
    PROPID_QM_MACHINE_TYPE = 216, VT_LPWSTR
    PROPID_QM_CREATE_TIME = 217, VT_I4
    PROPID_QM_MODIFY_TIME = 218, VT_I4
    PROPID_QM_FOREIGN = 219, VT_UI1
    PROPID_QM_OS = 220, VT_UI4
    PROPID_QM_FULL_PATH = 221, VT_LPWSTR, 2
    PROPID_QM_SITE_IDS = 222, VT_CLSID | VT_VECTOR, 2
    PROPID_QM_OUTFRS_DN = 223, VT_LPWSTR | VT_VECTOR, 2
    PROPID_QM_INFRS_DN = 224, VT_LPWSTR | VT_VECTOR, 2
    PROPID_QM_SERVICE_ROUTING = 227, VT_UI1, 2
    PROPID_QM_SERVICE_DSSERVER = 228, VT_UI1
    PROPID_QM_SERVICE_DEPCLIENTS = 229, VT_UI1
    PROPID_QM_ENCRYPTION_PK_BASE = 231, VT_UI1 | VT_VECTOR, 2
    PROPID_QM_ENCRYPTION_PK_ENHANCED = 232, VT_UI1 | VT_VECTOR, 2
    PROPID_QM_PATHNAME_DNS = 233, VT_LPWSTR, 2
    PROPID_QM_OBJ_SECURITY = 234, VT_BLOB, 2
    PROPID_QM_SECURITY_INFORMATION = 237, VT_UI4
    PROPID_QM_ENCRYPT_PKS = 238, VT_BLOB
    PROPID_QM_SIGN_PKS = 239, VT_BLOB
    PROPID_QM_OWNER_SID = 241, VT_BLOB, 2
    PROPID_QM_GROUP_IN_CLUSTER = 242, VT_UI1, 2
    PROPID_QM_SECURITY = 1201, VT_BLOB
    PROPID_QM_SIGN_PK = 1202, VT_BLOB
    PROPID_QM_ENCRYPT_PK = 1203, VT_BLOB
    PROPID_QM_UPGRADE_DACL = 1205, VT_BLOB


class SiteProperty(Property):
    """Sites (MQMQ 2.3.3)."""

    PROPID_S_PATHNAME = 301, VT_LPWSTR
    PROPID_S_SITEID = 302, VT_CLSID
    PROPID_S_GATES = 303, VT_CLSID | VT_VECTOR
    PROPID_S_PSC = 304, VT_LPWSTR
    PROPID_S_INTERVAL1 = 305, VT_UI2
    PROPID_S_INTERVAL2 = 306, VT_UI2
    PROPID_S_PARTITIONID = 307, VT_CLSID
    PROPID_S_SEQNUM = 308, VT_BLOB
    PROPID_S_FULL_NAME = 309, VT_LPWSTR, 2
    PROPID_S_NT4_STUB = 310, VT_UI2, 2
    PROPID_S_FOREIGN = 311, VT_UI1, 2
    PROPID_S_DONOTHING = 312, VT_UI1, 2
    PROPID_S_SECURITY = 1301, VT_BLOB
    PROPID_S_PSC_SIGNPK = 1302, VT_BLOB
    PROPID_S_SECURITY_INFORMATION = 1303, VT_UI4, 3


class ConnectedNetworkProperty(Property):
    """Connected networks (MQMQ 2.3.4)."""

    PROPID_CN_PROTOCOLID = 501, VT_UI1
    PROPID_CN_NAME = 502, VT_LPWSTR
    PROPID_CN_GUID = 503, VT_CLSID
    PROPID_CN_PARTITIONID = 504, VT_CLSID
    PROPID_CN_SEQNUM = 505, VT_BLOB
    PROPID_CN_SECURITY = 1501, VT_BLOB


class EnterpriseProperty(Property):
    """The enterprise object (MQMQ 2.3.5)."""

    PROPID_E_NAME = 601, VT_LPWSTR
    PROPID_E_NAMESTYLE = 602, VT_UI1
    PROPID_E_CSP_NAME = 603, VT_LPWSTR
    PROPID_E_PECNAME = 604, VT_LPWSTR
    PROPID_E_S_INTERVAL1 = 605, VT_UI2
    PROPID_E_S_INTERVAL2 = 606, VT_UI2
    PROPID_E_PARTITIONID = 607, VT_CLSID
    PROPID_E_SEQNUM = 608, VT_BLOB
    PROPID_E_ID = 609, VT_CLSID
    PROPID_E_CRL = 610, VT_BLOB
    PROPID_E_CSP_TYPE = 611, VT_UI4
    PROPID_E_ENCRYPT_ALG = 612, VT_UI4
    PROPID_E_SIGN_ALG = 613, VT_UI4
    PROPID_E_HASH_ALG = 614, VT_UI4
    PROPID_E_CIPHER_MODE = 615, VT_UI4
    PROPID_E_LONG_LIVE = 616, VT_UI4
    PROPID_E_VERSION = 617, VT_UI2
    PROPID_E_SECURITY = 1601, VT_BLOB


class UserProperty(Property):
    """Users (MQMQ 2.3.6)."""

    PROPID_U_SID = 701, VT_BLOB
    PROPID_U_SIGN_CERT = 702, VT_BLOB
    PROPID_U_PARTITIONID = 703, VT_CLSID
    PROPID_U_SEQNUM = 704, VT_BLOB
    PROPID_U_DIGEST = 705, VT_CLSID | VT_VECTOR
    PROPID_U_ID = 706, VT_CLSID


class RoutingLinkProperty(Property):
    """Routing links between sites (MQMQ 2.3.7)."""

    PROPID_L_NEIGHBOR1 = 801, VT_CLSID
    PROPID_L_NEIGHBOR2 = 802, VT_CLSID
    PROPID_L_COST = 803, VT_UI4
    PROPID_L_PARTITIONID = 804, VT_CLSID
    PROPID_L_SEQNUM = 805, VT_BLOB
    PROPID_L_ID = 806, VT_CLSID
    PROPID_L_GATES_DN = 807, VT_LPWSTR | VT_VECTOR, 3
    PROPID_L_NEIGHBOR1_DN = 808, VT_LPWSTR, 2
    PROPID_L_NEIGHBOR2_DN = 809, VT_LPWSTR, 2
    PROPID_L_DESCRIPTION = 810, VT_LPWSTR, 2
    PROPID_L_FULL_PATH = 811, VT_LPWSTR, 2
    PROPID_L_ACTUAL_COST = 812, VT_UI4, 2
    PROPID_L_GATES = 813, VT_CLSID | VT_VECTOR, 2


class SettingsProperty(Property):
    """Settings objects: routing and directory servers (MQMQ 2.3.8)."""

    PROPID_SET_NAME = 5101, VT_LPWSTR, 2
    PROPID_SET_SERVICE = 5102, VT_UI4, 2
    PROPID_SET_QM_ID = 5103, VT_CLSID, 2
    PROPID_SET_FULL_PATH = 5105, VT_LPWSTR, 2
    PROPID_SET_NT4 = 5106, VT_UI1, 2
    PROPID_SET_PARTITIONID = 5107, VT_CLSID, 2
    PROPID_SET_SITENAME = 5108, VT_LPWSTR, 2
    PROPID_SET_SERVICE_ROUTING = 5109, VT_UI1, 2
    PROPID_SET_SERVICE_DSSERVER = 5110, VT_UI1, 2
    PROPID_SET_SERVICE_DEPCLIENTS = 5111, VT_UI1, 2
    PROPID_SET_OLDSERVICE = 5112, VT_UI4, 2


class MQUserProperty(Property):
    """Users migrated from MQIS (MQMQ 2.3.9)."""

    PROPID_MQU_SID = 5401, VT_BLOB, 2
    PROPID_MQU_SIGN_CERT = 5402, VT_BLOB, 2
    PROPID_MQU_DIGEST = 5405, VT_CLSID | VT_VECTOR, 2
    PROPID_MQU_ID = 5406, VT_CLSID, 2
    PROPID_MQU_SECURITY = 5407, VT_BLOB, 2


class ComputerProperty(Property):
    """Computers (MQMQ 2.3.10)."""

    PROPID_COM_FULL_PATH = 5201, VT_LPWSTR, 2
    PROPID_COM_SAM_ACCOUNT = 5202, VT_LPWSTR, 2
    PROPID_COM_ACCOUNT_CONTROL = 5204, VT_UI4, 2
    PROPID_COM_DNS_HOSTNAME = 5205, VT_LPWSTR, 2
    PROPID_COM_SID = 5206, VT_BLOB, 2
    PROPID_COM_SIGN_CERT = 5207, VT_BLOB, 2
    PROPID_COM_DIGEST = 5208, VT_CLSID | VT_VECTOR, 2
    PROPID_COM_ID = 5209, VT_CLSID, 2


class ManagementMachineProperty(Property):
    """What management tells of a queue manager (MQMQ 2.3.11)."""

    PROPID_MGMT_MSMQ_ACTIVEQUEUES = 1, VT_LPWSTR | VT_VECTOR
    PROPID_MGMT_MSMQ_PRIVATEQ = 2, VT_LPWSTR | VT_VECTOR
    PROPID_MGMT_MSMQ_DSSERVER = 3, VT_LPWSTR
    PROPID_MGMT_MSMQ_CONNECTED = 4, VT_LPWSTR
    PROPID_MGMT_MSMQ_TYPE = 5, VT_LPWSTR
    PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES = 6, VT_I8, 3


class ManagementQueueProperty(Property):
    """What management tells of a queue (MQMQ 2.3.12)."""

    PROPID_MGMT_QUEUE_PATHNAME = 1, VT_LPWSTR
    PROPID_MGMT_QUEUE_FORMATNAME = 2, VT_LPWSTR
    PROPID_MGMT_QUEUE_TYPE = 3, VT_LPWSTR
    PROPID_MGMT_QUEUE_LOCATION = 4, VT_LPWSTR
    PROPID_MGMT_QUEUE_XACT = 5, VT_LPWSTR
    PROPID_MGMT_QUEUE_FOREIGN = 6, VT_LPWSTR
    PROPID_MGMT_QUEUE_MESSAGE_COUNT = 7, VT_UI4
    PROPID_MGMT_QUEUE_BYTES_IN_QUEUE = 8, VT_UI4, 3
    PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT = 9, VT_UI4
    PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL = 10, VT_UI4, 3
    PROPID_MGMT_QUEUE_STATE = 11, VT_LPWSTR
    PROPID_MGMT_QUEUE_NEXTHOPS = 12, VT_LPWSTR | VT_VECTOR
    PROPID_MGMT_QUEUE_EOD_LAST_ACK = 13, VT_BLOB
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME = 14, VT_I4
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT = 15, VT_UI4
    PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK = 16, VT_BLOB
    PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK = 17, VT_BLOB
    PROPID_MGMT_QUEUE_EOD_NEXT_SEQ = 18, VT_BLOB
    PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT = 19, VT_UI4
    PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT = 20, VT_UI4
    PROPID_MGMT_QUEUE_EOD_RESEND_TIME = 21, VT_I4
    PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL = 22, VT_UI4
    PROPID_MGMT_QUEUE_EOD_RESEND_COUNT = 23, VT_UI4
    PROPID_MGMT_QUEUE_EOD_SOURCE_INFO = 24, VT_VARIANT | VT_VECTOR
    PROPID_MGMT_QUEUE_CONNECTION_HISTORY = 25, VT_VARIANT | VT_VECTOR
    PROPID_MGMT_QUEUE_SUBQUEUE_COUNT = 26, VT_UI4
    PROPID_MGMT_QUEUE_SUBQUEUE_NAMES = 27, VT_LPWSTR | VT_VECTOR


class DeletionProperty(Property):
    """A deleted object, in notifications and replication (MQMQ 2.3.13)."""

    PROPID_D_SEQNUM = 1401, VT_BLOB
    PROPID_D_PARTITIONID = 1402, VT_CLSID
    PROPID_D_SCOPE = 1403, VT_UI1
    PROPID_D_OBJTYPE = 1404, VT_UI1
    PROPID_D_IDENTIFIER = 1405, VT_CLSID


DIRECTORY_CLASSES: Final[tuple[type[Property], ...]] = (
    QueueProperty,
    MachineProperty,
    SiteProperty,
    ConnectedNetworkProperty,
    EnterpriseProperty,
    UserProperty,
    RoutingLinkProperty,
    SettingsProperty,
    MQUserProperty,
    ComputerProperty,
    DeletionProperty,
)
MANAGEMENT_CLASSES: Final[tuple[type[Property], ...]] = (
    ManagementMachineProperty,
    ManagementQueueProperty,
)

PROPERTIES: Final[Mapping[int, Property]] = MappingProxyType(
    {int(member): member for group in DIRECTORY_CLASSES for member in group}
)
"""Every property of a directory object by its number; management numbers overlap and are absent."""
