"""Under which licence a package is, and whether that one is welcome here."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

_CLASSIFIER: Final = "License :: OSI Approved :: "
_LONGEST: Final = 60  # characters of a name; longer is the text of the licence itself
_LIST: Final = "tools/licences.toml"


@dataclass(frozen=True, slots=True)
class Licences:
    """The list of tools/licences.toml."""

    allowed: dict[str, str]  # SPDX name -> why
    spelled: dict[str, str]
    packages: dict[str, str]  # whose metadata do not say it

    @classmethod
    def read(cls, path: Path) -> Licences:
        document = tomllib.loads(path.read_text("utf-8"))
        packages = document.get("packages", {})
        return cls(
            document.get("allowed", {}),
            document.get("spelled", {}),
            {name: entry["licence"] for name, entry in packages.items()},
        )

    def of(self, name: str, distribution: Distribution) -> str | None:
        """The licence as SPDX writes it; None if the package does not say it."""
        if name in self.packages:
            return self.packages[name]
        metadata = distribution.metadata
        if "License-Expression" in metadata:
            return metadata["License-Expression"]
        given = metadata["License"].strip() if "License" in metadata else ""
        if self._known(given):
            return self._known(given)
        named = [
            text.removeprefix(_CLASSIFIER)
            for text in metadata.get_all("Classifier") or ()
            if text.startswith(_CLASSIFIER)
        ]
        if named:
            return " AND ".join(sorted({self._known(text) or text for text in named}))
        return given if given and len(given) <= _LONGEST else None

    def problem(self, name: str, distribution: Distribution) -> str:
        """Why this package cannot stay as it is; "" if it can."""
        licence = self.of(name, distribution)
        if licence is None:
            return (
                f"{name} does not say its licence: read it in the package, and write it under "
                f"[packages.{name}] of {_LIST}"
            )
        if self.is_allowed(licence):
            return ""
        return (
            f"{name} is under {licence}, which is not on the list: do without it, or add the "
            f"licence to {_LIST} if it may be used"
        )

    def is_allowed(self, expression: str) -> bool:
        """Of each group of alternatives one must be on the list."""
        groups = re.split(r"\s+AND\s+", expression)
        return all(
            any(part.strip("() ") in self.allowed for part in re.split(r"\s+OR\s+", group))
            for group in groups
        )

    def _known(self, text: str) -> str:
        return text if text in self.allowed else self.spelled.get(text, "")
