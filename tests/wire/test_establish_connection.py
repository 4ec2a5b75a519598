"""EstablishConnection, MQQB 2.2.3."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import establish_connection
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.establish_connection import SIZE, EstablishConnection
from falconmq.wire.internal_header import InternalHeader
from tests.strategies.packets import establish_connections
from tests.strategies.wire import guids, u16, u32
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

CLIENT = bytes(range(0x20, 0x30))
SERVER = bytes(range(0x30, 0x40))
OTHER = bytes(range(0x40, 0x50))
NOBODY = bytes(16)

# every field at another value, garbage in all that is ignored
BYTES = (
    bytes.fromhex("10c1 0b00 4c494f52 3c020000 ffffffff")
    + bytes.fromhex("0102 0200")
    + CLIENT
    + SERVER
    + bytes.fromhex("03040506 1083 0708")
    + bytes(range(256)) * 2
)
REQUEST = EstablishConnection.request(CLIENT, SERVER, uptime_ms=0x01020304)


@pytest.mark.requirement(
    "QB-2.2.3-01",
    "QB-2.2.3.1-01",
    "QB-2.2.3.1-02",
)
def test_every_field_stands_at_its_offset() -> None:
    packet = EstablishConnection.decode(BYTES)
    assert packet == EstablishConnection(
        client_guid=CLIENT,
        server_guid=SERVER,
        time_stamp=0x06050403,
        operating_system=0x8310,
        reserved=0x0807,
        padding=bytes(range(256)) * 2,
        base=BaseHeader(0x000B, 572, 0xFFFFFFFF, 0xC1),
        internal=InternalHeader(0x0002, 0x0201),
    )
    assert packet.encode() == BYTES
    assert len(BYTES) == SIZE == 572


@pytest.mark.requirement("QB-2.2.3-02", "QB-2.2.3-03", "QB-2.2.3-04")
def test_request_and_response_are_internal_packets_of_type_2() -> None:
    for packet in (REQUEST, REQUEST.response(SERVER)):
        data = packet.encode()
        assert data[:20] == bytes.fromhex("10000b00 4c494f52 3c020000 ffffffff 00000200")
        assert EstablishConnection.decode(data) == packet


@pytest.mark.requirement("QB-2.2.3.1-02", "QB-2.2.3.1-04")
def test_a_request_names_both_sides_or_nobody_for_a_direct_name() -> None:
    assert REQUEST.encode()[20:52] == CLIENT + SERVER
    assert EstablishConnection.request(CLIENT, uptime_ms=0).encode()[20:52] == CLIENT + NOBODY


@pytest.mark.requirement("QB-2.2.3.1-06")
@pytest.mark.parametrize(
    ("uptime_ms", "time_stamp"), [(0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0x1_0000_0005, 5)]
)
def test_the_time_stamp_is_the_uptime_and_wraps(uptime_ms: int, time_stamp: int) -> None:
    packet = EstablishConnection.request(CLIENT, uptime_ms=uptime_ms)
    assert packet.encode()[52:56] == time_stamp.to_bytes(4, "little")


@pytest.mark.requirement("QB-2.2.3.1-08")
def test_the_operating_system_has_its_bits_in_order() -> None:
    assert establish_connection.RELEASE == 0x00FF  # RE
    assert establish_connection.SESSION_NOT_PINGED == 0x0100  # SE
    assert establish_connection.SERVER_CLASS == 0x0200  # OS
    assert establish_connection.QUALITY_OF_SERVICE == 0x0400  # QS
    assert establish_connection.RESERVED_OPERATING_SYSTEM == 0xF800  # X11 to X15
    data = EstablishConnection(CLIENT, SERVER, 0, operating_system=0x0310).encode()
    assert data[56:58] == bytes.fromhex("1003")


@pytest.mark.requirement("QB-A53-01")
@pytest.mark.parametrize(
    ("sent", "now", "round_trip"),
    [(1000, 1187, 187), (0xFFFFFFFE, 0x1_0000_0003, 5), (7, 7, 0), (0xFFFFFFFF, 1, 2)],
)
def test_the_round_trip_survives_the_wrap(sent: int, now: int, round_trip: int) -> None:
    response = EstablishConnection.request(CLIENT, uptime_ms=sent).response(SERVER)
    assert response.round_trip_ms(now) == round_trip


@pytest.mark.parametrize(
    ("pinged", "server_class", "word"),
    [
        pytest.param(
            False,
            True,
            0x0310,
            marks=pytest.mark.requirement("QB-2.2.3.1-10", "QB-2.2.3.1-13"),
        ),
        pytest.param(True, True, 0x0210, marks=pytest.mark.requirement("QB-2.2.3.1-10")),
        pytest.param(False, False, 0x0110, marks=pytest.mark.requirement("QB-2.2.3.1-13")),
        (True, False, 0x0010),
    ],
)
def test_a_request_tells_of_ping_and_operating_system(
    pinged: bool, server_class: bool, word: int
) -> None:
    packet = EstablishConnection.request(
        CLIENT, uptime_ms=0, pinged=pinged, server_class=server_class
    )
    assert packet.encode()[56:58] == word.to_bytes(2, "little")


@pytest.mark.requirement(
    "QB-2.2.3.1-09", "QB-2.2.3.1-14", "QB-2.2.3.1-15", "QB-2.2.3.1-17", "QB-2.2.1-11"
)
@given(establish_connections)
def test_what_we_answer_is_clean_whatever_the_request_holds(request: EstablishConnection) -> None:
    data = request.response(SERVER).encode()
    assert data[56] == 0x10  # RE
    assert data[57] & 0xFC == 0  # QS and X11 to X15
    assert data[58:60] == b"\0\0"
    assert int.from_bytes(data[18:20], "little") & 0xFFE0 == 0


@pytest.mark.requirement("QB-2.2.3.1-09", "QB-2.2.3.1-14", "QB-2.2.3.1-15", "QB-2.2.3.1-17")
def test_what_we_ask_is_clean() -> None:
    assert REQUEST.encode()[56:60] == bytes.fromhex("1003 0000")


@pytest.mark.requirement(
    "QB-2.2.3.1-03",
    "QB-2.2.3.1-07",
    "QB-2.2.3.1-11",
    "QB-2.2.3.1-19",
)
@given(establish_connections)
def test_a_response_copies_client_time_stamp_and_session_bit(request: EstablishConnection) -> None:
    asked, answered = request.encode(), request.response(SERVER).encode()
    assert answered[20:36] == asked[20:36]
    assert answered[52:56] == asked[52:56]
    assert answered[57] & 0x01 == asked[57] & 0x01
    assert answered[56] == 0x10
    assert answered[60:] == b"\x5a" * 512


@pytest.mark.requirement(
    "QB-2.2.3.1-05",
    "QB-A02-01",
)
@pytest.mark.parametrize("asked", [SERVER, NOBODY, OTHER])
def test_a_response_names_its_own_queue_manager(asked: bytes) -> None:
    request = EstablishConnection.request(CLIENT, asked, uptime_ms=0)
    assert request.response(SERVER).encode()[36:52] == SERVER


@pytest.mark.requirement("QB-2.2.1-09", "QB-A01-01")
@pytest.mark.parametrize(("asked", "refused"), [(SERVER, 0), (NOBODY, 0), (OTHER, 1)])
def test_a_request_for_another_queue_manager_is_refused(asked: bytes, refused: int) -> None:
    request = EstablishConnection.request(CLIENT, asked, uptime_ms=0)
    response = request.response(SERVER)
    assert response.encode()[18] >> 4 == refused
    assert response.refused is bool(refused)


def test_local_policy_can_refuse_what_the_names_would_allow() -> None:
    response = REQUEST.response(SERVER, refused=True)
    assert response.encode()[16:20] == bytes.fromhex("0000 1200")
    assert EstablishConnection.decode(response.encode()).refused


def test_a_response_tells_whether_its_own_system_is_server_class() -> None:
    assert REQUEST.response(SERVER, server_class=False).operating_system == 0x0110


@pytest.mark.requirement("QB-2.2.3.1-16", "QB-2.2.3.1-18", "QB-2.2.3.1-20")
@given(st.integers(0, 31), u16, st.binary(min_size=512, max_size=512))
def test_garbage_in_ignored_fields_changes_no_answer(
    unused: int, reserved: int, padding: bytes
) -> None:
    word = REQUEST.operating_system | unused << 11
    noisy = replace(REQUEST, operating_system=word, reserved=reserved, padding=padding)
    assert EstablishConnection.decode(noisy.encode()).response(SERVER) == REQUEST.response(SERVER)


@pytest.mark.requirement("QB-2.2.3.1-20")
def test_a_request_is_padded_as_in_the_published_frame() -> None:
    assert REQUEST.encode()[60:] == b"\x5a" * 512


@given(establish_connections)
def test_round_trip(packet: EstablishConnection) -> None:
    assert len(assert_round_trip(packet)) == SIZE


@given(guids, guids, u32)
def test_three_values_make_a_packet(client: bytes, server: bytes, time_stamp: int) -> None:
    assert_round_trip(EstablishConnection(client, server, time_stamp))


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(EstablishConnection.decode, data)


@given(st.integers(0, SIZE - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(EstablishConnection.decode, changed)


def test_a_cut_packet_is_refused() -> None:
    assert_every_cut_is_refused(EstablishConnection.decode, BYTES)


@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [
        (2, "0300", "Flags"),  # IN missing
        (8, "3b020000", "PacketSize"),
        (8, "3d020000", "PacketSize"),
        (18, "0300", "Flags"),  # another packet type
        (18, "0100", "Flags"),
    ],
)
def test_headers_of_another_packet_are_refused(offset: int, data: str, field: str) -> None:
    value = bytes.fromhex(data)
    changed = BYTES[:offset] + value + BYTES[offset + len(value) :]
    with pytest.raises(WireError) as caught:
        EstablishConnection.decode(changed)
    assert (caught.value.field, caught.value.offset) == (field, offset)


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        (replace(REQUEST, base=BaseHeader(0x0003, 572)), "Flags"),
        (replace(REQUEST, base=BaseHeader(0x000B, 571)), "PacketSize"),
        (replace(REQUEST, internal=InternalHeader(3)), "Flags"),
        (replace(REQUEST, client_guid=bytes(15)), "ClientGuid"),
        (replace(REQUEST, server_guid=bytes(17)), "ServerGuid"),
        (replace(REQUEST, time_stamp=1 << 32), "TimeStamp"),
        (replace(REQUEST, time_stamp=-1), "TimeStamp"),
        (replace(REQUEST, operating_system=1 << 16), "OperatingSystem"),
        (replace(REQUEST, reserved=1 << 16), "Reserved"),
        (replace(REQUEST, padding=bytes(511)), "Padding"),
        (replace(REQUEST, padding=bytes(513)), "Padding"),
    ],
)
def test_impossible_values_are_refused_by_name(packet: EstablishConnection, field: str) -> None:
    with pytest.raises(WireError) as caught:
        packet.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)


@pytest.mark.requirement("QB-2.2.1-10")
@pytest.mark.parametrize(
    ("sessions", "limit", "refused"), [(0, 1, False), (1, 1, True), (2, 1, True), (0, 0, True)]
)
def test_a_full_queue_manager_refuses_one_session_more(
    sessions: int, limit: int, refused: bool
) -> None:
    request = EstablishConnection.request(CLIENT, uptime_ms=1)
    answer = request.response(SERVER, sessions=sessions, max_in_sessions=limit)
    assert answer.refused is refused


@pytest.mark.requirement("QB-2.2.1-10")
def test_by_default_the_limit_is_out_of_reach() -> None:
    request = EstablishConnection.request(CLIENT, uptime_ms=1)
    assert not request.response(SERVER, sessions=0xFFFFFFFE).refused
    assert request.response(SERVER, sessions=0xFFFFFFFF).refused
