"""A forked command is the command: streams, environment, exit codes and signals are its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.processes import FALCONMQ, Command

PATIENCE = 60.0
PIPE = subprocess.PIPE


def waiting(*, new_session: bool = False) -> Command:
    """A command that waits for its input."""
    return Command("decode", "-", stdin=PIPE, stdout=PIPE, stderr=PIPE, new_session=new_session)


def names_in(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.parametrize(
    "arguments", [["--version"], ["decode", "nonsense"], ["no-such-command"], ["queue", "--help"]]
)
def test_it_says_and_ends_as_a_real_start(arguments: list[str]) -> None:
    with Command(*arguments, stdout=PIPE, stderr=PIPE) as process:
        said = process.communicate(timeout=PATIENCE)
    real = subprocess.run([FALCONMQ, *arguments], capture_output=True, check=False)
    assert (process.returncode, *said) == (real.returncode, real.stdout, real.stderr)


def test_it_reads_what_it_is_given() -> None:
    with waiting() as process:
        out, _ = process.communicate(b"nonsense", timeout=PATIENCE)
    assert process.returncode == 1
    assert b"8 bytes" in out


def test_its_streams_are_those_it_was_given_and_no_others(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out, waiting() as process:
        with Command("--version", stdout=out) as other:
            assert other.wait(PATIENCE) == 0
        opened = names_in(f"/proc/{process.pid}/fd")
        process.kill()
    assert opened == ["0", "1", "2"]
    assert (tmp_path / "out").read_bytes().startswith(b"falconmq ")


def test_it_has_the_environment_and_the_folder_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FALCONMQ_MANAGER_NAME", "ELSEWHERE")
    with Command("config", "show", "--json", stdout=PIPE) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert b"ELSEWHERE" in out
    monkeypatch.delenv("FALCONMQ_MANAGER_NAME")
    with Command("config", "show", "--json", stdout=PIPE) as process:
        assert b"ELSEWHERE" not in process.communicate(timeout=PATIENCE)[0]
    with waiting() as process:
        assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path
        process.kill()


def test_what_python_itself_reads_needs_a_real_start() -> None:
    with pytest.raises(AssertionError, match="PYTHONPATH needs a real start"):
        Command("--version", environment={"PYTHONPATH": "/nowhere"})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signals_end_it(number: signal.Signals) -> None:
    with waiting() as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
        assert process.poll() == -number


def test_it_may_lead_a_session_of_its_own() -> None:
    with waiting() as same, waiting(new_session=True) as own:
        assert os.getsid(own.pid) == own.pid
        assert os.getsid(same.pid) != same.pid
        same.kill()
        own.kill()


def test_its_parent_has_one_thread_and_so_has_the_server() -> None:
    with waiting() as process:
        parent = parent_of(process.pid)
        server = parent_of(parent)
        assert parent_of(server) == os.getpid()
        for one in (parent, server):
            assert names_in(f"/proc/{one}/task") == [str(one)]
        process.kill()
