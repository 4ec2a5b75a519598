"""One service and one browser for all tests of the console; every test has queues of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from falconmq.service.access import Role
from tests.console.browser import Watch, browsing, chromium, driver_runs
from tests.console.site import Site

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture(scope="package")  # not longer: its event loop would be in the way of others
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    if chromium() is None or not driver_runs():
        pytest.skip("there is no chromium, or its driver cannot run: tools/install-chromium.sh")
    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        opened.set_default_timeout(15_000)
        expect.set_options(timeout=15_000)
        yield opened


@pytest.fixture
def watch(site: Site) -> Iterator[Watch]:
    """Whatever a test does: nothing is complained about, and nobody else is asked."""
    seen = Watch()
    yield seen
    assert [text for text in seen.complaints if not seen.expects(text)] == []
    strangers = {url for url in seen.requests if not url.startswith((site.url, "data:"))}
    assert strangers == set()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Iterator[Page]:
    """A window of somebody who is not logged in."""
    context.clear_cookies()
    opened = context.new_page()
    watch.follow(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def tokens(site: Site) -> dict[str, str]:
    return {
        "manage": site.token(Role.MANAGE, name="operator"),
        "read": site.token(Role.READ, name="reader"),
        "send": site.token(Role.READ, Role.SEND, name="sender"),
    }


@pytest.fixture
def operator(page: Page, site: Site, tokens: dict[str, str]) -> Page:
    """A window of somebody who may do everything."""
    log_in(page, site, tokens["manage"])
    return page


def log_in(page: Page, site: Site, token: str) -> None:
    page.goto(f"{site.url}/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("SALES01")


@pytest.fixture
def queue_name(site: Site) -> str:
    """A new queue."""
    name = rf".\private$\q{next(_numbers)}"
    site.manager.create_queue(name)
    return name
