"""From a caller to its SIDs: the doors know tokens, permissions know principals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from falconmq.manager.access import Principal
from falconmq.service.access import roles
from falconmq.service.configuration.sections import ConfiguredPrincipal
from falconmq.wire.sid import Sid


class Principals:
    """`[[principals]]` of the configuration, as they are asked for."""

    def __init__(self, configured: Iterable[ConfiguredPrincipal] = ()) -> None:
        self._of_token: dict[str, Principal] = {}
        self._of_socket: Principal | None = None
        self.names: Mapping[str, Sid] = {}
        names: dict[str, Sid] = {}
        for each in configured:
            names[each.principal.name] = each.principal.user
            self._of_token.update(dict.fromkeys(each.tokens, each.principal))
            if each.socket:
                self._of_socket = each.principal
        self.names = names

    def of(self, caller: roles.Principal | None) -> Principal | None:
        """Whose permissions count for a caller; None: its role alone decides."""
        if caller is None:
            return None
        if caller is roles.OWNER:
            return self._of_socket
        return self._of_token.get(caller.token) if caller.token else None
