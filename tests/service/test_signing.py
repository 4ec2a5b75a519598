"""Signed messages over HTTP: who may sign as whom, who is named, and what readers are told."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import falconmq
from falconmq import (
    AuthenticationLevel,
    FalconMQError,
    Message,
    MqStatus,
    PrivacyLevel,
    QueueError,
    SenderIdType,
)
from falconmq.client.control import ControlClient
from falconmq.client.json_messages import to_json as to_sent_json
from falconmq.client.packets import NO_SENDER, SENDER_HEADER, destination_of, to_packets
from falconmq.manager.access import Principal
from falconmq.security.certificate_store import Registered
from falconmq.security.signatures import verify
from falconmq.security.signing_keys import SigningKeys
from falconmq.service.access import Role
from falconmq.service.configuration import ConfiguredPrincipal
from falconmq.service.console.drawing import message_link
from falconmq.service.requests.messages import to_json
from falconmq.service.requests.senders import sender_json
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage
from tests.client.kinds import awaited
from tests.security.users import ANNA, BERT, make_users, openssl
from tests.service.asking import ORDERS, PACKETS
from tests.service.ports import HttpManager

AT = f"/api/v1/queues/{quote(ORDERS, safe='')}"
SIG20 = AuthenticationLevel.SIG20


class Site:
    """A service that knows anna and bert, an administrator, and somebody with a role alone."""

    def __init__(self, manager: HttpManager, users: dict[Sid, Registered], keys: Path) -> None:
        self.manager = manager
        self.users = users
        principals = tuple(
            ConfiguredPrincipal(Principal(name, sid), (name,))
            for name, sid in (("anna", ANNA), ("bert", BERT))
        )
        configuration = replace(manager.configuration, principals=principals)
        manager.app.state.control.configure(configuration)
        self.core = manager.app.state.control.engine.core
        self.core.signing_keys = SigningKeys(keys)
        self.queue = manager.do(lambda: manager.manager.create_queue(ORDERS))
        rights = {
            "anna": (Role.READ, Role.SEND, Role.RECEIVE),
            "bert": (Role.SEND,),
            "boss": (Role.MANAGE,),
            "plain": (Role.READ, Role.SEND),
        }
        self.tokens = {name: manager.token(*roles, name=name) for name, roles in rights.items()}
        self.clients = {name: manager.client(token) for name, token in self.tokens.items()}
        self.core.settings.access_control = False  # it is not about permissions here

    def send(self, who: str, **message: Any) -> Any:
        body = {"messages": [{"text": "hello", **message}]}
        return self.clients[who].post(f"{AT}/messages", json=body)

    def send_packets(self, who: str, *messages: Message, **headers: str) -> Any:
        goal = destination_of(self.queue.format_name)
        content = to_packets(messages, goal, in_transaction=False)
        given = {"Content-Type": PACKETS, **headers}
        return self.clients[who].post(f"{AT}/packets", content=content, headers=given)

    def ingest(self, who: str, batch: int) -> Any:
        """One message in a batch of its own: the answer to its commit."""
        goal = destination_of(self.queue.format_name)
        content = to_packets([Message("hello")], goal, in_transaction=False)
        at, client = f"/api/v1/ingests/nightly/{batch}", self.clients[who]
        answer = client.post(
            f"{at}/stages",
            params={"queue": ORDERS},
            content=content,
            headers={"Content-Type": PACKETS},
        )
        stage = answer.raise_for_status().json()["stage"]
        return client.post(f"{at}/commit", json={"stages": [stage]})

    def received(self) -> dict[str, Any]:
        """The first message of the queue, as everybody sees it."""
        (message,) = self.clients["boss"].post(f"{AT}/receive", json={}).json()["messages"]
        found: dict[str, Any] = message
        return found

    def packet(self) -> UserMessage:
        positions = self.queue.opened.queue.positions
        (lookup_id,) = positions.lookup_ids()
        return UserMessage.decode(positions.find(lookup_id).message.data)

    def page(self) -> str:
        """The page of the only message, without its spaces."""
        (lookup_id,) = self.queue.opened.queue.positions.lookup_ids()
        html = self.clients["boss"].get(message_link(ORDERS, lookup_id)).text
        _, _, panel = html.partition('id="sender-title"')
        return " ".join(panel.partition("</section>")[0].split())

    def certificate(self, owner: Sid) -> str:
        return base64.b64encode(self.users[owner].certificate.data).decode()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def users(keys: Path) -> dict[Sid, Registered]:
    return make_users(keys, ANNA, BERT)


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, users: dict[Sid, Registered], keys: Path
) -> Iterator[Site]:
    """One for all tests: a web application takes a while to make."""
    with HttpManager(tmp_path_factory.mktemp("data")) as manager:
        site = Site(manager, users, keys)
        yield site
        for client in site.clients.values():
            client.close()


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    yield running
    running.queue.opened.queue.properties.authentication = False
    running.manager.do(running.queue.purge)


# Who signs


def test_a_caller_signs_as_the_principal_that_its_token_is(site: Site) -> None:
    assert site.send("anna", authentication_level="SIG20").status_code == 201
    packet = site.packet()
    assert packet.security is not None
    assert bytes(packet.security.sender_cert) == site.users[ANNA].certificate.data
    assert verify(packet).value == SIG20
    message = site.received()
    assert message["authentication_level"] == "SIG20"
    assert message["sender"] == {
        "sid": str(ANNA),
        "name": "anna",
        "certificate": site.users[ANNA].certificate.subject,
    }


@pytest.mark.parametrize(("who", "owner"), [("anna", BERT), ("plain", ANNA), ("plain", BERT)])
def test_nobody_signs_with_the_certificate_of_another(site: Site, who: str, owner: Sid) -> None:
    shown = site.certificate(owner)
    refused = site.send(who, authentication_level="SIG20", sender_certificate=shown)
    assert refused.status_code == 403
    assert refused.json()["error"] == "MQ_ERROR_ACCESS_DENIED"
    assert f"may not sign for {owner}" in refused.json()["detail"]
    assert len(site.queue.opened.queue.positions.lookup_ids()) == 0


def test_a_token_that_is_nobody_signs_nothing(site: Site) -> None:
    refused = site.send("plain", authentication_level="SIG20")
    assert refused.status_code == 403
    assert "[[principals]]" in refused.json()["hint"]


def test_those_who_administer_sign_for_everybody(site: Site) -> None:
    shown = site.certificate(BERT)
    done = site.send("boss", authentication_level="sig10", sender_certificate=shown)
    assert done.status_code == 201
    assert site.received()["sender"]["name"] == "bert"
    refused = site.send("boss", authentication_level="SIG20")  # two, and none is named
    assert refused.json()["error"] == "MQ_ERROR_CERTIFICATE_NOT_PROVIDED"


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_programs_ask_for_it_as_embedded_ones_do(site: Site, kind: str) -> None:
    url, token = site.manager.url, site.tokens["anna"]
    messages = [
        Message("plain"),
        Message("signed", authentication_level=SIG20),
        Message("private", privacy_level=PrivacyLevel.ADVANCED),
        Message("nobody's", sender_id_type=SenderIdType.NONE),
        Message("plain again"),
    ]

    async def with_asyncio() -> None:
        async with falconmq.aio.connect(url, token) as manager:
            await (await manager.queue(ORDERS)).send_many(messages)

    if kind == "asyncio":
        awaited(with_asyncio)
    else:
        with falconmq.connect(url, token) as manager:
            manager.queue(ORDERS).send_many(messages)
    with falconmq.connect(url, token) as manager:
        found = list(manager.queue(ORDERS))
    assert [each.text for each in found] == [each.text for each in messages]
    assert [each.authentication_level for each in found] == [0, SIG20, 0, 0, 0]
    assert [each.privacy_level for each in found] == [0, 0, PrivacyLevel.ADVANCED, 0, 0]
    anna = ANNA.encode()
    assert [each.sender_id for each in found] == [anna, anna, anna, b"", anna]
    assert [each.id for each in found] == [each.id for each in messages]


def test_a_program_gets_the_same_refusals(site: Site) -> None:
    site.queue.opened.queue.properties.authentication = True
    with falconmq.connect(site.manager.url, site.tokens["plain"]) as manager:
        orders = manager.queue(ORDERS)
        with pytest.raises(QueueError, match="only signed messages") as unsigned:
            orders.send(Message("hello"))  # as a packet
        assert unsigned.value.status is MqStatus.MESSAGE_NOT_AUTHENTICATED
        with pytest.raises(QueueError, match="only signed messages"):
            orders.send(Message("hello", dead_letter_queue=ORDERS))  # as JSON
        with pytest.raises(FalconMQError, match="no principal") as denied:
            orders.send(Message("hello", authentication_level=SIG20))
        assert denied.value.status is MqStatus.ACCESS_DENIED
    assert site.send("anna", authentication_level="SIG20").status_code == 201


# Who is named


def test_packets_get_the_sid_of_the_caller(site: Site) -> None:
    assert site.send_packets("anna", Message("hello")).status_code == 201
    message = site.received()
    assert message["text"] == "hello"
    assert message["sender"] == {"sid": str(ANNA), "name": "anna", "certificate": ""}
    assert message["authentication_level"] == "NONE"
    assert site.send_packets("plain", Message("hello")).status_code == 201
    assert site.received()["sender"] is None


def test_packets_may_name_nobody(site: Site) -> None:
    hidden = {SENDER_HEADER: NO_SENDER}
    assert site.send_packets("anna", Message("hello"), **hidden).status_code == 201
    assert site.received()["sender"] is None


@pytest.mark.parametrize("door", ["packets", "json"])
@pytest.mark.parametrize(("who", "named"), [("anna", "anna"), ("boss", "bert"), ("plain", "bert")])
def test_what_a_caller_says_of_itself_is_put_right(
    site: Site, who: str, named: str, door: str
) -> None:
    if door == "packets":
        done = site.send_packets(who, Message("hello", sender_id=BERT.encode()))
    else:
        done = site.send(who, sender_id=base64.b64encode(BERT.encode()).decode())
    assert done.status_code == 201
    assert site.received()["sender"]["name"] == named


@pytest.mark.parametrize("door", ["packets", "json"])
def test_what_is_signed_already_stays_as_it_is(site: Site, door: str) -> None:
    signed = Message("hello", sender_id=BERT.encode(), signature=b"s", sender_certificate=b"c")
    if door == "packets":
        assert site.send_packets("anna", signed).status_code == 201
    else:
        assert site.send("anna", **(to_sent_json(signed) | {"body": None})).status_code == 201
    message = site.received()
    assert message["sender"]["name"] == "bert"  # whether that is true is for verifiers
    assert message["authentication_level"] == "NONE"


def test_a_stage_of_an_ingest_names_who_commits_it(site: Site) -> None:
    site.ingest("anna", 1).raise_for_status()
    message = site.received()
    assert (message["text"], message["sender"]["name"]) == ("hello", "anna")


def test_a_demand_holds_for_ingests(site: Site) -> None:
    site.queue.opened.queue.properties.authentication = True
    refused = site.ingest("anna", 2)
    assert refused.status_code == 400
    assert refused.json()["error"] == "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"
    assert len(site.queue.opened.queue.positions.lookup_ids()) == 0


def test_a_demand_holds_for_packets_and_names_the_one_that_fails(site: Site) -> None:
    site.queue.opened.queue.properties.authentication = True
    refused = site.send_packets("anna", Message("a"), Message("b"))
    assert refused.status_code == 400
    assert refused.json()["error"] == "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"
    assert refused.json()["detail"].startswith("packets[0]: ")


# What readers are told


@pytest.mark.parametrize(
    ("sender_id", "kind", "shown"),
    [
        (b"", SenderIdType.NONE, None),
        (b"\x01\x01", SenderIdType.SID, {"sid": None, "name": "", "certificate": ""}),
        (
            BERT.encode(),
            SenderIdType.SID,
            {"sid": str(BERT), "name": str(BERT), "certificate": ""},
        ),
        (
            bytes(15) + b"\x07",
            SenderIdType.QUEUE_MANAGER,
            {
                "sid": None,
                "name": "queue manager 00000000-0000-0000-0000-000000000007",
                "certificate": "",
            },
        ),
    ],
)
def test_a_sender_is_shown_whatever_a_peer_sent(
    sender_id: bytes, kind: int, shown: dict[str, Any] | None
) -> None:
    message = Message("hello")
    message.sender_id, message.sender_id_type = sender_id, kind
    assert to_json(message)["sender"] == shown


def test_a_certificate_that_is_none_has_no_subject() -> None:
    message = Message("hello")
    message.sender_certificate = b"nothing"
    assert sender_json(message, {}) == {"sid": None, "name": "", "certificate": ""}


def test_the_page_of_a_message_shows_who_signed_it(site: Site) -> None:
    site.send("anna", authentication_level="SIG20")
    shown = site.page()
    assert "<dt>Name</dt><dd>anna</dd>" in shown
    assert f"<code>{ANNA}</code>" in shown
    assert "FalconMQ internal certificate" in shown
    assert "the signature was verified (SIG20, SHA_512)" in shown


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"sender_id": base64.b64encode(BERT.encode()).decode()}, "Not signed"),
        ({"signature": "aGVsbG8=", "sender_certificate": "aGVsbG8="}, "nobody here has verified"),
        ({}, ""),
    ],
)
def test_the_page_of_a_message_says_what_is_not_proven(
    site: Site, properties: dict[str, str], said: str
) -> None:
    site.send("boss", **properties)
    shown = site.page()
    assert said in shown
    assert bool(shown) is bool(said)
    assert "was verified" not in shown


def test_what_a_certificate_says_of_itself_is_text(site: Site, tmp_path: Path) -> None:
    key, made = tmp_path / "key", tmp_path / "made"
    openssl(
        *("req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=<script>x"),
        *("-keyout", key, "-out", made, "-outform", "DER"),
    )
    site.send("boss", sender_certificate=base64.b64encode(made.read_bytes()).decode())
    shown = site.page()
    assert "&lt;script" in shown
    assert "<script>" not in shown


def test_certificates_are_made_for_principals_by_name(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    with ControlClient.connect(site.manager.url, site.tokens["boss"]) as client:
        made = client.request("POST", "/certificates", {"user": "Anna"})
        assert (made["user"], made["name"], made["kind"]) == (str(ANNA), "anna", "internal")
        (listed,) = client.request("GET", "/certificates")["certificates"]
        assert listed == made
        with pytest.raises(FalconMQError, match="nobody is called"):
            client.request("POST", "/certificates", {"user": "zoe"})
