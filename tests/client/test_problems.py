"""Refusals of the service become the errors that embedded programs know."""

from __future__ import annotations

import json

import pytest

from falconmq import errors
from falconmq.client.problems import as_embedded, refusal
from falconmq.errors import FalconMQError, MessageError, MqStatus, QueueError


def problem(code: int, detail: str, family: str, status: MqStatus) -> FalconMQError:
    said = {"hresult": f"0x{status:08X}", "detail": detail, "hint": "do that", "family": family}
    return as_embedded(refusal(code, json.dumps(said).encode()))


@pytest.mark.parametrize(
    "family",
    [
        "QueueError",
        "ReadError",
        "TransactionError",
        "ResourceError",
        "DirectoryError",
        "StoreError",
    ],
)
def test_an_error_keeps_its_class_status_and_hint(family: str) -> None:
    error = problem(409, "no", family, MqStatus.TRANSACTION_USAGE)
    assert type(error) is getattr(errors, family)
    assert (str(error), error.status, error.hint) == ("no", MqStatus.TRANSACTION_USAGE, "do that")


def test_a_message_error_names_its_field_and_not_its_place_in_the_request() -> None:
    for detail in ("packets[3]: label: too long", "messages[3].label: too long"):
        error = problem(400, detail, "MessageError", MqStatus.LABEL_TOO_LONG)
        assert isinstance(error, MessageError)
        assert (error.field, str(error)) == ("label", "label: too long")


@pytest.mark.parametrize("code", [401, 403])
def test_whoever_may_not_ask_is_denied(code: int) -> None:
    error = problem(code, "a token is needed", "FalconMQError", MqStatus.INVALID_PARAMETER)
    assert (error.status, error.hint) == (MqStatus.ACCESS_DENIED, "do that")


def test_what_is_no_error_of_ours_is_one_of_falconmq_all_the_same() -> None:
    for family in ("", "SomethingError", "UnreachableError"):
        assert type(problem(400, "no", family, MqStatus.ERROR)) is FalconMQError
    error = as_embedded(refusal(418, b"teapot"))
    assert not isinstance(error, QueueError)
    assert "HTTP status 418" in str(error)
