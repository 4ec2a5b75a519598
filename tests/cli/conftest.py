from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import InProcess
from tests.service.control import ControlledManager


@pytest.fixture
def falconmq(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Run the command in this process."""
    return InProcess(capsys, monkeypatch)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledManager]:
    """A queue manager that commands find without being told where."""
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    with ControlledManager(tmp_path) as controlled:
        yield controlled
