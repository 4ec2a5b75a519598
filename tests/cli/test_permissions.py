r"""`falconmq queue permissions`: who may do what, in words and as SDDL."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import InProcess
from tests.service.control import ControlledManager

ORDERS = r".\private$\orders"
COMMAND = ("queue", "permissions")


@pytest.fixture(autouse=True)
def queue(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)


def test_permissions_are_shown(falconmq: InProcess) -> None:
    done = falconmq(*COMMAND, "show", ORDERS)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        rf"queue  {ORDERS}",
        "owner  Anonymous (S-1-5-7)",
        "sddl   O:AND:(A;;0xf003f;;;WD)",
        "",
        "       WHO       RIGHTS",
        "ALLOW  Everyone  full",
    ]
    assert falconmq(*COMMAND, "show", ORDERS, "--sddl").out == "O:AND:(A;;0xf003f;;;WD)\n"


def test_rights_are_granted_and_revoked(falconmq: InProcess) -> None:
    falconmq(*COMMAND, "revoke", ORDERS, "everyone", "full")
    assert "nobody may do anything" in falconmq(*COMMAND, "show", ORDERS).out
    falconmq(*COMMAND, "grant", ORDERS, "Anonymous", "send")
    done = falconmq(*COMMAND, "grant", ORDERS, "S-1-5-32-545", "receive", "properties", "--json")
    shown = json.loads(done.out)
    assert [(e["name"], e["rights"]) for e in shown["entries"]] == [
        ("Anonymous", ["send"]),
        ("Users", ["receive", "get-properties", "set-properties"]),
    ]
    done = falconmq(*COMMAND, "revoke", ORDERS, "Users", "receive")
    assert done.out.endswith("ALLOW  Users      get-properties, set-properties\n")


def test_the_whole_list_is_replaced(falconmq: InProcess) -> None:
    done = falconmq(*COMMAND, "set", ORDERS, "O:BAD:(D;;0x4;;;AN)(A;;GA;;;WD)")
    assert done.code == 0
    assert "owner  Administrators (S-1-5-32-544)" in done.out
    assert "DENY   Anonymous  send" in done.out
    done = falconmq(*COMMAND, "set", ORDERS, "D:NO_ACCESS_CONTROL")
    assert done.out.endswith("there is no list: everybody may do everything\n")


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (("grant", ORDERS, "carol", "send"), "nobody is called 'carol' here", "Everyone"),
        (("grant", ORDERS, "Everyone", "sned"), "'sned' is no right to a queue", "send, receive"),
        (("set", ORDERS, "D:(A;;GA"), "no closing parenthesis", ""),
        (("show", r".\private$\none"), "no queue", "falconmq queue create"),
    ],
)
def test_mistakes_are_explained(
    falconmq: InProcess, arguments: tuple[str, ...], problem: str, hint: str
) -> None:
    done = falconmq(*COMMAND, *arguments)
    assert done.code == 1
    assert problem in done.err
    assert hint in done.err
