"""Keys that were renewed go to the directory, now or when it is back."""

from __future__ import annotations

import logging
from random import Random

import pytest

from falconmq.clock import VirtualClock
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.manager.directory import check_directory_online
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.security import rsa
from falconmq.security.keys import ManagerKeys
from falconmq.security.problems import KeyFileError
from falconmq.security.providers import PROVIDERS
from falconmq.service.directory.publishing import RETRY_SECONDS, KeyPublisher
from falconmq.store import MemoryStore


def keys(seed: int) -> ManagerKeys:
    pair = rsa.generate(512, Random(seed))
    pairs = dict.fromkeys(PROVIDERS, pair)
    return ManagerKeys(pairs, pairs)


class Site:
    """A queue manager that its directory knows."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.engine = start_engine(
            MemoryStore(),
            Settings(computer_name="SALES01"),
            clock=self.clock,
            is_threaded=False,
        )
        self.core = self.engine.core
        self.directory = MemoryDirectory()
        self.core.directory = self.directory
        row = {**self.core.local.row(), "identifier": self.core.identifier}
        self.directory.create("QueueManager", row)
        self.publisher = KeyPublisher()

    @property
    def published(self) -> object:
        row = self.directory.rows["QueueManager"][self.core.identifier]
        return row["public_encryption_keys"], row["public_signing_keys"]

    @property
    def state(self) -> tuple[bool, str]:
        return self.publisher.is_waiting, self.publisher.problem

    def publish(self, made: ManagerKeys) -> None:
        self.engine.run(self.publisher.publish, made)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.engine.run_timers()


def lists(made: ManagerKeys) -> tuple[bytes, bytes]:
    return made.public_encryption_keys.encode(), made.public_signing_keys.encode()


@pytest.mark.requirement("MQ-2.2.20.6-50")
def test_renewed_keys_are_written_at_once() -> None:
    site = Site()
    site.publish(keys(1))
    assert site.published == lists(keys(1))
    assert site.state == (False, "")
    assert site.core.local.public_encryption_keys == lists(keys(1))[0]


def test_keys_that_were_renewed_while_the_directory_was_away_are_written_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Site()
    site.publish(keys(1))
    site.directory.is_connected = False
    with caplog.at_level(logging.WARNING, "falconmq.directory"):
        site.publish(keys(2))
        assert site.publisher.is_waiting
        assert "no directory can be asked" in site.publisher.problem
        site.advance(RETRY_SECONDS)
        site.advance(RETRY_SECONDS)
        site.publish(keys(3))  # and renewed once more
    assert site.published == lists(keys(1))
    assert len([line for line in caplog.messages if "not published yet" in line]) == 1
    # when it is back, the queue manager learns its old keys from it first
    site.directory.is_connected = True
    site.engine.run(check_directory_online)
    site.advance(RETRY_SECONDS)
    assert site.published == lists(keys(3))
    assert site.state == (False, "")
    # and that was all
    calls = len(site.directory.calls)
    site.advance(10 * RETRY_SECONDS)
    assert "write QueueManager" not in site.directory.calls[calls:]


def test_keys_that_the_directory_lacks_at_a_start_are_published(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Site()
    site.publish(keys(1))
    site.core.key_source = lambda: keys(1)
    calls = len(site.directory.calls)
    site.engine.run(site.publisher.catch_up)
    assert site.directory.calls[calls:] == []  # it has them
    site.core.key_source = lambda: keys(2)
    site.engine.run(site.publisher.catch_up)
    assert site.published == lists(keys(2))

    def unreadable() -> ManagerKeys:
        raise KeyFileError("keys.json has mode 0644", hint="chmod 600")

    site.core.key_source = unreadable
    with caplog.at_level(logging.ERROR, "falconmq.directory"):
        site.engine.run(site.publisher.catch_up)
    assert "keys.json has mode 0644; chmod 600" in caplog.text
    assert site.published == lists(keys(2))


def test_who_leaves_its_directory_has_nothing_to_publish() -> None:
    site = Site()
    site.directory.is_connected = False
    site.publish(keys(1))
    assert site.state[0]
    site.directory.is_integrated = False
    site.advance(RETRY_SECONDS)
    assert site.state == (False, "")
    site.publish(keys(2))
    assert site.state == (False, "")
