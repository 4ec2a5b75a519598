"""The configuration: look at what is in effect, read it again."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.errors import FalconMQError, MqStatus
from falconmq.service import configuration_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.configuration import Configuration
from falconmq.service.configuration.showing import effective

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get(
    "/configuration", response_model=schemas.ConfigurationOut, response_model_exclude_unset=True
)
async def get_configuration(control: Given) -> dict[str, Any]:
    """Every setting with its value and where that comes from; there are no secrets in it."""
    return effective(_configuration(control))


@router.post(
    "/configuration/reload",
    response_model=schemas.ReloadAnswer,
    response_model_exclude_unset=True,
    dependencies=_MANAGE,
)
async def reload_configuration(control: Given) -> dict[str, Any]:
    """Read file and environment again, and apply what can be applied.

    A configuration with a mistake changes nothing; the answer says what is wrong.
    """
    _configuration(control)
    if control.reload is None:
        raise _not_served()
    return (await control.reload()).to_json()


def _configuration(control: Control) -> Configuration:
    if control.configuration is None:
        raise _not_served()
    return control.configuration


def _not_served() -> FalconMQError:
    return FalconMQError(
        "no service runs here that has a configuration",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="start it with: falconmq serve",
    )
