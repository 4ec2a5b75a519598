"""A process that has imported falconmq already, and becomes the `falconmq` command on request.

How to think about it. Most of what a command or a daemon costs is its imports: half a second to a
whole one, hundreds of times in a test run. This process imports everything once. For each request
it forks twice: the first child waits for the second and tells how it ended, the second puts on what
it was given (arguments, environment, directory, standard streams) and runs `falconmq.cli.main`, as
the installed script does. It leaves by the same door as every Python program, so that exit codes,
signals and what is printed at the end are those of a real start.

`tests.processes` is the other side. A request is one datagram: a JSON object and four descriptors
(standard input, output and error, and the socket for the answers). The answers are two datagrams:
the number of the process, when it looks as it should, and later its wait status. When nobody can
ask any more, this process ends.

Only this file runs here, never pytest: there is one thread, so that forking is safe.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import socket
import sys
import tempfile
import time
from typing import Final, NamedTuple

LARGEST: Final = 200_000  # bytes of a request; an environment has some thousands
STANDARD_STREAMS: Final = 3
BEGUN: Final = b"begun "  # and the number of the process
ENDED: Final = b"ended "  # and its wait status
# What commands and daemons import when they need it. None of these starts a thread.
_NEEDED: Final = (
    "falconmq.cli.app",
    "falconmq.cli.packet_json",
    "falconmq.cli.packet_text",
    "falconmq.cli.sources",
    "falconmq.client",
    "falconmq.service.api.app",
    "falconmq.service.console.app",
    "falconmq.service.process",
    "falconmq.service.local",
    "falconmq.service.web.control",
    "rich.console",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
)


class Job(NamedTuple):
    """What the new process is to run, and how."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    new_session: bool


def wait_for_job(requests: socket.socket) -> tuple[Job, socket.socket] | None:
    """Serve requests. Returns in each new process, with a job, and when there are no more."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, LARGEST, STANDARD_STREAMS + 1)
        _forget_the_dead()
        if not text:
            return None
        if os.fork() == 0:
            requests.close()
            answers = _become_parent(*descriptors)
            return Job(**json.loads(text)), socket.socket(fileno=answers)
        for descriptor in descriptors:
            os.close(descriptor)


def _forget_the_dead() -> None:
    """Collect the children that have ended, so that their time is counted and nothing is left."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_parent(stdin: int, stdout: int, stderr: int, answers: int) -> int:
    """Return in a child with these standard streams; stay to tell how that one ended."""
    process = os.fork()
    if process == 0:
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return answers
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    with socket.socket(fileno=answers) as line, contextlib.suppress(OSError):  # nobody may listen
        _, status = os.waitpid(process, 0)
        line.send(ENDED + str(status).encode())
    os._exit(0)


def put_on(job: Job) -> None:
    """Look like a process that was started for this."""
    if job.new_session:
        os.setsid()
    os.chdir(job.directory)
    os.environ.clear()
    os.environ.update(job.environment)
    time.tzset()
    tempfile.tempdir = None
    sys.argv = job.arguments
    sys.stdin = sys.__stdin__ = _stream(0, "rb", "strict")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "wb", "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "wb", "backslashreplace")  # type: ignore[misc]


def _stream(number: int, mode: str, errors: str) -> io.TextIOWrapper:
    """A standard stream as Python opens it."""
    encoding = os.environ.get("PYTHONIOENCODING") or "utf-8"
    return io.TextIOWrapper(
        open(number, mode, closefd=False),
        encoding=encoding,
        errors=errors,
        newline="\n",
        line_buffering=os.isatty(number) or number == 2,
    )


def prepare() -> None:
    """Do once what every command and every daemon would do at its start."""
    for name in _NEEDED:
        importlib.import_module(name)
    from fastapi.openapi.utils import get_openapi  # noqa: PLC0415 - pytest imports this file too

    from falconmq.service.api.app import _handlers  # noqa: PLC0415

    get_openapi(title="", version="", routes=_handlers().routes)  # they are made ready for requests
    gc.freeze()  # nothing here is garbage: children need not copy it to find that out


if __name__ == "__main__":
    prepare()
    given = wait_for_job(socket.socket(fileno=int(sys.argv[1])))
    if given is not None:
        job, answers = given
        put_on(job)
        answers.send(BEGUN + str(os.getpid()).encode())
        answers.close()
        from falconmq.cli import main

        sys.exit(main())
