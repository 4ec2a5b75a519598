"""Connections to LDAP servers: opened when needed, used again, replaced when they break.

Each call takes a connection that nobody uses, or opens one; so any thread may call at any time. A
connection that breaks under a call is thrown away, and the call is tried once more on a new one:
the usual cause is a server that was restarted. What goes wrong is raised with the result that MSMQ
has for it (directory guide 5.1) and with a hint; no exception of the library gets out.
"""

from __future__ import annotations

import ssl
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any, Final, NamedTuple, TypeVar

from falconmq.directory.ldap_problems import NO_SUCH_OBJECT, REFERRAL, check_result, unreachable
from falconmq.directory.ldap_settings import LdapSettings, wrap_socket
from falconmq.errors import DirectoryError, MqStatus

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its own words to pyasn1
        import ldap3
        from ldap3.core.exceptions import LDAPException
        from ldap3.utils.uri import parse_uri
except ImportError as error:
    raise DirectoryError(
        "an LDAP directory needs the package ldap3",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="to install it: pip install 'falconmq[ldap]'",
    ) from error

BASE: Final = ldap3.BASE
ONE_LEVEL: Final = ldap3.LEVEL
SUBTREE: Final = ldap3.SUBTREE
ANYTHING: Final = "(objectClass=*)"
_PAGED: Final = "1.2.840.113556.1.4.319"
_Answer = TypeVar("_Answer")


class Entry(NamedTuple):
    """An entry: its distinguished name, and its values by attribute name in lower case."""

    name: str
    values: Mapping[str, list[bytes]]

    def first(self, attribute: str) -> bytes | None:
        found = self.values.get(attribute.lower())
        return found[0] if found else None


_Page = tuple[list[Entry], bytes | None, list[str]]
"""Entries, the cookie of the page behind them, and servers that have more."""


