"""Reading TOML tables with care: every refusal names the file, the key, the value, what is allowed.

A `Table` hands out its values one by one and remembers which it was asked for; `finish` refuses the
rest. So a misspelt key is an error, and what was meant is found among the keys that exist.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from falconmq.errors import FalconMQError, MqStatus

_SHOWN: Final = 80  # characters of a value in an error
_NAME_MAX: Final = 256  # MQ-2.1.1-04


class ConfigurationError(FalconMQError):
    """A configuration that cannot be used; nothing was started."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, status=MqStatus.INVALID_PARAMETER, hint=hint)


class Override(NamedTuple):
    """A value that wins over the file, and the name of where it was given."""

    value: object
    where: str  # --bind, FALCONMQ_MANAGER_BIND


class Table:
    """One table of a file: `[manager]`, or the second `[[computers]]`."""

    def __init__(
        self,
        file: str,
        name: str,
        values: Mapping[str, object],
        overrides: Mapping[str, Override] | None = None,
    ) -> None:
        self._file = file
        self._name = name
        self._overrides = overrides or {}
        self._values = {**values, **{key: given.value for key, given in self._overrides.items()}}
        self._known: list[str] = []

    def text(self, key: str, default: str = "", *, may_be_empty: bool = False) -> str:
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, str) or "\0" in value:
            raise self.refuse(key, value, "a text")
        if not value and not may_be_empty:
            raise self.refuse(key, value, "a text that is not empty")
        return value

    def computer_name(self, key: str) -> str:
        name = self.text(key)
        is_plain = name.isascii() and name.isprintable() and not set(name) & set("\\ ")
        if len(name) > _NAME_MAX or not is_plain:
            allowed = f"the name of a computer: up to {_NAME_MAX} letters, digits, signs"
            raise self.refuse(key, name, allowed)
        return name

    def url(self, key: str) -> str:
        text = self.text(key)
        if not text.startswith(("http://", "https://")):
            raise self.refuse(key, text, "a URL, like http://localhost:4318/v1/traces")
        return text

    def boolean(self, key: str, *, default: bool) -> bool:
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, value, "true or false")
        return value

    def integer(self, key: str, default: int, *, least: int, most: int) -> int:
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(key, value, f"a whole number from {least} to {most}")
        return value

    def seconds(self, key: str, default: float, *, least: float, most: float) -> float:
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(key, value, "a number of seconds")
        if not least <= value <= most:  # not a number is refused too
            raise self.refuse(key, value, f"seconds, from {least:g} to {most:g}")
        return float(value)

    def choice(self, key: str, default: str, allowed: Iterable[str]) -> str:
        value = self._take(key)
        if value is None:
            return default
        words = list(allowed)
        if not isinstance(value, str) or value.lower() not in words:
            raise self.refuse(key, value, f"one of {', '.join(words)}")
        return value.lower()

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(e, str) and e for e in value):
            raise self.refuse(key, value, 'a list of texts, ["first", "second"]')
        return tuple(value)

    def address(self, key: str, default: str = "") -> str:
        value = self._take(key)
        return default if value is None else self._address(key, value)

    def addresses(self, key: str) -> tuple[str, ...]:
        """One IP address or a list of them."""
        value = self._take(key)
        given = value if isinstance(value, list) and value else [value]
        return tuple(self._address(key, entry) for entry in given)

    def guid(self, key: str) -> UUID:
        value = self._take(key)
        guid = as_guid(value) if isinstance(value, str) else None
        if guid is None:
            raise self.refuse(key, value, "a GUID, 8 4 4 4 12 hexadecimal digits with hyphens")
        return guid

    def keys(self) -> Iterable[str]:
        return self._values.keys()

    def has(self, key: str) -> bool:
        """Whether it is given; asking makes it known."""
        self._known.append(key)
        return key in self._values

    def strangers(self) -> list[ConfigurationError]:
        """Everything that may be here was asked for: what is left is a mistake."""
        return [
            ConfigurationError(
                f"{self._where(key)} is no setting",
                hint=suggestion(key, dict.fromkeys(self._known)),
            )
            for key in self._values
            if key not in self._known
        ]

    def refuse(
        self, key: str, value: object, allowed: str, *, hint: str = ""
    ) -> ConfigurationError:
        problem = "is missing" if value is None else f"is {shown(value)}"
        return ConfigurationError(f"{self._where(key)} {problem}; it must be {allowed}", hint=hint)

    def _take(self, key: str) -> object:
        self._known.append(key)
        return self._values.get(key)

    def _address(self, key: str, value: object) -> str:
        if isinstance(value, str):
            try:
                return str(ipaddress.ip_address(value))
            except ValueError:
                pass
        raise self.refuse(key, value, "an IP address, like 10.0.0.7")

    def _where(self, key: str) -> str:
        if key in self._overrides:
            return self._overrides[key].where
        return f"{self._file}: {self._name}.{key}"


def as_guid(text: str) -> UUID | None:
    """A GUID with or without braces; None for anything else."""
    try:
        return UUID(text) if "-" in text else None
    except ValueError:
        return None


def shown(value: object) -> str:
    """A value as the file has it, as far as a line of text allows."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """The closest of the known words, else all of them."""
    words = list(known)
    by_lower = {name.lower(): name for name in words}
    close = difflib.get_close_matches(word.lower(), by_lower, 1)
    if close:
        return f"did you mean {by_lower[close[0]]}?"
    return f"one of {', '.join(words)}" if words else ""
