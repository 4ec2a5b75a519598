"""PacketSplitter: MQQB 2.1.1, 3.1.5.1, framing rule QB-A09."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import INTERNAL, PACKET_SIZE_MAX, SESSION_HEADER, BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from tests.strategies.packets import internal_packets

SESSION_ACK = SessionAck(SessionHeader(1, 0, 0, 0, 0)).encode()
PARAMETERS = ConnectionParameters(1496, 120_000).encode()


def message(size: int, *, piggy_backed: bool = False) -> bytes:
    """A packet shaped like a user message: only its BaseHeader matters to the splitter."""
    flags = SESSION_HEADER if piggy_backed else 0
    body = bytes(index % 251 for index in range(size - 16 + (16 if piggy_backed else 0)))
    return BaseHeader(flags, size).encode() + body


def split(*segments: bytes) -> list[bytes]:
    """Feed and take in turn, as a session does."""
    splitter = PacketSplitter()
    packets = []
    for segment in segments:
        splitter.feed(segment)
        packets += [bytes(packet) for packet in splitter]
    return packets


def take(splitter: PacketSplitter) -> bytes | None:
    packet = splitter.take()
    return None if packet is None else bytes(packet)


streams = st.lists(
    st.one_of(
        internal_packets.map(lambda packet: packet.encode()),
        st.builds(message, st.integers(20, 200), piggy_backed=st.booleans()),
    ),
    max_size=6,
)


@pytest.mark.requirement("QB-A09-01")
@given(streams, st.data())
def test_any_segmentation_gives_the_same_packets(packets: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(packets)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    segments = [stream[a:b] for a, b in itertools.pairwise([0, *cuts, len(stream)])]
    assert split(*segments) == packets


@pytest.mark.requirement("QB-A09-01")
@given(streams)
def test_one_byte_at_a_time_gives_the_same_packets(packets: list[bytes]) -> None:
    assert split(*(bytes([byte]) for byte in b"".join(packets))) == packets


@given(streams, st.integers(1, 64))
def test_packets_can_wait_until_all_is_fed(packets: list[bytes], step: int) -> None:
    stream = b"".join(packets)
    splitter = PacketSplitter()
    for start in range(0, len(stream), step):
        splitter.feed(stream[start : start + step])
        assert splitter.pending == min(start + step, len(stream))
    assert [bytes(packet) for packet in splitter] == packets
    assert splitter.pending == 0


@pytest.mark.requirement("QB-A09-01")
def test_the_packet_behind_a_piggy_backed_ack_is_found() -> None:
    packets = [message(64, piggy_backed=True), SESSION_ACK, message(64), PARAMETERS]
    assert split(b"".join(packets)) == packets
    assert [len(packet) for packet in packets] == [80, 36, 64, 32]


def test_a_packet_inside_one_segment_is_not_copied() -> None:
    segment = SESSION_ACK + message(100) + PARAMETERS[:7]
    splitter = PacketSplitter()
    splitter.feed(segment)
    first, second = splitter
    assert first.obj is segment
    assert second.obj is segment
    assert splitter.pending == 7


def test_a_packet_over_many_segments_comes_as_one_read_only_view() -> None:
    splitter = PacketSplitter()
    for start in range(0, 36, 5):
        splitter.feed(SESSION_ACK[start : start + 5])
    packet = splitter.take()
    assert packet is not None
    assert packet == SESSION_ACK
    assert packet.readonly
    assert packet.contiguous


def test_packets_stay_as_they_are_when_more_bytes_come() -> None:
    splitter = PacketSplitter()
    splitter.feed(PARAMETERS[:20])
    splitter.feed(PARAMETERS[20:] + SESSION_ACK[:1])
    packet = splitter.take()
    assert packet is not None
    splitter.feed(SESSION_ACK[1:])
    assert packet == PARAMETERS
    assert take(splitter) == SESSION_ACK


def test_nothing_comes_before_the_last_byte() -> None:
    splitter = PacketSplitter()
    splitter.feed(SESSION_ACK[:-1])
    assert splitter.take() is None
    assert splitter.pending == 35
    splitter.feed(b"")
    assert splitter.take() is None
    splitter.feed(SESSION_ACK[-1:])
    assert take(splitter) == SESSION_ACK
    assert splitter.take() is None


def test_the_smallest_and_the_largest_packet_pass() -> None:
    smallest, largest = message(20), message(PACKET_SIZE_MAX, piggy_backed=True)
    half = len(largest) // 2
    assert split(smallest + largest[:half], largest[half:] + smallest) == [
        smallest,
        largest,
        smallest,
    ]


def test_a_large_packet_in_single_bytes_takes_linear_time() -> None:
    packet = message(100_000)
    splitter = PacketSplitter()
    splitter.feed(packet[:1])
    partial = splitter._partial
    for index in range(1, len(packet) - 1):
        splitter.feed(packet[index : index + 1])
    assert splitter._partial is partial  # it grew in place: no byte was copied again and again
    splitter.feed(packet[-1:])
    whole = splitter.take()
    assert whole is not None
    assert bytes(whole) == packet
    assert whole.obj is partial  # nor is it copied to be handed out


def test_an_announced_size_allocates_nothing() -> None:
    announced = BaseHeader(INTERNAL, PACKET_SIZE_MAX).encode() + bytes(84)
    tracemalloc.start()
    try:
        splitters = [PacketSplitter() for _ in range(50)]
        for splitter in splitters:
            splitter.feed(announced[:30])
            splitter.feed(announced[30:])
            assert splitter.take() is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000  # 4 MiB each would be 200 MiB
    assert all(splitter.pending == 100 for splitter in splitters)


BAD_HEADERS = {
    "VersionNumber": bytes.fromhex("11000000 4c494f52 24000000 ffffffff"),
    "Signature": bytes.fromhex("10000000 4c494f53 24000000 ffffffff"),
    "PacketSize": bytes.fromhex("10000000 4c494f52 13000000 ffffffff"),
}


@pytest.mark.requirement("QB-3.1.5.1.2-01")
@pytest.mark.parametrize("field", BAD_HEADERS)
@pytest.mark.parametrize("cut", [1, 5, 8, 12, 16])
def test_a_bad_header_ends_the_stream_behind_the_good_packets(field: str, cut: int) -> None:
    bad = BAD_HEADERS[field]
    splitter = PacketSplitter()
    splitter.feed(SESSION_ACK + bad[:cut])
    splitter.feed(bad[cut:] + SESSION_ACK)
    assert take(splitter) == SESSION_ACK
    with pytest.raises(WireError) as caught:
        splitter.take()
    assert (caught.value.structure, caught.value.field) == ("BaseHeader", field)


@pytest.mark.parametrize(
    ("field", "known_at"), [("VersionNumber", 1), ("Signature", 8), ("PacketSize", 16)]
)
def test_a_bad_header_is_refused_as_soon_as_its_bytes_are_there(field: str, known_at: int) -> None:
    splitter = PacketSplitter()
    for size in range(known_at):
        assert splitter.take() is None, f"refused after {size} bytes"
        splitter.feed(BAD_HEADERS[field][size : size + 1])
    with pytest.raises(WireError) as caught:
        splitter.take()
    assert caught.value.field == field


def test_another_protocol_is_refused_at_its_first_bytes() -> None:
    splitter = PacketSplitter()
    splitter.feed(b"GET")
    with pytest.raises(WireError, match=r"BaseHeader\.VersionNumber"):
        splitter.take()


def test_a_broken_stream_stays_broken_and_keeps_nothing() -> None:
    splitter = PacketSplitter()
    splitter.feed(SESSION_ACK + BAD_HEADERS["Signature"])
    assert splitter.pending == 36
    for _ in range(3):
        splitter.feed(SESSION_ACK)
        assert splitter.pending == 36
    assert take(splitter) == SESSION_ACK
    for _ in range(3):
        splitter.feed(SESSION_ACK)
        assert splitter.pending == 0
        with pytest.raises(WireError, match="Signature"):
            splitter.take()
        with pytest.raises(WireError, match="Signature"):
            list(splitter)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_split_or_raise_wire_error(segments: list[bytes]) -> None:
    splitter = PacketSplitter()
    try:
        for segment in segments:
            splitter.feed(segment)
            for packet in splitter:
                BaseHeader.decode(packet)
    except WireError as error:
        assert error.structure == "BaseHeader"
        assert error.offset is not None


@given(streams, st.data())
def test_a_changed_byte_never_makes_it_fail_otherwise(
    packets: list[bytes], data: st.DataObject
) -> None:
    stream = bytearray(b"".join([*packets, SESSION_ACK]))
    index = data.draw(st.integers(0, len(stream) - 1))
    stream[index] = data.draw(st.integers(0, 255))
    splitter = PacketSplitter()
    splitter.feed(bytes(stream))
    total = 0
    try:
        for packet in splitter:
            total += len(packet)
    except WireError:
        return
    assert total + splitter.pending == len(stream)


@pytest.mark.parametrize("step", range(1, 17))
def test_a_fault_reads_the_same_however_the_stream_was_cut(step: int) -> None:
    """A wrong signature that came byte by byte was once reported with bytes that never came."""
    stream = bytes.fromhex("10002cad 4c522400 01002604 0000b100 8100dcb4")
    splitter = PacketSplitter()
    for at in range(0, len(stream), step):
        splitter.feed(stream[at : at + step])
    with pytest.raises(WireError, match="Signature at offset 4: 0x0024524c, no MSMQ packet"):
        splitter.take()
