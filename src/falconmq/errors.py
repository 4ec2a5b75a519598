"""One hierarchy of errors, and every MSMQ status code with its HRESULT (MQMQ 2.4).

Whoever catches `FalconMQError` catches everything FalconMQ raises on purpose. The class says which
family the error belongs to, `.status` holds the exact code, `.hint` says what to do next.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Self

CUSTOMER_BIT: Final = 0x20000000  # set in every HRESULT that Microsoft did not define, MQ-1.7-01
_SEVERITY_ERROR: Final = 0x80000000

# Names that do not take the prefix MQ_ERROR_.
_PREFIXES: Final = {
    "OK": "MQ_",
    "ERROR": "MQ_",
    "CORRUPTED_QUEUE_WAS_DELETED": "MQ_",
    "MQDS_UNKNOWN_SOURCE": "",
    "MQDS_WRONG_OBJ_TYPE": "",
    "MQDS_OBJECT_NOT_FOUND": "",
    "MQDS_E_NO_MORE_DATA": "",
    "MQDS_NO_RSP_FROM_OWNER": "",
    "MQDS_OWNER_NOT_REACHED": "",
}


class MqStatus(IntEnum):
    """An HRESULT of MSMQ: 0x400E.... informs, 0xC00E.... is an error."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        status = int.__new__(cls, code)
        status._value_ = code
        status.meaning = meaning
        return status

    @property
    def symbol(self) -> str:
        """The name Microsoft's headers give it, as users search for it."""
        if self.name.startswith("INFORMATION_"):
            return "MQ_" + self.name
        return _PREFIXES.get(self.name, "MQ_ERROR_") + self.name

    @property
    def is_error(self) -> bool:
        return bool(self & _SEVERITY_ERROR)

    OK = 0x00000000, "done"
    INFORMATION_PROPERTY = 0x400E0001, "done, but some property gave a warning"
    INFORMATION_ILLEGAL_PROPERTY = 0x400E0002, "property id not valid"
    INFORMATION_PROPERTY_IGNORED = 0x400E0003, "property ignored"
    INFORMATION_UNSUPPORTED_PROPERTY = 0x400E0004, "property unsupported, ignored"
    INFORMATION_DUPLICATE_PROPERTY = 0x400E0005, "property given twice, second ignored"
    INFORMATION_OPERATION_PENDING = 0x400E0006, "asynchronous operation pending"
    INFORMATION_FORMATNAME_BUFFER_TOO_SMALL = (
        0x400E0009,
        "queue created but format name did not fit the buffer",
    )
    INFORMATION_INTERNAL_USER_CERT_EXIST = 0x400E000A, "user already has an internal certificate"
    INFORMATION_OWNER_IGNORED = 0x400E000B, "queue owner was not set"
    ERROR = 0xC00E0001, "generic error"
    PROPERTY = 0xC00E0002, "one or more properties not valid"
    QUEUE_NOT_FOUND = 0xC00E0003, "no such queue, or no right to it"
    QUEUE_NOT_ACTIVE = 0xC00E0004, "queue not open or absent"
    QUEUE_EXISTS = 0xC00E0005, "path name already taken"
    INVALID_PARAMETER = 0xC00E0006, "bad parameter"
    INVALID_HANDLE = 0xC00E0007, "bad handle"
    OPERATION_CANCELLED = 0xC00E0008, "operation cancelled"
    SHARING_VIOLATION = 0xC00E0009, "queue already open for exclusive reading"
    SERVICE_NOT_AVAILABLE = 0xC00E000B, "MSMQ service not available"
    MACHINE_NOT_FOUND = 0xC00E000D, "computer not found"
    ILLEGAL_SORT = 0xC00E0010, "bad sort, e.g. duplicate columns"
    ILLEGAL_USER = 0xC00E0011, "not a valid user"
    NO_DS = 0xC00E0013, "no connection to the directory"
    ILLEGAL_QUEUE_PATHNAME = 0xC00E0014, "bad queue path name"
    ILLEGAL_PROPERTY_VALUE = 0xC00E0018, "bad property value"
    ILLEGAL_PROPERTY_VT = 0xC00E0019, "bad VARTYPE"
    BUFFER_OVERFLOW = 0xC00E001A, "property buffer too small; message stays, part copied"
    IO_TIMEOUT = 0xC00E001B, "wait time for a message ran out"
    ILLEGAL_CURSOR_ACTION = 0xC00E001C, "PEEK_NEXT not possible at this cursor position"
    MESSAGE_ALREADY_RECEIVED = 0xC00E001D, "message at the cursor was taken by someone else"
    ILLEGAL_FORMATNAME = 0xC00E001E, "bad format name"
    FORMATNAME_BUFFER_TOO_SMALL = 0xC00E001F, "format name buffer too small"
    UNSUPPORTED_FORMATNAME_OPERATION = (
        0xC00E0020,
        "operation not supported for this kind of format name",
    )
    ILLEGAL_SECURITY_DESCRIPTOR = 0xC00E0021, "bad security descriptor"
    SENDERID_BUFFER_TOO_SMALL = 0xC00E0022, "sender id buffer too small"
    SECURITY_DESCRIPTOR_TOO_SMALL = 0xC00E0023, "descriptor buffer too small"
    CANNOT_IMPERSONATE_CLIENT = 0xC00E0024, "RPC server cannot impersonate the client"
    ACCESS_DENIED = 0xC00E0025, "access denied"
    PRIVILEGE_NOT_HELD = 0xC00E0026, "client lacks a privilege"
    INSUFFICIENT_RESOURCES = 0xC00E0027, "not enough resources"
    USER_BUFFER_TOO_SMALL = 0xC00E0028, "user buffer too small"
    MESSAGE_STORAGE_FAILED = (
        0xC00E002A,
        "recoverable or journal message could not be stored, not sent",
    )
    SENDER_CERT_BUFFER_TOO_SMALL = 0xC00E002B, "certificate buffer too small"
    INVALID_CERTIFICATE = 0xC00E002C, "bad user certificate"
    CORRUPTED_INTERNAL_CERTIFICATE = 0xC00E002D, "internal certificate corrupt"
    INTERNAL_USER_CERT_EXIST = 0xC00E002E, "internal certificate already there"
    NO_INTERNAL_USER_CERT = 0xC00E002F, "no internal certificate"
    CORRUPTED_SECURITY_DATA = 0xC00E0030, "a cryptographic function failed"
    CORRUPTED_PERSONAL_CERT_STORE = 0xC00E0031, "personal certificate store corrupt"
    COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION = 0xC00E0033, "computer cannot encrypt"
    BAD_SECURITY_CONTEXT = 0xC00E0035, "bad security context"
    COULD_NOT_GET_USER_SID = 0xC00E0036, "SID not obtainable from the token"
    COULD_NOT_GET_ACCOUNT_INFO = 0xC00E0037, "account information not obtainable"
    ILLEGAL_MQCOLUMNS = 0xC00E0038, "bad MQCOLUMNS"
    ILLEGAL_PROPID = 0xC00E0039, "bad property id"
    ILLEGAL_RELATION = 0xC00E003A, "bad relation"
    ILLEGAL_PROPERTY_SIZE = 0xC00E003B, "bad buffer size for message or correlation id"
    ILLEGAL_RESTRICTION_PROPID = 0xC00E003C, "bad property id in MQRESTRICTION"
    ILLEGAL_MQQUEUEPROPS = 0xC00E003D, "MQQUEUEPROPS null or empty"
    PROPERTY_NOTALLOWED = 0xC00E003E, "property not allowed for the operation"
    INSUFFICIENT_PROPERTIES = 0xC00E003F, "a needed property is missing"
    MACHINE_EXISTS = 0xC00E0040, "MSMQ configuration object already exists"
    ILLEGAL_MQQMPROPS = 0xC00E0041, "MQQMPROPS null or empty"
    DS_IS_FULL = 0xC00E0042, "directory full (MSMQ 1.0, 2.0)"
    DS_ERROR = 0xC00E0043, "internal directory error"
    INVALID_OWNER = 0xC00E0044, "bad object owner"
    UNSUPPORTED_ACCESS_MODE = 0xC00E0045, "access mode not supported"
    RESULT_BUFFER_TOO_SMALL = 0xC00E0046, "result buffer too small"
    DELETE_CN_IN_USE = 0xC00E0048, "connected network in use, not deleted (MSMQ 1.0, 2.0)"
    NO_RESPONSE_FROM_OBJECT_SERVER = 0xC00E0049, "no answer from the object owner"
    OBJECT_SERVER_NOT_AVAILABLE = 0xC00E004A, "object owner not available"
    QUEUE_NOT_AVAILABLE = 0xC00E004B, "error reading a remote queue"
    DTC_CONNECT = 0xC00E004C, "no connection to the transaction coordinator"
    TRANSACTION_IMPORT = 0xC00E004E, "transaction cannot be imported"
    TRANSACTION_USAGE = 0xC00E0050, "not possible inside a transaction"
    TRANSACTION_SEQUENCE = 0xC00E0051, "operations of the transaction out of sequence"
    MISSING_CONNECTOR_TYPE = 0xC00E0055, "connector type missing for an ack or secure message"
    STALE_HANDLE = 0xC00E0056, "service restarted, handle stale"
    TRANSACTION_ENLIST = 0xC00E0058, "transaction cannot be enlisted"
    QUEUE_DELETED = 0xC00E005A, "queue deleted, close the handle"
    ILLEGAL_CONTEXT = 0xC00E005B, "bad context parameter"
    ILLEGAL_SORT_PROPID = 0xC00E005C, "bad property id in MQSORTSET"
    LABEL_TOO_LONG = 0xC00E005D, "label longer than MQ_MAX_MSG_LABEL_LEN"
    LABEL_BUFFER_TOO_SMALL = 0xC00E005E, "label buffer too small"
    MQIS_SERVER_EMPTY = 0xC00E005F, "MQIS server list empty (MSMQ 1.0, 2.0)"
    MQIS_READONLY_MODE = 0xC00E0060, "MQIS database read-only (MSMQ 1.0, 2.0)"
    SYMM_KEY_BUFFER_TOO_SMALL = 0xC00E0061, "symmetric key buffer too small"
    SIGNATURE_BUFFER_TOO_SMALL = 0xC00E0062, "signature buffer too small"
    PROV_NAME_BUFFER_TOO_SMALL = 0xC00E0063, "provider name buffer too small"
    ILLEGAL_OPERATION = 0xC00E0064, "not valid for a foreign system"
    WRITE_NOT_ALLOWED = 0xC00E0065, "writes barred while another MQIS server installs"
    WKS_CANT_SERVE_CLIENT = 0xC00E0066, "this service cannot be a supporting server"
    DEPEND_WKS_LICENSE_OVERFLOW = 0xC00E0067, "supporting server at its connection limit"
    CORRUPTED_QUEUE_WAS_DELETED = 0xC00E0068, "corrupt queue file was deleted"
    REMOTE_MACHINE_NOT_AVAILABLE = 0xC00E0069, "remote computer not available"
    UNSUPPORTED_OPERATION = 0xC00E006A, "not supported in workgroup mode"
    ENCRYPTION_PROVIDER_NOT_SUPPORTED = 0xC00E006B, "crypto provider not supported"
    CANNOT_SET_CRYPTO_SEC_DESCR = 0xC00E006C, "cannot set descriptors of crypto keys"
    CERTIFICATE_NOT_PROVIDED = 0xC00E006D, "authenticated send without certificate"
    Q_DNS_PROPERTY_NOT_SUPPORTED = 0xC00E006E, "PROPID_Q_PATHNAME_DNS column not supported"
    CANNOT_CREATE_CERT_STORE = 0xC00E006F, "cannot create certificate store"
    CANNOT_OPEN_CERT_STORE = 0xC00E0070, "cannot open certificate store"
    ILLEGAL_ENTERPRISE_OPERATION = 0xC00E0071, "not valid for an MsmqServices object"
    CANNOT_GRANT_ADD_GUID = 0xC00E0072, "cannot grant the Add GUID right"
    CANNOT_LOAD_MSMQOCM = 0xC00E0073, "Msmqocm.dll not loadable (MSMQ 1.0, 2.0)"
    NO_ENTRY_POINT_MSMQOCM = 0xC00E0074, "entry point missing in Msmqocm.dll"
    NO_MSMQ_SERVERS_ON_DC = 0xC00E0075, "no MSMQ server on domain controllers"
    CANNOT_JOIN_DOMAIN = (
        0xC00E0076,
        "joined the domain but registration failed, stays in workgroup mode",
    )
    CANNOT_CREATE_ON_GC = 0xC00E0077, "object not created on the named global catalog"
    GUID_NOT_MATCHING = (
        0xC00E0078,
        "configuration object GUID cannot match the installation (MSMQ 1.0, 2.0)",
    )
    PUBLIC_KEY_NOT_FOUND = 0xC00E0079, "public key of the computer not found"
    PUBLIC_KEY_DOES_NOT_EXIST = 0xC00E007A, "public key of the computer does not exist"
    ILLEGAL_MQPRIVATEPROPS = 0xC00E007B, "MQPRIVATEPROPS null or empty"
    NO_GC_IN_DOMAIN = 0xC00E007C, "no global catalog in the domain"
    NO_MSMQ_SERVERS_ON_GC = 0xC00E007D, "no MSMQ server on global catalogs"
    CANNOT_GET_DN = 0xC00E007E, "own distinguished name not obtainable (MSMQ 1.0, 2.0)"
    CANNOT_HASH_DATA_EX = 0xC00E007F, "cannot hash data of an authenticated message"
    CANNOT_SIGN_DATA_EX = 0xC00E0080, "cannot sign data"
    CANNOT_CREATE_HASH_EX = 0xC00E0081, "cannot create hash object"
    FAIL_VERIFY_SIGNATURE_EX = 0xC00E0082, "signature of received message not valid"
    CANNOT_DELETE_PSC_OBJECTS = 0xC00E0083, "object owned by a PSC, not deleted"
    NO_MQUSER_OU = 0xC00E0084, "MSMQ Users organizational unit missing"
    CANNOT_LOAD_MQAD = 0xC00E0085, "Mqad.dll not loadable"
    CANNOT_LOAD_MQDSSRV = 0xC00E0086, "obsolete, never used"
    PROPERTIES_CONFLICT = 0xC00E0087, "properties cannot be combined"
    MESSAGE_NOT_FOUND = 0xC00E0088, "message absent or removed"
    CANT_RESOLVE_SITES = 0xC00E0089, "sites of the computer not resolvable"
    NOT_SUPPORTED_BY_DEPENDENT_CLIENTS = 0xC00E008A, "not supported towards a supporting server"
    OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER = 0xC00E008B, "remote service does not support it"
    NOT_A_CORRECT_OBJECT_CLASS = 0xC00E008C, "directory object is of another class"
    MULTI_SORT_KEYS = 0xC00E008D, "more than one sort key"
    GC_NEEDED = 0xC00E008E, "configuration object with given GUID cannot be created"
    DS_BIND_ROOT_FOREST = 0xC00E008F, "bind to forest root failed"
    DS_LOCAL_USER = 0xC00E0090, "local user has no directory access"
    Q_ADS_PROPERTY_NOT_SUPPORTED = 0xC00E0091, "PROPID_Q_ADS_PATH column not supported"
    BAD_XML_FORMAT = 0xC00E0092, "property is not well-formed XML"
    UNSUPPORTED_CLASS = 0xC00E0093, "directory object class not supported"
    UNINITIALIZED_OBJECT = 0xC00E0094, "management object not initialised"
    CANNOT_CREATE_PSC_OBJECTS = 0xC00E0095, "object must be owned by a PSC, not created"
    CANNOT_UPDATE_PSC_OBJECTS = 0xC00E0096, "object owned by a PSC, not updated"
    RESOLVE_ADDRESS = 0xC00E0099, "address not resolvable"
    TOO_MANY_PROPERTIES = 0xC00E009A, "more than 128 properties in one call"
    MESSAGE_NOT_AUTHENTICATED = 0xC00E009B, "queue takes authenticated messages only"
    MESSAGE_LOCKED_UNDER_TRANSACTION = 0xC00E009C, "message locked by another transaction"
    MQDS_UNKNOWN_SOURCE = 0xC00E0504, "directory server named in the change is unknown"

    # Used by sibling documents, not in the table of MQMQ 2.4.
    INFORMATION_REMOTE_OPERATION = 0x400E03E8, "the queue is on another computer"
    INFORMATION_REMOTE_CANCELED_BY_CLIENT = 0x400E03E9, "the client gave up its remote read"
    INFORMATION_OWNED_BY_NT4_PSC = 0x400E03EB, "the object belongs to an MSMQ 1.0 site controller"
    MQDS_WRONG_OBJ_TYPE = 0xC00E0506, "the directory object has another type"
    MQDS_OBJECT_NOT_FOUND = 0xC00E050F, "no such directory object"
    MQDS_E_NO_MORE_DATA = 0xC00E0523, "the directory query has no more rows"

    # Named by MC-MQDSRP without a value: ours, with the customer bit; they never leave the process.
    MQDS_NO_RSP_FROM_OWNER = 0xE00E0001, "the owner of the directory object did not answer"
    MQDS_OWNER_NOT_REACHED = 0xE00E0002, "the owner of the directory object cannot be reached"


