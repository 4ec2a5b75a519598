"""Signing messages, and finding out who signed them (MQQB 3.1.7.1.4, 3.1.5.8.3).

A signature is RSASSA-PKCS1-v1_5, back to front on the wire as CryptoAPI writes it. It stands in the
SecurityHeader, or beside the list of destinations if a message goes to several. The certificate of
the signer comes with the message: a signature that fits says that the owner of that certificate
signed, and the receiver has still to ask whose it is (`certificates.registered_as`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from falconmq.errors import MqStatus
from falconmq.security import rsa
from falconmq.security.certificates import public_key_of
from falconmq.security.hashes import hash_of
from falconmq.security.problems import SignatureError, WeakAlgorithmError
from falconmq.security.rsa import RsaKeyPair
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.wire.message_properties_header import HASH_SHA512
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    SECURITY_DATA,
    SENDER_ID_SID,
    SENDER_ID_TYPE,
    SecurityHeader,
)
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage

# A stranger's certificate must not keep us busy: 16384 bits and an exponent as long take seconds.
_KEY_BITS_MAX: Final = 8192
_EXPONENT_MAX: Final = 0xFFFFFFFF  # CryptoAPI has 32 bits for it


def sign(
    packet: UserMessage,
    pair: RsaKeyPair,
    certificate: bytes,
    sender: Sid,
    *,
    version: SignatureVersion = SignatureVersion.MSMQ_2_0,
    hash_algorithm: int = HASH_SHA512,
    allow_weak: bool = False,
) -> UserMessage:
    """The packet with a signature, the certificate of `pair` and its owner. Encrypt it afterwards.

    A message with a list of destinations gets a signature of 3.0, whatever `version` says.
    """
    used = hash_of(hash_algorithm, allow_weak=allow_weak)
    if public_key_of(certificate) != pair.public:
        raise SignatureError(
            "the certificate is not that of the key", status=MqStatus.CANNOT_SIGN_DATA_EX
        )
    several = packet.multi_queue_format
    if several is not None:
        version = SignatureVersion.MSMQ_3_0  # QB-3.1.7.1.4-02
    properties = replace(packet.properties, hash_algorithm=hash_algorithm)
    packet = replace(packet, properties=properties)
    signature = rsa.sign(pair, used, signature_input(version, packet))[::-1]
    old = SecurityHeader(0) if packet.security is None else packet.security
    security = replace(
        old,
        flags=old.flags & ~SENDER_ID_TYPE | SENDER_ID_SID | DEFAULT_PROVIDER | SECURITY_DATA,
        security_id=sender.encode(),
        sender_cert=certificate,
        signature=b"" if several is not None else signature,  # QB-3.1.7.1.4-05
        provider_info=None,
    )
    if several is not None:  # QB-3.1.7.1.4-03
        beside = replace(several.signature, signature=signature)
        return replace(
            packet, security=security, multi_queue_format=replace(several, signature=beside)
        )
    return replace(packet, security=security)


def is_signed(packet: UserMessage) -> bool:
    """Whether there is a signature to verify (QB-3.1.5.8.3-02)."""
    if packet.security is None:
        return False
    several = packet.multi_queue_format
    beside = several is not None and bool(several.signature.signature)
    return bool(packet.security.signature) or beside


def verify(packet: UserMessage, *, allow_weak: bool = False) -> SignatureVersion:
    """Which list the signature of a decrypted packet is of.

    SignatureError, CertificateError or WeakAlgorithmError if none: the answer to all of them is
    NACK_BAD_SIGNATURE.
    """
    security = packet.security
    if security is None or not is_signed(packet):
        raise SignatureError("the message is not signed")
    used = hash_of(packet.properties.hash_algorithm, allow_weak=allow_weak)
    key = public_key_of(bytes(security.sender_cert))
    if key.is_legacy and not allow_weak:
        raise WeakAlgorithmError(f"the signer's RSA key of {key.bits} bits")
    if key.bits > _KEY_BITS_MAX or key.exponent > _EXPONENT_MAX:
        raise SignatureError(f"the signer's RSA key of {key.bits} bits takes too long to verify")
    tries = [
        (SignatureVersion.MSMQ_2_0, bytes(security.signature)),  # QB-3.1.5.8.3-03, -04
        (SignatureVersion.MSMQ_1_0, bytes(security.signature)),  # QB-3.1.5.8.3-05
    ]
    if packet.multi_queue_format is not None:  # QB-3.1.5.8.3-06
        beside = bytes(packet.multi_queue_format.signature.signature)
        tries.append((SignatureVersion.MSMQ_3_0, beside))
    for version, signature in tries:
        data = signature_input(version, packet)
        if signature and rsa.verify(key, used, data, signature[::-1]):
            return version
    raise SignatureError("the signature does not fit the message")
