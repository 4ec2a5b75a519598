"""The page docs/dependencies.md: a table of packages, written and read back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from packaging.utils import NormalizedName, canonicalize_name

from tools.dependency_licences import Licences
from tools.dependency_tree import BUILDING, DEVELOPING, Package

_PARENTS: Final = 3  # named in a row
_OURS: Final = ("falconmq", BUILDING)
_HEAD: Final = """# Dependencies

Made by `python -m tools.audit_dependencies --write`; do not edit. Versions are those of
`constraints.txt`, which `make setup` installs. `make lint` looks, without the network, whether each
is the one that is installed, whether somebody needs it, and whether its licence may be used.

Known-bad versions are listed in `tools/advisories.toml`. Nobody asks the network for new ones:
look at the advisories of these packages when you make a release, and add what concerns them.
"""
_USED: Final = """
## What an installation may bring

`pip install falconmq` and its extras. The last column names the extra, or who needs the package.

"""
_TOOLS: Final = "\n## What only building and developing need\n\n"
_TABLE: Final = "| package | version | licence | why |\n|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One package."""

    name: NormalizedName
    versions: str
    licence: str
    why: str
    is_tool: bool

    @classmethod
    def of(cls, package: Package, versions: str, licence: str) -> Row:
        is_tool = package.parts <= {BUILDING, DEVELOPING}
        return cls(package.name, versions, licence, _why(package), is_tool)

    @property
    def line(self) -> str:
        return f"| {self.name} | {self.versions} | {self.licence} | {self.why} |\n"


def differs(old: str, new: str) -> bool:
    """Whether a page says something else; who needs a package may depend on the Python."""
    return _facts(old) != _facts(new)


def _facts(text: str) -> tuple[list[Row], str]:
    rows = [replace(row, why="") for row in rows_of(text).values()]
    return rows, text.partition("\n## Licences")[2]


def page(rows: list[Row], licences: Licences) -> str:
    """The whole page."""
    parts = [_HEAD, _USED, _TABLE, *(row.line for row in rows if not row.is_tool)]
    parts += [_TOOLS, _TABLE, *(row.line for row in rows if row.is_tool)]
    parts += ["\n## Licences that may be used\n\n| licence | why |\n|---|---|\n"]
    parts += [f"| {name} | {why} |\n" for name, why in sorted(licences.allowed.items())]
    return "".join(parts)


def rows_of(text: str) -> dict[NormalizedName, Row]:
    """The rows of a page that was written earlier."""
    packages, _, _ = text.partition("\n## Licences")
    used, _, tools = packages.partition(_TOOLS.strip())
    found = {}
    for part, is_tool in ((used, False), (tools, True)):
        for line in part.splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if line.startswith("| ") and len(cells) == _TABLE.partition("\n")[0].count(" | ") + 1:
                row = Row(canonicalize_name(cells[0]), cells[1], cells[2], cells[3], is_tool)
                found[row.name] = row
    return found


def _why(package: Package) -> str:
    ours = sorted(parent for parent in package.parents if parent.partition("[")[0] in _OURS)
    if ours:
        return ", ".join(f"`{parent}`" for parent in ours)
    parents = sorted(package.parents)
    more = f" and {len(parents) - _PARENTS} more" if len(parents) > _PARENTS else ""
    return f"for {', '.join(parents[:_PARENTS])}{more}"
