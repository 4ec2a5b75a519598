"""SEQUENCE_NUMBER, MQDSRP 2.2.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.sequence_number import (
    MAX_SEQ_NUMBER,
    MIN_SEQ_NUMBER,
    add,
    decode_sequence_number,
    decrement,
    encode_sequence_number,
    increment,
    subtract,
)
from tests.strategies.wire import u64

HIGH_BYTES = st.integers(0, 7).map(lambda zeros: (1 << 8 * zeros) - 1)  # carries run far
numbers = st.one_of(u64, HIGH_BYTES, HIGH_BYTES.map(lambda number: number + 1))


def encode(number: int) -> bytes:
    return encode_sequence_number(number, "DirectoryChange", "SeqNumber")


def incremented(elements: bytes) -> bytes:
    """The specification's way: element 8 first, carry while an element wraps to 0."""
    result = bytearray(elements)
    for index in range(7, -1, -1):
        result[index] = (result[index] + 1) & 0xFF
        if result[index] != 0:
            break
    return bytes(result)


def decremented(elements: bytes) -> bytes:
    """Element 8 first, borrow while the element was 0."""
    result = bytearray(elements)
    for index in range(7, -1, -1):
        previous = result[index]
        result[index] = (previous - 1) & 0xFF
        if previous != 0:
            break
    return bytes(result)


@pytest.mark.requirement("RP-2.2.2-01")
def test_the_first_byte_is_the_most_significant() -> None:
    assert encode(0x0102030405060708) == bytes.fromhex("0102030405060708")
    assert decode_sequence_number(bytes.fromhex("0102030405060708")) == 0x0102030405060708


@pytest.mark.requirement("RP-2.2.2-02")
def test_the_smallest_is_eight_zero_bytes() -> None:
    assert encode(MIN_SEQ_NUMBER) == bytes(8)


@pytest.mark.requirement("RP-2.2.2-03")
def test_the_largest_is_eight_ff_bytes() -> None:
    assert encode(MAX_SEQ_NUMBER) == b"\xff" * 8


@pytest.mark.requirement("RP-2.2.2-04")
@given(numbers)
def test_increment_carries_element_by_element(number: int) -> None:
    assert encode(increment(number)) == incremented(encode(number))


@pytest.mark.requirement("RP-2.2.2-05")
@given(numbers)
def test_decrement_borrows_element_by_element(number: int) -> None:
    assert encode(decrement(number)) == decremented(encode(number))


@pytest.mark.requirement("RP-2.2.2-06")
def test_counting_wraps_at_both_ends() -> None:
    assert increment(MAX_SEQ_NUMBER) == MIN_SEQ_NUMBER
    assert decrement(MIN_SEQ_NUMBER) == MAX_SEQ_NUMBER


@pytest.mark.requirement("RP-2.2.2-07")
@given(numbers, st.integers(0, 300))
def test_addition_is_so_many_increments(number: int, count: int) -> None:
    elements = encode(number)
    for _ in range(count):
        elements = incremented(elements)
    assert encode(add(number, count)) == elements


@pytest.mark.requirement("RP-2.2.2-08")
@given(numbers, st.integers(0, 300))
def test_subtraction_is_so_many_decrements(number: int, count: int) -> None:
    elements = encode(number)
    for _ in range(count):
        elements = decremented(elements)
    assert encode(subtract(number, count)) == elements


@pytest.mark.requirement("RP-2.2.2-09", "RP-2.2.2-10")
@given(st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8))
def test_numbers_compare_as_their_elements_do(first: bytes, second: bytes) -> None:
    a, b = decode_sequence_number(first), decode_sequence_number(second)
    assert (a == b) == (first == second)
    differing = [(x, y) for x, y in zip(first, second, strict=True) if x != y]
    assert (a < b) == (bool(differing) and differing[0][0] < differing[0][1])


@given(numbers)
def test_round_trip(number: int) -> None:
    assert decode_sequence_number(encode(number)) == number


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_a_number_that_does_not_fit_is_refused_by_name(number: int) -> None:
    with pytest.raises(WireError, match=r"DirectoryChange\.SeqNumber: -?\d+ is no SEQUENCE_NUMBER"):
        encode(number)
