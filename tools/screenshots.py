"""Draw the pictures of docs/howto/console.md anew: `python -m tools.screenshots [DIRECTORY]`.

Three queue managers with something to show are started on loopback addresses, and a browser looks
at the console of the first one. With a directory all pages are drawn there, in light, dark and on
a phone, for whoever works on the console.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx

from falconmq import Journal, Message
from falconmq.manager.events import EventKind
from falconmq.service.access import Role
from falconmq.service.console.drawing import message_link, queue_link, trace_link
from falconmq.service.observation.event_texts import message_id_text
from falconmq.service.observation.sampling import totals
from tests.console.browser import browsing, chromium
from tests.console.site import Site

DOCS: Final = Path(__file__).parent.parent / "docs" / "images" / "console"
LARGEST: Final = 200_000  # bytes of one picture
_IN_DOCS: Final = ("queue", "message", "dead-letters", "trace", "permissions", "audit")
_WIDE: Final = {"width": 1280, "height": 860}
_PHONE: Final = {"width": 360, "height": 740}
_ORDER: Final = (
    '<?xml version="1.0"?><Order Id="4711"><Note>pianos &amp; drums</Note>'
    '<Line Sku="A-100" Quantity="3"/><Line Sku="B-220" Quantity="12"/></Order>'
)
_PATIENCE: Final = 20.0  # seconds
_DOMAIN: Final = "S-1-5-21-1004336348-1177238915-682003330"
_PRINCIPALS: Final = f"""
[[principals]]
name = "web-shop"
sid = "{_DOMAIN}-1001"
tokens = ["web-shop"]
[[principals]]
name = "billing"
sid = "{_DOMAIN}-1002"
groups = ["Administrators"]
tokens = ["billing"]
"""


def main() -> int:
    if chromium() is None:
        print("chromium is needed: tools/install-chromium.sh", file=sys.stderr)
        return 1
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with _estate() as site:
        pages = _pages(site)
        if directory is None:
            for theme in ("light", "dark"):
                _draw(site, {"overview": pages["overview"]}, DOCS, theme, _WIDE, f"-{theme}")
            _draw(site, {name: pages[name] for name in _IN_DOCS}, DOCS, "light", _WIDE)
        else:
            for theme, size in (("light", _WIDE), ("dark", _WIDE), ("light", _PHONE)):
                suffix = f"-{theme}" if size is _WIDE else "-phone"
                _draw(site, pages, directory, theme, size, suffix, whole=True)
    return 0


@contextmanager
def _estate() -> Iterator[Site]:
    """SALES01 with a peer that takes messages, and one that is not there."""
    with ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        site = stack.enter_context(Site(places[0], loopback_role="manage", more=_PRINCIPALS))
        peer = stack.enter_context(Site(places[1], name="BERLIN"))
        _fill(site, peer)
        _administer(site)
        _give_history(site)
        yield site


def _fill(site: Site, peer: Site) -> None:
    manager = site.manager
    for name, label, transactional in (
        ("orders", "Orders from the web shop", False),
        ("invoices", "Invoices to print", True),
        ("payments", "Payments from the bank", True),
        ("audit", "", False),
        ("stock-changes", "Changes of the stock", False),
    ):
        manager.create_queue(rf".\private$\{name}", label=label, transactional=transactional)
    manager.create_queue(r".\private$\returns", label="Returned goods", quota_kilobytes=2)
    for number in range(4710, 4790):
        body = _ORDER.replace("4711", str(number))
        site.send(r".\private$\orders", Message(body.encode(), label=f"order {number}"))
    for number in range(12):
        site.send(r".\private$\invoices", Message.json({"invoice": number, "total": 17.5 * number}))
    site.send(r".\private$\returns", Message("x" * 800, label="return 17"))
    peer.manager.create_queue(r".\private$\billing")
    for number in range(40):
        _send_away(site, peer.address, "billing", f"bill {number}")
    for number in range(7):
        _send_away(site, "127.9.9.9", "shipping", f"parcel {number}")
    with manager.transaction() as transaction:  # there is no queue of that name
        elsewhere = manager.queue(rf"DIRECT=TCP:{peer.address}\private$\biling")
        for number in range(6):
            elsewhere.send(_letter(f"bill {number}"), transaction)
    audit = manager.queue(r".\private$\audit")
    for number in range(3):
        letter = _letter(f"entry {number}")
        letter.time_to_be_received = 1
        audit.send(letter)
    _until(lambda: manager.dead_letter.count >= 3)
    _until(lambda: manager.transactional_dead_letter.count >= 6)


def _administer(site: Site) -> None:
    """Something for the audit log and the permissions: what was done, and what was refused."""
    orders = "/api/v1" + queue_link(r".\private$\orders")
    rights = [
        {"who": "web-shop", "rights": ["send"]},
        {"who": "billing", "rights": ["receive", "get-properties"]},
    ]
    certificate = {"user": f"{_DOMAIN}-1001"}
    with _caller(site, site.token(Role.MANAGE, name="operator")) as client:
        sddl = "D:(D;;0x3;;;AN)(A;;GA;;;BA)(A;;0x24;;;WD)"
        client.put(f"{orders}/permissions", json={"sddl": sddl})
        client.patch(f"{orders}/permissions", json={"grant": rights})
        client.patch(orders, json={"journaling": True})
        client.post("/api/v1/queues", json={"name": r".\private$\orders"})
        client.post("/api/v1/tokens", json={"name": "web-shop", "roles": ["send"]})
        client.post("/api/v1/certificates", json=certificate)
    with _caller(site, site.token(Role.READ, name="dashboard")) as client:
        client.delete(orders)
    with _caller(site, f"fmq_0123456789ab_{'x' * 43}") as client:
        client.get("/api/v1/queues")


def _caller(site: Site, token: str) -> httpx.Client:
    return httpx.Client(base_url=site.url, headers={"Authorization": f"Bearer {token}"})


def _send_away(site: Site, address: str, name: str, label: str) -> None:
    site.send(rf"DIRECT=TCP:{address}\private$\{name}", _letter(label))


def _letter(label: str) -> Message:
    return Message(f"<bill>{label}</bill>", label=label, journal=Journal.DEAD_LETTER)


def _give_history(site: Site) -> None:
    """An hour that nobody wants to wait for."""
    control = site.control
    now = totals(control.engine, control.transport)
    samples = control.watch.sampler._samples  # noqa: SLF001  # it has no door for made-up numbers
    samples.clear()
    came = 0.0
    waves = [60 + 35 * math.sin(step / 60) + 14 * math.sin(step / 7) for step in range(720)]
    total = 5 * sum(waves)
    for step, wave in enumerate(waves):
        came += 5 * wave
        waiting = max(0, now.messages + 80 * math.sin(step / 45) - 80 * math.sin(719 / 45))
        samples.append(
            replace(
                now,
                time=now.time - 5 * (720 - step),
                arrived=int(now.arrived - total + came),
                received=int(now.received - total + came + now.messages - waiting),
                messages=int(waiting),
                backlog=max(0, step - 690) // 4,
                dead_letters=0 if step < 400 else 4 if step < 640 else now.dead_letters,
            )
        )


def _pages(site: Site) -> dict[str, str]:
    orders = site.manager.queue(r".\private$\orders")
    first = orders.peek()
    dead = site.manager.transactional_dead_letter
    letter = dead.peek()
    stuck = next(
        queue["number"]
        for queue in site.run(lambda: _outgoing(site))["outgoing"]
        if "shipping" in queue["destination"]
    )
    return {
        "overview": "/",
        "queues": "/queues",
        "queue": queue_link(orders.name),
        "message": message_link(orders.name, first.lookup_id),
        "outgoing-list": "/outgoing",
        "outgoing": f"/outgoing/{stuck}",
        "sessions": "/sessions",
        "dead-letters": "/dead-letters",
        "dead-letter": message_link(dead.name, letter.lookup_id),
        "trace": trace_link(_sent_away(site)),
        "trace-of-letter": trace_link(str(letter.id)),
        "trace-search": "/messages",
        "transactions": "/transactions",
        "charts": "/charts",
        "directory": "/directory",
        "configuration": "/configuration",
        "tokens": "/tokens",
        "permissions": queue_link(orders.name, "permissions"),
        "manager-permissions": "/permissions",
        "keys": "/keys",
        "audit": "/audit",
        "error": "/queues/nothing",
    }


def _sent_away(site: Site) -> str:
    """The id of a message that the other queue manager has."""
    events = site.control.events.newest_first()
    event = next(event for event in events if event.kind is EventKind.DELIVERED)
    return message_id_text(event.source, event.message_id)


async def _outgoing(site: Site) -> dict[str, Any]:
    from falconmq.service.api.outgoing import get_outgoing  # noqa: PLC0415

    return await get_outgoing(site.control)


def _draw(
    site: Site,
    pages: dict[str, str],
    directory: Path,
    theme: str,
    size: dict[str, int],
    suffix: str = "",
    *,
    whole: bool = False,
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as profile,
        browsing(Path(profile), viewport=size) as browser,
    ):
        browser.add_cookies([{"name": "falconmq_theme", "value": theme, "url": site.url}])
        page = browser.new_page()
        for name, path in pages.items():
            page.goto(site.url + path, wait_until="load")
            picture = directory / f"{name}{suffix}.png"
            page.screenshot(path=picture, full_page=whole)
            if not whole and picture.stat().st_size > LARGEST:
                raise SystemExit(f"{picture} has more than {LARGEST} bytes")
            print(picture)


def _until(is_so: Any) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit("the queue managers did not do what was expected of them")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
