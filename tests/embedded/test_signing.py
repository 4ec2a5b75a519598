"""Who sent a message: its signature, its sender id, and queues that want to know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import falconmq
from falconmq import (
    AuthenticationLevel,
    FalconMQError,
    HashAlgorithm,
    Message,
    MessageError,
    MqStatus,
    PrivacyLevel,
    QueueError,
    QueueManager,
    QueuePrivacy,
    SenderIdType,
)
from falconmq.embedded.signing import signing_for_others
from falconmq.manager.access import NOBODY_KNOWN, Principal, acting_as
from falconmq.manager.model import Queue
from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.security.certificates import to_pem
from falconmq.security.signature_input import SignatureVersion
from falconmq.security.signatures import sign, verify
from falconmq.security.signing_keys import SigningKeys
from falconmq.wire.security_header import ENCRYPTED_BODY
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage
from tests.embedded.helpers import ORDERS, threaded
from tests.security.users import ANNA, BERT, CARA, make_users, openssl_verifies

SIG10, SIG20, SIG30 = (
    AuthenticationLevel.SIG10,
    AuthenticationLevel.SIG20,
    AuthenticationLevel.SIG30,
)
REMOTE = r"DIRECT=OS:sales02\private$\orders"
OTHER = r"DIRECT=OS:sales03\private$\orders"
_Anna = Principal("anna", ANNA)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@pytest.fixture(scope="module")
def users(directory: Path) -> dict[Sid, Registered]:
    return make_users(directory, ANNA, BERT)


@pytest.fixture
def manager(directory: Path, users: dict[Sid, Registered]) -> Iterator[QueueManager]:
    """One that works for anna."""
    assert set(users) == {ANNA, BERT}
    with threaded() as manager:
        core = manager._engine.core
        core.signing_keys, core.principal = SigningKeys(directory), _Anna
        yield manager


def packets(queue: Queue) -> list[UserMessage]:
    """What a queue keeps, decoded from its bytes."""
    found = [queue.positions.find(each) for each in queue.positions.lookup_ids()]
    return [UserMessage.decode(each.message.data) for each in found if each is not None]


def stored(manager: QueueManager, name: str) -> UserMessage:
    """The only packet that waits in a queue of ours."""
    core = manager._engine.core
    (queue,) = [each for each in core.queues.values() if str(each.path_name).endswith(name)]
    (packet,) = packets(queue)
    return packet


def outgoing(manager: QueueManager, name: str = REMOTE) -> UserMessage:
    """The only packet that waits for another computer."""
    found = manager._engine.core.outgoing.items()
    (queue,) = [queue for format_name, queue in found if str(format_name) == name]
    (packet,) = packets(queue)
    return packet


# The signature


def _common(body: bytes) -> bytes:
    """The first list of MQMQ 2.5, by hand: no response and no administration queue."""
    label = "greeting\0".encode("utf-16-le")
    return bytes(20) + bytes.fromhex("07000000") + body + label


def _more(source: UUID) -> bytes:
    """What the second and third list add: express, priority 5, no journal, no acknowledgement."""
    return source.bytes_le + bytes([0, 5, 0, 0]) + bytes.fromhex("0000 08000000")


def _direct(name: str) -> bytes:
    text = f"{name}\0".encode("utf-16-le")
    return len(text).to_bytes(2, "little") + text


@pytest.mark.requirement(
    "QB-3.1.7.1.4-01",
    "QB-3.1.7.1.4-04",
    "QB-3.1.7.1.4-05",
    "DM-3.1.1.12-40",
    "DM-3.1.1.12-41",
    "DM-3.1.1.12-42",
    "DM-3.1.1.12-111",
)
@pytest.mark.parametrize("hash_name", ["SHA_256", "SHA_512"])
@pytest.mark.parametrize("level", [SIG10, SIG20, SIG30])
def test_openssl_verifies_what_was_signed(
    manager: QueueManager,
    users: dict[Sid, Registered],
    tmp_path: Path,
    level: AuthenticationLevel,
    hash_name: str,
) -> None:
    # when a message is sent that is to be signed
    sent = Message(
        "hello",
        label="greeting",
        priority=5,
        recoverable=False,
        application_tag=7,
        extension=b"more",
        authentication_level=level,
        hash_algorithm=HashAlgorithm[hash_name],
    )
    manager.queue(REMOTE).send(sent)
    # then it carries a signature of the list that its level names, and the sender's certificate
    packet = outgoing(manager)
    assert packet.security is not None
    signed = _common("hello".encode("utf-16-le"))
    if level is SIG20:
        signed += _more(manager.id) + _direct(REMOTE.removeprefix("DIRECT="))
    elif level is SIG30:
        signed += b"more" + _more(manager.id)
    signature = bytes(packet.security.signature)
    certificate = bytes(packet.security.sender_cert)
    assert certificate == users[ANNA].certificate.data
    assert openssl_verifies(
        tmp_path, certificate, hash_name.replace("_", "").lower(), signature, signed
    )
    assert packet.properties.hash_algorithm == HashAlgorithm[hash_name]
    # and the object of the caller is as it was: it can be sent again
    assert (sent.signature, sent.sender_certificate, sent.sender_id) == (b"", b"", b"")


@pytest.mark.requirement("DM-3.1.1.12-39")
def test_a_message_is_not_signed_unless_it_is_asked_for(manager: QueueManager) -> None:
    manager.queue(REMOTE).send(Message("hello"))
    security = outgoing(manager).security
    assert security is not None  # the sender is named
    assert (bytes(security.signature), bytes(security.sender_cert)) == (b"", b"")


@pytest.mark.requirement("DM-3.1.1.12-67")
@pytest.mark.requirement("QB-3.1.7.1.4-02", "QB-3.1.7.1.4-03", "DM-3.1.1.12-66")
@pytest.mark.parametrize("level", [SIG20, SIG30])
def test_one_signature_serves_all_destinations(
    manager: QueueManager, tmp_path: Path, level: AuthenticationLevel
) -> None:
    # when a signed message goes to two queues
    sent = Message(b"hello", label="greeting", application_tag=7, authentication_level=level)
    manager.queue(f"{REMOTE},{OTHER}").send(sent)
    # then both copies have the signature beside the list of destinations, and none in the header
    copies = [outgoing(manager, name) for name in (REMOTE, OTHER)]
    for copy in copies:
        assert copy.security is not None
        assert copy.multi_queue_format is not None
        assert not copy.security.signature
        assert copy.multi_queue_format.signature.signature
        assert verify(copy) is SignatureVersion.MSMQ_3_0
    first, second = (each.multi_queue_format for each in copies)
    assert first is not None
    assert second is not None
    assert bytes(first.signature.signature) == bytes(second.signature.signature)
    # which openssl finds to be of the third list
    names = b"".join(
        bytes.fromhex("0300") + f"{name.removeprefix('DIRECT=')}\0".encode("utf-16-le")
        for name in (REMOTE, OTHER)
    )
    source = manager.id.bytes_le + bytes([1, 3, 0, 0]) + bytes(6)
    assert copies[0].security is not None
    assert openssl_verifies(
        tmp_path,
        bytes(copies[0].security.sender_cert),
        "sha512",
        bytes(first.signature.signature),
        _common(b"hello") + names + source,
    )


def test_a_transactional_message_is_signed_as_it_is_committed(manager: QueueManager) -> None:
    ledger = manager.create_queue(r".\private$\ledger", transactional=True)
    with manager.transaction() as transaction:
        ledger.send(Message("one", authentication_level=SIG20), transaction)
        ledger.send(Message("two", authentication_level=SIG20), transaction)
    (ledger_queue,) = [
        each
        for each in manager._engine.core.queues.values()
        if str(each.path_name).endswith("ledger")
    ]
    versions = [verify(packet) for packet in packets(ledger_queue)]
    assert versions == [SignatureVersion.MSMQ_2_0] * 2


@pytest.mark.requirement("DM-3.1.1.12-100")
def test_a_message_in_a_local_queue_shows_who_signed_it(
    manager: QueueManager, users: dict[Sid, Registered]
) -> None:
    orders = manager.create_queue(ORDERS)
    assert Message().sender_certificate == b""
    orders.send(Message("hello", authentication_level=SIG20))
    received = orders.receive(timeout=0)
    assert received.authentication_level is SIG20
    assert received.is_authenticated
    assert received.sender_id == ANNA.encode()
    assert received.sender_certificate == users[ANNA].certificate.data
    # and it can be sent on as it is: nobody signs it again
    assert not received.wants_signature
    orders.send(received)
    again = orders.receive(timeout=0)
    assert again.signature == received.signature
    assert again.authentication_level is AuthenticationLevel.NONE  # nobody has looked at it


# Which certificate


@pytest.mark.parametrize("form", ["DER", "PEM"])
def test_the_owner_of_the_process_signs_with_the_certificate_that_it_shows(
    manager: QueueManager, users: dict[Sid, Registered], form: str
) -> None:
    shown = users[BERT].certificate.data
    given = shown if form == "DER" else to_pem(shown).encode()
    orders = manager.create_queue(ORDERS)
    orders.send(Message("hello", authentication_level=SIG20, sender_certificate=given))
    packet = stored(manager, "orders")
    assert packet.security is not None
    assert bytes(packet.security.sender_cert) == shown
    assert bytes(packet.security.security_id) == BERT.encode()
    assert verify(packet) is SignatureVersion.MSMQ_2_0


def test_a_caller_signs_with_its_own_certificate_only(
    manager: QueueManager, users: dict[Sid, Registered]
) -> None:
    orders = manager.create_queue(ORDERS)

    def signed_with(owner: Sid) -> Message:
        shown = users[owner].certificate.data
        return Message("hello", authentication_level=SIG20, sender_certificate=shown)

    with signing_for_others(False):
        orders.send(signed_with(ANNA))
        with pytest.raises(FalconMQError, match="may not sign for") as refused:
            orders.send(signed_with(BERT))
    assert refused.value.status is MqStatus.ACCESS_DENIED
    assert orders.count == 1


@pytest.mark.parametrize(
    ("principal", "for_others", "status", "said"),
    [
        (Principal("cara", CARA), True, MqStatus.NO_INTERNAL_USER_CERT, "has no certificate"),
        (None, True, MqStatus.CERTIFICATE_NOT_PROVIDED, "2 certificates"),
        (None, False, MqStatus.ACCESS_DENIED, "no principal"),
        (NOBODY_KNOWN, False, MqStatus.ACCESS_DENIED, "no principal"),
    ],
)
def test_who_has_no_certificate_cannot_sign(
    manager: QueueManager,
    principal: Principal | None,
    for_others: bool,
    status: MqStatus,
    said: str,
) -> None:
    orders = manager.queue(REMOTE)
    manager._engine.core.principal = principal
    with signing_for_others(for_others), pytest.raises(FalconMQError, match=said) as refused:
        orders.send(Message("hello", authentication_level=SIG20))
    assert refused.value.status is status
    assert refused.value.hint
    assert orders.count == 0


def test_a_certificate_without_its_key_signs_nothing(manager: QueueManager, tmp_path: Path) -> None:
    elsewhere = make_users(tmp_path, ANNA)[ANNA]
    orders = manager.create_queue(ORDERS)
    shown = Message("x", authentication_level=SIG20, sender_certificate=elsewhere.certificate.data)
    with pytest.raises(FalconMQError, match="key of this certificate is not here") as refused:
        orders.send(shown)
    assert refused.value.status is MqStatus.INVALID_CERTIFICATE
    broken = Message("x", authentication_level=SIG20, sender_certificate=b"nothing")
    with pytest.raises(FalconMQError, match=r"no X\.509 certificate"):
        orders.send(broken)


def test_a_certificate_that_is_only_registered_signs_nothing(
    manager: QueueManager, tmp_path: Path
) -> None:
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    external = make_users(elsewhere, ANNA)[ANNA].certificate.data
    CertificateStore(here).register(ANNA, external)
    manager._engine.core.signing_keys = SigningKeys(here)
    orders = manager.create_queue(ORDERS)
    for shown, said in ((b"", "has no certificate to sign with"), (external, "is not here")):
        message = Message("hello", authentication_level=SIG20, sender_certificate=shown)
        with pytest.raises(FalconMQError, match=said):
            orders.send(message)


def test_what_was_made_removed_and_made_anew_is_used_at_once(tmp_path: Path) -> None:
    """With the files of a real data directory, which another process changes."""
    message = Message("hello", authentication_level=SIG20)
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(ORDERS)
        with pytest.raises(FalconMQError, match="no certificate to sign with") as refused:
            orders.send(message)
        assert refused.value.status is MqStatus.NO_INTERNAL_USER_CERT
        first = make_users(tmp_path, ANNA)[ANNA]  # the only one: it is clear who signs
        orders.send(message)
        CertificateStore(tmp_path).remove(first.identifier)
        second = make_users(tmp_path, ANNA)[ANNA]
        orders.send(message)
        signers = [each.sender_certificate for each in orders]
        assert signers == [first.certificate.data, second.certificate.data]


@pytest.mark.parametrize("days", [-10, 10])
def test_a_certificate_signs_only_between_its_dates(
    manager: QueueManager, tmp_path: Path, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = manager._engine.core
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    begins = core.clock.time() + days * 86_400
    CertificateStore(tmp_path, lambda: begins).create(ANNA, 86_400)
    core.signing_keys = SigningKeys(tmp_path)
    orders = manager.create_queue(ORDERS)
    with pytest.raises(FalconMQError, match="not now") as refused:
        orders.send(Message("hello", authentication_level=SIG20))
    assert refused.value.status is MqStatus.INVALID_CERTIFICATE


def test_a_manager_without_a_directory_signs_nothing() -> None:
    with threaded() as manager:
        orders = manager.create_queue(ORDERS)
        with pytest.raises(FalconMQError, match="keeps no certificates"):
            orders.send(Message("hello", authentication_level=SIG20))


# What may be asked for


@pytest.mark.parametrize("level", [AuthenticationLevel.XML_SIG, 2, 99])
def test_a_signature_that_nobody_makes_is_refused(level: int) -> None:
    with pytest.raises(MessageError, match="authentication_level") as refused:
        Message("hello", authentication_level=level)
    assert "SIG20" in refused.value.hint


@pytest.mark.parametrize("name", ["SHA1", "MD5"])
def test_weak_hashes_are_for_computers_that_an_administrator_names(
    manager: QueueManager, name: str
) -> None:
    weak = {"authentication_level": SIG20, "hash_algorithm": HashAlgorithm[name]}
    with pytest.raises(FalconMQError, match="weak") as refused:
        manager.queue(REMOTE).send(Message("hello", **weak))  # type: ignore[arg-type]  # both fit
    assert refused.value.status is MqStatus.CORRUPTED_SECURITY_DATA
    manager._engine.core.settings.weak_algorithms = frozenset({"SALES02", "sales02"})
    manager.queue(REMOTE).send(Message("hello", **weak))  # type: ignore[arg-type]  # both fit
    assert verify(outgoing(manager), allow_weak=True) is SignatureVersion.MSMQ_2_0


def test_the_oldest_hashes_are_weak_too(manager: QueueManager) -> None:
    with pytest.raises(FalconMQError, match="weak"):
        manager.queue(REMOTE).send(
            Message("hello", authentication_level=SIG20, hash_algorithm=HashAlgorithm.MD4)
        )


# The sender's id


@pytest.mark.requirement("DM-3.1.1.12-99")
def test_a_message_names_who_sends_it(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("hello"))
    received = orders.receive(timeout=0)
    assert (received.sender_id, received.sender_id_type) == (ANNA.encode(), SenderIdType.SID)
    assert received.authentication_level is AuthenticationLevel.NONE  # it is only said
    with acting_as(Principal("bert", BERT)):
        orders.send(Message("hello"))
    assert orders.receive(timeout=0).sender_id == BERT.encode()


@pytest.mark.requirement("DM-3.1.1.12-102")
def test_a_message_that_names_nobody_has_no_identity(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("hello", sender_id_type=SenderIdType.NONE))
    received = orders.receive(timeout=0)
    assert (received.sender_id, received.sender_id_type) == (b"", SenderIdType.NONE)


@pytest.mark.parametrize("principal", [None, NOBODY_KNOWN])
def test_where_nobody_is_known_nobody_is_named(
    manager: QueueManager, principal: Principal | None
) -> None:
    manager._engine.core.principal = principal
    orders = manager.create_queue(ORDERS)
    orders.send(Message("hello"))
    assert stored(manager, "orders").security is None


def test_permissions_that_are_switched_off_do_not_make_senders_unknown(
    manager: QueueManager,
) -> None:
    manager._engine.core.settings.access_control = False
    orders = manager.create_queue(ORDERS)
    orders.send(Message("hello"))
    assert orders.receive(timeout=0).sender_id == ANNA.encode()


@pytest.mark.parametrize("claimed", [(BERT.encode(), 1), (bytes(16), 2)])
def test_a_caller_cannot_claim_to_be_somebody_else(
    manager: QueueManager, claimed: tuple[bytes, int]
) -> None:
    orders = manager.create_queue(ORDERS)
    sender_id, kind = claimed
    orders.send(Message("hello", sender_id=sender_id, sender_id_type=kind))
    assert orders.receive(timeout=0).sender_id == sender_id  # whoever owns the process may
    with signing_for_others(False):
        orders.send(Message("hello", sender_id=sender_id, sender_id_type=kind))
    assert orders.receive(timeout=0).sender_id == ANNA.encode()


# Queues that demand something


def test_a_queue_for_signed_messages_takes_no_others(
    manager: QueueManager, users: dict[Sid, Registered]
) -> None:
    orders = manager.create_queue(ORDERS, authentication=True)
    with pytest.raises(QueueError, match="only signed messages") as refused:
        orders.send(Message("hello"))
    assert refused.value.status is MqStatus.MESSAGE_NOT_AUTHENTICATED
    assert "--sign" in refused.value.hint
    orders.send(Message("hello", authentication_level=SIG10))
    received = orders.receive(timeout=0)
    assert received.authentication_level is SIG10
    # A signature that the application brings along is verified.
    plain = manager.create_queue(r".\private$\plain")
    plain.send(Message("hello"))
    pair = users[ANNA].pair
    assert pair is not None
    made = sign(
        stored(manager, "plain"), pair, users[ANNA].certificate.data, ANNA,
        version=SignatureVersion.MSMQ_1_0,
    )  # fmt: skip
    assert made.security is not None

    def brought(body: str) -> Message:
        return Message(
            body,
            sender_id=ANNA.encode(),
            sender_certificate=users[ANNA].certificate.data,
            signature=bytes(made.security.signature),  # type: ignore[union-attr]  # asserted above
        )

    orders.send(brought("hello"))
    assert orders.receive(timeout=0).authentication_level is SIG10
    with pytest.raises(QueueError, match="does not fit"):
        orders.send(brought("changed"))
    # And it says nothing in the name of somebody whose certificate it is not.
    pretended = brought("hello")
    pretended.sender_id = BERT.encode()
    with pytest.raises(QueueError, match="not registered for the sender"):
        orders.send(pretended)
    assert orders.count == 0


@pytest.mark.parametrize(
    ("demand", "level", "is_taken"),
    [
        (QueuePrivacy.BODY, 5, True),
        (QueuePrivacy.BODY, 0, False),
        (QueuePrivacy.NONE, 5, False),
        (QueuePrivacy.NONE, 0, True),
        (QueuePrivacy.OPTIONAL, 5, True),
        (QueuePrivacy.OPTIONAL, 0, True),
    ],
)
def test_a_local_queue_takes_private_messages_as_it_demands(
    manager: QueueManager, demand: QueuePrivacy, level: int, is_taken: bool
) -> None:
    orders = manager.create_queue(ORDERS, privacy_level=demand)
    message = Message("secret", privacy_level=level)
    if not is_taken:
        with pytest.raises(QueueError, match="encrypted on their way") as refused:
            orders.send(message)
        assert "--encrypt" in refused.value.hint
        assert orders.count == 0
        return
    orders.send(message)
    packet = stored(manager, "orders")
    assert bytes(packet.properties.message_body) == "secret".encode("utf-16-le")
    assert packet.properties.privacy_level == level
    received = orders.receive(timeout=0)
    assert (received.text, received.privacy_level) == ("secret", level)


def test_a_demand_on_a_queue_holds_for_messages_to_several(manager: QueueManager) -> None:
    demanding = manager.create_queue(ORDERS, authentication=True)
    plain = manager.create_queue(r".\private$\plain")
    both = manager.queue(f"{demanding.format_name},{plain.format_name}")
    with pytest.raises(QueueError, match="only signed messages"):
        both.send(Message("hello"))
    assert (demanding.count, plain.count) == (0, 0)
    both.send(Message("hello", authentication_level=SIG20))
    assert {each.receive(timeout=0).authentication_level for each in (demanding, plain)} == {SIG30}


# To be encrypted


@pytest.mark.parametrize("level", [PrivacyLevel.BASE, PrivacyLevel.ENHANCED, PrivacyLevel.ADVANCED])
def test_a_private_message_waits_in_the_clear_until_it_is_sent(
    manager: QueueManager, level: PrivacyLevel
) -> None:
    message = Message("secret", privacy_level=level, authentication_level=SIG20)
    manager.queue(REMOTE).send(message)
    packet = outgoing(manager)
    assert packet.properties.privacy_level == level
    assert bytes(packet.properties.message_body) == "secret".encode("utf-16-le")
    assert packet.security is not None
    assert not packet.security.flags & ENCRYPTED_BODY
    assert verify(packet) is SignatureVersion.MSMQ_2_0  # signed first, encrypted then


def test_a_private_message_of_nobody_needs_no_security_header(manager: QueueManager) -> None:
    manager._engine.core.principal = None
    message: Any = Message("secret", privacy_level=PrivacyLevel.ADVANCED)
    manager.queue(REMOTE).send(message)
    packet = outgoing(manager)
    assert packet.security is None
    assert packet.properties.privacy_level == PrivacyLevel.ADVANCED


def test_what_could_only_be_given_up_later_is_refused_at_once(manager: QueueManager) -> None:
    manager._engine.core.settings.encrypt_direct = False
    queue = manager.queue(r"DIRECT=TCP:10.0.0.8\private$\orders")
    with pytest.raises(QueueError, match="cannot be encrypted") as refused:
        queue.send(Message("secret", privacy_level=PrivacyLevel.ADVANCED))
    assert refused.value.status is MqStatus.PUBLIC_KEY_NOT_FOUND
    assert "encrypt_direct" in refused.value.hint
    queue.send(Message("plain"))
    manager._engine.core.settings.encrypt_direct = True
    queue.send(Message("secret", privacy_level=PrivacyLevel.ADVANCED))