class FalconMQError(Exception):
    """Every error FalconMQ raises on purpose; anything else that escapes is a bug.

    WireError         bytes that break a layout; the session closes
    NameSyntaxError   ILLEGAL_FORMATNAME, ILLEGAL_QUEUE_PATHNAME, UNSUPPORTED_FORMATNAME_OPERATION
    MessageError      a message property that MSMQ does not allow: ILLEGAL_PROPERTY_VALUE ...
    QueueError        QUEUE_NOT_FOUND, QUEUE_EXISTS, QUEUE_DELETED, SHARING_VIOLATION
    ReadError         IO_TIMEOUT, MESSAGE_NOT_FOUND, MESSAGE_ALREADY_RECEIVED, ILLEGAL_CURSOR_ACTION
    TransactionError  TRANSACTION_USAGE, TRANSACTION_SEQUENCE, TRANSACTION_ENLIST
    DirectoryError    NO_DS, DS_ERROR, MACHINE_NOT_FOUND
    ResourceError     INSUFFICIENT_RESOURCES, MESSAGE_STORAGE_FAILED; says which limit and its value
    StoreError        the data directory cannot be used: locked, damaged, of another version
    UnreachableError  a service that does not answer, or whose answer was lost
    """

    def __init__(self, message: str, *, status: MqStatus = MqStatus.ERROR, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint  # what the reader can do next, one sentence

    def __reduce__(self) -> tuple[object, ...]:
        """Copy by parts: the constructors take others than Exception keeps in `args`."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[FalconMQError], args: tuple[object, ...], state: dict[str, object]
) -> FalconMQError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class WireError(FalconMQError):
    """Bytes that break a layout, or a value that does not fit its field.

    `offset` counts from the start of the packet; it is None when the fault lies in a value to be
    encoded.
    """

    def __init__(
        self, structure: str, field: str, problem: str, *, offset: int | None = None
    ) -> None:
        where = "" if offset is None else f" at offset {offset}"
        super().__init__(
            f"{structure}.{field}{where}: {problem}", status=MqStatus.ILLEGAL_PROPERTY_VALUE
        )
        self.structure = structure
        self.field = field
        self.problem = problem
        self.offset = offset


class NameSyntaxError(FalconMQError):
    """A path name or format name that breaks the grammar; `position` is where, from 0.

    The text of the error shows the name with a mark under the place.
    """

    def __init__(
        self, name: str, position: int, problem: str, *, status: MqStatus, hint: str = ""
    ) -> None:
        super().__init__(f"{problem}\n  {name}\n  {' ' * position}^", status=status, hint=hint)
        self.name = name
        self.position = position
        self.problem = problem


class MessageError(FalconMQError):
    """A message property outside what MSMQ allows; `.field` names the property."""

    def __init__(
        self,
        field: str,
        problem: str,
        *,
        status: MqStatus = MqStatus.ILLEGAL_PROPERTY_VALUE,
        hint: str = "",
    ) -> None:
        super().__init__(f"{field}: {problem}", status=status, hint=hint)
        self.field = field


class QueueError(FalconMQError):
    """A queue that is not there, is there already, or may not be used so."""


class ReadError(FalconMQError):
    """A read that ended without a message."""


class TransactionError(FalconMQError):
    """A transaction used in a way its state does not allow."""


class DirectoryError(FalconMQError):
    """The directory cannot be asked, or refused."""


class ResourceError(FalconMQError):
    """A quota or the disk is full; the text says which limit and its value."""


class StoreError(FalconMQError):
    """A data directory that cannot be used; nothing in it was changed."""


class UnreachableError(FalconMQError):
    """No service answers, or its answer was lost; text and hint say what may have happened.

    `messages` are those that were read and may have left their queue, when nobody can tell.
    """

    messages: tuple[Any, ...] = ()  # of falconmq.Message, which stands above this module
