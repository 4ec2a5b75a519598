from __future__ import annotations

import pytest

from tests.cli.commands import InProcess


@pytest.fixture
def falconmq(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Run the command in this process."""
    return InProcess(capsys, monkeypatch)
