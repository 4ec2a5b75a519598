"""Files that others may read or change: found, refused or warned about, with the way to mend it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import falconmq
from falconmq.service.access import Role, TokenError, TokenStore
from falconmq.service.configuration import Configuration, HttpSection, ManagerSection, load
from falconmq.service.daemon import Service
from falconmq.service.file_modes import FileModeError, check_files, find
from falconmq.service.process import serve
from falconmq.store.data_directory import SIDE_FILES
from tests.cli.commands import InProcess
from tests.service.services import loopback, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration whose data directory has everything, and nothing wrong."""
    config = tmp_path / "falconmq.toml"
    head = f'[manager]\nname = "A"\ndata = "data"\nbind = "{loopback()}"\n'
    config.write_text(head + "[http]\nenabled = false\n")
    config.chmod(0o644)
    data = tmp_path / "data"
    falconmq.open(data).close()
    for name in SIDE_FILES:
        (data / name).touch(0o600)
    return config


def found(file: Path) -> list[tuple[str, bool]]:
    return [(finding.path.name, finding.is_refused) for finding in find(load(file))]


def test_a_data_directory_as_it_is_made_has_nothing_wrong(file: Path) -> None:
    assert found(file) == []
    assert check_files(load(file)) == []
    nowhere = Configuration(ManagerSection("A", file.parent / "nowhere"))
    assert find(nowhere) == []


@pytest.mark.parametrize(
    ("name", "mode", "is_refused", "mend"),
    [
        ("data", 0o702, True, "chmod 700 "),
        ("data", 0o1777, True, "chmod 700 "),
        ("data", 0o770, False, "chmod 700 "),
        ("data", 0o705, False, "chmod 700 "),
        ("data/data.mdb", 0o602, True, "chmod 600 "),
        ("data/data.mdb", 0o620, True, "chmod 600 "),
        *((f"data/{name}", 0o640, True, "chmod 600 ") for name in SIDE_FILES),
        *((f"data/{name}", 0o604, True, "chmod 600 ") for name in SIDE_FILES),
        ("falconmq.toml", 0o646, True, "chmod o-w "),
    ],
)  # fmt: skip
def test_what_others_may_do_is_found_with_the_command_that_mends_it(
    file: Path, name: str, mode: int, is_refused: bool, mend: str
) -> None:
    path = file.parent / name
    path.chmod(mode)
    (finding,) = find(load(file))
    assert (finding.path, finding.is_refused) == (path, is_refused)
    assert f"mode {mode:04o}" in finding.text
    assert f"{mend}{path}" in finding.hint
    if is_refused:
        with pytest.raises(FileModeError) as refused:
            check_files(load(file))
        assert str(refused.value) == finding.text
    else:
        assert check_files(load(file)) == [finding]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("data", 0o750), ("data/data.mdb", 0o640), ("falconmq.toml", 0o664)],
)
def test_what_a_group_may_see_is_its_own_affair(file: Path, name: str, mode: int) -> None:
    (file.parent / name).chmod(mode)
    assert found(file) == []


@pytest.mark.parametrize(
    ("key", "certificate", "refused"),
    [
        (0o600, 0o644, []),
        (0o640, 0o644, []),  # as the group ssl-cert of Debian has it
        (0o644, 0o644, ["k.pem"]),
        (0o660, 0o644, ["k.pem"]),
        (0o600, 0o666, ["c.pem"]),
    ],
)
def test_the_key_of_https_is_for_the_service_and_a_group_alone(
    file: Path, key: int, certificate: int, refused: list[str]
) -> None:
    configuration = load(file)
    paths = (file.parent / "c.pem", file.parent / "k.pem")
    for path, mode in zip(paths, (certificate, key), strict=True):
        path.touch()
        path.chmod(mode)
    http = HttpSection(certificate=paths[0], key=paths[1])
    findings = find(replace(configuration, http=http))
    assert [finding.path.name for finding in findings] == refused
    assert all(finding.is_refused for finding in findings)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_secrets_belong_to_the_owner_of_the_directory_or_to_the_service(file: Path) -> None:
    data = file.parent / "data"
    os.chown(data, 12345, 12345)
    os.chown(data / "keys.json", 12345, 12345)
    assert found(file) == []
    os.chown(data / "tokens.json", 12346, 12346)
    (finding,) = find(load(file))
    assert "tokens.json belongs to another user (12346)" in finding.text
    assert finding.is_refused


def test_the_service_does_not_start_on_them_and_says_why(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = file.parent / "data"
    (data / "tokens.json").chmod(0o644)
    data.chmod(0o777)
    assert run(serve(load(file))) == 1
    assert "cannot start: everybody may write in the data directory" in caplog.text
    assert f"hint: chmod 700 {data}; 1 more: falconmq config check" in caplog.text


def test_the_service_starts_with_a_warning_where_others_may_only_look(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = file.parent / "data"
    for name in SIDE_FILES:
        (data / name).unlink()
    data.chmod(0o755)

    async def main() -> None:
        service = await Service.start(load(file))
        try:
            # its socket is for nobody else, whatever the directory allows
            socket = service.configuration.control_socket
            assert [finding.path for finding in find(service.configuration)] == [data]
            socket.chmod(0o666)
            assert [finding.path for finding in find(service.configuration)] == [data, socket]
            # and a configuration that everybody may change is not read again
            file.chmod(0o666)
            with pytest.raises(FileModeError, match="others may change"):
                await service.reload()
        finally:
            await service.stop()

    run(main())
    assert "everybody may look into the data directory" in caplog.text


def test_commands_refuse_too_and_show_what_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = InProcess(capsys, monkeypatch)
    data = file.parent / "data"
    # given something that is only worth a warning
    data.chmod(0o755)
    for arguments in (("status", "--config", str(file)), ("config", "check", str(file))):
        done = command(*arguments)
        assert done.code == 0
        assert "warning: everybody may look into the data directory" in " ".join(done.err.split())
    # when there is something that must not be, then commands open nothing
    (data / "keys.json").chmod(0o644)
    for arguments in (("status", "--config", str(file)), ("config", "check", str(file))):
        done = command(*arguments)
        assert done.code == 1
        said = " ".join(done.err.split())
        assert "error: " in said
        assert "keys.json has mode 0644" in said
        assert "chmod 600" in said


def test_tokens_that_others_could_read_let_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = TokenStore(tmp_path)
    text, _ = tokens.create("web-shop", [Role.SEND])
    tokens.path.chmod(0o640)
    again = TokenStore(tmp_path)
    assert again.find(text) is None
    assert "has mode 0640" in caplog.text
    with pytest.raises(TokenError, match="has mode 0640") as refused:
        again.create("another", [Role.SEND])
    assert "chmod 600" in refused.value.hint
