"""Hardened mode: no message comes or goes over the MSMQ port, and everybody is told so."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

import falconmq
from falconmq import Message
from falconmq.manager.states import OutgoingState
from falconmq.service.configuration import Configuration, HttpSection, SecuritySection
from falconmq.service.daemon import Service
from falconmq.service.process import _listening, _tell
from falconmq.service.reload import compare, merge
from falconmq.transport.settings import PORT
from tests.cli.commands import InProcess
from tests.service.services import (
    ORDERS,
    configured,
    direct,
    loopback,
    outgoing,
    run,
    send,
    serving,
    until,
    waiting,
)
from tests.transport.estate import Estate, bodies
from tests.transport.estate import direct as direct_name


def hardened(configuration: Configuration, *, is_on: bool = True) -> Configuration:
    return replace(
        configuration,
        http=HttpSection(enabled=False),
        security=SecuritySection(hardened=is_on),
    )


@pytest.mark.requirement("DM-3.1.1.1-42", "DM-3.1.1.3-14", "DM-3.1.3-45")
def test_messages_wait_while_the_mode_is_on_and_go_when_it_was_switched_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bind = loopback()

    async def main() -> None:
        async with serving() as there:
            await there.manager.create_queue(ORDERS)
            service = await Service.start(hardened(configured(bind, tmp_path)))
            try:
                # given a service in hardened mode: local queues work
                await service.manager.create_queue(ORDERS)
                await (await service.manager.queue(ORDERS)).send(Message("local"))
                # when it sends to another computer, then nothing leaves
                await send(service, direct(there), "one")
                (queue,) = outgoing(service)
                assert queue.state is OutgoingState.LOCKED
                assert service.transport.sessions == []
                # and nobody finds the port open
                with socket.socket() as peer:
                    assert peer.connect_ex((bind, PORT)) != 0
                assert service.network.addresses == []
                assert _listening(service) == "hardened mode: the MSMQ port is closed"
                _tell(service)
            finally:
                await service.stop()
            # when it is switched off and started anew, then everything goes
            service = await Service.start(hardened(configured(bind, tmp_path), is_on=False))
            try:
                await until(lambda: waiting(service) == 0)
                arrived = await (await there.manager.queue(ORDERS)).receive(timeout=0)
                assert arrived.text == "one"
            finally:
                await service.stop()

    run(main())
    assert "no message comes or goes over the MSMQ port" in caplog.text


@pytest.mark.requirement("DM-3.1.1.1-42")
def test_a_peer_that_connects_all_the_same_is_turned_away() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    orders = there.queue("orders")
    there.core.settings.hardened_security = True
    here.send(direct_name(there, "orders"), b"one")
    estate.advance(60.0)
    assert bodies(orders) == []
    assert there.transport.sessions == []
    assert there.transport.counters["connections refused"] > 0


@pytest.mark.requirement("DM-3.1.1.1-41")
def test_a_change_of_the_mode_counts_from_a_restart_on() -> None:
    old = configured("127.0.0.2")
    assert not old.security.hardened
    changes = compare(old, hardened(old))
    assert [(c.name, c.is_applied) for c in changes if c.name.startswith("security")] == [
        ("security.hardened", False)
    ]
    assert not merge(old, hardened(old), changes).security.hardened


def test_status_and_why_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a directory that nobody serves; the configuration is the one of the service."""
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\ndata = "data"\n[security]\nhardened = true\n')
    falconmq.open(tmp_path / "data").close()
    command_line = InProcess(capsys, monkeypatch)
    place = ("--config", str(file))
    remote = r"DIRECT=TCP:127.0.0.9\private$\orders"
    assert command_line("send", remote, "--body", "x", *place).code == 0
    done = command_line("status", *place)
    assert "mode      hardened: no message comes or goes over the MSMQ port" in done.out
    why = command_line("why", remote, *place)
    said = " ".join(why.out.split())
    assert "in hardened mode nothing is sent over the MSMQ port" in said
    assert "security.hardened = false" in said
