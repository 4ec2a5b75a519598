"""Variables of the environment that set what the file sets: FALCONMQ_HTTP_PORT is `http.port`.

An empty variable is none: that is what `${NAME:-}` leaves in a compose file. Lists have commas.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from falconmq.service.configuration.settings import LISTS, SECTIONS, SETTINGS, Kind, Setting
from falconmq.service.tables import ConfigurationError, Override, suggestion

_PREFIX: Final = "FALCONMQ_"
_WORDS: Final[Mapping[str, bool]] = {
    "true": True, "1": True, "yes": True, "on": True,
    "false": False, "0": False, "no": False, "off": False,
}  # fmt: skip
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]*\.?[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_LINK: Final = re.compile(r"tcp://")  # what Kubernetes puts there for a service of that name


def overrides(
    environment: Mapping[str, str] | None, problems: list[ConfigurationError]
) -> dict[str, dict[str, Override]]:
    """By section and key what the environment sets; names that mean nothing are problems."""
    given = os.environ if environment is None else environment
    known = {setting.variable: setting for setting in SETTINGS}
    found: dict[str, dict[str, Override]] = {section: {} for section in SECTIONS}
    for name in sorted(given):
        if not given[name] or not _is_ours(name):
            continue
        setting = known.get(name)
        if setting is None:
            problems.append(_unknown(name, list(known)))
        elif _LINK.match(given[name]):
            problems.append(_kubernetes(name, given[name]))
        else:
            found[setting.section][setting.key] = Override(_value(setting, given[name]), name)
    return found


def _is_ours(name: str) -> bool:
    return any(name.startswith(f"{_PREFIX}{section.upper()}_") for section in SECTIONS)


def _value(setting: Setting, text: str) -> object:
    """The value as a file would have it; what cannot be read stays a text, and is refused so."""
    match setting.kind:
        case Kind.BOOLEAN:
            return _WORDS.get(text.lower(), text)
        case Kind.INTEGER:
            return int(text) if _WHOLE.fullmatch(text) else text
        case Kind.SECONDS:
            return float(text) if _NUMBER.fullmatch(text) else text
        case Kind.TEXTS:
            return [part.strip() for part in text.split(",") if part.strip()]
        case _:
            return text


def _unknown(name: str, known: list[str]) -> ConfigurationError:
    section = name.removeprefix(_PREFIX).partition("_")[0].lower()
    if section in LISTS:
        hint = f"[{section}] is set in the file alone: --config FILE"
    else:
        alike = [other for other in known if other.startswith(f"{_PREFIX}{section.upper()}_")]
        hint = suggestion(name, alike)
    return ConfigurationError(f"{name} is no setting", hint=hint)


def _kubernetes(name: str, value: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} is {value!r}, which Kubernetes puts there for a service of that name",
        hint="set enableServiceLinks: false in the pod, or give the service another name",
    )
