"""The part of the configuration that says whether, and for whom, permissions are obeyed."""

from __future__ import annotations

from falconmq.manager.core import QueueManagerCore
from falconmq.service.configuration import SecuritySection
from falconmq.wire.sddl import parse_sddl


def secure(core: QueueManagerCore, security: SecuritySection) -> None:
    """Let the core obey permissions as the configuration says, from its next turn on."""
    core.settings.access_control = security.access_control
    core.settings.everyone_includes_anonymous = security.everyone_includes_anonymous
    core.local.security = parse_sddl(security.manager_permissions)
