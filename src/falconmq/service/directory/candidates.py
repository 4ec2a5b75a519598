"""What a queue manager says of itself to its directory."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.states import DirectoryServerType
from falconmq.service.configuration import Configuration
from falconmq.service.directory.registering import Candidate

_SERVER_TYPES: Final = {
    "pec": DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
    "psc": DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    "bsc": DirectoryServerType.BACKUP_SITE_CONTROLLER,
}


def candidate_of(core: QueueManagerCore, configuration: Configuration) -> Candidate:
    """A queue manager as its configuration wants it to be known; in a turn.

    What the configuration does not name, the directory decides.
    """
    section = configuration.directory
    attributes: dict[str, object] = {
        "qualified_computer_name": section.host_name or _qualified_name(core, section.domain),
        "directory_server": section.kind == "embedded",
    }
    if section.has_role:
        attributes["server_type"] = _SERVER_TYPES[section.role]
    quota = {"quota_kilobytes": configuration.manager.quota_kilobytes}
    configured: dict[str, object] = {}
    if "manager.quota_kilobytes" in configuration.sources:
        configured |= quota
    if section.routing_server or "directory.routing_server" in configuration.sources:
        configured["routing_server"] = section.routing_server
    return Candidate(
        core.identifier,
        core.settings.computer_name,
        attributes,
        configured,
        section.site,
        new_attributes={
            **quota,
            "queue_manager_version": _version(),
            "operating_system_version": platform.release(),
            "security": core.local.security,
        },
        keys=core.key_source,
    )


def _qualified_name(core: QueueManagerCore, domain: str) -> str:
    name = core.settings.computer_name
    return f"{name}.{domain}" if domain else name


def _version() -> str:
    try:
        return version("falconmq")
    except PackageNotFoundError:
        return ""
