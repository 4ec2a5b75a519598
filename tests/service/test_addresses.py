"""This computer knows its own addresses."""

from __future__ import annotations

from pathlib import Path

from falconmq.service.addresses import local_addresses

IPV4 = """Main:
  +-- 10.0.0.0/24 2 0 2
     |-- 10.0.0.0
        /24 link UNICAST
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
"""
IPV6 = "fd000000000000000000000000000002 02 40 00 80     eth0\n"


def test_the_addresses_of_every_interface_are_ours(tmp_path: Path) -> None:
    (tmp_path / "ipv4").write_text(IPV4)
    (tmp_path / "ipv6").write_text(IPV6)
    found = local_addresses(tmp_path / "ipv4", tmp_path / "ipv6")
    assert found == {"127.0.0.1", "::1", "10.0.0.7", "fd00::2"}


def test_without_the_tables_of_the_kernel_loopback_is_left(tmp_path: Path) -> None:
    assert {"127.0.0.1", "::1"} <= local_addresses(tmp_path / "none", tmp_path / "none")
