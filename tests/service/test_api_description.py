"""The API describes itself as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from falconmq import aio
from falconmq.service.api import create_app
from tests.embedded.helpers import threaded_engine

Json = dict[str, Any]


@pytest.fixture(scope="module")
def described() -> Iterator[Json]:
    engine = threaded_engine()
    yield create_app(aio.QueueManager(engine)).openapi()
    engine.close()


def operations(described: Json) -> list[tuple[str, Json]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_refusal_is_described_as_a_problem(described: Json) -> None:
    for name, operation in operations(described):
        answers = operation["responses"]
        assert list(answers["default"]["content"]) == ["application/problem+json"], name
        assert "422" not in answers, name


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("GET /api/v1/queues", "read"),
        ("POST /api/v1/queues", "manage"),
        ("POST /api/v1/outgoing/{number}/pause", "manage"),
        ("POST /api/v1/queues/{name}/messages", "send"),
        ("POST /api/v1/queues/{name}/messages/move", "receive and send"),
        ("DELETE /api/v1/cursors/{id}", "read or receive"),
    ],
)
def test_an_operation_names_the_roles_that_it_needs(described: Json, name: str, roles: str) -> None:
    assert dict(operations(described))[name]["x-roles"] == roles


def test_only_what_everybody_may_ask_needs_no_role(described: Json) -> None:
    free = {name for name, operation in operations(described) if "x-roles" not in operation}
    assert free == {"GET /healthz", "GET /readyz"}
