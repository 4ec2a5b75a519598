"""A backup of the running queue manager, as one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Depends
from fastapi.responses import StreamingResponse

from falconmq.errors import MqStatus, StoreError
from falconmq.service import backup
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])
_ARCHIVE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {backup.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/backup", response_class=StreamingResponse, responses=_ARCHIVE)
async def get_backup(control: Given) -> StreamingResponse:
    """All queues, messages and tokens as of now, as a tar archive; `falconmq restore` reads it.

    Nothing stops meanwhile. An archive without manifest.json at its end is not complete.
    """
    core, configuration = control.engine.core, control.configuration
    directory = None if configuration is None else configuration.manager.data
    name, now = core.settings.computer_name, core.clock.time()
    making = backup.Backup(control.engine.store, name, directory, now)
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"Content-Disposition": f'attachment; filename="{name}-{moment}.tar"'}
    return StreamingResponse(
        _pieces(control, making), media_type=backup.MEDIA_TYPE, headers=headers
    )


async def _pieces(control: Control, making: backup.Backup) -> AsyncIterator[bytes]:
    try:
        while (piece := await asyncio.to_thread(making.next)) is not None:
            yield piece
            if control.stopping.is_set():  # the store is about to be closed
                raise StoreError("the service stops", status=MqStatus.OPERATION_CANCELLED)
    finally:
        await asyncio.shield(asyncio.to_thread(making.close))
