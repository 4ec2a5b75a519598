"""The look at dependencies, over made-up packages in a folder: nothing of this computer counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.audit_dependencies import Places, main

PROJECT = """\
[project]
name = "falconmq"
dependencies = ["web>=1", "old; python_version < '3'"]

[project.optional-dependencies]
fast = ["quick[nice]"]
dev = ["checker"]

[build-system]
requires = []
"""
LICENCES = """\
[allowed]
MIT = "permissive"
"BSD-3-Clause" = "permissive"

[spelled]
"MIT License" = "MIT"

[packages.silent]
licence = "MIT"
read = "LICENSE"
"""
CONSTRAINTS = """\
# what is installed
Web==1.5
base-lib==2.0
quick==3.0
silent==1.0; python_version >= "3"
silent==0.9; python_version < "3"
checker==4.0
old==0.1
"""


class Made:
    """A project and its packages in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._packages = root / "packages"
        for name, text in (
            ("pyproject.toml", PROJECT),
            ("constraints.txt", CONSTRAINTS),
            ("tools/licences.toml", LICENCES),
            ("tools/advisories.toml", ""),
            ("docs/dependencies.md", ""),
        ):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.package("Web", "1.5", "License-Expression: MIT OR GPL-3.0-only", "base_lib>=1")
        self.package("base.lib", "2.0", "License: MIT License")
        self.package("quick", "3.0", "License-Expression: BSD-3-Clause", "silent; extra == 'nice'")
        self.package("silent", "1.0", "Summary: says nothing")
        self.package("checker", "4.0", "Classifier: License :: OSI Approved :: MIT License")

    def package(self, name: str, version: str, field: str, *requires: str) -> None:
        folder = self._packages / f"{name}.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
        extra = "Provides-Extra: nice\n"
        head = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(f"{head}{field}\n{extra}{needs}\n")

    def change(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def __call__(self, *arguments: str) -> int:
        return main(list(arguments), Places(self.root, [str(self._packages)]))

    @property
    def page(self) -> str:
        return (self.root / "docs" / "dependencies.md").read_text()


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    made = Made(tmp_path)
    assert made("--write") == 0, capsys.readouterr().err
    assert made() == 0
    return made


def problems(made: Made, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert made() == 1
    return [line.removeprefix("dependencies: ") for line in capsys.readouterr().err.splitlines()]


def test_the_page_names_every_package_with_licence_and_who_needs_it(made: Made) -> None:
    used, _, tools = made.page.partition("## What only building and developing need")
    for row in (
        "| base-lib | 2.0 | MIT | for web |",
        "| quick | 3.0 | BSD-3-Clause | `falconmq[fast]` |",
        "| silent | 1.0 or 0.9 | MIT | for quick |",
        "| web | 1.5 | MIT OR GPL-3.0-only | `falconmq` |",
    ):
        assert row in used
    assert "| checker | 4.0 | MIT | `falconmq[dev]` |" in tools
    assert "| MIT | permissive |" in tools


def test_another_version_than_the_pinned_one_is_found(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    made.package("checker", "4.1", "License-Expression: MIT")
    (found,) = problems(made, capsys)
    assert found == (
        "checker 4.1 is installed, and constraints.txt says 4.0: run make setup, or change the line"
    )


def test_a_package_without_a_line_and_a_line_without_a_need_are_found(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    made.change("constraints.txt", "base-lib==2.0", "nobody==1.0")
    unpinned, unwanted, old = problems(made, capsys)
    assert unpinned == "base-lib is in no line of constraints.txt: add base-lib==2.0"
    assert unwanted == "nobody is in constraints.txt, and nobody needs it: take the line out"
    assert old.startswith("dependencies.md is old")


def test_a_package_that_is_missing_is_found(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    made.package("checker", "4.0", "License-Expression: MIT", "helper", "other; extra == 'nice'")
    (found,) = problems(made, capsys)
    assert found == "helper is needed by checker, and is not installed: run make setup"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("License-Expression: GPL-3.0-only", "checker is under GPL-3.0-only, which is not on the"),
        ("License-Expression: MIT AND GPL-3.0-only", "checker is under MIT AND GPL-3.0-only"),
        ("License: Proprietary", "checker is under Proprietary"),
        ("Classifier: License :: OSI Approved :: Odd", "checker is under Odd"),
        ("Summary: nothing", "checker does not say its licence: read it in the package"),
        (f"License: {'a long text ' * 20}", "checker does not say its licence"),
    ],
)
def test_a_licence_that_is_unknown_or_not_welcome_is_found(
    made: Made, capsys: pytest.CaptureFixture[str], field: str, text: str
) -> None:
    made.package("checker", "4.0", field)
    licence, old = problems(made, capsys)
    assert licence.startswith(text)
    assert "tools/licences.toml" in licence
    assert old.startswith("dependencies.md is old")


def test_a_version_that_is_known_to_be_bad_is_found(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = '[[advisory]]\npackage = "{}"\nversions = "{}"\nid = "X-1"\ntext = "it breaks"\n'
    advisories = made.root / "tools" / "advisories.toml"
    advisories.write_text(entry.format("Base_Lib", "<2.0") + entry.format("elsewhere", ">0"))
    assert made() == 0
    advisories.write_text(entry.format("Base_Lib", ">=1.5,<2.1") + entry.format("silent", "<1.0"))
    here, other_python = problems(made, capsys)
    assert here == "base-lib 2.0 is known to be bad: it breaks (X-1); take another version"
    assert other_python.startswith("silent 0.9 is known to be bad")


def test_a_page_that_is_old_is_found_and_one_for_another_python_is_kept(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a row of a package that only another Python needs
    made.change("docs/dependencies.md", "| quick |", "| old | 0.1 | MIT | `falconmq` |\n| quick |")
    assert made() == 0
    assert made("--write") == 0
    assert "| old | 0.1 | MIT | `falconmq` |" in made.page
    # when its pin moves, then the page is old until it is written
    made.change("constraints.txt", "old==0.1", "old==0.2")
    assert problems(made, capsys) == [
        "dependencies.md is old: run python -m tools.audit_dependencies --write"
    ]
    assert made("--write") == 0
    assert "| old | 0.2 | MIT | `falconmq` |" in made.page
