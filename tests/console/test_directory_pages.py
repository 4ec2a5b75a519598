"""The directory on pages: entries to find and to look at."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from falconmq.directory.texts import WORDS, table_for
from falconmq.service.console.directory import COLUMNS, PAGE
from tests.console.site import LogIn, Site


@pytest.fixture(scope="module")
def api(site: Site, tokens: dict[str, str]) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {tokens['manage']}"}
    with httpx.Client(base_url=f"{site.url}/api/v1/directory", headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def manager(site: Site, tokens: dict[str, str]) -> Iterator[LogIn]:
    with LogIn(site, tokens["manage"]) as logged_in:
        yield logged_in


def create(api: httpx.Client, kind: str, **attributes: object) -> dict[str, Any]:
    answer = api.post(f"/{kind}", json={"attributes": attributes})
    assert answer.status_code == 201, answer.text
    return dict(answer.json()["attributes"])


@pytest.fixture(scope="module")
def entries(api: httpx.Client) -> dict[str, Any]:
    create(api, "enterprise", name="example.com")
    site = create(api, "site", name="Berlin")
    many = [
        create(
            api,
            "queue-manager",
            computer_name=f"sales{number:02}",
            site_identifiers=[site["identifier"]],
        )
        for number in range(PAGE + 3)
    ]
    odd = create(api, "queue", path_name=r"sales01\a<b>&c", label="<script>alert(1)</script>")
    return {"site": site, "managers": many, "queue": odd}


def test_every_type_has_columns_that_it_knows() -> None:
    assert COLUMNS.keys() == WORDS.keys()
    for kind, columns in COLUMNS.items():
        assert set(columns) <= {attribute.name for attribute in table_for(kind).attributes}


def test_entries_are_found_and_looked_at(
    operator: Page, site: Site, entries: dict[str, Any]
) -> None:
    operator.goto(site.url)
    operator.get_by_role("link", name="Directory").click()
    rows = operator.get_by_role("region", name="Entries").locator("tbody tr")
    # queue managers come first, with the names of their sites, a page at a time
    expect(rows).to_have_count(PAGE)
    expect(rows.first).to_contain_text("sales00")
    expect(rows.first).to_contain_text("Berlin")
    operator.get_by_role("link", name="Next").click()
    expect(rows).to_have_count(3)
    # when one is looked for
    operator.get_by_label("Condition").fill("computer_name=sales07")
    operator.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(1)
    rows.first.get_by_role("link").click()
    expect(operator.get_by_role("heading", level=1)).to_have_text("sales07")
    expect(operator.locator("main dl.facts")).to_contain_text(entries["managers"][7]["identifier"])


def test_other_types_odd_names_and_mistakes(manager: LogIn, entries: dict[str, Any]) -> None:
    page = manager.get("/directory?type=queue")
    assert "a&lt;b&gt;&amp;c" in page
    assert "<script>alert" not in page
    shown = manager.get(f"/directory/queue/{entries['queue']['identifier']}")
    assert html.escape("<script>alert(1)</script>") in shown
    assert entries["site"]["identifier"] in manager.get("/directory?type=site")
    assert "There is no user" in manager.get("/directory?type=user")
    assert "No queue meets" in manager.get("/directory?type=queue&where=label%3Dnothing")
    wrong = manager.client.get("/directory?type=queue&where=colour%3Dred")
    assert wrong.status_code == 400
    assert "colour" in wrong.text
    assert manager.client.get("/directory/queue/nothing").status_code == 404
    assert manager.client.get("/directory/sheep/dolly").status_code == 404
    assert "sales00" in manager.get("/directory?type=sheep")
