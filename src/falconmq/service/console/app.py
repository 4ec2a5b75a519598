r"""The pages and their paths.

    GET  /                                       how the queue manager is, problems first
    GET  /queues, /queues/{name} ...             queues and their messages
    GET  /outgoing, /sessions                    the way to other queue managers
    GET  /dead-letters                           what died, why, and the way back
    GET  /messages/{id}                          the route of one message
    GET  /directory                              what all queue managers know; POST .../refresh
    GET  /directory/replication                  the servers that keep it, and how far they are
    GET  /transactions, /configuration, /tokens
    GET  /permissions, /keys, /audit             who may do what, and who did
    GET  /login                                  a token opens a session

A page that changes something is a POST to its own path; every page names the role it needs. A part
of a path is quoted as a whole (`%2E%5Cprivate%24%5Corders`), so a name may hold anything, slashes
too.
"""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from falconmq.service.access import Role
from falconmq.service.console import (
    audit,
    chart_page,
    configuration,
    dead_letters,
    directory,
    keys,
    login,
    message,
    outgoing,
    overview,
    permissions,
    queue,
    queues,
    replication,
    sessions,
    tokens,
    tracing,
    transactions,
)
from falconmq.service.console.drawing import STATIC
from falconmq.service.console.errors import not_found
from falconmq.service.console.view import Page, guarded

_NOT_OURS: Final = ("/api/", "/metrics", "/healthz", "/readyz", "/static/")

# (method, path, page, role); None: open to everybody.
_PAGES: Final[tuple[tuple[str, str, Page, Role | None], ...]] = (
    ("GET", "/login", login.show, None),
    ("POST", "/login", login.log_in, None),
    ("POST", "/logout", login.log_out, None),
    ("GET", "/", overview.show, Role.READ),
    ("GET", "/queues", queues.show, Role.READ),
    ("POST", "/queues", queues.create, Role.MANAGE),
    ("GET", "/queues/{name}", queue.show, Role.READ),
    ("POST", "/queues/{name}/purge", queue.purge, Role.MANAGE),
    ("POST", "/queues/{name}/delete", queue.delete, Role.MANAGE),
    ("POST", "/queues/{name}/properties", queue.change, Role.MANAGE),
    ("POST", "/queues/{name}/send", queue.send, Role.SEND),
    ("POST", "/queues/{name}/selected", queue.selected, Role.MANAGE),
    ("GET", "/queues/{name}/permissions", permissions.show, Role.MANAGE),
    ("POST", "/queues/{name}/permissions/grant", permissions.grant, Role.MANAGE),
    ("POST", "/queues/{name}/permissions/revoke", permissions.revoke, Role.MANAGE),
    ("POST", "/queues/{name}/permissions/set", permissions.replace, Role.MANAGE),
    ("GET", "/queues/{name}/messages/{lookup_id}", message.show, Role.READ),
    ("GET", "/queues/{name}/messages/{lookup_id}/body", message.download, Role.READ),
    ("POST", "/queues/{name}/messages/{lookup_id}/delete", message.delete, Role.MANAGE),
    ("POST", "/queues/{name}/messages/{lookup_id}/move", message.move, Role.MANAGE),
    ("POST", "/queues/{name}/messages/{lookup_id}/redrive", dead_letters.redrive_one, Role.MANAGE),
    ("GET", "/dead-letters", dead_letters.show, Role.READ),
    ("POST", "/dead-letters", dead_letters.act, Role.MANAGE),
    ("GET", "/messages", tracing.search, Role.READ),
    ("GET", "/messages/{id}", tracing.show, Role.READ),
    ("GET", "/outgoing", outgoing.show, Role.READ),
    ("GET", "/outgoing/{number}", outgoing.show_one, Role.READ),
    ("POST", "/outgoing/{number}/pause", outgoing.pause, Role.MANAGE),
    ("POST", "/outgoing/{number}/resume", outgoing.resume, Role.MANAGE),
    ("POST", "/outgoing/{number}/purge", outgoing.purge, Role.MANAGE),
    ("GET", "/sessions", sessions.show, Role.READ),
    ("POST", "/sessions", sessions.ping, Role.MANAGE),
    ("GET", "/transactions", transactions.show, Role.READ),
    ("POST", "/transactions/{id}/commit", transactions.commit, Role.MANAGE),
    ("POST", "/transactions/{id}/abort", transactions.abort, Role.MANAGE),
    ("POST", "/leases/{id}/abort", transactions.end_lease, Role.MANAGE),
    ("GET", "/charts", chart_page.show, Role.READ),
    ("GET", "/directory", directory.show, Role.READ),
    ("GET", "/directory/replication", replication.show, Role.READ),
    ("POST", "/directory/refresh", directory.refresh, Role.MANAGE),
    ("GET", "/directory/{kind}/{name}", directory.show_one, Role.READ),
    ("GET", "/configuration", configuration.show, Role.READ),
    ("POST", "/configuration", configuration.reload, Role.MANAGE),
    ("GET", "/tokens", tokens.show, Role.MANAGE),
    ("POST", "/tokens", tokens.create, Role.MANAGE),
    ("POST", "/tokens/{name}/revoke", tokens.revoke, Role.MANAGE),
    ("GET", "/permissions", permissions.show_manager, Role.MANAGE),
    ("GET", "/keys", keys.show, Role.MANAGE),
    ("GET", "/audit", audit.show, Role.MANAGE),
)


class ConsoleRoute(Route):
    """A route whose parts are matched before they are unquoted: %2F is no slash of the path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw: bytes | None = scope.get("raw_path")
        if raw is not None and scope["type"] == "http":
            path = raw.split(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": path}
        return super().matches(scope)


class _Rest(Route):
    """Every other path that a browser may ask for, and that the API does not answer."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["path"].startswith(_NOT_OURS):
            return Match.NONE, {}
        return super().matches(scope)


def install(app: FastAPI) -> None:
    """Add the pages to an application, behind everything that it has already."""
    app.router.routes.append(Mount("/static", StaticFiles(directory=STATIC), name="static"))
    for method, path, page, role in _PAGES:
        app.router.routes.append(ConsoleRoute(path, guarded(page, role), methods=[method]))
    rest = guarded(not_found, None)
    app.router.routes.append(_Rest("/{rest:path}", rest, methods=["GET", "POST"]))
