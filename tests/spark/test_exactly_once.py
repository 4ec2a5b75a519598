"""Streams through kills: the short version of `make kill` (tools/exactly_once.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("way", ["source", "sink"])
def test_each_message_comes_once_through_kills_of_driver_and_manager(way: str) -> None:
    command = [sys.executable, "-m", "tools.exactly_once", way, "--messages", "2000"]
    command += ["--driver-kills", "1", "--manager-kills", "1", "--seed", "6"]
    run = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 driver kills" in run.stdout
    assert "1 manager kills" in run.stdout
