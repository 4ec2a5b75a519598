"""Tokens: who may come in by the HTTP port, and with which roles.

They are in one file of the data directory, `tokens.json`, which only its owner can read. It has the
SHA-256 of each secret and never the secret: a token is shown once, when it is made. A secret has
256 random bits, so that a plain hash is enough: nobody can go through them all.

Commands change the file while the service runs, and the service looks at it with every request: at
its status only, unless that has changed (`security.files`).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.security.files import Json, PrivateFile
from falconmq.security.problems import KeyFileError
from falconmq.service.access.roles import Principal, Role
from falconmq.store.data_directory import TOKENS_FILE

PREFIX: Final = "fmq"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_HINT_LENGTH: Final = 4
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TEXT: Final = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * _ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")
_NOBODY: Final = hashlib.sha256(b"").hexdigest()  # compared with where there is no such token

_log = logging.getLogger("falconmq.service")

_Stamp = tuple[int, int, int]


class TokenError(FalconMQError):
    """A token that cannot be made or taken away, or a file of tokens that cannot be used."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, status=MqStatus.INVALID_PARAMETER, hint=hint)


class TokenExistsError(TokenError):
    """There is a token of this name."""


class TokenNotFoundError(TokenError):
    """There is no token of this name."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; not its secret."""

    id: str
    name: str
    roles: frozenset[Role]
    secret_sha256: str
    hint: str  # its last characters, to tell tokens apart
    created: float  # seconds since 1970
    expires: float | None = None

    @property
    def principal(self) -> Principal:
        return Principal(self.name, self.roles, self.name)

    def is_valid(self, now: float) -> bool:
        return self.expires is None or now < self.expires

    def shown(self, now: float) -> dict[str, Any]:
        """What people see of it."""
        return {
            "name": self.name,
            "roles": [str(role) for role in Role if role in self.roles],
            "hint": self.hint,
            "created": _iso(self.created),
            "expires": None if self.expires is None else _iso(self.expires),
            "expired": not self.is_valid(now),
        }

    def stored(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "roles": [str(role) for role in Role if role in self.roles],
            "secret_sha256": self.secret_sha256,
            "hint": self.hint,
            "created": _iso(self.created),
            "expires": None if self.expires is None else _iso(self.expires),
        }


class TokenStore:
    """The tokens of a data directory. Any thread may ask."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = PrivateFile(directory, TOKENS_FILE)
        self._clock = clock
        self._mutex = threading.Lock()
        self._stamp: _Stamp | None = None
        self._tokens: dict[str, Token] = {}  # by id

    @property
    def path(self) -> Path:
        return self._file.path

    def find(self, text: str) -> Token | None:
        """The token that somebody shows, if it is one of ours and has not expired.

        An unknown one takes as long as a wrong one.
        """
        match = _TEXT.fullmatch(text)
        identifier, secret = match.groups() if match else ("", text)
        token = self._current().get(identifier)
        given = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        is_right = hmac.compare_digest(given, _NOBODY if token is None else token.secret_sha256)
        if token is None or not is_right or not token.is_valid(self._clock()):
            return None
        return token

    def valid(self, identifier: str) -> Token | None:
        """A token by its id, if it is still good: for the sessions opened with it."""
        token = self._current().get(identifier)
        return token if token is not None and token.is_valid(self._clock()) else None

    def all(self) -> list[Token]:
        """Every token, expired ones too, by name. TokenError if the file cannot be used."""
        return sorted(self._read().values(), key=lambda token: token.name)

    def listing(self) -> list[dict[str, Any]]:
        """`all`, as people see them."""
        now = self._clock()
        return [token.shown(now) for token in self.all()]

    @property
    def is_empty(self) -> bool:
        """Whether nobody can come in with a token."""
        now = self._clock()
        return not any(token.is_valid(now) for token in self._current().values())

    def create(
        self, name: str, roles: Iterable[Role], lifetime: float | None = None
    ) -> tuple[str, Token]:
        """A new token, for so many seconds or for good: its text, which nobody sees again."""
        chosen = frozenset(roles)
        _check(name, chosen, lifetime)
        now = float(int(self._clock()))
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        token = Token(
            id=secrets.token_hex(_ID_BYTES),
            name=name,
            roles=chosen,
            secret_sha256=hashlib.sha256(secret.encode()).hexdigest(),
            hint=secret[-_HINT_LENGTH:],
            created=now,
            expires=None if lifetime is None else now + lifetime,
        )
        with self._changing() as tokens:
            if any(other.name == name for other in tokens.values()):
                raise TokenExistsError(
                    f"there is a token {name} already",
                    hint=f"choose another name, or first: falconmq token revoke {name}",
                )
            tokens[token.id] = token
        return f"{PREFIX}_{token.id}_{secret}", token

    def revoke(self, name: str) -> Token:
        """Take a token away; whoever has it is out with the next request."""
        with self._changing() as tokens:
            for token in tokens.values():
                if token.name == name:
                    del tokens[token.id]
                    return token
            raise TokenNotFoundError(
                f"there is no token {name}", hint="falconmq token list shows them"
            )

    def _current(self) -> dict[str, Token]:
        """The tokens in the file, read again if it changed; none if it cannot be used."""
        stamp = _stamp(self.path)
        with self._mutex:
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._tokens = self._read()
                except TokenError as error:
                    _log.error("no token is valid: %s", error)
                    self._tokens = {}
            return self._tokens

    def _read(self) -> dict[str, Token]:
        with _refusals():
            return self._taken(self._file.read())

    def _taken(self, document: Json | None) -> dict[str, Token]:
        """The tokens in what a file holds."""
        try:
            tokens = [_token(entry) for entry in (document or {}).get("tokens", ())]
        except (ValueError, KeyError, TypeError) as error:
            raise self._file.damaged(f"it does not hold tokens: {error}") from error
        return {token.id: token for token in tokens}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """The tokens, to be changed; written at the end unless something was raised."""
        with _refusals(), self._file.changing() as document:
            tokens = self._taken(document)
            yield tokens
            document["tokens"] = [token.stored() for token in tokens.values()]


@contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with the file, as an error about tokens."""
    try:
        yield
    except KeyFileError as error:
        raise TokenError(str(error), hint=error.hint) from error


def _check(name: str, roles: frozenset[Role], lifetime: float | None) -> None:
    if not _NAME.fullmatch(name):
        raise TokenError(
            f"{name!r} is no name for a token",
            hint="up to 64 letters, digits, and . _ @ - behind the first",
        )
    if not roles:
        raise TokenError("a token needs a role", hint=f"choose from {', '.join(Role)}")
    if lifetime is not None and not lifetime > 0:
        raise TokenError(
            "a token must be good for more than 0 seconds", hint="leave it out for one without end"
        )


def _token(entry: dict[str, Any]) -> Token:
    expires = entry["expires"]
    return Token(
        id=str(entry["id"]),
        name=str(entry["name"]),
        roles=frozenset(Role(role) for role in entry["roles"]),
        secret_sha256=str(entry["secret_sha256"]),
        hint=str(entry["hint"]),
        created=datetime.fromisoformat(entry["created"]).timestamp(),
        expires=None if expires is None else datetime.fromisoformat(expires).timestamp(),
    )


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
