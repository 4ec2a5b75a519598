"""Redriving while the daemon is killed: nothing lost, nothing doubled."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from falconmq.client import CONTROL_SOCKET, ControlClient
from falconmq.errors import FalconMQError
from tests.e2e.estate import Estate, path, wait_until

LETTERS = 400


@pytest.mark.slow
@pytest.mark.parametrize("transactional", [False, True])
def test_a_redrive_that_is_killed_loses_and_doubles_nothing(
    tmp_path: Path, transactional: bool
) -> None:
    with Estate(tmp_path) as estate:
        # given messages that could not leave in time, numbered
        daemon, nobody = estate.manager("A").start(), estate.manager("B")
        messages = [
            {"text": str(number), "time_to_reach_queue": 1, "journal": ["DEAD_LETTER"]}
            for number in range(LETTERS)
        ]
        daemon.client.send(nobody.direct("orders"), messages, transactional)
        wait_until(lambda: _letters(daemon.client) == LETTERS, "the messages die")
        daemon.create_queue("target", transactional=transactional)
        # when the daemon is killed again and again while they are redriven
        for _ in range(3):
            with ControlClient(daemon.data / CONTROL_SOCKET) as client:
                working = threading.Thread(target=_redrive, args=(client, 5), daemon=True)
                before = _letters(daemon.client)
                working.start()
                wait_until(partial(_has_fewer, daemon.client, before), "some are redriven")
                daemon.restart()
                working.join()
        left = _letters(daemon.client)
        assert 0 < left < LETTERS
        _redrive(daemon.client, 100)
        # then each is there once
        assert _letters(daemon.client) == 0
        found = [message["text"] for message in daemon.look("target")]
        assert sorted(map(int, found)) == list(range(LETTERS))


def _letters(client: ControlClient) -> int:
    found = client.queues(system=True)
    return sum(q["messages"] for q in found if ";dead" in q["name"])


def _has_fewer(client: ControlClient, before: int) -> bool:
    return _letters(client) < before


def _redrive(client: ControlClient, batch: int) -> None:
    """Batch after batch, until there are no more or the daemon is gone."""
    after = None
    try:
        while True:
            body = {"target": path("target"), "limit": batch, "after": after}
            after = client.request("POST", "/dead-letters/redrive", body)["next"]
            if after is None:
                return
    except FalconMQError:
        return
