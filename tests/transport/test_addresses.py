"""Where queue managers were seen, and what is said of one that has two addresses."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from falconmq.transport.addresses import Addresses

OWN, OTHER = bytes(15) + b"\x01", bytes(15) + b"\x02"
TWO = "managers with two addresses"


def test_a_second_address_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    counters: Counter[str] = Counter()
    addresses = Addresses(OWN, counters)
    with caplog.at_level(logging.WARNING, "falconmq.transport"):
        addresses.note(OTHER, "10.0.0.7")
        addresses.note(OTHER, "10.0.0.7")
        assert caplog.records == []
        addresses.note(OTHER, "10.0.0.8")
        addresses.note(OTHER, "10.0.0.8")
    (record,) = caplog.records
    assert record.message.startswith("one queue manager at two addresses id=00000000-")
    assert "addresses=10.0.0.7, 10.0.0.8: " in record.message
    assert counters[TWO] == 1
    assert set(addresses.of(OTHER)) == {"10.0.0.7", "10.0.0.8"}
    assert set(addresses.of(OWN)) == set()


def test_somebody_with_our_own_identifier_is_told_at_the_first_address() -> None:
    counters: Counter[str] = Counter()
    addresses = Addresses(OWN, counters)
    addresses.note(OWN, "10.0.0.7")
    assert counters[TWO] == 1
    assert set(addresses.of(OWN)) == {"10.0.0.7", "here"}


def test_of_each_queue_manager_a_few_addresses_are_remembered() -> None:
    addresses = Addresses(OWN, Counter())
    for number in range(1, 100):
        addresses.note(OTHER, f"10.0.0.{number}")
    assert len(addresses.of(OTHER)) == 8
    assert len(addresses) == 1
