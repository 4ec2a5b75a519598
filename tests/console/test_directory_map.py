"""The map of sites on the page of the directory."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.console.browser import Watch
from tests.service.directory.enterprise import Directory, given_enterprise


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with given_enterprise(tmp_path_factory.mktemp("map")) as made:
        yield made


def test_a_way_is_chosen_on_the_map_with_the_keyboard(
    context: BrowserContext, directory: Directory
) -> None:
    page, watch = context.new_page(), Watch()
    watch.follow(page)
    page.goto(f"{directory.site.url}/directory")
    chart = page.get_by_role("region", name="Map of sites and links")
    expect(chart.get_by_role("link", name="site Berlin, ours")).to_be_visible()
    expect(chart.get_by_role("link", name="site Host, foreign")).to_be_visible()
    expect(page.locator("main")).to_contain_text("site Host has no gate")
    # when somebody chooses a queue manager without a mouse
    chart.get_by_role("link", name="way to REMO").focus()
    page.keyboard.press("Enter")
    # then its way is told and drawn
    steps = page.locator("ol.steps li")
    expect(steps).to_have_count(5)
    expect(steps.nth(1)).to_contain_text("costs 4 over 2 links and begins with site Paris")
    expect(page.locator(".map .link.way")).to_have_count(2)
    expect(page.locator(".map .site.way")).to_have_count(3)
    expect(page.get_by_label("Way to", exact=True)).to_have_value("REMO")
    # and whoever does not see the picture has a table
    page.get_by_text("As tables").click()
    row = page.get_by_role("row", name="Paris PARIS-GATE (gate)")
    expect(row).to_contain_text("PARIS-GATE (gate), PIA")
    expect(row).to_contain_text("Berlin (cost 1), Rome (cost 3)")
    # and on a phone nothing but the map itself is wider than the screen
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
    assert watch.complaints == []


def test_the_map_is_read_again_when_somebody_asks(
    context: BrowserContext, directory: Directory
) -> None:
    rome = directory.find("site", "Rome")["identifier"]
    directory.create("queue-manager", computer_name="RITA", site_identifiers=[rome])
    page = context.new_page()
    page.goto(f"{directory.site.url}/directory")
    chart = page.get_by_role("region", name="Map of sites and links")
    expect(chart.get_by_role("link", name="way to RITA")).to_have_count(0)
    page.get_by_role("button", name="Read again").click()
    expect(page.locator("main")).to_contain_text("were read from the directory")
    expect(chart.get_by_role("link", name="way to RITA")).to_have_count(1)
    page.close()


def test_names_of_strangers_are_text_and_unknown_ones_are_said(directory: Directory) -> None:
    paris = directory.find("site", "Paris")["identifier"]
    directory.create("queue-manager", computer_name="a<b>&c", site_identifiers=[paris])
    directory.refresh()
    with httpx.Client(base_url=directory.site.url) as client:
        page = client.get("/directory", params={"to": "a<b>&c"}).text
        assert "a&lt;b&gt;&amp;c" in page
        assert "<b>" not in page
        unknown = client.get("/directory", params={"to": "NOBODY"}).text
        assert "no queue manager and no queue NOBODY" in unknown
        nowhere = client.get("/directory", params={"to": "FRIDA"}).text
        assert "from there no way leads on" in nowhere
