"""The configuration that is in effect, each value with where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from falconmq.manager.states import QueuePrivacy
from falconmq.service.configuration.sections import (
    Configuration,
    ConfiguredPrincipal,
    DeclaredQueue,
    Source,
)
from falconmq.service.configuration.settings import SETTINGS, Setting


def value_of(configuration: Configuration, setting: Setting) -> object:
    """The value that is in effect."""
    match setting.name:
        case "manager.advertised_address":
            return configuration.transport.advertised_address
        case "log.level":
            return configuration.log_level
        case _:
            return getattr(getattr(configuration, setting.section), setting.key)


def plain(value: object) -> object:
    """A value as JSON has it."""
    match value:
        case Path():
            return str(value)
        case tuple():
            return list(value)
        case _:
            return value


def effective(configuration: Configuration) -> dict[str, Any]:
    """Everything that is in effect, each value with where it comes from."""
    return {
        "source": configuration.source,
        "settings": [_setting(configuration, setting) for setting in SETTINGS],
        "hosts": {name: list(addresses) for name, addresses in configuration.hosts.items()},
        "computers": [
            {"id": str(computer.id), "name": computer.name, "address": computer.address}
            for computer in configuration.computers
        ],
        "routes": [
            {"to": str(to), "via": [str(hop) for hop in hops]}
            for to, hops in configuration.routes.items()
        ],
        "queues": [declared_json(queue) for queue in configuration.queues],
        "principals": [principal_json(each) for each in configuration.principals],
    }


def principal_json(configured: ConfiguredPrincipal) -> dict[str, Any]:
    principal = configured.principal
    return {
        "name": principal.name,
        "sid": str(principal.user),
        "groups": sorted(map(str, principal.groups)),
        "tokens": list(configured.tokens),
        "socket": configured.socket,
        "certificates": list(configured.certificates),
        "roles": list(configured.roles),
    }


def declared_json(queue: DeclaredQueue) -> dict[str, Any]:
    properties = {
        key: value.name if isinstance(value, QueuePrivacy) else value
        for key, value in queue.properties.items()
    }
    return {"name": str(queue.name), "transactional": queue.transactional, **properties}


def _setting(configuration: Configuration, setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "value": plain(value_of(configuration, setting)),
        "source": configuration.sources.get(setting.name, Source.DEFAULT).value,
        "default": plain(setting.default_value()),
        "unit": setting.unit,
        "text": setting.text,
        "reloads": setting.reloads,
        "variable": setting.variable,
    }
