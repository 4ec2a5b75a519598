"""The certificates of users: who signs with what."""

from __future__ import annotations

import asyncio
import base64
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from falconmq.directory.tables import USER
from falconmq.errors import DirectoryError, MqStatus, QueueError
from falconmq.manager.permissions import name_of, who
from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.security.fingerprints import fingerprint
from falconmq.security.problems import CertificateError
from falconmq.service.access import OWNER, Role, require
from falconmq.service.access.roles import principal_of
from falconmq.service.api.context import Control, Given
from falconmq.service.api.keys import data_directory
from falconmq.service.api.tokens import LIFETIME_MAX
from falconmq.service.directory.publishing import UserObjects
from falconmq.service.schemas import Bytes, Strict
from falconmq.service.web.audited import note

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])
_SECONDS_MIN: Final = 60  # shorter ones end before anybody has used them
_TEXT_MAX: Final = 131_072  # characters of PEM; a certificate has at most 65535 bytes

User = Annotated[
    str,
    Field(
        max_length=256,
        description="A SID, or the name of a principal of the configuration.",
        examples=["S-1-5-21-1004336348-1177238915-5"],
    ),
]


class CreateCertificateRequest(Strict):
    """An internal certificate to make."""

    user: User
    lifetime: float | None = Field(
        None, ge=_SECONDS_MIN, le=LIFETIME_MAX, description="Seconds; left out: five years."
    )


class RegisterCertificateRequest(Strict):
    """A certificate from elsewhere, and its private key if the user is to sign here with it."""

    user: User
    certificate: str = Field(
        max_length=_TEXT_MAX,
        description="PEM. Empty if the file of the key has the certificate in it.",
    )
    key: Bytes = Field(
        "",
        max_length=_TEXT_MAX,
        description="A file with the private key: PEM, DER or PKCS#12. Over the control socket "
        "only: on the HTTP port it is refused.",
    )
    password: str = Field(
        "", max_length=1024, description="Of the file with the key, if it has one."
    )


class CertificateOut(Strict):
    """A certificate, without the private key that an internal one has."""

    id: str
    user: str = Field(description="A SID.")
    name: str = Field(description="What people call the user; the SID if it has no name.")
    kind: str = Field(description="internal: made here, with its key; or external")
    signs: bool = Field(description="Its private key is here: messages can be signed with it.")
    subject: str
    begins: str
    expires: str
    expired: bool
    bits: int
    fingerprint: str = Field(description="SHA-256 of the certificate, hexadecimal.")
    certificate: str = Field(description="PEM")


class CertificateList(Strict):
    """All certificates, by user."""

    certificates: list[CertificateOut]


@router.get("/certificates", response_model=CertificateList)
async def get_certificates(control: Given) -> dict[str, Any]:
    """Every certificate, expired ones too."""
    found = await asyncio.to_thread(_store(control).all)
    return {"certificates": [_shown(control, each) for each in found]}


@router.post("/certificates", response_model=CertificateOut, status_code=HTTPStatus.CREATED)
async def create_certificate(control: Given, given: CreateCertificateRequest) -> dict[str, Any]:
    """Make an internal certificate for a user; its private key stays here."""
    owner = who(given.user, control.principals.names)
    note(target=given.user)
    store = _store(control)
    made = await asyncio.to_thread(store.create, owner, given.lifetime)
    await _publish(control, store, made)
    return _shown(control, made)


@router.post(
    "/certificates/register", response_model=CertificateOut, status_code=HTTPStatus.CREATED
)
async def register_certificate(
    control: Given, given: RegisterCertificateRequest, request: Request
) -> dict[str, Any]:
    """Let messages that are signed with this certificate be those of a user.

    With its private key the user can sign with it here as well. A private key is taken over the
    control socket, from this computer, and in no other way.
    """
    owner = who(given.user, control.principals.names)
    store, data = _store(control), given.certificate.encode()
    if not given.key:
        note(target=given.user)
        made = await asyncio.to_thread(store.register, owner, data)
        await _publish(control, store, made)
        return _shown(control, made)
    note(target=given.user, details="with its private key")
    if principal_of(request.scope) is not OWNER:
        raise _key_on_its_way()
    try:
        key = base64.b64decode(given.key, validate=True)
    except ValueError as error:
        raise CertificateError("key is no base64", status=MqStatus.INVALID_PARAMETER) from error
    before = {each.identifier for each in await asyncio.to_thread(store.all)}
    made = await asyncio.to_thread(store.register_key, owner, data, key, given.password)
    if made.identifier not in before:  # else it only got its key
        await _publish(control, store, made)
    return _shown(control, made)


@router.delete("/certificates/{id}", status_code=HTTPStatus.NO_CONTENT)
async def remove_certificate(control: Given, id: UUID) -> None:
    """Forget a certificate, and its private key if we have it.

    Where there is a directory it is taken out there first: while that is away, nothing is removed.
    """
    store, users = _store(control), _users(control)
    if users is not None:
        found = [each for each in await asyncio.to_thread(store.all) if each.identifier == id]
        for each in found:
            await asyncio.to_thread(users.remove, each)
        _forget_users(control)
    await asyncio.to_thread(store.remove, id)


async def _publish(control: Control, store: CertificateStore, made: Registered) -> None:
    """Let the directory have a new certificate; if it cannot, nobody has it."""
    users = _users(control)
    if users is None:
        return
    try:
        await asyncio.to_thread(users.add, made)
    except DirectoryError:
        await asyncio.to_thread(store.remove, made.identifier)
        raise
    _forget_users(control)


def _users(control: Control) -> UserObjects | None:
    """The users of the directory that this queue manager is part of; None if it is in none."""
    hub = control.hub
    if hub is None or hub.directory is None:
        return None
    return UserObjects(hub.asked, may_create=hub.section.kind != "ldap")


def _forget_users(control: Control) -> None:
    hub = control.hub
    if hub is not None and hub.directory is not None:
        hub.directory.forget(USER)


def _shown(control: Control, registered: Registered) -> dict[str, Any]:
    return {
        **registered.shown(control.engine.core.clock.time()),
        "name": name_of(registered.owner, control.principals.names),
        "fingerprint": fingerprint(registered.certificate.data),
    }


def _key_on_its_way() -> QueueError:
    return QueueError(
        "a private key does not travel: it is taken over the control socket only",
        status=MqStatus.ACCESS_DENIED,
        hint="on the computer of the service: falconmq certificate register --key FILE --data DIR",
    )


def _store(control: Control) -> CertificateStore:
    return CertificateStore(data_directory(control), control.engine.core.clock.time)
