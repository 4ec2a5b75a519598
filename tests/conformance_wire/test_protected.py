"""Signed and encrypted messages of a stranger: what is taken, what is not, and who hears of it.

MQQB 3.1.5.8.3. The daemon has made its keys at its start; the stranger has its public ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from tests.conformance_wire import packets, sealing
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    answer,
    cases,
    holds,
    opened,
    send,
    silence,
    still_open,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.sealing import (
    ADVANCED,
    AES_128,
    AES_192,
    AES_256,
    OTHER_SID,
    RC4,
    SHA1,
    SHA256,
    encrypted,
    public_key,
    signed,
    simple_blob,
    user,
)
from tests.conformance_wire.stage import Stage
from tests.conformance_wire.test_messages import taken

BODY = b"for your eyes only"
BAD_SIGNATURE, BAD_ENCRYPTION = 0x8006, 0x8007
NEGATIVE_ARRIVAL = 4
SEQUENCE = 9 << 32 | 1
Change: TypeAlias = Callable[[packets.Headers, Play], packets.Headers]


@pytest.fixture(scope="module")
def frank(frank_stage: Stage) -> Stage:
    """A daemon that knows Anna, and tells why it refuses messages."""
    return knowing(frank_stage)


@pytest.fixture(scope="module")
def quiet(stage: Stage) -> Stage:
    """A daemon that knows Anna, and tells nobody anything."""
    return knowing(stage)


def knowing(stage: Stage) -> Stage:
    given = {"user": sealing.SID_TEXT, "certificate": user().pem}
    stage.client.request("POST", "/certificates/register", given)
    return stage


def protected(change: Change, to: str, **fields: Any) -> Part:
    def part(play: Play) -> bytes:
        return change(play.message(to, body=BODY, **fields), play).encode()

    return part


def key_of(play: Play, level: int = ADVANCED) -> Any:
    return public_key(play.stage.client.request("GET", "/keys/export"), level)


# What is good


def sealed(algorithm: int) -> Change:
    return lambda headers, play: encrypted(headers, key_of(play), algorithm)


def by_anna(**given: Any) -> Change:
    return lambda headers, _: signed(headers, user(), **given)


def both(headers: packets.Headers, play: Play) -> packets.Headers:
    return encrypted(signed(headers, user()), key_of(play))


def good(name: str, change: Change, to: str, **fields: Any) -> Exchange:
    return Exchange(
        f"taken: {name}",
        opened(2),
        send(protected(change, to, **fields)),
        taken(1),
        holds(to, BODY),
        still_open,
    )


GOOD = [
    good("AES-128", sealed(AES_128), "encrypted"),
    good("AES-192", sealed(AES_192), "encrypted"),
    good("AES-256", sealed(AES_256), "encrypted"),
    good("AES with a label", sealed(AES_256), "plain", label="secret", recoverable=True),
    good("a transactional one", sealed(AES_256), "encrypted transactional",
         transaction=(SEQUENCE, 1, 0)),
    good("SHA-512", by_anna(), "signed"),
    good("SHA-256", by_anna(algorithm=SHA256), "signed"),
    good("the first list", by_anna(first_list=True), "signed"),
    good("a label and a priority", by_anna(), "signed", label="Zoë", priority=7, tag=9),
    good("signed in a transaction", by_anna(), "signed transactional",
         transaction=(SEQUENCE, 1, 0)),
    good("signed and encrypted", both, "both"),
]  # fmt: skip


@pytest.mark.parametrize("exchange", cases(GOOD))
def test_what_is_protected_well_is_taken(frank: Stage, exchange: Exchange) -> None:
    exchange.play(frank)


# What is not


def damaged_blob(headers: packets.Headers, play: Play) -> packets.Headers:
    made = encrypted(headers, key_of(play))
    key = bytearray(made.parts.encryption_key)
    key[40] ^= 0xFF
    return replace(made, parts=replace(made.parts, encryption_key=bytes(key)))


def other_blob(headers: packets.Headers, play: Play) -> packets.Headers:
    """A key that is under somebody else's RSA key."""
    made = encrypted(headers, key_of(play))
    blob = simple_blob(user().key.public_key(), AES_256, bytes(32))
    return replace(made, parts=replace(made.parts, encryption_key=blob))


def cut_blob(headers: packets.Headers, play: Play) -> packets.Headers:
    made = encrypted(headers, key_of(play))
    blob = made.parts.encryption_key[:50]
    return replace(made, parts=replace(made.parts, encryption_key=blob))


def no_blob(headers: packets.Headers, play: Play) -> packets.Headers:
    made = encrypted(headers, key_of(play))
    return replace(made, parts=replace(made.parts, encryption_key=b"", security_id=sealing.SID))


def unknown_level(headers: packets.Headers, play: Play) -> packets.Headers:
    return replace(encrypted(headers, key_of(play)), privacy=4)


def no_level(headers: packets.Headers, play: Play) -> packets.Headers:
    return replace(encrypted(headers, key_of(play)), privacy=0)


def other_cipher(headers: packets.Headers, play: Play) -> packets.Headers:
    return replace(encrypted(headers, key_of(play)), cipher=AES_128)


def cut_body(headers: packets.Headers, play: Play) -> packets.Headers:
    made = encrypted(headers, key_of(play))
    return replace(made, body=made.body[:-3])