class LdapConnections:
    """Search, add, modify and delete on the servers of one directory."""

    def __init__(self, settings: LdapSettings) -> None:
        self.settings = settings
        self._context: ssl.SSLContext | None = None
        self._idle: list[Any] = []
        self._mutex = threading.Lock()
        self._preferred = 0  # the server that answered last

    def read(self, name: str, attributes: Sequence[str], condition: str = ANYTHING) -> Entry | None:
        """One entry by its name; None when it is not there or does not meet the condition."""
        return next(self.search(name, BASE, condition, attributes), None)

    def search(
        self, base: str, scope: str, condition: str, attributes: Sequence[str]
    ) -> Iterator[Entry]:
        """Entries in pages. A base that is not there has none below it."""
        what = (base, scope, condition, attributes)
        connection, (found, cookie, referrals) = self._begin(self._search_page, *what, None)
        try:
            while cookie:  # the pages of a search come on one connection
                yield from found
                found, cookie, more = self._go_on(connection, *what, cookie)
                referrals += more
        finally:
            self._give_back(connection)
        yield from found
        for uri in referrals:
            yield from self._search_elsewhere(uri, *what)

    def add(self, name: str, object_class: str, values: Mapping[str, Sequence[bytes]]) -> None:
        present = {attribute: list(items) for attribute, items in values.items() if items}
        self._run(_checked, f"add {name}", "add", name, object_class, present)

    def modify(self, name: str, values: Mapping[str, Sequence[bytes]]) -> None:
        """Replace attributes; no values take the attribute away."""
        changes = {key: [(ldap3.MODIFY_REPLACE, list(items))] for key, items in values.items()}
        if changes:
            self._run(_checked, f"modify {name}", "modify", name, changes)

    def delete(self, name: str) -> None:
        self._run(_checked, f"delete {name}", "delete", name)

    def close(self) -> None:
        """Say good-bye on all connections that are not in use."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            _leave(connection)

    def _run(self, action: Callable[..., _Answer], *arguments: Any) -> _Answer:
        connection, answer = self._begin(action, *arguments)
        self._give_back(connection)
        return answer

    def _begin(self, action: Callable[..., _Answer], *arguments: Any) -> tuple[Any, _Answer]:
        """Do something, and keep the connection that it was done on."""
        with self._mutex:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return connection, self._use(connection, action, *arguments)
            except (LDAPException, OSError):
                self.close()  # the others are as old: a restarted server knows none of them
        connection = self._open()
        try:
            return connection, self._use(connection, action, *arguments)
        except (LDAPException, OSError) as error:
            raise unreachable(connection.server.name, error, self.settings) from error

    def _use(self, connection: Any, action: Callable[..., _Answer], *arguments: Any) -> _Answer:
        try:
            return action(connection, *arguments)
        except (LDAPException, OSError):
            _leave(connection)
            raise
        except DirectoryError:
            self._give_back(connection)
            raise

    def _go_on(self, connection: Any, *arguments: Any) -> _Page:
        try:
            return self._search_page(connection, *arguments)
        except (LDAPException, OSError) as error:
            raise unreachable(connection.server.name, error, self.settings) from error

    def _give_back(self, connection: Any) -> None:
        with self._mutex:
            self._idle.append(connection)

    def _open(self) -> Any:
        """Connect to the server that answered last, or to the next that answers."""
        urls = self.settings.urls
        problem: DirectoryError | None = None
        for step in range(len(urls)):
            number = (self._preferred + step) % len(urls)
            try:
                connection = self._connect(urls[number])
            except (LDAPException, OSError) as error:
                problem = unreachable(urls[number], error, self.settings)
                problem.__cause__ = error
                continue
            self._preferred = number
            return connection
        assert problem is not None
        raise problem

    def _connect(self, url: str) -> Any:
        settings = self.settings
        tls = None
        if url.startswith("ldaps") or settings.start_tls:
            self._context = self._context or settings.tls_context()
            tls = _Tls(self._context)
        server = ldap3.Server(
            url,
            get_info=ldap3.NONE,
            tls=tls,
            connect_timeout=settings.connect_timeout_seconds,
        )
        connection = ldap3.Connection(
            server,
            user=settings.bind_name or None,
            password=settings.password or None,
            client_strategy=ldap3.SAFE_SYNC,
            check_names=False,
            auto_referrals=False,  # the library would send the password to any host, unverified
            receive_timeout=ceil(settings.operation_timeout_seconds),
        )
        try:
            connection.open()
            if settings.start_tls and not server.ssl:
                connection.start_tls()
            _checked(connection, f"bind as {settings.bind_name or 'nobody'}", "bind")
        except (LDAPException, OSError, DirectoryError):
            _leave(connection)
            raise
        return connection

    def _search_page(
        self,
        connection: Any,
        base: str,
        scope: str,
        condition: str,
        attributes: Sequence[str],
        cookie: bytes | None,
    ) -> _Page:
        _, result, response, _ = connection.search(
            base,
            condition,
            scope,
            attributes=list(attributes),
            time_limit=ceil(self.settings.operation_timeout_seconds),
            paged_size=None if scope == BASE else self.settings.page_size,
            paged_cookie=cookie,
        )
        if result["result"] == NO_SUCH_OBJECT:
            return [], None, []
        if result["result"] == REFERRAL:
            elsewhere = [uri for uri in result["referrals"] or () if self._may_ask(uri)]
            if elsewhere:
                return [], None, elsewhere[:1]
        check_result(result, f"search {base or 'the root'}")
        found = [_entry(item) for item in response if item["type"] == "searchResEntry"]
        referrals = [
            uri for item in response if item["type"] == "searchResRef" for uri in item["uri"][:1]
        ]
        controls = result.get("controls") or {}
        following = controls.get(_PAGED, {}).get("value", {}).get("cookie")
        return found, following, referrals

    def _may_ask(self, uri: str) -> bool:
        """Whether a server that another one names may learn who we are."""
        parts = parse_uri(uri)
        hosts = (*self.settings.hosts, *self.settings.referral_hosts)
        return bool(parts) and parts["host"] in hosts

    def _search_elsewhere(
        self, uri: str, base: str, scope: str, condition: str, attributes: Sequence[str]
    ) -> Iterator[Entry]:
        """Ask the server that keeps another part of the tree, if it may be asked."""
        if not self._may_ask(uri):
            return
        parts = parse_uri(uri)
        url = f"{'ldaps' if parts['ssl'] else 'ldap'}://{parts['host']}:{parts['port'] or 389}"
        try:
            connection = self._connect(url)
            try:
                found, _, _ = self._search_page(
                    connection, parts["base"] or base, scope, condition, attributes, None
                )
            finally:
                _leave(connection)
        except (LDAPException, OSError) as error:
            raise unreachable(url, error, self.settings) from error
        yield from found


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """TLS as Python does it by default; the library's own does not know the host's name."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:  # noqa: ARG002
        wrap_socket(self._context, connection)


def _checked(connection: Any, what: str, operation: str, *arguments: Any) -> None:
    _, result, _, _ = getattr(connection, operation)(*arguments)
    check_result(result, what)


def _entry(item: Mapping[str, Any]) -> Entry:
    values = {name.lower(): list(raw) for name, raw in item["raw_attributes"].items()}
    return Entry(item["dn"], values)


def _leave(connection: Any) -> None:
    """Say good-bye if anybody is there, and close the socket in any case."""
    with suppress(LDAPException, OSError):
        connection.unbind()
    if connection.socket is not None:
        connection.socket.close()
