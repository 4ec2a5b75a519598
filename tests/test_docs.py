"""What the pages say works, works: their Python runs, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from falconmq.errors import MqStatus

ROOT = Path(__file__).parents[1]
DECODE = ROOT / "docs" / "howto" / "decode.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ \.venv/bin/falconmq (decode [0-9a-f]{20,}|demo[^\n|]*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)\)")


def blocks() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", DECODE]  # the tutorial's are run by tests/e2e/test_tutorial.py
    return [(page.name, code) for page in pages for code in _CODE.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "code"), blocks())
def test_the_python_of_the_pages_runs(page: str, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page}: {done.stderr}"


def test_the_commands_of_the_page_about_packets_do_what_it_says() -> None:
    text = DECODE.read_text("utf-8")
    commands = _COMMAND.findall(text)
    assert len(commands) >= 3
    for command in commands:
        line = [sys.executable, "-m", "falconmq", *command.split()]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        shown = text.split(command)[1].split("```")[0].split("\n")[1:]
        for expected in (line for line in shown if line.strip() not in ("", "...")):
            assert expected.startswith("$") or expected in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text("utf-8")):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_reference_is_up_to_date() -> None:
    command = [sys.executable, "-m", "tools.reference", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_status_code_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "status-codes.md").read_text("utf-8")
    assert all(f"0x{status:08X} | {status.symbol}" in page for status in MqStatus)
