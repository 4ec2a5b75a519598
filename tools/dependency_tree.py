"""What the project needs, from its own pyproject.toml and the metadata of what is installed.

Two views, for packages differ between Python versions and computers:

    needed here     what the markers say for this Python and this computer; it must be installed
    named           the same without asking the markers: what some Python somewhere needs
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

DEVELOPING: Final = "dev"  # the extra that no user installs
BUILDING: Final = "building"
# What tools/setup.sh installs to build falconmq and pyspark, beside pyproject's own build-system.
BUILD_TOOLS: Final = ("editables", "setuptools", "wheel")


@dataclass(slots=True)
class Package:
    """One that somebody needs."""

    name: NormalizedName
    is_needed_here: bool = False
    parents: set[str] = field(default_factory=set)  # who names it: packages, or parts of ours
    parts: set[str] = field(default_factory=set)  # of ours that lead to it: "", server, dev ...


@dataclass(frozen=True, slots=True)
class Project:
    """What the project itself says it needs, by part: "" is what everybody gets."""

    name: str
    parts: dict[str, list[Requirement]]

    @classmethod
    def read(cls, path: Path) -> Project:
        document = tomllib.loads(path.read_text("utf-8"))
        project = document["project"]
        extras = project.get("optional-dependencies", {})
        build = [*document.get("build-system", {}).get("requires", ()), *BUILD_TOOLS]
        named = {"": project.get("dependencies", ()), **extras, BUILDING: build}
        parts = {part: [Requirement(text) for text in texts] for part, texts in named.items()}
        return cls(project["name"], parts)


def installed(folders: list[str] | None = None) -> dict[NormalizedName, Distribution]:
    """What is there: in these folders, else where this Python looks."""
    found = distributions() if folders is None else distributions(path=folders)
    return {canonicalize_name(each.metadata["Name"]): each for each in found}


def needed(
    project: Project, there: dict[NormalizedName, Distribution]
) -> dict[NormalizedName, Package]:
    """Every package that a part of the project leads to."""
    found: dict[NormalizedName, Package] = {}
    for part, requirements in project.parts.items():
        label = (
            BUILDING if part == BUILDING else f"{project.name}[{part}]" if part else project.name
        )
        for is_here in (True, False):
            _walk(found, there, requirements, label, part, is_here=is_here)
    return found


def _walk(
    found: dict[NormalizedName, Package],
    there: dict[NormalizedName, Distribution],
    requirements: Iterable[Requirement],
    label: str,
    part: str,
    *,
    is_here: bool,
) -> None:
    """Follow requirements to the end; `is_here` asks the markers of this Python and computer."""
    waiting = [(label, each, "") for each in requirements]
    seen: set[tuple[NormalizedName, str]] = set()
    while waiting:
        parent, requirement, extra = waiting.pop()
        if not _applies(requirement, extra, is_here=is_here):
            continue
        name = canonicalize_name(requirement.name)
        package = found.setdefault(name, Package(name))
        package.is_needed_here |= is_here
        package.parents.add(parent)
        package.parts.add(part)
        for wanted in ("", *requirement.extras):
            if (name, wanted) not in seen and name in there:
                seen.add((name, wanted))
                waiting += [(name, each, wanted) for each in _requires(there[name])]


def _requires(distribution: Distribution) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        yield Requirement(text)


def _applies(requirement: Requirement, extra: str, *, is_here: bool) -> bool:
    if requirement.marker is None:
        return not extra  # what has no marker came without the extra already
    if is_here:
        return requirement.marker.evaluate({"extra": extra})
    # Whatever Python and computer say: it counts if it belongs to this extra, or to none.
    text = str(requirement.marker)
    return f'extra == "{extra}"' in text if extra else "extra ==" not in text
