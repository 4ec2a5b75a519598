"""Status codes (MQMQ 2.4) and the errors that carry them."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.errors import (
    CUSTOMER_BIT,
    FalconMQError,
    MessageError,
    MqStatus,
    NameSyntaxError,
    WireError,
)

CATALOGUE = Path(__file__).parents[1] / "conformance" / "mqmq.tsv"
CODE_ROW = re.compile(r"(MQ\w+) = (0x[0-9A-F]{8}): (.+)\.")
OURS = {MqStatus.MQDS_NO_RSP_FROM_OWNER, MqStatus.MQDS_OWNER_NOT_REACHED}


def code_rows() -> Iterator[tuple[str, str, int, str]]:
    """Row id, symbol, code and meaning of each row that gives one code, as the row spells it."""
    for line in CATALOGUE.read_text(encoding="utf-8").splitlines():
        row, section, _, _, text = line.split("\t")
        found = CODE_ROW.fullmatch(text)
        if section == "2.4" and found:
            yield row, found[1], int(found[2], 16), found[3]


ROWS = list(code_rows())
LISTED = {code for _, _, code, _ in ROWS}


def test_the_catalogue_lists_all_145_codes() -> None:
    assert len(LISTED) == len(ROWS) == 145
    assert ROWS[0][:3] == ("MQ-2.4-06", "MQ_INFORMATION_PROPERTY", 0x400E0001)
    assert ROWS[-1][:3] == ("MQ-2.4-150", "MQDS_UNKNOWN_SOURCE", 0xC00E0504)


@pytest.mark.parametrize(
    ("symbol", "code", "meaning"),
    [
        pytest.param(symbol, code, meaning, marks=pytest.mark.requirement(row), id=symbol)
        for row, symbol, code, meaning in ROWS
    ],
)
def test_the_status_has_its_symbol_and_meaning(symbol: str, code: int, meaning: str) -> None:
    status = MqStatus(code)
    assert status.symbol == symbol
    assert status.meaning == meaning
    assert status.is_error == (code >= 0x80000000)


@pytest.mark.requirement("DM-1.8-02")
@pytest.mark.requirement("MQ-2.4-01")
@pytest.mark.parametrize("status", [code for code in MqStatus if code and code not in OURS])
def test_a_code_of_msmq_has_the_facility_of_msmq(status: MqStatus) -> None:
    assert status >> 16 == (0xC00E if status.is_error else 0x400E)
    assert status.is_error != status.name.startswith("INFORMATION_")


@pytest.mark.requirement("MQ-2.4-04")
def test_ok_is_zero_and_no_error() -> None:
    assert MqStatus(0) is MqStatus.OK
    assert MqStatus.OK.symbol == "MQ_OK"
    assert not MqStatus.OK.is_error


@pytest.mark.requirement("MQ-2.4-05")
@pytest.mark.parametrize(
    ("code", "symbol"),
    [
        (0x400E03E8, "MQ_INFORMATION_REMOTE_OPERATION"),
        (0x400E03E9, "MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT"),
        (0xC00E0506, "MQDS_WRONG_OBJ_TYPE"),
        (0xC00E050F, "MQDS_OBJECT_NOT_FOUND"),
        (0xC00E0523, "MQDS_E_NO_MORE_DATA"),
    ],
)
def test_codes_of_the_sibling_documents_are_known(code: int, symbol: str) -> None:
    assert MqStatus(code).symbol == symbol


@pytest.mark.requirement("DM-1.8-01")
@pytest.mark.requirement("MQ-1.7-01")
def test_a_code_has_the_customer_bit_exactly_when_it_is_ours() -> None:
    assert CUSTOMER_BIT == 0x20000000
    assert {status for status in MqStatus if status & 0x20000000} == OURS
    assert all(status.is_error for status in OURS)


def test_no_two_statuses_share_a_code_or_a_symbol() -> None:
    assert len(MqStatus.__members__) == len(set(MqStatus))
    assert len({status.symbol for status in MqStatus}) == len(set(MqStatus))
    assert all(status.meaning for status in MqStatus)


def test_an_unknown_code_is_no_status() -> None:
    with pytest.raises(ValueError, match="is not a valid MqStatus"):
        MqStatus(0xC00E7777)


def test_an_error_carries_status_and_hint() -> None:
    error = FalconMQError("no queue", status=MqStatus.QUEUE_NOT_FOUND, hint="create it")
    assert (str(error), error.status, error.hint) == (
        "no queue",
        MqStatus.QUEUE_NOT_FOUND,
        "create it",
    )
    assert FalconMQError("what").status is MqStatus.ERROR
    assert FalconMQError("what").hint == ""


def test_every_family_is_a_falconmq_error() -> None:
    assert all(
        issubclass(kind, FalconMQError) for kind in (WireError, NameSyntaxError, MessageError)
    )


def test_a_wire_error_says_where() -> None:
    error = WireError("BaseHeader", "PacketSize", "too large", offset=8)
    assert str(error) == "BaseHeader.PacketSize at offset 8: too large"
    assert (error.structure, error.field, error.problem, error.offset) == (
        "BaseHeader",
        "PacketSize",
        "too large",
        8,
    )
    assert error.status is MqStatus.ILLEGAL_PROPERTY_VALUE


def test_a_wire_error_about_a_value_to_send_has_no_offset() -> None:
    error = WireError("BaseHeader", "Flags", "too large")
    assert str(error) == "BaseHeader.Flags: too large"
    assert error.offset is None


def test_a_name_syntax_error_marks_the_place() -> None:
    error = NameSyntaxError(
        "PUBLIC=xyz", 7, "no GUID", status=MqStatus.ILLEGAL_FORMATNAME, hint="look it up"
    )
    problem, name, mark = str(error).splitlines()
    assert problem == "no GUID"
    assert name[mark.index("^")] == "x"
    assert (error.name, error.position, error.problem) == ("PUBLIC=xyz", 7, "no GUID")
    assert (error.status, error.hint) == (MqStatus.ILLEGAL_FORMATNAME, "look it up")


def test_a_message_error_names_the_property() -> None:
    error = MessageError("label", "too long", status=MqStatus.LABEL_TOO_LONG, hint="shorten it")
    assert str(error) == "label: too long"
    assert (error.field, error.status, error.hint) == (
        "label",
        MqStatus.LABEL_TOO_LONG,
        "shorten it",
    )
    assert MessageError("label", "odd").status is MqStatus.ILLEGAL_PROPERTY_VALUE


@pytest.mark.parametrize(
    "error",
    [
        FalconMQError("no queue", status=MqStatus.QUEUE_NOT_FOUND, hint="create it"),
        WireError("BaseHeader", "PacketSize", "too large", offset=8),
        NameSyntaxError("PUBLIC=xyz", 7, "no GUID", status=MqStatus.ILLEGAL_FORMATNAME),
        MessageError("label", "too long", status=MqStatus.LABEL_TOO_LONG, hint="shorten it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_travels_to_another_process_whole(error: FalconMQError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert vars(received) == vars(error)
