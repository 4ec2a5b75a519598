"""MD2 and MD4 against the examples of RFC 1319 and RFC 1320."""

from __future__ import annotations

import pytest

from falconmq.security.old_hashes import md2, md4

ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
DIGITS = b"1234567890" * 8


@pytest.mark.parametrize(
    ("data", "second", "fourth"),
    [
        (b"", "8350e5a3e24c153df2275c9f80692773", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"abc", "da853b0d3f88d99b30283a69e6ded6bb", "a448017aaf21d8525fc10ae87aa6729d"),
        (ALPHABET, "4e8ddff3650292ab5a4108c3aa47940b", "d79e1c308aa5bbcdeea8ed63df412da9"),
        (DIGITS, "d5976f79d83d3a0dc9806c3c66f3efd8", "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
    ids=["empty", "three", "alphabet", "digits"],
)
def test_the_examples_of_their_specifications(data: bytes, second: str, fourth: str) -> None:
    assert md2(data).hex() == second
    assert md4(data).hex() == fourth
