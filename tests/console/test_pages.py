"""The other pages, and what all pages have in common."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from playwright.sync_api import Page, expect

from falconmq import Journal, Message
from falconmq.manager.model import OutgoingQueue
from falconmq.service.api.outgoing import purge
from falconmq.service.console.drawing import message_link, queue_link, trace_link
from falconmq.service.console.view import NAVIGATION
from tests.console.browser import Watch
from tests.console.site import LogIn, Site
from tests.service.services import loopback


@pytest.fixture
def stuck(site: Site) -> str:
    """A destination that nobody answers at, with two messages for it."""
    name = rf"DIRECT=TCP:{loopback()}\private$\shipping"
    site.send(name, Message("one", label="one"), Message("two", label="two"))
    return name


def outgoing_queue(site: Site, name: str) -> OutgoingQueue:
    core = site.service.engine.core
    return next(q for q in core.outgoing.values() if str(q.destination) == name)


def outgoing_number(site: Site, name: str) -> int:
    return outgoing_queue(site, name).number


@pytest.fixture
def letters_for(site: Site) -> str:
    """A destination that nobody answers at; three messages for it were given up."""
    address = loopback()
    name = rf"DIRECT=TCP:{address}\private$\lost"
    for number in range(3):
        label = f"letter {number} for {address}"
        site.send(name, Message("lost", label=label, journal=Journal.DEAD_LETTER))
    before = site.manager.dead_letter.count
    answer = site.run(lambda: purge(site.control, outgoing_number(site, name)))
    assert answer == {"purged": 3}
    assert site.manager.dead_letter.count == before + 3
    return name


def test_the_overview_shows_what_is_stuck_first_and_why(
    operator: Page, site: Site, stuck: str
) -> None:
    operator.goto(site.url)
    problem = operator.locator("#problems .notice", has_text=stuck)
    expect(problem).to_contain_text(f"2 messages cannot leave for {stuck}")
    expect(problem).to_contain_text(re.compile("refused", re.IGNORECASE))
    problem.get_by_role("link", name="Look").click()
    expect(operator.get_by_role("heading", level=1)).to_have_text(stuck)


def test_the_numbers_of_the_overview_follow_what_happens(
    operator: Page, site: Site, queue_name: str
) -> None:
    operator.goto(site.url)
    value = operator.locator(".tile", has_text="Messages in queues").locator(".value")
    before = int(value.inner_text().replace(",", ""))
    site.send(queue_name, *["x"] * 7)
    expect(value).to_have_text(f"{before + 7:,}")


def test_an_outgoing_queue_is_paused_resumed_and_purged(
    operator: Page, site: Site, stuck: str
) -> None:
    operator.goto(f"{site.url}/outgoing/{outgoing_number(site, stuck)}")
    operator.get_by_role("button", name="Pause").click()
    expect(operator.get_by_role("status")).to_contain_text("Nothing more is sent")
    expect(operator.locator("#outgoing-numbers")).to_contain_text("on hold")
    operator.get_by_role("button", name="Resume").click()
    expect(operator.get_by_role("button", name="Pause")).to_be_visible()
    operator.get_by_role("button", name="Purge").click()
    dialog = operator.get_by_role("dialog")
    expect(dialog).to_contain_text("They will never arrive.")
    dialog.get_by_role("button", name="Purge").click()
    expect(operator.get_by_role("status")).to_have_text("2 messages deleted.")


def test_dead_letters_are_tried_then_redriven(operator: Page, site: Site, letters_for: str) -> None:
    # given three dead letters, found by a part of their destination
    address = letters_for.partition(":")[2].partition("\\")[0]
    operator.goto(f"{site.url}/dead-letters?q={address}")
    rows = operator.locator("#letter-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("NACK_DELETED")
    # when a redrive is tried, nothing happens but a report
    operator.get_by_role("button", name="Dry run of all").click()
    expect(operator.get_by_text("would go")).to_have_count(3)
    assert len(outgoing_queue(site, letters_for).positions) == 0
    # when one is sent again
    operator.get_by_role("checkbox", name=re.compile("letter 1")).check()
    operator.get_by_role("button", name="Redrive selected").click()
    operator.get_by_role("dialog").get_by_role("button", name="Redrive selected").click()
    expect(operator.get_by_role("status")).to_have_text("1 dead letter sent again.")
    # then it is on its way, and the filter is still there
    assert len(outgoing_queue(site, letters_for).positions) == 1
    expect(rows).to_have_count(2)
    # when the others are deleted
    operator.get_by_role("button", name="Delete all that match").click()
    operator.get_by_role("dialog").get_by_role("button", name="Delete all that match").click()
    expect(operator.get_by_role("status")).to_have_text("2 dead letters deleted.")
    expect(operator.get_by_text("No dead letter matches these filters.")).to_be_visible()


def test_dead_letters_are_redriven_to_another_queue(
    operator: Page, site: Site, letters_for: str, queue_name: str
) -> None:
    address = letters_for.partition(":")[2].partition("\\")[0]
    operator.goto(f"{site.url}/dead-letters?q={address}")
    operator.get_by_label("To another queue").fill(queue_name)
    operator.get_by_role("button", name="Redrive all that match").click()
    operator.get_by_role("dialog").get_by_role("button", name="Redrive all that match").click()
    expect(operator.get_by_role("status")).to_have_text("3 dead letters sent again.")
    assert site.manager.queue(queue_name).count == 3


def test_a_dead_letter_is_redriven_on_its_own_page(
    operator: Page, site: Site, letters_for: str
) -> None:
    address = letters_for.partition(":")[2].partition("\\")[0]
    operator.goto(f"{site.url}/dead-letters?q={address}")
    operator.get_by_role("link", name="letter 2").click()
    operator.get_by_role("button", name="Redrive").click()
    operator.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    expect(operator.get_by_role("status")).to_have_text("1 dead letter sent again.")
    assert len(outgoing_queue(site, letters_for).positions) == 1


def test_a_letter_that_cannot_go_stays_and_says_why(
    operator: Page, site: Site, letters_for: str
) -> None:
    address = letters_for.partition(":")[2].partition("\\")[0]
    operator.goto(f"{site.url}/dead-letters?q={address}")
    operator.get_by_label("To another queue").fill(r".\private$\no-such-queue")
    operator.get_by_role("button", name="Dry run of all").click()
    expect(operator.get_by_text("would stay:")).to_have_count(3)
    operator.get_by_role("button", name="Redrive all that match").click()
    operator.get_by_role("dialog").get_by_role("button", name="Redrive all that match").click()
    expect(operator.locator(".flash.refused")).to_contain_text("3 stayed")
    expect(operator.locator("#letter-table tbody tr")).to_have_count(3)


def test_a_message_is_traced(operator: Page, site: Site, queue_name: str) -> None:
    site.send(queue_name, "traced")
    message = site.manager.queue(queue_name).receive(timeout=0)
    operator.goto(f"{site.url}/messages")
    operator.get_by_label("Id of the message").fill(str(message.id))
    operator.get_by_role("button", name="Trace").click()
    expect(operator).to_have_url(site.url + trace_link(str(message.id)))
    expect(operator.locator(".route svg")).to_have_attribute("aria-label", re.compile("SALES01"))
    steps = operator.locator("ol.timeline li")
    expect(steps).to_have_count(2)
    expect(steps.last).to_contain_text("received")


def test_the_route_of_a_message_that_was_sent_away_leads_to_its_receiver(
    operator: Page, site: Site, tmp_path: Path
) -> None:
    with Site(tmp_path, name="BERLIN") as peer:
        peer.manager.create_queue(r".\private$\billing")
        queue = site.manager.queue(rf"DIRECT=TCP:{peer.address}\private$\billing")
        id = queue.send(Message("bill", label="bill"))
        assert peer.manager.queue(r".\private$\billing").peek(timeout=20).text == "bill"
        operator.goto(site.url + trace_link(str(id)))
        expect(operator.locator("ol.timeline")).to_contain_text("handed over")
        expect(operator.locator(".route circle.beyond")).to_have_count(1)
        expect(operator.locator(".route")).to_contain_text(peer.address)


def test_a_transaction_is_aborted_and_its_messages_are_back(
    operator: Page, site: Site, queue_name: str
) -> None:
    name = f"{queue_name}-transactional"
    site.manager.create_queue(name, transactional=True)
    site.send(name, "held")
    begun = site.run(lambda: _begin(site, name))
    operator.goto(f"{site.url}/transactions")
    row = operator.get_by_role("row", name=begun)
    row.get_by_role("button", name="Abort").click()
    operator.get_by_role("dialog").get_by_role("button", name="Abort").click()
    expect(operator.get_by_role("status")).to_contain_text("is aborted")
    assert site.manager.queue(name).peek(timeout=30).text == "held"


async def _begin(site: Site, name: str) -> str:
    control = site.control
    begun = control.transactions.begin(60.0, None)
    transaction = control.transactions.use(UUID(str(begun["id"])))
    queue = await control.manager.queue(name)
    await queue.receive(transaction, timeout=0)
    return str(begun["id"])


def test_the_configuration_is_reloaded_and_each_change_told(operator: Page, site: Site) -> None:
    operator.goto(f"{site.url}/configuration")
    expect(operator.get_by_role("row", name=re.compile("^try_connect_interval"))).to_contain_text(
        "file"
    )
    operator.get_by_role("button", name="Reload").click()
    expect(operator.get_by_role("status")).to_contain_text("nothing has changed")
    old = site.file.read_text()
    try:
        site.file.write_text(
            old.replace("try_connect_interval = 0.2", "try_connect_interval = 0.3")
        )
        operator.get_by_role("button", name="Reload").click()
        expect(operator.get_by_text("The configuration was read again")).to_be_visible()
        expect(operator.locator("main li", has_text="try_connect_interval")).to_contain_text("0.3")
    finally:
        site.file.write_text(old)


def test_a_configuration_with_a_mistake_changes_nothing_and_says_where(
    operator: Page, site: Site, watch: Watch
) -> None:
    watch.expected.append("400")
    old = site.file.read_text()
    try:
        site.file.write_text(old + "\nnonsense = 1\n")
        operator.goto(f"{site.url}/configuration")
        operator.get_by_role("button", name="Reload").click()
        expect(operator.get_by_role("alert")).to_contain_text("nonsense")
    finally:
        site.file.write_text(old)


def test_a_token_is_created_shown_once_and_revoked(operator: Page, site: Site) -> None:
    operator.goto(f"{site.url}/tokens")
    operator.get_by_text("Create a token").click()
    operator.get_by_label("Name", exact=True).fill("web-shop")
    operator.get_by_label("send: put messages into queues").check()
    operator.get_by_label("Expires after days").fill("30")
    operator.get_by_role("button", name="Create").click()
    text = operator.locator("#new-token").inner_text()
    headers = {"Authorization": f"Bearer {text}"}
    assert httpx.get(f"{site.url}/api/v1/queues", headers=headers).status_code == 403  # known
    operator.goto(f"{site.url}/tokens")
    expect(operator.get_by_text(text)).to_have_count(0)
    operator.get_by_role("row", name=re.compile("web-shop")).get_by_role("button").click()
    operator.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(operator.get_by_role("status")).to_have_text("The token web-shop is revoked.")
    assert httpx.get(f"{site.url}/api/v1/queues", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/no/such/page", 404, "there is no page"),
        (queue_link(r".\private$\nothing-here"), 404, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (queue_link("no name at all"), 400, "MQ_ERROR_ILLEGAL"),
        ("/outgoing/123456", 404, "no outgoing queue"),
        ("/messages/nonsense", 400, "no message id"),
        (f"/transactions/{UUID(int=7)}", 404, "there is no page"),
    ],
)
def test_an_error_page_says_what_happened_and_what_to_do(
    operator: Page, site: Site, watch: Watch, path: str, code: int, text: str
) -> None:
    watch.expected.append(str(code))
    answer = operator.goto(site.url + path)
    assert answer is not None
    assert answer.status == code
    expect(operator.get_by_role("alert")).to_contain_text(text)
    expect(operator.locator(".hint")).not_to_have_count(0)
    expect(operator.get_by_role("navigation", name="Pages")).to_be_visible()


def test_a_bug_in_a_page_is_a_page_too(
    operator: Page, site: Site, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.expected.append("500")
    monkeypatch.setattr(site.control, "status", lambda: 1 / 0)
    operator.goto(f"{site.url}/sessions")
    expect(operator.get_by_role("alert")).to_contain_text("ZeroDivisionError in the service")
    expect(operator.locator(".hint")).to_contain_text("the log of the service")


def test_a_message_that_was_received_meanwhile_is_a_page_that_says_so(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected.append("404")
    operator.goto(site.url + message_link(queue_name, 99))
    expect(operator.get_by_role("alert")).to_contain_text("MQ_ERROR_MESSAGE_NOT_FOUND")


_OPEN_ALL = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"


def all_paths(site: Site, queue_name: str) -> list[str]:
    site.send(queue_name, Message("word " * 60, label="label_without_a_place_to_break" * 6))
    lookup_id = site.manager.queue(queue_name).peek().lookup_id
    more = [queue_link(queue_name), queue_link(queue_name, "permissions")]
    more.append(message_link(queue_name, lookup_id))
    return [path for path, _, _ in NAVIGATION] + more


def test_no_page_scrolls_sideways_on_a_phone(
    operator: Page, site: Site, queue_name: str, stuck: str
) -> None:
    operator.set_viewport_size({"width": 360, "height": 740})
    number = outgoing_number(site, stuck)
    for path in [*all_paths(site, queue_name), f"/outgoing/{number}"]:
        operator.goto(site.url + path)
        operator.evaluate(_OPEN_ALL)
        wide = operator.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, path


def test_the_theme_is_chosen_with_a_button_and_kept(operator: Page, site: Site) -> None:
    operator.emulate_media(color_scheme="light")
    assert _background(operator) == "rgb(245, 246, 248)"
    operator.emulate_media(color_scheme="dark")
    assert _background(operator) == "rgb(17, 21, 27)"
    operator.get_by_role("button", name="Theme: system").click()
    assert _background(operator) == "rgb(245, 246, 248)"
    operator.goto(f"{site.url}/queues")  # the server draws it so at once
    expect(operator.locator("html")).to_have_attribute("data-theme", "light")
    operator.get_by_role("button", name="Theme: light").click()
    assert _background(operator) == "rgb(17, 21, 27)"


def _background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


_CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, :disabled")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.outerHTML.slice(0, 80)}`);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_background(
    operator: Page, site: Site, queue_name: str, stuck: str, scheme: str
) -> None:
    operator.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in all_paths(site, queue_name):
        operator.goto(site.url + path)
        assert operator.evaluate(_CONTRAST) == [], path


_NAMELESS = """() => {
  const fields = "input:not([type=hidden]), select, textarea, button, a, summary";
  const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
  return [...document.querySelectorAll(fields)]
    .filter((e) => e.checkVisibility() && !named(e)).map((e) => e.outerHTML.slice(0, 100));
}"""


def test_every_page_has_landmarks_one_heading_and_names_for_all_fields(
    operator: Page, site: Site, queue_name: str
) -> None:
    for path in all_paths(site, queue_name):
        operator.goto(site.url + path)
        operator.evaluate(_OPEN_ALL)
        expect(operator.get_by_role("main")).to_have_count(1)
        expect(operator.get_by_role("navigation", name="Pages")).to_have_count(1)
        expect(operator.locator("h1")).to_have_count(1)
        assert operator.evaluate(_NAMELESS) == [], path
        ids = operator.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids)), path


def test_everything_can_be_reached_with_the_keyboard_alone(
    page: Page, site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    site.send(queue_name, "by keys")
    # given the log-in page, whose field has the focus
    page.goto(f"{site.url}/login")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(tokens["manage"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("SALES01")
    # when somebody skips the navigation, the content has the focus
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    # when he goes to the queues and searches
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    page.keyboard.press("/")
    page.keyboard.type(queue_name.rpartition("\\")[2])
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q="))
    _tab_to(page, queue_name.removeprefix(".\\"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(queue_name.removeprefix(".\\"))
    # then he can purge it, and the dialog takes and gives back the focus
    _tab_to(page, "Purge")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Purge")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("1 message deleted.")
    # and see what the keys are
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")


def _tab_to(page: Page, text: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab never comes to {text}")


def test_without_a_script_a_page_asks_before_it_deletes(
    site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    site.send(queue_name, "one")
    with LogIn(site, tokens["manage"]) as log_in:
        asked = log_in.post(f"{queue_link(queue_name)}/purge")
        assert "Are you sure?" in asked.text
        assert site.manager.queue(queue_name).count == 1
        assert log_in.post(f"{queue_link(queue_name)}/purge", confirmed="1").status_code == 303
    assert site.manager.queue(queue_name).count == 0


def test_the_question_carries_what_was_selected(
    site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    site.send(queue_name, "one", "two")
    ids = [str(message.lookup_id) for message in site.manager.queue(queue_name)]
    with LogIn(site, tokens["manage"]) as log_in:
        asked = log_in.post(f"{queue_link(queue_name)}/selected", work="delete", lookup_id=ids)
    for lookup_id in ids:
        assert f'name="lookup_id" value="{lookup_id}"' in asked.text
    assert asked.text.count('name="csrf_token"') == 2  # its own and that of the log-out


def test_the_charts_are_drawn_in_the_page(operator: Page, site: Site) -> None:
    sampler = site.control.watch.sampler
    for _ in range(3):
        sampler.take()
    operator.goto(f"{site.url}/charts")
    charts = operator.locator("figure.chart svg[role=img]")
    expect(charts).to_have_count(4)
    expect(charts.first).to_have_attribute(
        "aria-label", re.compile("Messages a second: in .*/s now")
    )
    expect(operator.locator("path.curve").nth(1)).to_be_attached()


def test_times_are_those_of_the_reader(operator: Page, site: Site, queue_name: str) -> None:
    operator.goto(site.url + queue_link(queue_name))
    moment = operator.locator("time:not([data-age])").first
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", moment.inner_text())
    assert (moment.get_attribute("title") or "").endswith(" UTC")


def test_if_events_cannot_be_had_the_page_is_read_again_all_the_same(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected += ["Failed to load resource", "ERR_FAILED"]
    operator.route("**/api/v1/events*", lambda route: route.abort())
    operator.goto(site.url + queue_link(queue_name))
    expect(operator.locator("html")).to_have_attribute("data-follows", "polling")
    site.send(queue_name, "polled")
    expect(operator.get_by_role("link", name="polled")).to_be_visible()


def test_a_page_says_when_the_service_does_not_answer_any_more(
    operator: Page, site: Site, watch: Watch, queue_name: str
) -> None:
    watch.expected += ["Failed to load resource", "ERR_FAILED"]
    operator.goto(site.url + queue_link(queue_name))
    expect(operator.locator("html")).to_have_attribute("data-follows", "events")
    expect(operator.locator("#lost")).to_be_hidden()
    here = re.compile(re.escape(queue_link(queue_name)) + "$")
    operator.route(here, lambda route: route.abort())
    site.send(queue_name, "unseen")
    expect(operator.get_by_text("The service does not answer.")).to_be_visible()
    operator.unroute(here)
    expect(operator.get_by_role("link", name="unseen")).to_be_visible(timeout=30_000)
    expect(operator.locator("#lost")).to_be_hidden()


def test_a_computer_is_pinged_from_the_page_of_sessions(operator: Page, site: Site) -> None:
    operator.goto(f"{site.url}/sessions")
    operator.get_by_label("Name or address").fill(site.address)
    operator.get_by_role("button", name="Ping").click()
    expect(operator.locator("#pinged")).to_contain_text(f"Reachable: {site.address}")
    operator.get_by_label("Name or address").fill(loopback())
    operator.get_by_role("button", name="Ping").click()
    expect(operator.locator("#pinged")).to_contain_text("Not reachable")
