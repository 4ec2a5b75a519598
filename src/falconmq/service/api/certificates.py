"""The certificates of users: who signs with what."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import Field

from falconmq.manager.permissions import name_of, who
from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.security.fingerprints import fingerprint
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.keys import data_directory
from falconmq.service.api.tokens import LIFETIME_MAX
from falconmq.service.schemas import Strict
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
    """A certificate from elsewhere."""

    user: User
    certificate: str = Field(max_length=_TEXT_MAX, description="PEM")


class CertificateOut(Strict):
    """A certificate, without the private key that an internal one has."""

    id: str
    user: str = Field(description="A SID.")
    name: str = Field(description="What people call the user; the SID if it has no name.")
    kind: str = Field(description="internal: its key is here; or external")
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
    made = await asyncio.to_thread(_store(control).create, owner, given.lifetime)
    return _shown(control, made)


@router.post(
    "/certificates/register", response_model=CertificateOut, status_code=HTTPStatus.CREATED
)
async def register_certificate(control: Given, given: RegisterCertificateRequest) -> dict[str, Any]:
    """Let messages that are signed with this certificate be those of a user."""
    owner = who(given.user, control.principals.names)
    note(target=given.user)
    made = await asyncio.to_thread(_store(control).register, owner, given.certificate.encode())
    return _shown(control, made)


@router.delete("/certificates/{id}", status_code=HTTPStatus.NO_CONTENT)
async def remove_certificate(control: Given, id: UUID) -> None:
    """Forget a certificate, and its private key if we have it."""
    await asyncio.to_thread(_store(control).remove, id)


def _shown(control: Control, registered: Registered) -> dict[str, Any]:
    return {
        **registered.shown(control.engine.core.clock.time()),
        "name": name_of(registered.owner, control.principals.names),
        "fingerprint": fingerprint(registered.certificate.data),
    }


def _store(control: Control) -> CertificateStore:
    return CertificateStore(data_directory(control), control.engine.core.clock.time)
