"""How tests start the `falconmq` command as a process, without waiting for its imports.

    process = Command("serve", "--config", str(config), stderr=subprocess.PIPE)

`Command` is a `subprocess.Popen`: it has a number that signals can be sent to, pipes, an exit code.
It comes out of a process that has imported everything already (`tests.fork_server`), one for each
pytest process. Some things only a real start can show, which is `subprocess` with `FALCONMQ`: what
the command imports, what the interpreter does with PYTHON... variables, other network namespaces.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Final

from tests.fork_server import BEGUN, ENDED, LARGEST, Job

FALCONMQ: Final = Path(sys.executable).parent / "falconmq"
_SERVER: Final = Path(__file__).with_name("fork_server.py")
_ANSWER_BYTES: Final = 64


class Command(subprocess.Popen[bytes]):
    """`falconmq ...`, running. All that `subprocess.Popen` can, from waiting to communicating.

    The process is the child of another, which tells over `_answers` how it ended: what
    `subprocess` would ask the operating system is asked there instead.
    """

    def __init__(
        self,
        *arguments: str,
        stdin: IO[bytes] | int | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        environment: Mapping[str, str] | None = None,
        new_session: bool = False,
    ) -> None:
        self._answers: socket.socket
        super().__init__(
            [str(FALCONMQ), *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=new_session,
        )

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        """Called by `Popen` with its pipes made: here is where it would start a program."""
        environment, pipes, new_session = rest[5], rest[9:15], rest[20]
        request = _request(args, os.environ if environment is None else environment, new_session)
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            given = (pipes[0], pipes[3], pipes[5])  # the ends of stdin, stdout, stderr; or -1
            ends = [number if end == -1 else end for number, end in enumerate(given)]
            socket.send_fds(_server(), [request], [*ends, theirs.fileno()])
        close_ends: Callable[..., None] = self._close_pipe_fds  # type: ignore[attr-defined]
        close_ends(*pipes)
        begun = self._answers.recv(_ANSWER_BYTES)
        assert begun.startswith(BEGUN), "it did not begin; the reason is in its standard error"
        self.pid = int(begun.removeprefix(BEGUN))
        self._child_created = True

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            lock: threading.Lock = self._waitpid_lock  # type: ignore[attr-defined]
            if not lock.acquire(timeout=-1 if timeout is None else timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            try:
                self._take_status(timeout)
            finally:
                lock.release()
        return self.returncode

    def _take_status(self, timeout: float | None) -> None:
        if self.returncode is not None:
            return  # another thread has waited
        if not select.select([self._answers], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        ended = self._answers.recv(_ANSWER_BYTES)
        assert ended.startswith(ENDED), "the process that waits for this one is gone"
        self.returncode = os.waitstatus_to_exitcode(int(ended.removeprefix(ENDED)))
        self._answers.close()


def _request(arguments: list[str], environment: Mapping[str, str], new_session: bool) -> bytes:
    for name, value in environment.items():
        is_for_python = name.startswith("PYTHON") and name != "PYTHONIOENCODING"
        assert not is_for_python or os.environ.get(name) == value, f"{name} needs a real start"
    job = Job(arguments, dict(environment), str(Path.cwd()), new_session)
    request = json.dumps(job._asdict()).encode()
    assert len(request) < LARGEST
    return request


@functools.cache
def _server() -> socket.socket:
    """The line to this process's fork server, which is started when it is first needed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", str(_SERVER), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
