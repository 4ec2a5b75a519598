"""The files in deploy/ are what they claim to be, as far as can be seen without running them."""

from __future__ import annotations

import fnmatch
import importlib
import ipaddress
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from falconmq.cli.app import COMMANDS
from falconmq.service.configuration import check, load
from tests.deploy.containerfiles import Instruction, parse, variables

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "falconmq.service"


@pytest.fixture(scope="module")
def container() -> list[Instruction]:
    return parse((DEPLOY / "Containerfile").read_text("utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    yaml: Any = importlib.import_module("yaml")
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def rest(container: list[Instruction], word: str) -> list[str]:
    return [instruction.rest for instruction in container if instruction.word == word]


# the container


def test_the_image_is_built_from_pinned_bases(container: list[Instruction]) -> None:
    bases = [line.split()[0] for line in rest(container, "FROM")]
    assert container[0].word == "FROM"
    for base in bases:
        name, _, tag = base.rpartition(":")
        assert name
        assert tag not in ("", "latest")


def test_everything_that_is_copied_is_there_and_not_ignored(container: list[Instruction]) -> None:
    ignored = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    ]
    for line in rest(container, "COPY"):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        if "--from=" in line:
            continue
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch.fnmatch(source, pattern) for pattern in ignored), source


def test_nothing_is_fetched_past_the_package_index(container: list[Instruction]) -> None:
    assert rest(container, "ADD") == []
    for line in rest(container, "RUN"):
        assert not re.search(r"curl|wget|https?://", line)
        if "pip install" in line:
            assert "--constraint constraints.txt" in line
            assert "--no-cache-dir" in line


def test_the_image_runs_as_a_user_without_rights(container: list[Instruction]) -> None:
    words = [instruction.word for instruction in container]
    (user,) = rest(container, "USER")
    assert int(user.partition(":")[0]) > 0
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "RUN" not in words[words.index("USER") :]


def test_the_image_starts_a_command_that_exists(container: list[Instruction]) -> None:
    entry, command = rest(container, "ENTRYPOINT")[0], rest(container, "CMD")[0]
    assert json.loads(entry) == ["falconmq"]
    assert json.loads(command) == ["serve"]
    (health,) = rest(container, "HEALTHCHECK")
    program, *words = json.loads(health[health.index("[") :])
    assert program == "falconmq"
    assert " ".join(words) in {known.words for known in COMMANDS}


def test_the_variables_of_the_image_are_a_configuration(container: list[Instruction]) -> None:
    given = variables(container)
    assert check(None, given) == []
    (volume,) = rest(container, "VOLUME")
    assert given["FALCONMQ_DATA"] in json.loads(volume)
    configuration = load(environment=given)
    assert ipaddress.ip_address(configuration.http_address).is_unspecified
    assert configuration.http.plain
    assert configuration.http.loopback_role == ""  # nobody gets in without a token
    ports = " ".join(rest(container, "EXPOSE"))
    assert f"{configuration.manager.port}/tcp" in ports
    assert f"{configuration.http.port}/tcp" in ports


def test_the_extras_of_the_image_exist(container: list[Instruction]) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    named = re.findall(r"whl\)\[([\w,]+)\]", " ".join(rest(container, "RUN")))
    assert named
    assert set(named[0].split(",")) <= known["project"]["optional-dependencies"].keys()


@pytest.mark.parametrize("text", ["INSTALL x", "FROM", "FROM a\nrun x"])
def test_the_reader_of_containerfiles_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no instruction"):
        parse(text)


# compose


def managers(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: service
        for name, service in compose["services"].items()
        if service["image"].startswith("falconmq")
    }


def test_three_managers_reach_each_other_by_name(compose: dict[str, Any]) -> None:
    found = managers(compose)
    assert len(found) == 3
    for name, service in found.items():
        assert service["hostname"] == name
        assert service["environment"]["FALCONMQ_MANAGER_NAME"].lower() == name


def test_every_manager_has_a_volume_of_its_own(compose: dict[str, Any]) -> None:
    volumes = [service["volumes"][0] for service in managers(compose).values()]
    names = [volume.partition(":")[0] for volume in volumes]
    assert len(set(names)) == 3
    assert set(names) <= compose["volumes"].keys()
    assert {volume.partition(":")[2] for volume in volumes} == {"/var/lib/falconmq"}


def test_their_variables_are_a_configuration(
    compose: dict[str, Any], container: list[Instruction]
) -> None:
    for service in managers(compose).values():
        given = {
            name: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value)
            for name, value in service["environment"].items()
        }
        assert check(None, {**variables(container), **given}) == []


def test_managers_have_no_rights_and_no_disk_but_their_volume(compose: dict[str, Any]) -> None:
    for service in managers(compose).values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["healthcheck"]["test"] == ["CMD", "falconmq", "ready"]
        assert service["stop_grace_period"]


def test_http_is_published_to_this_computer_alone(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service["ports"]]
    for port in published:
        if not port.endswith(":1801"):
            assert port.startswith("127.0.0.1:")
    assert len({re.sub(r"\$\{.*?\}", "", port) for port in published}) == len(published)


def test_the_build_is_that_of_the_containerfile(compose: dict[str, Any]) -> None:
    for service in managers(compose).values():
        context = (DEPLOY / service["build"]["context"]).resolve()
        assert context == ROOT
        assert (context / service["build"]["dockerfile"]).is_file()


def test_files_that_are_mounted_are_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for volume in service["volumes"]:
            if volume.startswith("."):
                assert (DEPLOY / volume.partition(":")[0]).exists(), volume


# systemd


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text("utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def test_the_unit_starts_commands_that_exist() -> None:
    settings, words = unit(), {command.words for command in COMMANDS}
    for line in settings["ExecStart"] + settings["ExecStartPre"]:
        assert line.partition("falconmq ")[2] in words
    assert settings["Type"] == ["notify"]
    assert settings["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    given = dict(word.split("=", 1) for word in settings["Environment"][0].split())
    assert given["FALCONMQ_DATA"] == f"/var/lib/{settings['StateDirectory'][0]}"


def test_the_user_of_the_unit_is_made() -> None:
    made = (DEPLOY / "falconmq.sysusers").read_text("utf-8").splitlines()[-1].split()
    assert made[:2] == ["u", unit()["User"][0]]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with the command that is installed here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    command = Path(sys.executable).parent / "falconmq"
    path = tmp_path / "falconmq.service"
    path.write_text(UNIT.read_text("utf-8").replace("/opt/falconmq/bin/falconmq", str(command)))
    return path


def test_systemd_understands_the_unit(installed: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(installed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_locked_down(installed: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(installed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr  # 2.0 of 10
