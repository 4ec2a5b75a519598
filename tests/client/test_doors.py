"""URLs of services, and what they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from falconmq.client.doors import Door, chosen, from_anywhere
from falconmq.errors import FalconMQError, MqStatus


@pytest.mark.parametrize(
    ("url", "host", "port", "is_tls", "prefix"),
    [
        ("http://sales02:8018", "sales02", 8018, False, "/api/v1"),
        ("http://sales02:8018/", "sales02", 8018, False, "/api/v1"),
        ("https://sales02", "sales02", 443, True, "/api/v1"),
        ("http://[::1]:8018", "::1", 8018, False, "/api/v1"),
        ("https://example.com/queues/", "example.com", 443, True, "/queues/api/v1"),
    ],
)
def test_a_url_says_where_the_service_is(
    url: str, host: str, port: int, is_tls: bool, prefix: str
) -> None:
    door = Door.parse(url)
    assert (door.host, door.port, door.is_tls, door.prefix) == (host, port, is_tls, prefix)
    assert (door.socket, door.shown) == (None, url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("unix:/var/lib/falconmq", "/var/lib/falconmq/control.sock"),
        ("unix:///var/lib/falconmq", "/var/lib/falconmq/control.sock"),
        ("unix:///run/falconmq/control.sock", "/run/falconmq/control.sock"),
        ("unix:data", "data/control.sock"),
    ],
)
def test_a_data_directory_or_its_socket_is_a_door_too(url: str, path: str) -> None:
    door = Door.parse(url)
    assert (door.socket, door.shown) == (Path(path), str(Path(path).parent))


def test_a_relative_path_is_made_absolute_for_those_who_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_anywhere("unix:data") == f"unix:{tmp_path}/data"
    for url in ("unix:/data", "unix:///data", "http://sales02:8018", "unix:", ""):
        assert from_anywhere(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sales02:8018",
        "ftp://sales02",
        "http://",
        "http://sales02:port",
        "http://user:secret@sales02",
        "http://sales02/?token=secret",
        "unix:",
        "unix://host/data",
        "http://[::1",
    ],
)
def test_what_is_no_url_of_a_service_is_refused_with_the_form(url: str) -> None:
    with pytest.raises(FalconMQError) as raised:
        Door.parse(url)
    assert raised.value.status is MqStatus.INVALID_PARAMETER
    assert "http://HOST:8018" in raised.value.hint


def test_the_environment_says_what_the_caller_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCONMQ_URL", "http://there:1")
    monkeypatch.setenv("FALCONMQ_TOKEN", "secret")
    assert chosen(None, None) == (Door.parse("http://there:1"), "secret")
    assert chosen("http://here:2", "mine") == (Door.parse("http://here:2"), "mine")
    monkeypatch.delenv("FALCONMQ_TOKEN")
    monkeypatch.delenv("FALCONMQ_URL")
    assert chosen("http://here:2", None) == (Door.parse("http://here:2"), None)
    with pytest.raises(FalconMQError, match="no service is named") as raised:
        chosen(None, None)
    assert "FALCONMQ_URL" in raised.value.hint
