"""Ping, MQQB 3.1.7.6 to 3.1.7.9, 3.1.6.8."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.transport.pinging import Pinger, answer
from falconmq.wire.ping import Ping
from tests.manager.helpers import IDENTIFIER, STRANGER

OURS: Final = IDENTIFIER.bytes_le
THEIRS: Final = STRANGER.bytes_le
ADDRESS: Final = "10.0.0.9"
OTHER_ADDRESS: Final = "10.0.0.10"
NOW: Final = 1000.0


def answered(request: bytes, *, refused: bool = False) -> bytes:
    """What the queue manager at the other end says to a request."""
    data = answer(request, THEIRS, refused=refused)
    assert data is not None
    return data


# The side that asks


@pytest.mark.requirement("QB-3.1.3.2-34")
@pytest.mark.requirement("QB-3.1.7.6-02", "QB-3.1.7.6-03", "QB-3.1.1.3-23", "QB-A46-01")
@pytest.mark.requirement("QB-2.2.7-06", "QB-2.2.7-11", "QB-2.2.7-14")
def test_each_request_has_a_cookie_of_its_own_counted_from_the_start() -> None:
    # given a queue manager that has just started
    pinger = Pinger(OURS)
    # when it asks one address after another
    requests = [Ping.decode(pinger.request(f"10.0.0.{i}", NOW)) for i in range(1, 5)]
    # then the cookies are counted over all of them, and each request is ours and plain
    assert [request.cookie for request in requests] == [1, 2, 3, 4]
    assert {(request.flags, request.qm_guid) for request in requests} == {(0, OURS)}
    # and another start begins anew
    assert Ping.decode(Pinger(OURS).request(ADDRESS, NOW)).cookie == 1


@pytest.mark.requirement("QB-2.2.7-03")
def test_a_request_tells_a_workstation_from_a_server() -> None:
    workstation = Pinger(OURS, server_class=False)
    assert not Ping.decode(workstation.request(ADDRESS, NOW)).server_class


@pytest.mark.requirement("QB-3.1.7.6-08", "QB-3.1.7.8-03", "QB-3.1.7.9-01", "QB-3.1.1.1.1.9-01")
@pytest.mark.parametrize("refused", [False, True])
def test_the_answer_says_whether_a_session_would_be_taken(refused: bool) -> None:
    # given a request that waits
    pinger = Pinger(OURS)
    request = pinger.request(ADDRESS, NOW)
    # when the answer comes
    said = pinger.received(answered(request, refused=refused), ADDRESS)
    # then it is what the peer said, and no timer runs any more
    assert said is not refused
    assert pinger.deadline is None
    assert pinger.expired(NOW + 60) == []


@pytest.mark.requirement("QB-3.1.7.6-05", "QB-3.1.7.6-06", "QB-3.1.7.6-07", "QB-3.1.6.8-01")
@pytest.mark.requirement("QB-3.1.2.9-01", "QB-3.1.1.1.1.9-01")
def test_silence_for_a_second_is_a_no() -> None:
    # given two requests, half a second apart
    pinger = Pinger(OURS)
    pinger.request(ADDRESS, NOW)
    pinger.request(OTHER_ADDRESS, NOW + 0.5)
    # when nobody answers
    assert pinger.deadline == NOW + 1.0
    assert pinger.expired(NOW + 0.999) == []
    # then each is given up after its own second, once
    assert pinger.expired(NOW + 1.0) == [ADDRESS]
    assert pinger.deadline == NOW + 1.5
    assert pinger.expired(NOW + 1.5) == [OTHER_ADDRESS]
    assert pinger.expired(NOW + 60) == []


@pytest.mark.requirement("QB-3.1.7.8-04")
def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    pinger = Pinger(OURS)
    late = answered(pinger.request(ADDRESS, NOW))
    # given a request that was given up, or was answered already
    pinger.expired(NOW + 1.0)
    # when an answer comes, then it is none
    assert pinger.received(late, ADDRESS) is None
    again = answered(pinger.request(ADDRESS, NOW + 2))
    assert pinger.received(again, ADDRESS) is True
    assert pinger.received(again, ADDRESS) is None


@pytest.mark.requirement("QB-3.1.7.8-02", "QB-2.2.7-13")
def test_an_answer_with_another_cookie_is_ignored_and_the_wait_goes_on() -> None:
    # given a request that replaced an older one to the same address
    pinger = Pinger(OURS)
    older = answered(pinger.request(ADDRESS, NOW), refused=True)
    latest = answered(pinger.request(ADDRESS, NOW + 0.5))
    # when the answer to the older one comes, then it counts for nothing
    assert pinger.received(older, ADDRESS) is None
    assert pinger.deadline == NOW + 1.5
    assert pinger.received(latest, ADDRESS) is True


def test_an_answer_counts_for_the_address_it_comes_from() -> None:
    pinger = Pinger(OURS)
    first, second = pinger.request(ADDRESS, NOW), pinger.request(OTHER_ADDRESS, NOW)
    assert pinger.received(answered(first), OTHER_ADDRESS) is None
    assert pinger.received(answered(second, refused=True), OTHER_ADDRESS) is False
    assert pinger.received(answered(first), ADDRESS) is True


@pytest.mark.requirement("QB-3.1.7.8-01", "QB-2.2.7-10")
def test_an_answer_with_another_signature_is_ignored() -> None:
    pinger = Pinger(OURS)
    data = bytearray(answered(pinger.request(ADDRESS, NOW)))
    data[2] ^= 1
    assert pinger.received(bytes(data), ADDRESS) is None
    assert pinger.deadline == NOW + 1.0


@given(data=st.binary(max_size=48))
def test_any_datagram_is_an_answer_or_ignored(data: bytes) -> None:
    pinger = Pinger(OURS)
    pinger.request(ADDRESS, NOW)
    said = pinger.received(data, ADDRESS)
    assert (said is None) is (pinger.deadline is not None)


# The side that is asked


@pytest.mark.requirement("QB-3.1.7.7-02", "QB-2.2.7-05")
@pytest.mark.parametrize("refused", [False, True])
def test_a_request_is_answered_with_what_would_happen_to_a_session(refused: bool) -> None:
    request = Ping.request(7, OURS).encode()
    assert Ping.decode(answered(request, refused=refused)).refused is refused


@pytest.mark.requirement("QB-3.1.7.7-03", "QB-3.1.7.7-04", "QB-3.1.7.7-05", "QB-3.1.7.7-06")
@pytest.mark.requirement("QB-2.2.7-04", "QB-2.2.7-08", "QB-2.2.7-09", "QB-2.2.7-12", "QB-2.2.7-14")
@pytest.mark.parametrize(("flags", "kept"), [(0xFFFC, 0), (0xFFFD, 1), (0, 0), (1, 1)])
def test_an_answer_echoes_cookie_and_class_and_names_its_maker(flags: int, kept: int) -> None:
    request = Ping(flags, 0xDEADBEEF, OURS).encode()
    data = answered(request)
    assert data[2:4] == b"\x48\x55"
    assert Ping.decode(data) == Ping(kept, 0xDEADBEEF, THEIRS)


@pytest.mark.requirement("QB-3.1.7.7-01", "QB-2.2.7-10")
@given(data=st.binary(max_size=48))
def test_what_is_no_ping_is_not_answered(data: bytes) -> None:
    assert answer(data, THEIRS, refused=False) is None
    ping = bytearray(Ping.request(7, OURS).encode())
    ping[3] ^= 0x10
    assert answer(bytes(ping), THEIRS, refused=False) is None


def test_an_echo_of_our_own_request_is_not_answered() -> None:
    assert answer(Ping.request(7, THEIRS).encode(), THEIRS, refused=False) is None
