"""From a caller to its SIDs: the doors know tokens, permissions know principals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from falconmq.manager.access import NOBODY_KNOWN, Principal
from falconmq.service.access import roles
from falconmq.service.configuration.sections import ConfiguredPrincipal
from falconmq.wire.sid import Sid


class Principals:
    """`[[principals]]` of the configuration, as they are asked for."""

    def __init__(self, configured: Iterable[ConfiguredPrincipal] = ()) -> None:
        self._of_token: dict[str, Principal] = {}
        self._of_certificate: dict[str, Principal] = {}
        self._callers: dict[str, roles.Principal] = {}  # by the fingerprint of their certificate
        self._of_socket: Principal | None = None
        self.names: Mapping[str, Sid] = {}
        names: dict[str, Sid] = {}
        for each in configured:
            names[each.principal.name] = each.principal.user
            self._of_token.update(dict.fromkeys(each.tokens, each.principal))
            for shown in each.certificates:
                self._of_certificate[shown] = each.principal
                self._callers[shown] = roles.Principal(
                    f"certificate of {each.principal.name}",
                    frozenset(map(roles.Role, each.roles)),
                    certificate=shown,
                )
            if each.socket:
                self._of_socket = each.principal
        self.names = names

    def of(self, caller: roles.Principal | None) -> Principal | None:
        """Whose permissions count for a caller; None: its role alone decides."""
        if caller is None:
            return None
        if caller is roles.OWNER:
            return self._of_socket
        if caller.certificate:
            return self._of_certificate.get(caller.certificate, NOBODY_KNOWN)
        return self._of_token.get(caller.token) if caller.token else None

    def caller_with(self, certificate: str) -> roles.Principal | None:
        """Who shows a certificate with this fingerprint; None: nobody that is configured."""
        return self._callers.get(certificate)
