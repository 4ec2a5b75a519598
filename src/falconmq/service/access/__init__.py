"""Who may do what over HTTP."""

from falconmq.service.access.access import Access
from falconmq.service.access.door import Door
from falconmq.service.access.roles import (
    OWNER,
    Principal,
    Required,
    Role,
    check,
    principal_of,
    require,
    set_principal,
)
from falconmq.service.access.sessions import (
    Session,
    Sessions,
    check_csrf,
    clear_cookie,
    csrf_of,
    set_cookie,
)
from falconmq.service.access.tokens import (
    Token,
    TokenError,
    TokenExistsError,
    TokenNotFoundError,
    TokenStore,
)

__all__ = [
    "OWNER",
    "Access",
    "Door",
    "Principal",
    "Required",
    "Role",
    "Session",
    "Sessions",
    "Token",
    "TokenError",
    "TokenExistsError",
    "TokenNotFoundError",
    "TokenStore",
    "check",
    "check_csrf",
    "clear_cookie",
    "csrf_of",
    "principal_of",
    "require",
    "set_cookie",
    "set_principal",
]
