"""Callers of the HTTP port that waste, exaggerate or dig: the daemon answers, also to others."""

from __future__ import annotations

import contextlib
import gzip
import html
import json
from typing import Final
from urllib.parse import quote

import pytest

from tests.hostile.scene import HTTP_PORT, MIB, Scene

QUEUE: Final = r".\private$\bombs"
BOMB: Final = (
    '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">'
        for before, name in zip("abcdefghi", "bcdefghij", strict=True)
    )
    + ']><l>&j;<x>&xxe;</x></l><!ENTITY xxe SYSTEM "file:///etc/passwd">'
)
DEEP: Final = "[" * 100_000
BODIES: Final = {
    "an XML bomb": BOMB,
    "an external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "deep JSON": DEEP + "]" * 100_000,
    "deep JSON without an end": DEEP,
    "deep XML": "<a>" * 30_000 + "</a>" * 30_000,
    "many attributes": "<a " + " ".join(f"b{n}='{n}'" for n in range(5000)) + "/>",
    "an open tag": "<" * 100_000,
    "a long number": "[" + "9" * 100_000 + "]",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_is_shown_and_never_expanded(scene: Scene, body: str) -> None:
    before = scene.memory
    with scene.http() as browser:
        browser.post("/api/v1/queues", json={"name": QUEUE})  # it may be there
        name = quote(QUEUE, safe="")
        sent = browser.post(f"/api/v1/queues/{name}/messages", json={"messages": [{"text": body}]})
        assert sent.status_code == 201, sent.text
        page = browser.get(f"/api/v1/queues/{name}/messages").json()["messages"]
        lookup_id = page[-1]["lookup_id"]
        for view in ("", "?view=text", "?view=json", "?view=xml", "?view=hex"):
            shown = browser.get(f"/queues/{name}/messages/{lookup_id}{view}")
            assert shown.status_code == 200, shown.text[:500]
            text = html.unescape(shown.text)
            assert "root:" not in text
            assert "hahahaha" not in text
            assert len(shown.content) < 4 * MIB
    assert scene.memory - before < 60 * MIB


def test_deep_or_endless_json_is_a_bad_request(scene: Scene) -> None:
    with scene.http() as client:
        for text in (DEEP, DEEP + "]" * 100_000, '{"a":' * 100_000, "9" * 100_000, '"' * 9, "NaN"):
            for path in ("/api/v1/queues", f"/api/v1/queues/{quote(QUEUE, safe='')}/messages"):
                headers = {"Content-Type": "application/json"}
                answer = client.post(path, content=text, headers=headers)
                assert answer.status_code in (400, 404, 422), (path, answer.text[:300])
    scene.is_well()


def test_a_packed_body_is_not_unpacked(scene: Scene) -> None:
    before = scene.memory
    bomb = gzip.compress(json.dumps({"name": "x" * (16 * MIB)}).encode())
    with scene.http() as client:
        for encoding in ("gzip", "deflate", "br", "zstd"):
            headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
            answer = client.post("/api/v1/queues", content=bomb, headers=headers)
            assert answer.status_code in (400, 415, 422), answer.text[:300]
    assert scene.memory - before < 30 * MIB


def test_slow_callers_do_not_keep_others_waiting(scene: Scene) -> None:
    before = scene.memory
    begun = b"POST /api/v1/queues HTTP/1.1\r\nHost: x\r\n"
    with contextlib.ExitStack() as crowd:
        # given 300 callers with headers that do not end, and 100 with a body that does not come
        for number in range(400):
            line = crowd.enter_context(scene.connect(port=HTTP_PORT))
            slow = begun + b"X-Slow: " if number < 300 else begun + b"Content-Length: 9999\r\n\r\n{"
            line.sendall(slow)
        # then others are answered
        with scene.http() as client:
            assert client.get("/api/v1/status").status_code == 200
        assert scene.memory - before < 60 * MIB
    scene.is_well()


def test_headers_without_an_end_are_cut_off(scene: Scene) -> None:
    with scene.connect(port=HTTP_PORT) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                line.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            while data := line.recv(1 << 16):
                answer += data
    assert not answer or b" 400 " in answer.partition(b"\r\n")[0]
    scene.is_well()
