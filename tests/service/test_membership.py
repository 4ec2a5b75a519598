"""The routes of the membership, `[directory]` in the configuration, and the metrics of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from falconmq.service.configuration import DirectorySection, Source, check, load
from falconmq.service.configuration.examples import example
from falconmq.service.daemon import Service
from falconmq.service.directory.membership import delete_membership, write_membership
from falconmq.service.directory.ways import Ways
from falconmq.service.file_modes import find
from falconmq.service.tables import ConfigurationError
from tests.service.observed import observed
from tests.service.services import loopback, run

EMBEDDED: dict[str, Any] = {"kind": "embedded", "domain": "example.com", "site": "Berlin"}


async def series(http: httpx.AsyncClient, name: str) -> dict[tuple[str, ...], float]:
    answer = await http.get("http://service/metrics")
    return {
        tuple(sample.labels.values()): sample.value
        for family in parse(answer.text)
        for sample in family.samples
        if sample.name == name
    }


def test_joining_and_leaving_over_http(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path / "a") as (service, http):
            alone = (await http.get("/membership")).json()
            assert (alone["kind"], alone["is_joined"], alone["map"]) == ("none", False, None)
            assert await series(http, "falconmq_directory_up") == {}
            answer = await http.post("/membership", json=EMBEDDED)
            assert answer.status_code == 200, answer.text
            joined = answer.json()
            assert joined["sites"] == ["Berlin"]
            assert joined["is_registered"] is True
            assert joined["map"]["queue_managers"] == 1
            assert await series(http, "falconmq_directory_up") == {(): 1}
            counted = await series(http, "falconmq_directory_notifications_total")
            assert counted["in", "reloads"] == 1
            status = (await http.get("/status")).json()
            assert status["directory"] == joined | {
                "notifications_received": status["directory"]["notifications_received"]
            }
            # a reload finds what was written down, and changes nothing
            shown = (await http.get("/configuration")).json()
            kind = next(s for s in shown["settings"] if s["name"] == "directory.kind")
            assert (kind["value"], kind["source"]) == ("embedded", "membership")
            # it is in the audit log, by whom and what
            entries = (await http.get("/audit")).json()["entries"]
            assert "directory join" in [entry["action"] for entry in entries]
            again = await http.post("/membership", json=EMBEDDED)
            assert again.status_code == 400
            assert "already" in again.json()["detail"]
            left = await http.delete("/membership")
            assert left.json()["is_joined"] is False
            assert service.hub.directory is None
            nothing = await http.delete("/membership", params={"force": True})
            assert nothing.status_code == 400

    run(main())


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "remote"}, "servers"),
    ({"kind": "remote", "servers": ["ldap://dc1"]}, "servers"),
    ({"kind": "ldap", "servers": ["ldap://dc1"], "bind_name": "CN=mq"}, "password_file"),
    ({"kind": "embedded", "ca_file": "ca.pem"}, "absolute"),
    ({"kind": "none"}, "kind"),
    ({"kind": "embedded", "colour": "red"}, "colour"),
]


def test_a_membership_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path / "a") as (service, http):
            for body, word in WRONG:
                answer = await http.post("/membership", json=body)
                assert 400 <= answer.status_code < 500, body
                assert word in answer.text
                assert service.hub.directory is None

    run(main())


def test_a_reload_does_not_change_the_directory(tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "falconmq.toml"
        head = f'[manager]\nname = "A"\ndata = "data"\nbind = "{loopback()}"\n'
        head += "[http]\nenabled = false\n"
        file.write_text(head + '[directory]\nkind = "embedded"\n')
        file.chmod(0o644)
        service = await Service.start(load(file, environment={}))
        try:
            hub = service.hub
            assert hub.status()["domain"] == "falconmq"  # nobody said anything else
            assert hub.status()["sites"] == ["Default-Site"]
            assert (await service.reload()).changes == ()
            router = hub.router
            assert isinstance(service.transport.router, Ways)
            assert service.transport.router.directory is router
            file.write_text(head + '[directory]\nkind = "none"\ncache_seconds = 1\n')
            changes = (await service.reload()).changes
            assert {change.name for change in changes} == {
                "directory.kind",
                "directory.cache_seconds",
            }
            assert not any(change.is_applied for change in changes)
            assert service.configuration.directory.kind == "embedded"
            assert hub.directory is not None
            assert service.transport.router.directory is router
        finally:
            await service.stop()

    run(main())


def test_what_was_joined_is_under_the_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\ndata = "data"\n')
    section = DirectorySection(
        kind="remote", servers=("https://hq:8018", "https://hq2"), ca_file=Path("/x/ca.pem")
    )
    (tmp_path / "data").mkdir(mode=0o700)
    write_membership(tmp_path / "data", section)
    found = load(file)
    assert found.directory == section
    assert found.sources["directory.servers"] is Source.MEMBERSHIP
    assert "directory.site" not in found.sources
    # the file wins over it, key by key; the environment over both
    file.write_text(file.read_text() + '[directory]\nsite = "Paris"\nservers = ["https://other"]\n')
    found = load(file, environment={"FALCONMQ_DIRECTORY_SITE": "Rome"})
    assert found.directory.kind == "remote"
    assert found.directory.servers == ("https://other",)
    assert found.directory.site == "Rome"
    assert found.sources["directory.site"] is Source.ENVIRONMENT
    assert found.sources["directory.servers"] is Source.FILE
    assert (tmp_path / "data" / "membership.toml").stat().st_mode & 0o777 == 0o600
    delete_membership(tmp_path / "data")
    delete_membership(tmp_path / "data")  # twice is as good
    found = load(file, environment={"FALCONMQ_DIRECTORY_KIND": "none"})
    assert not found.directory.is_joined


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('kind = "remote"', "directory.servers"),
        ('kind = "novell"', "directory.kind"),
        ('kind = "ldap"\nservers = ["https://x"]', "directory.servers"),
        ('kind = "ldap"\nservers = ["ldap://x"]\nbind_name = "a"', "directory.password_file"),
        ('kind = "embedded"\ntimeout_seconds = 0', "directory.timeout_seconds"),
        ("cache_seconds = -1", "directory.cache_seconds"),
    ],
)
def test_what_is_wrong_with_a_directory_section(tmp_path: Path, lines: str, problem: str) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text(f"[directory]\n{lines}\n")
    assert [problem in str(each) for each in check(file, {})] == [True]
    with pytest.raises(ConfigurationError):
        load(file, data=tmp_path, environment={})


def test_the_files_with_its_secrets_are_looked_at(tmp_path: Path) -> None:
    file, token = tmp_path / "falconmq.toml", tmp_path / "token"
    file.write_text(
        '[manager]\nname = "A"\ndata = "data"\n[directory]\nkind = "remote"\n'
        'servers = ["https://hq"]\ntoken_file = "token"\nca_file = "ca.pem"\n'
    )
    token.touch(0o600)
    (tmp_path / "ca.pem").touch(0o644)
    assert find(load(file)) == []
    token.chmod(0o640)
    (tmp_path / "ca.pem").chmod(0o666)
    assert {finding.path.name for finding in find(load(file)) if finding.is_refused} == {
        "token",
        "ca.pem",
    }


def test_the_example_has_every_key_of_it() -> None:
    text = example()
    assert "[directory]" in text
    assert '# servers = ["https://hq.example.com:8018"]' in text
