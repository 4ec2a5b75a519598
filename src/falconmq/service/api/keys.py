"""The keys of this queue manager and of its peers: public halves only.

Making keys takes a while, and files are read: everything happens beside the loop.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Response
from pydantic import Field

from falconmq.errors import MqStatus, QueueError
from falconmq.security.key_store import KeyStore
from falconmq.security.keys import fingerprint, keys_by_provider
from falconmq.security.peer_store import DOCUMENT_FORMAT, PeerKeys, PeerStore
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import reach
from falconmq.service.schemas import Bytes, Strict
from falconmq.service.web.audited import note
from falconmq.transport.transport import Transport
from falconmq.wire.public_keys import PublicKeys

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])
_DOCUMENT_MAX: Final = 65_536  # characters of a list; six keys of 16384 bits are less


class KeyOut(Strict):
    """A public key."""

    provider: str = Field(examples=["Microsoft Enhanced RSA and AES Cryptographic Provider"])
    use: str = Field(description="encryption or signing")
    bits: int
    fingerprint: str = Field(description="To be compared with what the other side shows.")


class KeysOut(Strict):
    """The public keys of a queue manager."""

    queue_manager: str
    name: str
    keys: list[KeyOut]


class OwnKeys(KeysOut):
    """Our keys, and whether others find them in the directory."""

    published: bool | None = Field(
        description="Whether the directory has them; null where there is no directory."
    )
    publishing_problem: str = Field(
        description="Why the directory does not have them yet; it is tried again and again."
    )


class KeyList(OwnKeys):
    """Our keys, and those of the queue managers whose keys were imported."""

    peers: list[KeysOut]


class RenewedKeys(OwnKeys):
    """Our keys after they were renewed."""

    former: list[str] = Field(description="Until when older keys decrypt, the latest first.")


class KeyDocument(Strict):
    """What one queue manager exports and another imports."""

    falconmq_keys: int = Field(DOCUMENT_FORMAT, description="The format.")
    queue_manager: str = Field(max_length=64)
    name: str = Field(max_length=255)
    encryption: Bytes = Field(max_length=_DOCUMENT_MAX, description="MQDSPUBLICKEYS")
    signing: Bytes = Field(max_length=_DOCUMENT_MAX, description="MQDSPUBLICKEYS")


@router.get("/keys", response_model=KeyList)
async def get_keys(control: Given) -> dict[str, Any]:
    """The keys of this queue manager, which are made if there are none, and those of its peers."""
    directory = data_directory(control)
    own = await asyncio.to_thread(_own, control, directory)
    peers = await asyncio.to_thread(PeerStore(directory).all)
    shown = {**_shown(own), **_publication(control)}
    return {**shown, "peers": [_shown(peer) for peer in peers]}


@router.get("/keys/export", response_model=KeyDocument)
async def export_keys(control: Given) -> dict[str, Any]:
    """The public keys of this queue manager, for others to import."""
    own = await asyncio.to_thread(_own, control, data_directory(control))
    return own.to_document()


@router.post("/keys/renew", response_model=RenewedKeys)
async def renew_keys(control: Given) -> dict[str, Any]:
    """Make new keys. Messages that peers encrypt for the old ones are read for thirty days more.

    Where there is a directory the new ones are written there, now or when it is back.
    """
    directory = data_directory(control)
    core, now = control.engine.core, control.engine.core.clock.time()
    keys = await asyncio.to_thread(KeyStore(directory).renew, now)
    transport = control.transport
    if isinstance(transport, Transport) and transport.protection is not None:
        transport.protection.use_keys(keys)
    await reach(control.engine)
    control.engine.run(control.key_publisher.publish, keys)
    own = PeerKeys.of(core.identifier, core.settings.computer_name, keys)
    former = [
        datetime.fromtimestamp(each.until, UTC).isoformat(timespec="seconds")
        for each in keys.former
    ]
    return {**_shown(own), **_publication(control), "former": former}


@router.post("/keys/peers", response_model=KeysOut, status_code=HTTPStatus.CREATED)
async def import_keys(control: Given, given: KeyDocument, response: Response) -> dict[str, Any]:
    """Keep the public keys of another queue manager; 200 if they replace older ones."""
    store = PeerStore(data_directory(control))
    peer = PeerKeys.from_document(given.model_dump())
    if peer.queue_manager == control.engine.core.identifier:
        raise QueueError(
            "these are the keys of this queue manager itself",
            status=MqStatus.INVALID_PARAMETER,
            hint="import them at the other queue manager",
        )
    note(target=peer.name, details=f"queue manager {peer.queue_manager}")
    if not await asyncio.to_thread(store.add, peer):
        response.status_code = HTTPStatus.OK
    return _shown(peer)


@router.delete("/keys/peers/{queue_manager}", status_code=HTTPStatus.NO_CONTENT)
async def remove_keys(control: Given, queue_manager: UUID) -> None:
    """Forget the keys of another queue manager: nothing can be encrypted for it any more."""
    await asyncio.to_thread(PeerStore(data_directory(control)).remove, queue_manager)


def data_directory(control: Control) -> Path:
    """Where keys and certificates are kept; QueueError if this queue manager has no directory."""
    if control.configuration is None:
        raise QueueError(
            "this queue manager has no data directory for keys",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="start it with: falconmq serve",
        )
    return control.configuration.manager.data


def _own(control: Control, directory: Path) -> PeerKeys:
    core = control.engine.core
    return PeerKeys.of(core.identifier, core.settings.computer_name, KeyStore(directory).keys())


def _publication(control: Control) -> dict[str, Any]:
    publisher = control.key_publisher
    is_integrated = control.engine.core.directory.is_integrated
    return {
        "published": not publisher.is_waiting if is_integrated else None,
        "publishing_problem": publisher.problem,
    }


def _shown(peer: PeerKeys) -> dict[str, Any]:
    return {
        "queue_manager": str(peer.queue_manager),
        "name": peer.name,
        "keys": [*_listed(peer.encryption, "encryption"), *_listed(peer.signing, "signing")],
    }


def _listed(published: PublicKeys, use: str) -> list[dict[str, Any]]:
    return [
        {
            "provider": provider.name,
            "use": use,
            "bits": key.bits,
            "fingerprint": fingerprint(key),
        }
        for provider, key in keys_by_provider(published).items()
    ]
