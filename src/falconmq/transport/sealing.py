"""A message out that only its receiver may read (MQQB 3.1.7.1.5).

A message waits in the clear and is encrypted each time it is sent, for the queue manager that it is
addressed to. What is only passed on is left as it is. A message that cannot be encrypted is not
sent: it leaves its queue, as a dead letter if its sender asked for that (MQQB 3.1.7.1.5.1).

That is the rule also for a receiver whose keys nobody knows: the directory was asked, and has said
so (QB-3.1.7.1.5-04). A directory that is away, or is being asked, has said nothing. Until it
answers, the message waits in its place, and all behind it: their order stays what it was.
"""

from __future__ import annotations

import logging
import struct
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.errors import FalconMQError, WireError
from falconmq.manager.events import EventKind
from falconmq.manager.journaling import dead_letter
from falconmq.manager.model import ConnectionAttempt
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import ConnectionStatus
from falconmq.security.body_encryption import encrypt_body
from falconmq.security.problems import (
    EncryptionError,
    RegistryAskedError,
    RegistryAwayError,
    SecurityError,
)
from falconmq.transport.noting import note
from falconmq.transport.outgoing import OutgoingTable
from falconmq.transport.peers import HISTORY_MAX
from falconmq.transport.session import Session
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.queue_name import DIRECT
from falconmq.wire.reader import Buffer
from falconmq.wire.security_header import ENCRYPTED_BODY
from falconmq.wire.transaction_header import CONNECTOR_GUID
from falconmq.wire.user_header import (
    ADMIN_QUEUE_TYPE_SHIFT,
    CONNECTOR_TYPE,
    DESTINATION_QUEUE_TYPE_SHIFT,
    FIXED_SIZE,
    JOURNAL_NEGATIVE,
    RESPONSE_QUEUE_TYPE_SHIFT,
    SECURITY_HEADER,
    TRANSACTION_HEADER,
)
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

HOLD_SECONDS: Final = 2.0  # then it is tried again; while the directory is away that costs nothing
_NAME_SIZES: Final = (0, 0, 4, 4, 4, 16, 20)  # of queue names by their types, but for direct ones
_NAME_SHIFTS: Final = (
    DESTINATION_QUEUE_TYPE_SHIFT,
    ADMIN_QUEUE_TYPE_SHIFT,
    RESPONSE_QUEUE_TYPE_SHIFT,
)
_COUNT: Final = struct.Struct("<H")
_NUMBER: Final = struct.Struct("<I")
_SECURITY_SIZES: Final = struct.Struct("<2xHHHII")
_GUID_SIZE: Final = 16
_TRANSACTION_SIZE: Final = 20
_PRIVACY_AT: Final = 40  # in a MessagePropertiesHeader, DM-3.1.7.1.30-37

_log = logging.getLogger("falconmq.transport")


def privacy_level_of(message: StoredMessage, flags: int) -> int:
    """PrivacyLevel without decoding the packet: it is asked for every message that is sent.

    `flags` are those of the UserHeader, whose sizes everything up to that field depends on.
    """
    if message.decoded is not None:
        return message.decoded.properties.privacy_level
    data = message.data
    at = BASE_HEADER_SIZE + FIXED_SIZE
    for shift in _NAME_SHIFTS:
        kind = flags >> shift & 7
        if kind == DIRECT:
            at += _padded(_COUNT.size + _COUNT.unpack_from(data, at)[0])
        else:
            at += _NAME_SIZES[kind]
    if flags & CONNECTOR_TYPE:
        at += _GUID_SIZE
    if flags & TRANSACTION_HEADER:
        has_connector = _NUMBER.unpack_from(data, at)[0] & CONNECTOR_GUID
        at += _TRANSACTION_SIZE + (_GUID_SIZE if has_connector else 0)
    if flags & SECURITY_HEADER:
        at += _security_size(data, at)
    level: int = _NUMBER.unpack_from(data, at + _PRIVACY_AT)[0]
    return level


def _security_size(data: Buffer, at: int) -> int:
    sizes = _SECURITY_SIZES.unpack_from(data, at)
    return _SECURITY_SIZES.size + sum(map(_padded, sizes))


def _padded(size: int) -> int:
    return size + 3 & ~3