def clear(headers: packets.Headers, _: Play) -> packets.Headers:
    return headers


def weak_cipher(headers: packets.Headers, play: Play) -> packets.Headers:
    return encrypted(headers, key_of(play, sealing.ENHANCED), RC4)


def other_label(headers: packets.Headers, _: Play) -> packets.Headers:
    return replace(signed(headers, user()), label="other")


def other_hash(headers: packets.Headers, _: Play) -> packets.Headers:
    return replace(signed(headers, user()), hash_algorithm=SHA256)


def no_hash(headers: packets.Headers, _: Play) -> packets.Headers:
    return replace(signed(headers, user()), hash_algorithm=0x1234)


def no_certificate(headers: packets.Headers, _: Play) -> packets.Headers:
    made = signed(headers, user())
    return replace(made, parts=replace(made.parts, certificate=b"no certificate"))


def stranger(headers: packets.Headers, _: Play) -> packets.Headers:
    return signed(headers, user("mallory"))


BAD: dict[str, tuple[Change, int]] = {
    "a damaged key": (damaged_blob, BAD_ENCRYPTION),
    "a key for somebody else": (other_blob, BAD_ENCRYPTION),
    "half a key": (cut_blob, BAD_ENCRYPTION),
    "no key": (no_blob, BAD_ENCRYPTION),
    "a provider that nobody knows": (unknown_level, BAD_ENCRYPTION),
    "no provider": (no_level, BAD_ENCRYPTION),
    "another cipher than the key's": (other_cipher, BAD_ENCRYPTION),
    "a cut body": (cut_body, BAD_ENCRYPTION),
    "RC4, which nobody allowed": (weak_cipher, BAD_ENCRYPTION),
    "a label that was changed": (other_label, BAD_SIGNATURE),
    "another hash than was signed": (other_hash, BAD_SIGNATURE),
    "a hash that nobody knows": (no_hash, BAD_SIGNATURE),
    "SHA-1, which nobody allowed": (by_anna(algorithm=SHA1), BAD_SIGNATURE),
    "no certificate": (no_certificate, BAD_SIGNATURE),
    "a certificate of a stranger": (stranger, BAD_SIGNATURE),
    "the name of somebody else": (by_anna(sid=OTHER_SID), BAD_SIGNATURE),
}
DEMANDED: dict[str, tuple[str, Change, int]] = {
    "a clear one for a private queue": ("encrypted", clear, BAD_ENCRYPTION),
    "a signed one for a private queue": ("encrypted", by_anna(), BAD_ENCRYPTION),
    "an encrypted one for an open queue": ("open", sealed(AES_256), BAD_ENCRYPTION),
    "an unsigned one": ("signed", clear, BAD_SIGNATURE),
    "an encrypted one that nobody signed": ("signed", sealed(AES_256), BAD_SIGNATURE),
}


def told(name: str, to: str, change: Change, message_class: int, *, body: bytes) -> Exchange:
    part = protected(change, to, acknowledgements=NEGATIVE_ARRIVAL, asks=True)
    said = answer(message_class, properties__message_body=body)
    return Exchange(f"refused: {name}", opened(2), send(part), said, holds(to))


def final(name: str, change: Change, message_class: int) -> Exchange:
    """The sender of a transactional message hears of it in every case."""
    to = "transactional"
    return Exchange(
        f"refused in a transaction: {name}",
        opened(2),
        send(protected(change, to, transaction=(SEQUENCE, 1, 0))),
        answer(message_class),
        holds(to),
    )


REFUSED = [
    *(
        # what was meant to be private does not come back
        told(name, "plain", change, code, body=b"" if code == BAD_ENCRYPTION else BODY)
        for name, (change, code) in BAD.items()
    ),
    *(
        told(name, to, change, code, body=b"" if "encrypted" in name else BODY)
        for name, (to, change, code) in DEMANDED.items()
    ),
]
FINAL = [final(name, change, code) for name, (change, code) in BAD.items()]


@pytest.mark.parametrize("exchange", cases([*REFUSED, *FINAL]))
def test_what_is_not_is_refused_and_its_sender_told(frank: Stage, exchange: Exchange) -> None:
    exchange.play(frank)


def silently(name: str, change: Change) -> Exchange:
    part = protected(change, "plain", acknowledgements=NEGATIVE_ARRIVAL, asks=True)
    return Exchange(f"not told: {name}", opened(2), send(part), taken(1), silence(), holds("plain"))


SILENT = [silently("a damaged key", damaged_blob), silently("a changed label", other_label)]


@pytest.mark.parametrize("exchange", cases(SILENT))
def test_nobody_is_told_while_insecure_nacks_are_off(quiet: Stage, exchange: Exchange) -> None:
    exchange.play(quiet)


def test_a_reader_sees_who_signed_and_that_it_was_private(frank: Stage) -> None:
    with Play.calling(frank) as play:
        opened(2)(play)
        send(protected(both, "both", label="mine"))(play)
        taken(1)(play)
        (found,) = frank.daemon.look(play.queue("both"))
        assert found["authentication_level"] == "SIG20"
        assert found["privacy_level"] == "ADVANCED"
        assert found["label"] == "mine"
