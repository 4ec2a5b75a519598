"""Who gets in, who does not, and what they may do."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect

from falconmq.service.console.drawing import queue_link
from falconmq.service.console.view import NAVIGATION
from tests.console.browser import Watch
from tests.console.conftest import log_in
from tests.console.site import LogIn, Site


def test_a_stranger_is_asked_for_a_token_and_then_gets_the_page_he_wanted(
    page: Page, site: Site, tokens: dict[str, str]
) -> None:
    page.goto(f"{site.url}/queues?sort=-size")
    expect(page).to_have_url(f"{site.url}/login?next=%2Fqueues%3Fsort%3D-size")
    page.get_by_label("Token").fill(tokens["manage"])
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{site.url}/queues?sort=-size")


def test_a_wrong_token_is_refused_and_said_so(page: Page, site: Site, watch: Watch) -> None:
    watch.expected.append("401")
    page.goto(f"{site.url}/login")
    page.get_by_label("Token").fill("fmq_wrong_token")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("this token is not known")
    expect(page.get_by_label("Token")).to_be_focused()
    assert not [cookie for cookie in page.context.cookies() if "session" in cookie["name"]]


def test_logging_out_ends_the_session(operator: Page, site: Site) -> None:
    operator.get_by_role("button", name="Log out").click()
    expect(operator.get_by_role("status")).to_have_text("You are logged out.")
    operator.goto(f"{site.url}/queues")
    expect(operator).to_have_url(f"{site.url}/login?next=%2Fqueues")


def test_the_cookie_is_kept_from_scripts_and_other_sites(operator: Page) -> None:
    (cookie,) = [each for each in operator.context.cookies() if "session" in each["name"]]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert "session" not in operator.evaluate("document.cookie")


def test_a_reader_sees_no_buttons_that_change_anything(
    page: Page, site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    site.send(queue_name, "hello")
    log_in(page, site, tokens["read"])
    expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
    for path in ("/queues", queue_link(queue_name), "/dead-letters", "/configuration"):
        page.goto(site.url + path)
        expect(page.locator("main form[method=post] button")).to_have_count(0)
        expect(page.locator("main input[type=checkbox]:not(#system)")).to_have_count(0)


def test_a_sender_gets_the_form_to_send_and_no_other(
    page: Page, site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    log_in(page, site, tokens["send"])
    page.goto(site.url + queue_link(queue_name))
    expect(page.locator("main form[method=post] button.main")).to_have_text(["Send"])
    expect(page.locator("main button.danger")).to_have_count(0)


@pytest.mark.parametrize(
    "path",
    ["/queues", "{queue}/purge", "{queue}/delete", "{queue}/properties", "{queue}/send",
     "{queue}/selected", "{queue}/messages/1/delete", "{queue}/messages/1/move",
     "{queue}/messages/1/redrive", "/outgoing/1/pause", "/outgoing/1/purge", "/configuration",
     "/tokens", "/tokens/operator/revoke", "/dead-letters",
     "/transactions/00000000-0000-0000-0000-000000000001/commit",
     "/leases/00000000-0000-0000-0000-000000000001/abort"],
)  # fmt: skip
def test_what_a_reader_has_no_button_for_is_refused_on_the_server_too(
    site: Site, tokens: dict[str, str], queue_name: str, path: str
) -> None:
    with LogIn(site, tokens["read"]) as log_in:
        answer = log_in.post(path.format(queue=queue_link(queue_name)), confirmed="1", name="x")
    assert answer.status_code == 403
    assert "has not the role" in answer.text
    assert "<title>Not allowed" in answer.text


def test_a_form_without_our_proof_is_refused(
    site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    with LogIn(site, tokens["manage"]) as log_in:
        for csrf in ("", "wrong", log_in.csrf[:-1]):
            log_in.csrf = csrf
            answer = log_in.post(f"{queue_link(queue_name)}/delete", confirmed="1")
            assert answer.status_code == 403
            assert "CSRF" in answer.text
    assert site.manager.queue(queue_name).count == 0


def test_a_form_of_another_site_is_refused(
    site: Site, tokens: dict[str, str], queue_name: str
) -> None:
    with LogIn(site, tokens["manage"]) as log_in:
        log_in.client.headers["Origin"] = "https://evil.example"
        answer = log_in.post(f"{queue_link(queue_name)}/delete", confirmed="1")
    assert answer.status_code == 403
    site.manager.queue(queue_name)


@pytest.mark.parametrize("path", [path for path, _, _ in NAVIGATION])
def test_no_page_is_open_to_strangers(site: Site, path: str) -> None:
    answer = httpx.get(site.url + path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")


def test_the_console_says_which_scripts_may_run_and_what_is_kept(site: Site) -> None:
    answer = httpx.get(f"{site.url}/login")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
