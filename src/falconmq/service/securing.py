"""The part of the configuration that is about security: permissions, keys, what may be weak."""

from __future__ import annotations

import importlib.util
import logging

from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.security.key_store import KeyStore
from falconmq.service.configuration import Configuration, SecuritySection
from falconmq.service.configuration.principals import weak_name
from falconmq.service.directory.registry import DirectoryRegistry
from falconmq.service.registered import FileRegistry
from falconmq.transport.protection import Protection, ProtectionSettings
from falconmq.wire.sddl import parse_sddl

_log = logging.getLogger("falconmq.service")


def secure(core: QueueManagerCore, security: SecuritySection) -> None:
    """Let the core obey permissions as the configuration says, from its next turn on."""
    core.settings.access_control = security.access_control
    core.settings.everyone_includes_anonymous = security.everyone_includes_anonymous
    core.settings.hardened_security = security.hardened  # DM-3.1.1.1-41
    core.settings.weak_algorithms = frozenset(map(weak_name, security.weak_algorithms))
    core.settings.encrypt_direct = security.encrypt_direct
    core.local.security = parse_sddl(security.manager_permissions)


def protect(core: QueueManagerCore, configuration: Configuration) -> Protection | None:
    """What the transport needs for protected messages; None without the package for it."""
    if importlib.util.find_spec("cryptography") is None:
        _log.warning("nothing can be encrypted or verified: pip install 'falconmq[security]'")
        return None
    registry = FileRegistry(
        configuration.manager.data, configuration.principals, configuration.computers
    )
    return Protection(registry, core.clock.time, _settings(configuration.security))


def configure(protection: Protection | None, configuration: Configuration) -> None:
    """Another configuration is in effect."""
    if protection is None:
        return
    protection.settings = _settings(configuration.security)
    registry = protection.registry
    files = registry.files if isinstance(registry, DirectoryRegistry) else registry
    if isinstance(files, FileRegistry):
        files.configure(configuration.principals, configuration.computers)


def use_keys(protection: Protection | None, configuration: Configuration) -> None:
    """Let the transport have the private keys, if they were made: before anybody is let in.

    A message that came without them could not be decrypted, and would be lost. Reading them takes
    less than a millisecond.
    """
    if protection is None:
        return
    try:
        keys = KeyStore(configuration.manager.data).find()
    except FalconMQError as error:
        _log.error("no keys, nothing can be decrypted: %s; %s", error, error.hint)
    else:
        if keys is not None:
            protection.use_keys(keys)


def _settings(security: SecuritySection) -> ProtectionSettings:
    weak = frozenset(map(weak_name, security.weak_algorithms))
    return ProtectionSettings(weak, security.encrypt_direct)
