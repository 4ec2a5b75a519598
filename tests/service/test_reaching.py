"""Pings and connections, with real sockets."""

from __future__ import annotations

import asyncio
import socket
from uuid import uuid4

from falconmq.service.operating.reaching import Where, answer, reach
from falconmq.transport.settings import PORT
from tests.service.services import loopback, run, serving


def free_port() -> int:
    """A UDP port that nobody has at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_queue_manager_that_answers() -> None:
    async def main() -> None:
        port = free_port()
        async with serving(ping_answered=True, ping_port=port) as service:
            address = service.configuration.manager.bind
            where = Where(uuid4(), loopback(), PORT, port)
            ((reached,), problem) = await reach(address, where, 30.0)
            assert (reached.ping, reached.tcp, problem) == ("welcome", "connected", "")
            assert reached.ping_seconds is not None
            assert reached.tcp_seconds is not None
            assert 0 < reached.tcp_seconds < 30

    run(main())


def test_a_queue_manager_that_is_full_refuses_the_ping() -> None:
    async def main() -> None:
        port = free_port()
        async with serving(ping_answered=True, ping_port=port, sessions_max=0) as service:
            address = service.configuration.manager.bind
            ((reached,), _) = await reach(address, Where(uuid4(), ping_port=port), 5.0)
            assert reached.ping == "refused"

    run(main())


def test_nobody_is_there() -> None:
    async def main() -> None:
        address = loopback()
        found = await answer(f" {address} ", Where(uuid4()), 2.0)
        assert found["host"] == address
        assert found["is_reachable"] is False
        (reached,) = found["addresses"]
        assert (reached["ping"], reached["tcp"]) == ("no answer", "connection refused")
        assert reached["tcp_seconds"] is None

    run(main())


def test_a_name_without_an_address_says_so() -> None:
    async def main() -> None:
        found = await answer("no-such-host.invalid", Where(uuid4()), 1.0)
        assert found["addresses"] == []
        assert "cannot be resolved" in found["problem"]
        found = await answer("x" * 80 + ".invalid", Where(uuid4()), 1.0)
        assert "cannot be resolved" in found["problem"]

    run(main())


def test_names_of_the_configuration_need_no_dns() -> None:
    async def main() -> None:
        async with serving() as service:
            address = service.configuration.manager.bind
            where = Where(uuid4(), hosts={"sales02": (address, loopback())})
            found = await answer("SALES02", where, 0.5)
            assert [reached["tcp"] for reached in found["addresses"]] == [
                "connected",
                "connection refused",
            ]
            assert found["is_reachable"] is True

    run(main())


def test_a_silent_host_costs_the_time_that_was_given() -> None:
    async def main() -> None:
        # given a socket that takes pings and says nothing
        address = loopback()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind((address, 0))
            where = Where(uuid4(), ping_port=silent.getsockname()[1])
            begun = asyncio.get_running_loop().time()
            ((reached,), _) = await reach(address, where, 0.3)
            assert reached.ping == "no answer"
            assert 0.25 < asyncio.get_running_loop().time() - begun < 5

    run(main())
