"""`ControlClient.stream`: an answer that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from falconmq import Message
from falconmq.client import ServiceError, UnreachableError
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager


def test_pieces_come_as_they_are_written_and_other_calls_go_on(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as service, service.client() as client:
        queue = service.blocking.create_queue(ORDERS)
        with client.stream("GET", "/events") as pieces:
            assert b"event: start" in next(pieces)
            queue.send(Message("x"))
            assert client.queue(ORDERS)["messages"] == 1  # over the connection of the thread
            assert b"event: ARRIVED" in next(pieces)


def test_a_refusal_is_the_same_as_of_any_other_call(tmp_path: Path) -> None:
    with (
        ControlledManager(tmp_path) as service,
        service.client() as client,
        pytest.raises(ServiceError, match="no queue"),
        client.stream("GET", "/events?queue=.%5Cprivate%24%5Cnothing"),
    ):
        pass


def test_it_ends_when_the_service_stops(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as service, service.client() as client:
        with client.stream("GET", "/events") as pieces:
            next(pieces)
            service.stop_server()
            assert list(pieces) == []
        with pytest.raises(UnreachableError), client.stream("GET", "/events"):
            pass
