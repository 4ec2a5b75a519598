"""Text of strangers in logs, in the terminal and in the console: it is shown, and does nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

import pytest

from tests.cli.commands import InProcess
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import opened
from tests.conformance_wire.play import Play
from tests.hostile.scene import Scene, all_read

FORGED: Final = "2026-01-01 00:00:00,000 INFO falconmq.service forged"
# An end of line with a line of its own, colours and titles of a terminal, a letter that turns the
# direction, a script, a quote, and a template.
EVIL: Final = f"a\r\n{FORGED}\n\x1b[31m\x1b]0;t\x07\x9b2J\u202e<script>x()</script>\"'{{{{7*7}}}}"
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass
class Attacked:
    scene: Scene
    queue: str
    dead: str


@pytest.fixture(scope="module")
def attacked(scene: Scene) -> Iterator[Attacked]:
    """Messages of a hostile peer in queues, in the log of events and among what was refused."""
    scene.daemon.create_queue("victim", label=EVIL)
    with Play.calling(scene.stage) as play:
        opened(2)(play)
        evil = replace(play.message(body=EVIL.encode("utf-16-le")), label=EVIL, body_type=31)
        victim = packets.direct_name(rf"TCP:{scene.daemon.address}\private$\victim")
        names = [
            victim,
            packets.direct_name(rf"TCP:{scene.daemon.address}\private$\{EVIL}"),
            packets.direct_name(EVIL),
            packets.direct_name(rf"OS:{EVIL}\private$\x"),
        ]
        direct_answers = 7 << 13 | 7 << 16
        for number, name in enumerate(names, 100):
            asks = replace(
                evil,
                destination=name,
                message_id=number,
                flags=evil.flags | direct_answers | packets.JOURNAL_NEGATIVE,
                admin=packets.direct_name(rf"OS:{EVIL}\private$\admin"),
                response=packets.direct_name(EVIL),
                acknowledgements=0x0F,
            )
            play.write(asks.encode())
        all_read(play, len(names))
        yield Attacked(scene, scene.stage.path("victim"), r".\system$;deadletter")


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "list"),
        ("queue", "show", "QUEUE"),
        ("peek", "QUEUE"),
        ("events",),
        ("why", "QUEUE"),
        ("outgoing", "list"),
        ("session", "list"),
        ("status",),
        ("queue", "show", EVIL),
        ("send", rf".\private$\{EVIL}", "--body", "x"),
    ],
    ids=lambda command: " ".join(command)[:20].encode("unicode_escape").decode(),
)
def test_no_control_character_reaches_the_terminal(
    attacked: Attacked,
    command: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = InProcess(capsys, monkeypatch)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)  # a file gets a body as it is
    words = [attacked.queue if word == "QUEUE" else word for word in command]
    found = run(*words, "--data", str(attacked.scene.daemon.data))
    shown = found.out + found.err
    assert shown
    assert not CONTROLS.search(shown), CONTROLS.findall(shown)
    assert command[0] == "peek" or f"\n{FORGED}" not in shown  # a body may have lines


def test_no_script_reaches_the_browser(attacked: Attacked) -> None:
    with attacked.scene.http() as browser:
        name = quote(attacked.queue, safe="")
        page = browser.get(f"/api/v1/queues/{name}/messages?count=1").json()["messages"]
        identifier = quote(page[0]["id"], safe="")
        lookup_id = page[0]["lookup_id"]
        pages = re.findall(r'href="(/[^"]*)"', browser.get("/").text)
        found = {"/", f"/queues/{name}", f"/queues/{name}/messages/{lookup_id}", *pages}
        found |= {f"/trace?message={identifier}", f"/trace?id={identifier}", f"/?q={quote(EVIL)}"}
        seen = 0
        for path in sorted(found):
            answer = browser.get(path.replace("&amp;", "&"), follow_redirects=True)
            assert answer.status_code < 500, path
            if "html" in answer.headers["content-type"]:
                assert "<script>x()" not in answer.text, path
                assert "49" not in re.findall(r"'(\d+)", answer.text), path
                assert "\x1b" not in answer.text, path
                seen += "&lt;script&gt;x()" in answer.text
                assert "script-src" not in answer.headers["content-security-policy"]
                assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert seen >= 2, f"the evil text is on {seen} of {sorted(found)}"


def test_headers_of_an_answer_are_not_split(attacked: Attacked) -> None:
    evil = quote("x\r\nSet-Cookie: a=b\r\n\r\n<html>", safe="")
    with attacked.scene.http() as browser:
        for path in (
            f"/api/v1/queues/{evil}",
            f"/queues/{evil}",
            f"/queues/{evil}/",
            f"/{evil}",
            f"/login?next={evil}",
            f"/api/v1/queues/{evil}/messages/{evil}",
        ):
            answer = browser.get(path)
            assert answer.status_code < 500, path
            assert "set-cookie" not in answer.headers, path


def test_no_line_of_the_log_is_forged(attacked: Attacked) -> None:
    """The last one here: a look at the daemon empties its queues."""
    attacked.scene.is_well()  # looks at each line
    said = attacked.scene.daemon.said()
    assert f"\n{FORGED}" not in said
    assert "\x1b" not in said
