"""Two computers, as the kernel sees it: network namespaces that are joined by a cable."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.estate import Daemon, Estate, wait_until

NETWORK = "10.213.77"


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


class Cable:
    """Two namespaces with an interface each, and the cable between them."""

    def __init__(self) -> None:
        number = os.getpid()
        self.spaces = (f"falconmq{number}a", f"falconmq{number}b")
        self.interfaces = (f"fa{number}", f"fb{number}")

    def lay(self) -> None:
        for space in self.spaces:
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")  # as every computer has it
        near, far = self.interfaces
        ip("link", "add", near, "type", "veth", "peer", "name", far)
        for space, interface, last in zip(self.spaces, self.interfaces, (1, 2), strict=True):
            ip("link", "set", interface, "netns", space)
            ip("-n", space, "address", "add", f"{NETWORK}.{last}/24", "dev", interface)
            ip("-n", space, "link", "set", interface, "up")

    def pull(self) -> None:
        ip("-n", self.spaces[0], "link", "set", self.interfaces[0], "down")

    def plug_in(self) -> None:
        ip("-n", self.spaces[0], "link", "set", self.interfaces[0], "up")

    def remove(self) -> None:
        for space in self.spaces:  # the interfaces go with them
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


@pytest.fixture
def cable() -> Iterator[Cable]:
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces here: there is no `ip` (Debian: iproute2)")
    cable = Cable()
    try:
        cable.lay()
    except OSError as error:
        cable.remove()
        pytest.skip(f"no network namespaces here: {error}")
    yield cable
    cable.remove()


def computer(estate: Estate, cable: Cable, which: int, directory: Path) -> Daemon:
    prefix = ("ip", "netns", "exec", cable.spaces[which])
    name = "AB"[which]
    return estate.add(Daemon(name, f"{NETWORK}.{which + 1}", directory, prefix), {})


def test_messages_wait_while_the_cable_is_out(estate: Estate, cable: Cable, tmp_path: Path) -> None:
    # given two computers that exchange messages
    a, b = (computer(estate, cable, which, tmp_path) for which in (0, 1))
    estate.start()
    b.create_queue("orders", transactional=True)
    sent = [{"text": str(n)} for n in range(300)]
    a.client.send(b.direct("orders"), sent[:100], transaction=True)
    came = b.take("orders", 100)
    # when the cable is out while others are sent
    cable.pull()
    a.client.send(b.direct("orders"), sent[100:200], transaction=True)
    assert a.waiting() >= 100
    assert b.count("orders") == 0
    cable.plug_in()
    a.client.send(b.direct("orders"), sent[200:], transaction=True)
    # then all arrive, once and in order
    came += b.take("orders", 200)
    assert [message["text"] for message in came] == [message["text"] for message in sent]
    wait_until(lambda: a.waiting() == 0, "everything is acknowledged")
    assert b.count("orders") == 0
