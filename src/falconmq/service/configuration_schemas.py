"""The JSON of the configuration: what is in effect, and what a reload did."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from falconmq.service.schemas import Strict

Value = StrictStr | StrictBool | StrictInt | StrictFloat | list[str] | None  # 0 is not false


class SettingOut(Strict):
    """One setting."""

    name: str = Field(examples=["http.port"])
    value: Value
    source: Literal["default", "membership", "file", "environment", "option"]
    default: Value
    unit: str
    text: str = Field(description="What it is for.")
    reloads: bool = Field(description="Whether a reload applies it; else a restart is needed.")
    variable: str = Field(description="The variable of the environment that sets it.")


class ComputerOut(Strict):
    """Another queue manager, known by its identifier."""

    id: UUID
    name: str
    address: str


class RouteOut(Strict):
    """Over which queue managers another one is reached."""

    to: UUID
    via: list[UUID]


class DeclaredQueueOut(Strict):
    """A queue that is there after every start; what is left out is not touched."""

    name: str
    transactional: bool
    label: str | None = None
    journaling: bool | None = None
    quota_kilobytes: int | None = None
    journal_quota_kilobytes: int | None = None
    authentication: bool | None = None
    privacy_level: str | None = None
    base_priority: int | None = None


class PrincipalOut(Strict):
    """Somebody that callers may be."""

    name: str
    sid: str
    groups: list[str]
    tokens: list[str] = Field(description="Whoever shows one of these.")
    socket: bool = Field(description="Whoever uses the control socket.")
    certificates: list[str] = Field(description="Fingerprints: whoever shows one of these.")
    roles: list[str] = Field(description="Of those who show a certificate.")


class ConfigurationOut(Strict):
    """What is in effect."""

    source: str = Field(description="The file; `defaults` if there is none.")
    settings: list[SettingOut]
    hosts: dict[str, list[str]]
    computers: list[ComputerOut]
    routes: list[RouteOut]
    queues: list[DeclaredQueueOut]
    principals: list[PrincipalOut]


Changed = Annotated[
    Value | dict[str, list[str]] | list[ComputerOut] | list[RouteOut] | list[PrincipalOut],
    Field(union_mode="left_to_right"),
]


class ChangeOut(Strict):
    """A setting that is not what it was."""

    name: str
    outcome: Literal["applied", "needs restart"]
    old: Changed
    new: Changed


class DeclaredResultOut(Strict):
    """What became of a declared queue."""

    name: str
    outcome: Literal["created", "changed", "unchanged", "postponed"]
    changes: list[str] = Field(description="The properties that were set.")


class ReloadAnswer(Strict):
    """What a reload did; whatever is not named is as it was."""

    changes: list[ChangeOut]
    queues: list[DeclaredResultOut]
    unchanged: int = Field(description="How many settings are as they were.")
