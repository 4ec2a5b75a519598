r"""Fuzz the HTTP API of a running daemon from its own description.

`python -m fuzz.api --examples 500` starts a daemon on a loopback address of its own, reads its
/api/v1/openapi.json, and calls each operation with that many requests, fitting and unfitting ones,
made by schemathesis. No answer may be a server error, and every answer must be as described. What
fails is shown with the request that replays it.

Left out are streams without an end (`/events`); long waits are cut short, and a ping only goes to
this computer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
)

from falconmq.client import ControlClient
from tests.e2e.estate import Estate

CHECKS: Final = [not_a_server_error, content_type_conformance, response_schema_conformance]
ENDLESS: Final = frozenset({"/api/v1/events"})
LONGEST_WAIT: Final = 0.2  # seconds that a fuzzed request may ask to wait
HTTP_PORT: Final = 8018
_SECONDS: Final = 30  # until an answer must be there
_LENIENT: Final = {"quota_kilobytes": 4096, "authentication": False, "privacy_level": "OPTIONAL"}
QUEUES: Final = (r".\private$\plain", r".\private$\transactional")
ELSEWHERE: Final = r"DIRECT=TCP:127.0.0.1\private$\nowhere"  # nobody listens there

Case = Any
Operation = Any


@schemathesis.serializer("application/vnd.falconmq.packets", "application/vnd.apache.arrow.stream")
def _as_they_are(context: Any, value: Any) -> bytes:  # noqa: ARG001  # the shape of a serializer
    """Bytes that are packets or Arrow by accident only."""
    return value if isinstance(value, bytes) else str(value).encode()


class Known:
    """What there is at the moment: most requests should be about something that exists."""

    def __init__(self, client: ControlClient) -> None:
        place = f"/queues/{quote(QUEUES[0], safe='')}"
        page = client.request("GET", f"{place}/messages?count=3")["messages"]
        begun = client.request("POST", "/transactions", {"timeout": 3600})
        leased = client.request("POST", f"{place}/receive", {"lease": 3600})
        self._ids = {
            "/transactions/": [begun["id"]],
            "/leases/": [leased["lease"]],
            "/cursors/": [client.request("POST", f"{place}/cursors", {})["id"]],
            "/handles/": [client.request("POST", f"{place}/handles", {})["id"]],
            "/messages/": [quote(message["id"], safe="") for message in page],
        }
        self._values = {
            "lookup_id": [message["lookup_id"] for message in page],
            "number": [str(queue["number"]) for queue in client.outgoing()],
            "subject": [*QUEUES, ELSEWHERE, *(message["id"] for message in page)],
            "queue": [*QUEUES, r".\system$;deadletter"],
            "target": list(QUEUES),
            "after": [message["lookup_id"] for message in page],
            "transaction": [begun["id"]],
        }

    def put_into(self, case: Case) -> None:
        """Replace most of the names and numbers that were made up."""
        for name, given in (case.path_parameters or {}).items():
            choices = self._of_path(case.path, name)
            if choices and _draw(given, 4):
                case.path_parameters[name] = choices[_draw(given, len(choices))]
        for values in (case.query, case.body):
            if isinstance(values, dict):
                self._put_into_values(values)
        if isinstance(case.body, dict) and case.path == "/api/v1/queues":
            case.body["name"] = rf".\private$\made{_draw(case.body.get('name'), 50)}"

    def _put_into_values(self, values: dict[str, Any]) -> None:
        for name in values.keys() & self._values.keys():
            choices, given = self._values[name], values[name]
            if choices and _draw(given, 3):
                values[name] = choices[_draw(given, len(choices))]

    def _of_path(self, path: str, name: str) -> list[str]:
        if name == "name" and "/queues/" in path:
            return [quote(queue, safe="") for queue in QUEUES]
        if name == "id":
            return next((ids for part, ids in self._ids.items() if part in path), [])
        return self._values.get(name, [])


def _draw(given: object, sides: int) -> int:
    """A number that only depends on what was made up, so that a run can be repeated."""
    return zlib.crc32(repr(given).encode()) % sides


def tame(case: Case) -> Case:
    """A request that neither waits for long nor leaves this computer, and needs no token."""
    case.headers.pop("Authorization", None)
    body = case.body
    if isinstance(body, dict):
        if isinstance(body.get("timeout"), int | float) and not isinstance(body["timeout"], bool):
            body["timeout"] = min(body["timeout"], LONGEST_WAIT)
        if isinstance(body.get("address"), str):
            body["address"] = "127.0.0.1"
    return case


def operations(url: str) -> list[Operation]:
    """Everything that the daemon says it can do."""
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    found: list[Operation] = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result  # else the description is wrong
        found.append(result.ok())
    return [operation for operation in found if operation.path not in ENDLESS]


def fuzz(
    operation: Operation, daemon: FuzzedDaemon, examples: int, *, seed: int | None = None
) -> Counter[int]:
    """Call one operation with so many requests; how often which status came.

    Raises what an answer broke.
    """
    answers: Counter[int] = Counter()
    known = daemon.refill()

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=seed is None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy())
    def call(case: Case) -> None:
        known.put_into(case)
        answer = tame(case).call(base_url=daemon.url, timeout=_SECONDS)
        answers[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    run: Callable[[], None] = call
    if seed is not None:
        run = hypothesis.seed(seed)(call)
    run()
    return answers


class FuzzedDaemon:
    """A daemon that lets this computer do everything, with some queues and messages in it."""

    def __init__(self, directory: Path) -> None:
        self._estate = Estate(directory)
        self._daemon = self._estate.manager("FUZZED")
        self._daemon.sections["http"] = {"loopback_role": "manage", "port": HTTP_PORT}
        self.url = f"http://{self._daemon.address}:{HTTP_PORT}"

    def __enter__(self) -> Self:
        self._estate.__enter__()
        self._daemon.start()
        self.refill()
        return self

    def refill(self) -> Known:
        """See that there is something to find: requests delete and purge too."""
        client = self._daemon.client
        there = {queue["name"] for queue in client.queues()}
        for name in QUEUES:
            if name not in there:
                client.create_queue(name, transactional=name.endswith("transactional"))
            client.request("PATCH", f"/queues/{quote(name, safe='')}", _LENIENT)
            client.send(name, [{"text": f"message {number}"} for number in range(5)])
        client.send(ELSEWHERE, [{"text": "on its way"}])
        return Known(client)

    def __exit__(self, *error: object) -> None:
        self._estate.__exit__(*error)

    def is_alive(self) -> bool:
        """Whether it still does its work."""
        return bool(self._daemon.client.status()["id"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=200, help="requests for each operation")
    parser.add_argument("--seed", type=int, help="to try other requests, or the same again")
    parser.add_argument("--operation", help="only those whose name contains this text")
    chosen = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as directory, FuzzedDaemon(Path(directory)) as daemon:
        for operation in operations(daemon.url):
            name = f"{operation.method.upper()} {operation.path}"
            if chosen.operation and chosen.operation not in name:
                continue
            try:
                answers = fuzz(operation, daemon, chosen.examples, seed=chosen.seed)
            except (AssertionError, FailureGroup) as error:
                failed += 1
                sys.stdout.write(f"{name}: FAILED\n{error}\n")
            else:
                counts = ", ".join(f"{n} x {code}" for code, n in sorted(answers.items()))
                sys.stdout.write(f"{name}: {counts}\n")
            sys.stdout.flush()
        if not daemon.is_alive():
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