def sealed(
    transport: Transport, table: OutgoingTable, position: MessagePosition, session: Session
) -> StoredMessage | None:
    """The message as it goes over the wire; None if it waits for keys, or was given up."""
    message = position.message
    packet = message.packet
    security = packet.security
    if security is not None and security.flags & ENCRYPTED_BODY:
        return message  # its application has encrypted it
    try:
        made = StoredMessage(_encrypted(transport, packet, session).encode())
    except RegistryAwayError as error:
        _hold(transport, table, error)
        return None
    except (SecurityError, WireError) as error:
        _give_up(transport, table, position, session, error)
        return None
    if transport.protection is not None:
        transport.protection.arm(transport.after)
    table.encryption_problem = ""
    transport.counters["messages encrypted"] += 1
    return made


def _encrypted(transport: Transport, packet: UserMessage, session: Session) -> UserMessage:
    protection = transport.protection
    if protection is None:
        raise EncryptionError(
            "this queue manager has no keys and cannot encrypt",
            hint="pip install 'falconmq[security]' and start the service again",
        )
    remote = packet.user.queue_manager_address
    if remote == NULL_GUID:  # a direct name: QB-3.1.7.1.5-02
        if not protection.settings.encrypt_direct or session.remote_guid is None:
            raise EncryptionError(
                "a direct name does not say for which queue manager to encrypt",
                hint="send to a private or public format name, or set encrypt_direct in [security]",
            )
        remote = session.remote_guid
    manager = UUID(bytes_le=remote)
    keys = protection.registry.keys_of(manager)  # QB-3.1.7.1.5-03
    protection.look_at_peers()  # afterwards: asking may be how it is found that they have changed
    if keys is None:  # QB-3.1.7.1.5-04
        raise EncryptionError(
            f"the public keys of queue manager {manager} are not known",
            hint="there: falconmq key export > FILE; here: falconmq key import FILE",
        )
    allow_weak = protection.allows_weak(remote)
    return encrypt_body(packet, protection.sender, remote, keys, allow_weak=allow_weak)


def _hold(transport: Transport, table: OutgoingTable, error: RegistryAwayError) -> None:
    """Let a queue wait until somebody can say for which key its next message is encrypted."""
    table.is_held = True
    table.encryption_problem = str(error)
    transport.counters["waits for keys"] += 1
    protection = transport.protection
    is_usual = isinstance(error, RegistryAskedError)
    if (
        protection is not None
        and not is_usual
        and protection.is_news(table.queue.number, str(error))
    ):
        _log.warning(
            'messages wait for the keys of their receiver queue=%s reason="%s" hint="%s"',
            table.queue.destination,
            error,
            error.hint,
        )
    transport.after(HOLD_SECONDS, partial(_release, transport, table))


def look_at_keys_again(transport: Transport) -> None:
    """Somebody may know more keys than before: what waits for them tries it now."""
    for table in list(transport.tables.values()):
        if table.is_held:
            _release(transport, table)


def _release(transport: Transport, table: OutgoingTable) -> None:
    table.is_held = False
    session = table.peer.session
    if session is not None:
        transport.connections.pump(session)


def _give_up(
    transport: Transport,
    table: OutgoingTable,
    position: MessagePosition,
    session: Session,
    error: FalconMQError,
) -> None:
    """MQQB 3.1.7.1.5.1: it is not sent, and its sender may have asked to keep it."""
    core, queue, reason = transport.core, table.queue, MessageClass.NACK_COULD_NOT_ENCRYPT
    table.encryption_problem = str(error)
    transport.counters["messages not encrypted"] += 1
    note(core, EventKind.REFUSED, position.message.packet, str(error), reason=reason, queue=queue)
    protection = transport.protection
    if protection is None or protection.is_news(queue.number, str(error)):
        _log.warning(
            'message not sent, it cannot be encrypted queue=%s id=%d reason="%s" hint="%s"',
            queue.destination,
            position.message.head.message_id,
            error,
            error.hint,
        )
    attempt = ConnectionAttempt(
        ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
        core.clock.time(),
        error.status,
        (session.remote_address,),
    )
    queue.connection_history.append(attempt)  # QB-3.1.7.1.5.1-05
    del queue.connection_history[:-HISTORY_MAX]
    if position.message.head.flags & JOURNAL_NEGATIVE:  # QB-3.1.7.1.5.1-03, -04
        dead_letter(core, queue, position.message, reason)
    message_position_deleted(core, queue, position, reason)  # QB-3.1.7.1.5.1-01, -02
