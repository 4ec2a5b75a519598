"""Look at every package that the project needs, without asking the network.

pinned      constraints.txt names exactly the version that is installed
wanted      every line of constraints.txt is needed by somebody
licence     read from the package, and on the list of tools/licences.toml
advisories  no version of tools/advisories.toml
page        docs/dependencies.md says all this; `--write` makes it anew

python -m tools.audit_dependencies            what is wrong, one line each; exit code 1 if so
python -m tools.audit_dependencies --write
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from tools.dependency_licences import Licences
from tools.dependency_page import Row, differs, page, rows_of
from tools.dependency_tree import BUILD_TOOLS, Package, Project, installed, needed

ROOT: Final = Path(__file__).parent.parent

Pins = dict[NormalizedName, list[Requirement]]


@dataclass(frozen=True, slots=True)
class Places:
    """The files that are compared."""

    root: Path
    folders: list[str] | None = None  # of packages; None: where this Python looks

    @property
    def page(self) -> Path:
        return self.root / "docs" / "dependencies.md"


class Audit:
    """One look at everything."""

    def __init__(self, places: Places) -> None:
        root = places.root
        self._places = places
        self._pins = _pins(root / "constraints.txt")
        self._installed = installed(places.folders)
        self._needed = needed(Project.read(root / "pyproject.toml"), self._installed)
        self._licences = Licences.read(root / "tools" / "licences.toml")
        self._advisories = tomllib.loads((root / "tools" / "advisories.toml").read_text("utf-8"))

    def problems(self) -> list[str]:
        return [
            *self._unpinned(),
            *self._unwanted(),
            *self._unlicensed(),
            *self._known_bad(),
            *self._old_page(),
        ]

    def write(self) -> None:
        self._places.page.write_text(self._page(), "utf-8")

    def _unpinned(self) -> Iterator[str]:
        for name, package in sorted(self._needed.items()):
            if not package.is_needed_here:
                continue
            distribution, pinned = self._installed.get(name), self._pinned(name)
            if distribution is None:
                if name not in BUILD_TOOLS:  # only building needs them
                    parents = ", ".join(sorted(package.parents))
                    yield f"{name} is needed by {parents}, and is not installed: run make setup"
            elif pinned is None:
                line = f"{name}=={distribution.version}"
                yield f"{name} is in no line of constraints.txt: add {line}"
            elif Version(distribution.version) != Version(pinned):
                yield (
                    f"{name} {distribution.version} is installed, and constraints.txt says "
                    f"{pinned}: run make setup, or change the line"
                )

    def _pinned(self, name: NormalizedName) -> str | None:
        """The version that constraints.txt has for this Python."""
        for line in self._pins.get(name, ()):
            if line.marker is None or line.marker.evaluate():
                return _version_of(line)
        return None

    def _unwanted(self) -> Iterator[str]:
        for name in sorted(self._pins.keys() - self._needed.keys()):
            yield f"{name} is in constraints.txt, and nobody needs it: take the line out"

    def _unlicensed(self) -> Iterator[str]:
        for name, distribution in self._looked_at():
            problem = self._licences.problem(name, distribution)
            if problem:
                yield problem

    def _known_bad(self) -> Iterator[str]:
        for advisory in self._advisories.get("advisory", ()):
            bad = SpecifierSet(advisory["versions"], prereleases=True)
            name = canonicalize_name(advisory["package"])
            for version in sorted(self._versions(name)):
                if version in bad:
                    told = f"{advisory['text']} ({advisory['id']})"
                    yield f"{name} {version} is known to be bad: {told}; take another version"

    def _versions(self, name: NormalizedName) -> set[str]:
        """Those that are pinned for any Python, and the one that is installed."""
        found = {_version_of(line) for line in self._pins.get(name, ())}
        distribution = self._installed.get(name)
        if name in self._needed and distribution is not None:
            found.add(distribution.version)
        return found

    def _looked_at(self) -> Iterator[tuple[NormalizedName, Distribution]]:
        for name in sorted(self._needed):
            if name in self._installed:
                yield name, self._installed[name]

    def _old_page(self) -> Iterator[str]:
        path = self._places.page
        written = path.read_text("utf-8") if path.exists() else ""
        if differs(written, self._page()):
            yield f"{path.name} is old: run python -m tools.audit_dependencies --write"

    def _page(self) -> str:
        """What is not installed on this Python keeps its row: another one has it."""
        path = self._places.page
        old = rows_of(path.read_text("utf-8")) if path.exists() else {}
        rows = []
        for name, lines in sorted(self._pins.items()):
            package, distribution = self._needed.get(name), self._installed.get(name)
            if package is not None and distribution is not None:
                rows.append(self._row(package, lines, distribution))
            elif name in old:
                rows.append(replace(old[name], versions=_versions_of(lines)))
        return page(rows, self._licences)

    def _row(self, package: Package, lines: list[Requirement], there: Distribution) -> Row:
        licence = self._licences.of(package.name, there) or "unknown"
        return Row.of(package, _versions_of(lines), licence)


def _versions_of(lines: list[Requirement]) -> str:
    return " or ".join(_version_of(line) for line in lines)


def _version_of(line: Requirement) -> str:
    return str(line.specifier).removeprefix("==")


def _pins(path: Path) -> Pins:
    found: Pins = {}
    for line in path.read_text("utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            requirement = Requirement(text)
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def main(arguments: list[str] | None = None, places: Places | None = None) -> int:
    """The exit code: 0 if there is nothing to do."""
    parser = argparse.ArgumentParser(description="Look at every package that the project needs.")
    parser.add_argument("--write", action="store_true", help="make docs/dependencies.md anew")
    audit = Audit(places or Places(ROOT))
    if parser.parse_args(arguments).write:
        audit.write()
    problems = audit.problems()
    for problem in problems:
        sys.stderr.write(f"dependencies: {problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
