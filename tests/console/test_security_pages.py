"""Permissions, keys, certificates and the audit log on pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.security.key_store import KeyStore
from falconmq.service.console.drawing import queue_link
from falconmq.service.requests.audit import Wanted
from tests.console.site import LogIn, Site

SOMEBODY = "S-1-5-21-7-7-7-1001"


@pytest.fixture
def boss(site: Site, tokens: dict[str, str]) -> Iterator[LogIn]:
    """Somebody who may do everything, with a browser that runs no scripts."""
    with LogIn(site, tokens["manage"]) as logged_in:
        yield logged_in


def audited(site: Site, target: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.control.audit.newest(Wanted(target=target), 100)[0]
    return found


def sddl(site: Site, name: str, boss: LogIn) -> str:
    path = f"/api/v1{queue_link(name, 'permissions')}"
    return str(boss.client.get(path).json()["sddl"])


def test_rights_are_granted_and_revoked(operator: Page, site: Site, queue_name: str) -> None:
    operator.goto(site.url + queue_link(queue_name))
    operator.get_by_role("link", name="Permissions", exact=True).last.click()
    rows = operator.locator("main table tbody tr")
    # when somebody is given a right, the page asks first
    operator.get_by_label("Who", exact=True).fill(SOMEBODY)
    operator.get_by_label("peek: look at messages").check()
    operator.get_by_role("button", name="Grant").click()
    operator.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(operator.get_by_role("status")).to_have_text(f"{SOMEBODY} may peek now.")
    row = rows.filter(has_text=SOMEBODY)
    expect(row).to_contain_text("peek")
    # when it is taken away
    row.get_by_role("button", name="Revoke").click()
    dialog = operator.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Take from {SOMEBODY} the rights to peek")
    dialog.get_by_role("button", name="Revoke").click()
    expect(operator.get_by_role("status")).to_contain_text("has lost the rights to peek")
    expect(row).to_have_count(0)
    # then both are in the audit log, and what was only asked is not
    done = [(e["action"], e["details"], e["result"]) for e in audited(site, queue_name)]
    assert done == [
        ("permissions change", f"revoke {SOMEBODY}: peek", "done"),
        ("permissions change", f"grant {SOMEBODY}: peek", "done"),
    ]


def test_without_scripts_a_page_asks_and_nothing_happens_before(
    site: Site, boss: LogIn, queue_name: str
) -> None:
    path, before = queue_link(queue_name, "permissions"), sddl(site, queue_name, boss)
    asked = boss.post(f"{path}/grant", who="Everyone", right=["receive", "delete"])
    assert "Are you sure?" in asked.text
    assert f"Let Everyone receive, delete at {queue_name}?" in html.unescape(asked.text)
    assert sddl(site, queue_name, boss) == before
    assert audited(site, queue_name) == []
    new = "D:(A;;GA;;;BA)(A;;0x4;;;WD)"
    assert "Whoever is not in the new list is out" in boss.post(f"{path}/set", sddl=new).text
    assert sddl(site, queue_name, boss) == before
    # when it was confirmed, it is done
    answer = boss.post(f"{path}/set", sddl=new, confirmed="1")
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert sddl(site, queue_name, boss).endswith(new)
    page = html.unescape(boss.get(path))
    assert "The permissions are replaced." in page
    assert new in page
    assert "Administrators" in page


def test_a_change_that_is_refused_is_shown_with_the_form_and_written_down(
    site: Site, boss: LogIn, queue_name: str
) -> None:
    path, before = queue_link(queue_name, "permissions"), sddl(site, queue_name, boss)
    answer = boss.post(f"{path}/grant", who="Nobody-Known", right="send", confirmed="1")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    text = html.unescape(answer.text)
    assert "nobody is called 'Nobody-Known' here" in text
    assert 'value="Nobody-Known"' in text
    assert 'id="right-send" name="right" value="send" checked' in text
    assert boss.post(f"{path}/set", sddl="nonsense", confirmed="1").status_code == 400
    assert sddl(site, queue_name, boss) == before
    results = {(e["result"], e["code"], bool(e["problem"])) for e in audited(site, queue_name)}
    assert results == {("failed", 400, True)}


def test_permissions_take_the_role_and_the_csrf_token(
    site: Site, boss: LogIn, tokens: dict[str, str], queue_name: str
) -> None:
    path, before = queue_link(queue_name, "permissions"), sddl(site, queue_name, boss)
    fields = {"who": "Everyone", "right": "full", "confirmed": "1"}
    forged = boss.client.post(f"{path}/grant", data={"csrf_token": "x", **fields})
    assert forged.status_code == HTTPStatus.FORBIDDEN
    with LogIn(site, tokens["read"]) as reader:
        assert queue_link(queue_name, "permissions") not in reader.get(queue_link(queue_name))
        assert reader.post(f"{path}/grant", **fields).status_code == HTTPStatus.FORBIDDEN
        for place in (path, "/permissions", "/keys", "/audit"):
            assert reader.client.get(place).status_code == HTTPStatus.FORBIDDEN
            assert f'href="{place}"' not in reader.get("/")
    assert sddl(site, queue_name, boss) == before


def test_the_permissions_of_the_queue_manager_are_shown_in_words(site: Site, boss: LogIn) -> None:
    letters = boss.client.get(queue_link(site.manager.dead_letter.name, "permissions"))
    assert letters.headers["location"] == "/permissions"
    page = html.unescape(boss.get("/permissions"))
    for text in ("Authenticated Users", "create-queue", "S-1-5-32-544", "(A;;0x4;;;AU)"):
        assert text in page
    answer = boss.client.get("/api/v1/permissions").json()
    assert answer["owner_name"] == "Administrators"
    assert [entry["rights"] for entry in answer["entries"]] == [
        ["full"],
        ["get-properties", "get-permissions"],
        ["create-queue"],
    ]


def test_keys_and_certificates_are_shown_without_their_private_halves(
    site: Site, boss: LogIn
) -> None:
    headers = {"X-CSRF-Token": boss.csrf}
    boss.client.post("/api/v1/certificates", json={"user": SOMEBODY}, headers=headers)
    page = boss.get("/keys")
    listed = boss.client.get("/api/v1/keys").json()["keys"]
    assert len(listed) == 6
    assert all(key["fingerprint"] in page for key in listed)
    (certificate,) = boss.client.get("/api/v1/certificates").json()["certificates"]
    assert certificate["fingerprint"] in page
    assert SOMEBODY in page
    pairs = KeyStore(site.configuration.manager.data).find()
    assert pairs is not None
    for pair in (*pairs.encryption.values(), *pairs.signing.values()):
        for number in (pair.private_exponent, pair.prime1, pair.prime2):
            assert f"{number:x}" not in page.lower()
            assert str(number) not in page
    assert "PRIVATE" not in page


def test_the_page_says_whether_the_directory_has_the_keys(
    site: Site, boss: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "falconmq key export" in boss.get("/keys")
    monkeypatch.setattr(site.control.engine.core, "directory", MemoryDirectory())
    assert "The directory has them" in boss.get("/keys")
    publisher = site.control.key_publisher
    monkeypatch.setattr(publisher, "_wanted", (b"", b""))
    monkeypatch.setattr(publisher, "problem", "it is <away>")
    page = boss.get("/keys")
    assert "not published" in page
    assert "it is &lt;away&gt;" in page


def test_the_audit_log_is_filtered_and_paged(site: Site, boss: LogIn, queue_name: str) -> None:
    stem = queue_name.rpartition("\\")[2]
    headers = {"X-CSRF-Token": boss.csrf}
    for number in range(51):
        name = rf".\private$\{stem}-{number:02}"
        boss.client.post("/api/v1/queues", json={"name": name}, headers=headers)
    boss.client.delete(f"/api/v1{queue_link(queue_name + '-none')}", headers=headers)

    def rows(query: str) -> list[str]:
        table = boss.get(f"/audit?target={stem}-&{query}").partition('id="audit-table"')[2]
        return re.findall(rf"{stem}-\w+", html.unescape(re.sub(r"href=\"[^\"]*\"", "", table)))

    newest = boss.get(f"/audit?target={stem}-&action=queue+create")
    older = re.search(r'rel="next" href="([^"]*)"', newest)
    assert older is not None
    assert f"{stem}-50" in newest
    assert f"{stem}-00" not in newest
    last = boss.get(html.unescape(older[1]))
    assert f"{stem}-00" in last
    assert f"{stem}-01" not in last
    assert ">Newest<" in last
    assert set(rows("result=failed")) == {f"{stem}-none"}
    assert len(set(rows("who=token+operator"))) == 50
    assert rows("who=token+nobody") == []
    assert rows("since=2999-01-01T00:00") == []
    assert rows("until=2001-01-01T00:00") == []
    assert len(set(rows("since=2001-01-01T00:00&until=2999-01-01T00:00"))) == 50
    assert "No entry matches these filters" in boss.get("/audit?who=token+nobody")
    wrong = boss.client.get("/audit?since=yesterday")
    assert wrong.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "is no time" in html.unescape(wrong.text)


def test_the_overview_says_what_others_may_do_and_that_nothing_goes_out(
    site: Site, boss: LogIn
) -> None:
    data, settings = site.configuration.manager.data, site.service.engine.core.settings
    assert "A file is open to others" not in boss.get("/")
    try:
        data.chmod(0o755)
        settings.hardened_security = True
        page = html.unescape(boss.get("/"))
    finally:
        data.chmod(0o700)
        settings.hardened_security = False
    assert "everybody may look into the data directory" in page
    assert f"chmod 700 {data}" in page
    assert "No message comes or goes over the MSMQ port" in page
