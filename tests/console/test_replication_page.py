"""The page of the copies of the directory, for people with eyes, keyboards and phones."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.console.browser import Watch
from tests.console.site import LogIn, Site
from tests.service.directory.directory_server import (
    BACKUP,
    given_directory_server,
    given_double,
    hear,
)
from tests.service.directory.enterprise import Directory

PAGE = "/directory/replication"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with given_directory_server(tmp_path_factory.mktemp("server")) as made:
        hear(made, last=7)
        yield made


def test_servers_partitions_and_neighbours_are_shown(
    context: BrowserContext, directory: Directory
) -> None:
    page, watch = context.new_page(), Watch()
    watch.follow(page)
    page.goto(f"{directory.site.url}/directory")
    page.get_by_role("link", name="Other servers keep them too.").click()
    chart = page.get_by_role("region", name="Map of directory servers")
    expect(chart).to_contain_text("7 not here yet")
    expect(chart.get_by_role("link", name="BSC BSC01:")).to_be_visible()
    partitions = page.locator("#partition-table")
    expect(partitions.get_by_role("row", name="Paris PSC1")).to_contain_text("waits for changes")
    expect(partitions.get_by_role("row", name="Berlin this server")).to_contain_text("in step")
    expect(page.locator("#neighbour-table")).to_contain_text("PSC1")
    # a server leads to its entry, without a mouse
    chart.get_by_role("link", name="BSC BSC01:").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{directory.site.url}/directory/queue-manager/{BACKUP}")
    # and a question is answered
    page.goto(directory.site.url + PAGE)
    page.get_by_label("Name or GUID").fill(r"PEC0\nothing")
    page.keyboard.press("Enter")
    expect(page.locator("main .notice:not(#lost)")).to_contain_text(r"There is no PEC0\nothing")
    # and on a phone nothing but the map itself is wider than the screen
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
    assert watch.complaints == []


def test_what_is_in_two_sites_is_shown(context: BrowserContext, directory: Directory) -> None:
    page, watch = context.new_page(), Watch()
    watch.follow(page)
    page.goto(directory.site.url + PAGE)
    expect(page.get_by_role("heading", name="In two sites")).to_have_count(0)
    made = given_double(directory, "STORE7", is_shown=True)
    page.reload()
    row = page.locator("#double-table").get_by_role("row", name="STORE7 queue-manager")
    expect(row).to_contain_text("BerlinParis")
    row.get_by_role("link", name="STORE7").click()
    expect(page).to_have_url(f"{directory.site.url}/directory/queue-manager/{made}")
    page.close()
    assert watch.complaints == []


def test_names_of_strangers_are_text(directory: Directory) -> None:
    directory.create("site", name="<b>Rome", primary_site_controller="<i>ROME")
    with httpx.Client(base_url=directory.site.url) as client:
        text = client.get(PAGE, params={"subject": "<u>x"}).text
    assert "&lt;b&gt;Rome" in text
    assert "&lt;i&gt;ROME" in text
    assert "There is no &lt;u&gt;x" in text
    assert not {"<b>", "<i>", "<u>"} & {text[at : at + 3] for at in range(len(text))}


def test_without_a_role_the_page_says_how_to_get_one(site: Site, tokens: dict[str, str]) -> None:
    with LogIn(site, tokens["read"]) as caller:
        answer = caller.client.get(PAGE)
        assert "directory.role makes it a directory server" in answer.text
        assert answer.status_code >= 400
        assert "/directory/replication" not in caller.get("/directory")
