"""Queues and their messages, with a browser."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.sync_api import Dialog, Page, expect

from falconmq import Message
from falconmq.service.console.drawing import message_link, queue_link
from tests.console.browser import Watch
from tests.console.site import Site

ODD_NAMES = [
    r".\private$\a/b/messages/5",
    r".\private$\100%25?x=1&y#z",
    r".\private$\<script>alert(1)</script>",
    r".\private$\'onmouseover='alert(1)",
    r".\private$\purge",
    r".\private$\..",
]
HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}</textarea></title>"


def test_a_queue_is_created_with_the_form(operator: Page, site: Site) -> None:
    operator.goto(f"{site.url}/queues")
    operator.get_by_text("Create a queue").click()
    operator.get_by_label("Name", exact=True).fill("made-here")
    operator.locator("#create").get_by_label("Label").fill("By hand")
    operator.get_by_label("Quota in KB", exact=True).fill("100")
    operator.get_by_label("Transactional (for good)").check()
    operator.get_by_role("button", name="Create").click()
    expect(operator.get_by_role("status")).to_have_text(r".\private$\made-here was created.")
    queue = site.manager.queue(r".\private$\made-here")
    assert (queue.label, queue.is_transactional, queue.quota_kilobytes) == ("By hand", True, 100)
    operator.reload()  # what was said is said once
    expect(operator.locator(".flash")).to_have_count(0)


def test_a_refused_form_keeps_what_was_written(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected.append("409")
    operator.goto(f"{site.url}/queues")
    operator.get_by_text("Create a queue").click()
    operator.get_by_label("Name", exact=True).fill(queue_name)
    operator.locator("#create").get_by_label("Label").fill("again")
    operator.get_by_role("button", name="Create").click()
    expect(operator.get_by_role("alert")).to_contain_text("MQ_ERROR_QUEUE_EXISTS")
    expect(operator.get_by_label("Name", exact=True)).to_have_value(queue_name)
    expect(operator.locator("#create").get_by_label("Label")).to_have_value("again")


def test_a_message_is_sent_and_shown(operator: Page, site: Site, queue_name: str) -> None:
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_text("Send a message").click()
    form = operator.locator("#send")
    form.get_by_label("Label").fill("from the console")
    form.get_by_label("The body is").select_option("json")
    form.get_by_label("Body", exact=True).fill('{"a": [1, 2]}')
    form.get_by_label("Priority").fill("5")
    form.get_by_role("button", name="Send").click()
    expect(operator.get_by_role("status")).to_contain_text("Sent: {")
    operator.get_by_role("link", name="from the console").click()
    expect(operator.locator("pre.body")).to_have_text('{\n  "a": [\n    1,\n    2\n  ]\n}')
    message = site.manager.queue(queue_name).receive(timeout=0)
    assert (message.body, message.priority) == (b'{"a": [1, 2]}', 5)


def test_a_body_that_is_not_what_it_claims_is_refused_and_kept(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected.append("400")
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_text("Send a message").click()
    operator.get_by_label("The body is").select_option("hex")
    operator.get_by_label("Body", exact=True).fill("0g")
    operator.get_by_role("button", name="Send").click()
    expect(operator.get_by_role("alert")).to_contain_text("no hexadecimal bytes")
    expect(operator.get_by_label("Body", exact=True)).to_have_value("0g")


def test_what_happens_elsewhere_is_seen_without_reloading(
    operator: Page, site: Site, queue_name: str
) -> None:
    operator.goto(site.url + queue_link(queue_name))
    expect(operator.locator("html")).to_have_attribute("data-follows", "events")
    expect(operator.get_by_text("No messages.")).to_be_visible()
    site.send(queue_name, "it came by itself")
    expect(operator.get_by_role("link", name="it came by itself")).to_be_visible()
    site.manager.queue(queue_name).receive(timeout=0)
    expect(operator.get_by_text("No messages.")).to_be_visible()


def test_a_table_with_ticked_boxes_is_left_alone(
    operator: Page, site: Site, queue_name: str
) -> None:
    site.send(queue_name, "first")
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_role("checkbox", name=re.compile("Select message")).check()
    expect(operator.locator("html")).to_have_attribute("data-follows", "events")
    site.send(queue_name, "second")
    expect(operator.locator("#queue-numbers .value").first).to_have_text("2")  # it was read again
    expect(operator.get_by_role("link", name="second")).to_have_count(0)


def test_messages_are_moved(operator: Page, site: Site, queue_name: str) -> None:
    target = f"{queue_name}-target"
    site.manager.create_queue(target)
    site.send(queue_name, "one", "two", "three")
    operator.goto(site.url + queue_link(queue_name))
    for box in operator.get_by_role("checkbox", name=re.compile("Select message")).all()[:2]:
        box.check()
    operator.get_by_label("Move the selected to").fill(target)
    operator.get_by_role("button", name="Move").click()
    expect(operator.get_by_role("status")).to_have_text(f"2 messages moved to {target}.")
    assert [message.text for message in site.manager.queue(target)] == ["one", "two"]


def test_all_on_a_page_are_selected_and_deleted_after_a_question(
    operator: Page, site: Site, queue_name: str
) -> None:
    site.send(queue_name, "one", "two")
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_label("Select all on this page").check()
    operator.get_by_role("button", name="Delete selected").click()
    dialog = operator.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete the selected messages for good?")
    dialog.get_by_role("button", name="Cancel").click()
    assert site.manager.queue(queue_name).count == 2
    operator.get_by_role("button", name="Delete selected").click()
    dialog.get_by_role("button", name="Delete selected").click()
    expect(operator.get_by_role("status")).to_have_text("2 messages deleted.")
    assert site.manager.queue(queue_name).count == 0


def test_a_queue_is_purged_after_a_question(operator: Page, site: Site, queue_name: str) -> None:
    site.send(queue_name, "one", "two")
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_role("button", name="Purge").click()
    dialog = operator.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Purge {queue_name}? 2 messages will be deleted for good.")
    operator.keyboard.press("Escape")
    assert site.manager.queue(queue_name).count == 2
    operator.get_by_role("button", name="Purge").click()
    dialog.get_by_role("button", name="Purge").click()
    expect(operator.get_by_role("status")).to_have_text("2 messages deleted.")


def test_properties_are_changed(operator: Page, site: Site, queue_name: str) -> None:
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_text("Change properties").click()
    operator.locator("#edit").get_by_label("Label").fill("New label")
    operator.locator("#edit").get_by_label("Keep received messages").check()
    operator.get_by_role("button", name="Save").click()
    expect(operator.get_by_text("New label").first).to_be_visible()
    queue = site.manager.queue(queue_name)
    assert (queue.label, queue.journaling) == ("New label", True)


def test_a_message_is_moved_and_deleted_on_its_own_page(
    operator: Page, site: Site, queue_name: str
) -> None:
    target = f"{queue_name}-elsewhere"
    site.manager.create_queue(target)
    site.send(queue_name, "wanders")
    first = site.manager.queue(queue_name).peek()
    operator.goto(site.url + message_link(queue_name, first.lookup_id))
    operator.get_by_label("To another queue").fill(target)
    operator.get_by_role("button", name="Move").click()
    expect(operator.get_by_role("status")).to_contain_text(f"moved to {target}")
    moved = site.manager.queue(target).peek()
    operator.goto(site.url + message_link(target, moved.lookup_id))
    operator.get_by_role("button", name="Delete").click()
    operator.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(operator.get_by_role("status")).to_have_text("The message was deleted.")
    assert site.manager.queue(target).count == 0


def test_messages_are_shown_page_by_page(operator: Page, site: Site, queue_name: str) -> None:
    site.send(queue_name, *[f"message {number:03}" for number in range(120)])
    operator.goto(site.url + queue_link(queue_name))
    links = operator.locator("#message-table tbody a")
    expect(links).to_have_count(50)
    operator.get_by_role("link", name="Next").click()
    expect(links.first).to_have_text("message 050")
    operator.get_by_role("link", name="Next").click()
    expect(links).to_have_count(20)
    operator.get_by_role("link", name="Previous").click()
    expect(links.first).to_have_text("message 050")
    operator.get_by_role("link", name="First").click()
    expect(links.first).to_have_text("message 000")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_queue_with_an_odd_name_works_in_every_link(
    operator: Page, site: Site, name: str
) -> None:
    # given such a queue with a message
    site.manager.create_queue(name)
    site.send(name, "inside")
    # when somebody finds it in the list, opens it, its message, and its body
    operator.goto(f"{site.url}/queues?q={queue_link(name).rpartition('%5C')[2]}")
    operator.get_by_role("link", name=name.removeprefix(".\\"), exact=True).click()
    expect(operator.get_by_role("heading", level=1)).to_have_text(name.removeprefix(".\\"))
    operator.get_by_role("link", name="inside").click()
    expect(operator.locator("pre.body")).to_have_text("inside")
    operator.get_by_role("link", name="Bytes").click()
    expect(operator.locator("pre.body")).to_contain_text("00000000  69 00 6e 00")
    # and purges it
    operator.locator(".crumbs").get_by_role("link", name=name.removeprefix(".\\")).click()
    operator.get_by_role("button", name="Purge").click()
    operator.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(operator.get_by_role("status")).to_have_text("1 message deleted.")
    # then it was that queue and no other
    operator.get_by_role("button", name="Delete queue").click()
    operator.get_by_role("dialog").get_by_role("button", name="Delete queue").click()
    expect(operator.get_by_role("status")).to_have_text(f"{name} was deleted.")


def test_nothing_of_a_hostile_message_runs(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected.append("400")  # there is no queue of such a name
    # given a message whose texts are all markup
    alarms: list[str] = []

    def alarmed(dialog: Dialog) -> None:
        alarms.append(dialog.message)
        dialog.dismiss()

    operator.on("dialog", alarmed)
    queue = site.manager.queue(queue_name)
    queue.update(label=HOSTILE)
    queue.send(Message(HOSTILE, label=HOSTILE[:200], extension=HOSTILE.encode()))
    lookup_id = queue.peek().lookup_id
    # when every page that shows them is opened
    here = message_link(queue_name, lookup_id)
    for path in (
        "/queues", queue_link(queue_name), here, f"{here}?view=xml", f"{here}?view=hex",
        f"/queues?q={HOSTILE}", f"/dead-letters?q={HOSTILE}&queue={HOSTILE}",
        f"/messages?id={HOSTILE}",
    ):  # fmt: skip
        operator.goto(site.url + path)
        expect(operator.locator("img[src=x]")).to_have_count(0)
        assert "49" not in operator.locator("h1").inner_text()
    operator.goto(site.url + here)
    expect(operator.locator("pre.body")).to_have_text(HOSTILE)
    # then nothing ran
    assert alarms == []


def test_a_body_is_downloaded_and_never_shown_as_a_page(
    operator: Page, site: Site, queue_name: str
) -> None:
    site.manager.queue(queue_name).send(Message(b"<script>alert(1)</script>"))
    lookup_id = site.manager.queue(queue_name).peek().lookup_id
    operator.goto(site.url + message_link(queue_name, lookup_id))
    with operator.expect_download() as caught:
        operator.get_by_role("link", name="Download").click()
    assert caught.value.suggested_filename == f"message-{lookup_id}.bin"
    assert caught.value.path().read_bytes() == b"<script>alert(1)</script>"
    # and whoever follows the link by other means is told the same
    answer = operator.request.get(f"{site.url}{message_link(queue_name, lookup_id)}/body")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_packet_is_shown_field_by_field(operator: Page, site: Site, queue_name: str) -> None:
    site.send(queue_name, "look inside")
    lookup_id = site.manager.queue(queue_name).peek().lookup_id
    operator.goto(site.url + message_link(queue_name, lookup_id))
    operator.get_by_text("Packet, field by field").click()
    expect(operator.get_by_role("cell", name="TimeToReachQueue")).to_be_visible()
    expect(operator.get_by_role("cell", name="UserHeader", exact=True)).to_be_visible()


@pytest.mark.slow
def test_ten_thousand_queues_are_listed_at_once(operator: Page, site: Site) -> None:
    # given ten thousand queues
    async def create() -> None:
        names = [rf".\private$\many-{number:05}" for number in range(10_000)]
        for start in range(0, len(names), 500):  # many at a time: they share what is written
            created = map(site.service.manager.create_queue, names[start : start + 500])
            await asyncio.gather(*created)

    site.run(create, 120)
    site.send(r".\private$\many-07777", "x", "y", "z", "a", "b", "c", "d", "e", "f", "g")
    # when pages of them are asked for
    operator.goto(f"{site.url}/queues?q=many-&page=100")
    expect(operator.get_by_text("Page 100 of 200")).to_be_visible()
    operator.goto(f"{site.url}/queues?q=many-&sort=-messages")
    expect(operator.locator("tbody a").first).to_have_text(r"private$\many-07777")
    for path in ("/queues", "/queues?sort=-size&page=150", "/queues?q=9999", "/"):
        assert operator.request.get(site.url + path).ok
