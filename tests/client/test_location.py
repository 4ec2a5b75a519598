"""Where commands look for the service: the same place where it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from falconmq.client import CONTROL_SOCKET, data_directory, default_data_directory
from falconmq.errors import FalconMQError
from falconmq.service import configuration


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("base", ["", "/somewhere"])
def test_service_and_commands_have_the_same_defaults(
    monkeypatch: pytest.MonkeyPatch, user: int, base: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("XDG_DATA_HOME", base)
    assert default_data_directory() == configuration.default_data_directory()
    assert data_directory() == configuration.load().manager.data
    assert CONTROL_SOCKET == configuration.CONTROL_SOCKET


@pytest.mark.parametrize("data", ["data", "/somewhere/data", "~/data", None])
def test_service_and_commands_read_the_same_file_the_same_way(
    tmp_path: Path, data: str | None
) -> None:
    config = tmp_path / "falconmq.toml"
    config.write_text("[manager]\n" + (f'data = "{data}"\n' if data else ""))
    assert data_directory(config) == configuration.load(config).manager.data


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[manager", "falconmq.toml"),
        ("manager = 1", "no section"),
        ("[manager]\ndata = 1", "no text"),
    ],
)
def test_a_file_that_says_something_else_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    config = tmp_path / "falconmq.toml"
    config.write_text(text)
    with pytest.raises(FalconMQError, match=problem):
        data_directory(config)


def test_the_variable_of_the_service_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\ndata = "a"\n')
    monkeypatch.setenv("FALCONMQ_MANAGER_DATA", str(tmp_path / "b"))
    assert data_directory(file) == data_directory() == tmp_path / "b"
