"""Who may do what over HTTP."""

from falconmq.service.access.roles import (
    OWNER,
    Principal,
    Role,
    principal_of,
    require,
    set_principal,
)

__all__ = ["OWNER", "Principal", "Role", "principal_of", "require", "set_principal"]
