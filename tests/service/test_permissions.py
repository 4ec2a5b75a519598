"""Permissions over HTTP: who may look at them and change them, and whom they bind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from falconmq import Message
from falconmq.client.packets import to_packets
from falconmq.manager.access import Principal
from falconmq.manager.core import QueueManagerCore
from falconmq.service.access import Role, roles
from falconmq.service.access.principals import Principals
from falconmq.service.configuration import ConfiguredPrincipal, SecuritySection, load
from falconmq.service.configuration.sections import MANAGER_PERMISSIONS
from falconmq.service.daemon import Service
from falconmq.service.securing import secure
from falconmq.service.tables import ConfigurationError
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.sid import ADMINISTRATORS, Sid
from tests.service.asking import ORDERS, PACKETS
from tests.service.ports import HttpManager
from tests.service.services import loopback, run

ALICE, BOB = Sid.parse("S-1-5-21-1-2-3-1105"), Sid.parse("S-1-5-21-1-2-3-1106")
BOSS = Sid.parse("S-1-5-21-1-2-3-500")
AT = f"/api/v1/queues/{quote(ORDERS, safe='')}"


class Site:
    """A service that knows alice, bob, an administrator, and somebody with a role alone."""

    def __init__(self, manager: HttpManager) -> None:
        self.manager = manager
        principals = (
            ConfiguredPrincipal(Principal("alice", ALICE), ("alice-token",)),
            ConfiguredPrincipal(Principal("bob", BOB), ("bob-token", "bob-too")),
            ConfiguredPrincipal(Principal("boss", BOSS, frozenset({ADMINISTRATORS})), ("boss",)),
        )
        configuration = replace(manager.configuration, principals=principals)
        manager.app.state.control.configure(configuration)
        self.core = manager.app.state.control.engine.core
        secure(self.core, configuration.security)
        self.queue = manager.do(lambda: manager.manager.create_queue(ORDERS))
        names = ("alice-token", "bob-token", "boss", "plain")
        self.tokens = {name: manager.token(*Role, name=name) for name in names}

    def ask(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        with self.manager.client(self.tokens[who]) as client:
            return client.request(method, path, json=body, headers=headers)

    def set(self, sddl: str, who: str = "plain") -> httpx.Response:
        answer: httpx.Response = self.ask(who, "PUT", f"{AT}/permissions", {"sddl": sddl})
        return answer

    def send(self, *texts: str) -> None:
        self.manager.do(lambda: self.queue.send_many([Message(text) for text in texts]))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with HttpManager(tmp_path) as manager:
        yield Site(manager)


def test_permissions_are_shown_in_words_and_as_text(site: Site) -> None:
    site.set(f"D:(D;;0x4;;;AN)(A;;0x6;;;{ALICE})(A;;GA;;;BA)")
    shown = site.ask("plain", "GET", f"{AT}/permissions").json()
    assert shown["queue"] == ORDERS
    assert (shown["owner"], shown["owner_name"]) == ("S-1-5-7", "Anonymous")
    assert shown["sddl"] == f"O:AND:(D;;0x4;;;AN)(A;;0x6;;;{ALICE})(A;;GA;;;BA)"
    assert not shown["unlimited"]
    assert [(e["kind"], e["name"], e["rights"]) for e in shown["entries"]] == [
        ("deny", "Anonymous", ["send"]),
        ("allow", "alice", ["send", "peek"]),
        ("allow", "Administrators", ["full"]),
    ]


def test_rights_are_granted_and_revoked_in_one_step_or_not_at_all(site: Site) -> None:
    path = f"{AT}/permissions"
    site.set("D:(A;;GA;;;WD)")
    change = {
        "grant": [{"who": "alice", "rights": ["receive", "send"]}],
        "revoke": [{"who": "Everyone", "rights": ["full"]}],
    }
    assert site.ask("plain", "PATCH", path, change).json()["sddl"] == f"O:AND:(A;;0x7;;;{ALICE})"
    wrong = {"grant": [{"who": "bob", "rights": ["send"]}, {"who": "carol", "rights": ["send"]}]}
    answer = site.ask("plain", "PATCH", path, wrong)
    assert answer.status_code == 400
    assert "nobody is called 'carol'" in answer.json()["detail"]
    assert site.ask("plain", "GET", path).json()["sddl"] == f"O:AND:(A;;0x7;;;{ALICE})"
    assert site.set("D:(A;;0x100;;;WD)").status_code == 400  # no right of a queue
    assert site.set("nonsense").status_code == 400


def test_what_the_text_leaves_out_stays(site: Site) -> None:
    site.set(f"O:{BOB}D:(A;;GA;;;BA)")
    assert site.set("D:(A;;GA;;;WD)").json()["sddl"] == f"O:{BOB}D:(A;;GA;;;WD)"
    assert site.set("O:BA").json()["sddl"] == "O:BAD:(A;;GA;;;WD)"
    assert site.set("D:NO_ACCESS_CONTROL").json()["unlimited"]


def test_permissions_survive_a_restart_of_the_core(site: Site) -> None:
    site.set(f"O:{BOB}D:(A;;GA;;;BA)")
    stored = [bytes(value) for _, value in site.core.store.scan("queues")]
    assert any(BOB.encode().hex().encode() in value for value in stored)


def test_both_the_role_and_the_permissions_must_allow(site: Site) -> None:
    site.send("a", "b", "c")
    site.set(f"D:(A;;0x4;;;{ALICE})(A;;0x3;;;{BOB})")
    message = {"messages": [{"text": "x"}]}
    assert site.ask("alice-token", "POST", f"{AT}/messages", message).status_code == 201
    refused = site.ask("bob-token", "POST", f"{AT}/messages", message)
    assert refused.status_code == 403
    assert refused.json()["error"] == "MQ_ERROR_ACCESS_DENIED"
    assert "bob (S-1-5-21-1-2-3-1106) may not send messages" in refused.json()["detail"]
    assert "falconmq queue permissions show" in refused.json()["hint"]
    assert site.ask("bob-token", "POST", f"{AT}/receive", {}).status_code == 200
    assert site.ask("alice-token", "POST", f"{AT}/receive", {}).status_code == 403
    # a token that is nobody's is bound by its role alone, as before
    assert site.ask("plain", "POST", f"{AT}/messages", message).status_code == 201
    assert site.ask("plain", "POST", f"{AT}/receive", {}).status_code == 200
    # rights without the role are nothing
    site.tokens["reader"] = site.manager.token(Role.READ, name="bob-too")
    assert site.ask("reader", "POST", f"{AT}/receive", {}).status_code == 403
    assert site.ask("reader", "POST", f"{AT}/receive", {"peek": True}).status_code == 200


READS = [
    ("GET", f"{AT}/messages", None),
    ("GET", f"{AT}/arrivals", None),
    ("GET", f"{AT}/arrivals/plan?from=0", None),
    ("POST", f"{AT}/receive", {"peek": True}),
    ("POST", f"{AT}/receive", {}),
    ("POST", f"{AT}/receive", {"lease": 5}),
    ("POST", f"{AT}/cursors", {}),
    ("POST", f"{AT}/handles", {}),
    ("POST", "/api/v1/consumers/spark/claim", {"queues": [ORDERS]}),
    ("POST", f"{AT}/messages/move", {"lookup_ids": ["1"], "target": r".\private$\other"}),
    ("DELETE", f"{AT}/messages/1", None),
    ("GET", AT, None),
    ("PATCH", AT, {"label": "x"}),
    ("DELETE", AT, None),
    ("POST", f"{AT}/purge", None),
    ("GET", f"{AT}/permissions", None),
    ("PUT", f"{AT}/permissions", {"sddl": "D:(A;;GA;;;WD)"}),
    ("PATCH", f"{AT}/permissions", {"grant": [{"who": "alice", "rights": ["full"]}]}),
    ("POST", f"{AT}/messages", {"messages": [{"text": "x"}]}),
]
MANAGING = [
    ("POST", "/api/v1/tokens", {"name": "x", "roles": ["read"]}),
    ("DELETE", "/api/v1/tokens/plain", None),
    ("POST", "/api/v1/configuration/reload", None),
    ("GET", "/api/v1/backup", None),
    ("POST", "/api/v1/outgoing/1/pause", None),
    ("GET", "/api/v1/dead-letters", None),
    ("POST", "/api/v1/dead-letters/delete", {}),
    ("GET", "/api/v1/event-log/entries?packets=true", None),
]


def test_no_way_to_a_queue_goes_around_its_permissions(site: Site) -> None:
    """Alice has all roles, and no right to the queue; the administrator has both."""
    site.manager.do(lambda: site.manager.manager.create_queue(r".\private$\other"))
    site.send("a")
    site.set("D:(A;;GA;;;BA)")
    found: dict[Any, Any] = {
        (method, path): site.ask("alice-token", method, path, body)
        for method, path, body in READS + MANAGING
    }
    packets = {"accept": PACKETS}
    found["fast", "read"] = site.ask("alice-token", "POST", f"{AT}/receive", {}, **packets)
    with site.manager.client(site.tokens["alice-token"]) as client:
        kind = {"content-type": PACKETS}
        packet = to_packets([Message("x")], site.queue.opened.format_name, in_transaction=False)
        content = client.post(f"{AT}/packets", content=packet, headers=kind)
    found["fast", "write"] = content
    table = {"accept": "application/vnd.apache.arrow.stream"}
    found["table"] = site.ask("alice-token", "GET", f"{AT}/messages", **table)
    found["range"] = site.ask("alice-token", "GET", f"{AT}/messages?from_arrival=0", **table)
    wrong = {way: answer.text for way, answer in found.items() if answer.status_code != 403}
    assert wrong == {}
    assert all("may not" in answer.json()["detail"] for answer in found.values())
    assert site.queue.count == 1
    for method, path, body in READS[:4]:
        assert site.ask("boss", method, path, body).status_code == 200
    assert site.ask("boss", "GET", "/api/v1/dead-letters").status_code == 200


def test_who_may_only_look_takes_nothing_away(site: Site) -> None:
    other = r".\private$\other"
    site.manager.do(lambda: site.manager.manager.create_queue(other))
    site.send("a")
    site.set(f"D:(A;;0x2;;;{ALICE})(A;;0x3;;;{BOB})(A;;GA;;;BA)")
    (message,) = site.ask("alice-token", "GET", f"{AT}/messages").json()["messages"]
    place = f"{AT}/messages/{message['lookup_id']}"
    move = {"lookup_ids": [message["lookup_id"]], "target": other}
    there = f"/api/v1/queues/{quote(other, safe='')}/permissions"
    assert site.ask("boss", "PUT", there, {"sddl": "D:(A;;GA;;;BA)"}).status_code == 200
    assert site.ask("alice-token", "GET", place).status_code == 200
    assert site.ask("alice-token", "DELETE", place).status_code == 403
    letters = {"queue": ORDERS, "lookup_ids": [message["lookup_id"]]}
    delete = "/api/v1/dead-letters/delete"
    assert site.ask("alice-token", "POST", delete, letters).status_code == 403
    redrive = "/api/v1/dead-letters/redrive"
    answer = site.ask("alice-token", "POST", redrive, {**letters, "target": ORDERS})
    assert "may not receive messages" in answer.json()["letters"][0]["problem"]
    refused = site.ask("alice-token", "POST", f"{AT}/messages/move", move)
    assert "alice (S-1-5-21-1-2-3-1105) may not receive messages" in refused.json()["detail"]
    refused = site.ask("bob-token", "POST", f"{AT}/messages/move", move)  # it may not send there
    assert "bob (S-1-5-21-1-2-3-1106) may not send messages" in refused.json()["detail"]
    assert site.ask("boss", "POST", f"{AT}/messages/move", move).status_code == 200


def test_a_reload_binds_callers_at_once(site: Site) -> None:
    site.set("D:(A;;GA;;;BA)")
    assert site.ask("plain", "GET", AT).status_code == 200
    control = site.manager.app.state.control
    named = ConfiguredPrincipal(Principal("carol", ALICE), ("plain",))
    control.configure(replace(control.configuration, principals=(named,)))
    assert site.ask("plain", "GET", AT).status_code == 403
    secure(site.core, SecuritySection(access_control=False))
    assert site.ask("plain", "GET", AT).status_code == 200


def test_a_principal_that_creates_a_queue_owns_it(site: Site) -> None:
    name = r".\private$\mine"
    assert site.ask("alice-token", "POST", "/api/v1/queues", {"name": name}).status_code == 201
    path = f"/api/v1/queues/{quote(name, safe='')}"
    shown = site.ask("alice-token", "GET", f"{path}/permissions").json()
    assert shown["owner_name"] == "alice"
    assert site.ask("bob-token", "GET", path).status_code == 200  # to look is everybody's
    assert site.ask("bob-token", "DELETE", path).status_code == 403
    assert site.ask("alice-token", "DELETE", path).status_code == 204


def test_to_look_at_permissions_takes_the_role_manage(site: Site) -> None:
    site.tokens["reader"] = site.manager.token(Role.READ, name="reader")
    assert site.ask("reader", "GET", f"{AT}/permissions").status_code == 403


def test_the_owner_of_the_socket_is_bound_only_if_the_configuration_says_so() -> None:
    alice = Principal("alice", ALICE)
    shop = roles.Principal("owner", frozenset(), "owner")  # a token of that name
    nobody = Principals([ConfiguredPrincipal(alice, ("shop",))])
    assert nobody.of(roles.OWNER) is None
    assert nobody.of(None) is None
    assert nobody.of(roles.Principal("shop", frozenset())) is None  # a name is no token
    bound = Principals([ConfiguredPrincipal(alice, (), socket=True)])
    assert bound.of(roles.OWNER) is alice
    assert bound.of(shop) is None
    assert bound.names == {"alice": ALICE}


# The configuration


def test_principals_are_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "falconmq.toml"
    path.write_text(
        f"""
        [security]
        manager_permissions = "D:(A;;GA;;;BU)"
        [[principals]]
        name = "alice"
        sid = "{ALICE}"
        groups = ["Users", "S-1-5-32-544"]
        tokens = ["web", "app"]
        [[principals]]
        name = "owner"
        sid = "SY"
        socket = true
        """
    )
    alice, owner = load(path, environment={}).principals
    assert alice.principal.sids >= {ALICE, ADMINISTRATORS}
    assert alice.tokens == ("web", "app")
    assert (owner.socket, str(owner.principal.user)) == (True, "S-1-5-18")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = 'a'\nsid = 'x'", "principals[1].sid is 'x'; it must be a SID"),
        ("sid = 'SY'", "principals[1].name is missing"),
        ("name = 'a'\nsid = 'AN'", "nobody in particular"),
        ("name = 'a'\nsid = 'SY'\ngroups = ['nobody']", "principals[1].groups"),
        (
            "name='a'\nsid='SY'\ntokens=['t']\n[[principals]]\nname='b'\nsid='LS'\ntokens=['t']",
            "named once: it is a already",
        ),
        (
            "name='a'\nsid='SY'\nsocket=true\n[[principals]]\nname='b'\nsid='LS'\nsocket=true",
            "given once: it is a",
        ),
        ("name='a'\nsid='SY'\n[[principals]]\nname='A'\nsid='LS'", "named once"),
        ("name='a'\nsid='SY'\n[security]\nmanager_permissions='D:(A;;0x8;;;WD)'", "no right of"),
        ("name='a'\nsid='SY'\n[security]\nmanager_permissions='D:('", "a security descriptor"),
    ],
)
def test_mistakes_in_principals_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "falconmq.toml"
    path.write_text(f"[[principals]]\n{text}\n")
    with pytest.raises(ConfigurationError) as caught:
        load(path, environment={})
    assert problem in str(caught.value)


def test_a_reload_applies_security_and_principals(tmp_path: Path) -> None:
    path = tmp_path / "falconmq.toml"
    head = f"[manager]\nname = 'A'\nbind = '{loopback()}'\ndata = 'data'\n[http]\nenabled = false\n"

    async def main() -> None:
        path.write_text(head)
        service = await Service.start(load(path, environment={}))
        try:
            core, control = service.engine.core, service._control
            assert control is not None
            assert _switches(core) == (True, True)
            assert core.local.security == parse_sddl(MANAGER_PERMISSIONS)
            path.write_text(
                f"{head}[security]\naccess_control = false\neveryone_includes_anonymous = false\n"
                f"manager_permissions = 'D:(A;;GA;;;BU)'\naudit_bytes = 70000\n"
                f"[[principals]]\nname = 'alice'\nsid = '{ALICE}'\n"
            )
            report = await service.reload()
            assert {(change.name, change.is_applied) for change in report.changes} == {
                ("security.access_control", True),
                ("security.everyone_includes_anonymous", True),
                ("security.manager_permissions", True),
                ("security.audit_bytes", True),
                ("principals", True),
            }
            assert _switches(core) == (False, False)
            assert core.local.security == parse_sddl("D:(A;;GA;;;BU)")
            assert control.principals.names == {"alice": ALICE}
            assert service.configuration.security.audit_bytes == 70_000
        finally:
            await service.stop()

    run(main())


def _switches(core: QueueManagerCore) -> tuple[bool, bool]:
    return core.settings.access_control, core.settings.everyone_includes_anonymous
