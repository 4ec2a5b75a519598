"""Ping, MQQB 2.2.7."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.ping import SIZE, UNUSED_FLAGS, Ping, PingCookies, received_answer, received_ping
from tests.strategies.packets import pings
from tests.strategies.wire import guids, u32
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

INITIATOR = bytes(range(0x20, 0x30))
ACCEPTOR = bytes(range(0x30, 0x40))
BYTES = bytes.fromhex("017d 4855 01020304") + INITIATOR


@pytest.mark.requirement("QB-2.2.7-01", "QB-2.1.2-02", "QB-2.2.7-09")
def test_every_field_stands_at_its_offset() -> None:
    ping = Ping.decode(BYTES)
    assert ping == Ping(flags=0x7D01, cookie=0x04030201, qm_guid=INITIATOR)
    assert ping.encode() == BYTES
    assert len(BYTES) == SIZE == 24
    # request and response have the same layout
    assert len(ping.response(ACCEPTOR, refused=True).encode()) == 24


@pytest.mark.requirement("QB-2.2.7-02")
@pytest.mark.parametrize(
    ("flags", "server_class", "refused"),
    [(0x0000, True, False), (0x0001, False, False), (0x0002, True, True), (0xFFFC, True, False)],
)
def test_bit_0_is_the_operating_system_and_bit_1_the_refusal(
    flags: int, server_class: bool, refused: bool
) -> None:
    ping = Ping.decode(Ping(flags, 1, INITIATOR).encode())
    assert (ping.server_class, ping.refused) == (server_class, refused)
    assert UNUSED_FLAGS == 0xFFFC


@pytest.mark.parametrize(
    ("server_class", "flags"),
    [
        pytest.param(True, 0, marks=pytest.mark.requirement("QB-2.2.7-03", "QB-2.2.7-06")),
        pytest.param(False, 1, marks=pytest.mark.requirement("QB-2.2.7-03", "QB-2.2.7-06")),
    ],
)
def test_a_request_tells_the_operating_system_and_never_refuses(
    server_class: bool, flags: int
) -> None:
    request = Ping.request(0x04030201, INITIATOR, server_class=server_class)
    assert request.encode() == bytes([flags, 0, 0x48, 0x55, 1, 2, 3, 4]) + INITIATOR


@pytest.mark.requirement(
    "QB-2.2.7-04",
    "QB-2.2.7-05",
    "QB-2.2.7-08",
    "QB-2.2.7-12",
    "QB-2.2.7-14",
)
@given(pings, st.booleans())
def test_a_response_copies_rc_and_cookie_and_names_its_maker(request: Ping, refused: bool) -> None:
    expected = request.flags & 0x0001 | (0x0002 if refused else 0)
    assert request.response(ACCEPTOR, refused=refused).encode() == (
        expected.to_bytes(2, "little")
        + bytes.fromhex("4855")
        + request.cookie.to_bytes(4, "little")
        + ACCEPTOR
    )


@pytest.mark.requirement("QB-2.2.7-14")
@given(guids)
def test_a_request_names_its_maker(queue_manager: bytes) -> None:
    assert Ping.request(1, queue_manager).encode()[8:] == queue_manager


@pytest.mark.requirement("QB-2.2.7-10")
@pytest.mark.parametrize("signature", ["5548", "4755", "4854", "0000", "ffff"])
def test_a_datagram_with_another_signature_is_ignored(signature: str) -> None:
    datagram = BYTES[:2] + bytes.fromhex(signature) + BYTES[4:]
    assert received_ping(BYTES) == Ping.decode(BYTES)
    assert received_ping(datagram) is None
    with pytest.raises(WireError) as caught:
        Ping.decode(datagram)
    assert (caught.value.field, caught.value.offset) == ("Signature", 2)


@pytest.mark.parametrize("datagram", [b"", BYTES[:-1], BYTES + b"\0"])
def test_a_datagram_of_another_size_is_ignored(datagram: bytes) -> None:
    assert received_ping(datagram) is None


@pytest.mark.requirement("QB-2.2.7-13")
@given(u32, u32)
def test_only_an_answer_to_the_latest_request_counts(latest: int, cookie: int) -> None:
    request = Ping.request(latest, INITIATOR)
    answer = Ping(0, cookie, ACCEPTOR)
    expected = answer if cookie == latest else None
    assert received_answer(answer.encode(), request) == expected
    own = request.response(ACCEPTOR, refused=False)
    assert received_answer(own.encode(), request) == own


def test_an_answer_with_another_signature_is_ignored() -> None:
    request = Ping.request(1, INITIATOR)
    datagram = bytearray(request.response(ACCEPTOR, refused=False).encode())
    datagram[2] = 0
    assert received_answer(datagram, request) is None


@pytest.mark.requirement("QB-2.2.7-07", "QB-2.2.7-08")
@given(pings)
def test_round_trip_keeps_garbage_flags(ping: Ping) -> None:
    assert len(assert_round_trip(ping)) == SIZE
    assert received_ping(ping.encode()) == ping


@given(st.binary(max_size=SIZE + 4))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(Ping.decode, data)
    received_ping(data)


@given(st.integers(0, SIZE - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    assert_decodes_or_refuses(Ping.decode, BYTES[:index] + bytes([byte]) + BYTES[index + 1 :])


def test_a_cut_ping_is_refused() -> None:
    assert_every_cut_is_refused(Ping.decode, BYTES)


@pytest.mark.parametrize(
    ("ping", "field"),
    [
        (Ping(1 << 16, 0, INITIATOR), "Flags"),
        (Ping(0, 1 << 32, INITIATOR), "Cookie"),
        (Ping(0, -1, INITIATOR), "Cookie"),
        (Ping(0, 0, bytes(15)), "QMGuid"),
        (replace(Ping(0, 0, INITIATOR), qm_guid=bytes(17)), "QMGuid"),
    ],
)
def test_impossible_values_are_refused_by_name(ping: Ping, field: str) -> None:
    with pytest.raises(WireError) as caught:
        ping.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)


@pytest.mark.requirement("QB-2.2.7-11")
def test_every_request_gets_a_cookie_of_its_own_until_32_bits_wrap() -> None:
    cookies = PingCookies()
    first = [cookies.next() for _ in range(1000)]
    assert len(set(first)) == 1000
    cookies._latest = 0xFFFFFFFE
    for cookie in (cookies.next(), cookies.next()):
        assert Ping.decode(Ping.request(cookie, INITIATOR).encode()).cookie == cookie
    assert cookie == 0
