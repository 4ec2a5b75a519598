"""Public queues through the doors of the service: HTTP, remote clients, packets, Arrow, ingests."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa
import pytest

from falconmq import Message
from falconmq.client import arrow
from falconmq.client.packets import MEDIA_TYPE, destination_of, to_packets
from falconmq.directory.cached import CachedDirectory
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.names import PathName, PublicFormatName
from falconmq.service import declared
from falconmq.service.configuration import DeclaredQueue
from falconmq.service.declared import Outcome, are_postponed
from falconmq.wire.sddl import parse_sddl
from tests.client.kinds import opened
from tests.embedded.members import FAR, FAR_MANAGER, Enterprise, member_engine
from tests.service.asking import Api, queue_path, texts
from tests.service.control import ControlledManager

HERE = r".\orders"
ELSEWHERE = r"sales02\far"


@pytest.fixture
def enterprise() -> Enterprise:
    return Enterprise()


@pytest.fixture
def far(enterprise: Enterprise) -> str:
    """The format name of a queue on another computer."""
    return str(PublicFormatName(enterprise.add_queue(rf"{FAR}\far")))


@pytest.fixture
def controlled(tmp_path: Path, enterprise: Enterprise) -> Iterator[ControlledManager]:
    engine = member_engine(enterprise, is_cached=True)
    directory = engine.core.directory
    assert isinstance(directory, CachedDirectory)
    with ControlledManager(tmp_path, engine) as controlled:
        yield controlled
    directory.close()


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def left_for(controlled: ControlledManager, name: str) -> list[Any]:
    """The packets that wait for a queue elsewhere."""

    def look(core: QueueManagerCore) -> list[Any]:
        positions = core.outgoing[destination_of(name)].positions
        found = [positions.find(lookup_id) for lookup_id in positions.lookup_ids()]
        return [position.message.packet for position in found if position is not None]

    return controlled.engine.look(look)


def create(api: Api, name: str = HERE, **properties: Any) -> Any:
    return api.post("/queues", {"name": name, **properties})


def test_a_public_queue_is_made_changed_and_deleted_over_http(
    enterprise: Enterprise, api: Api
) -> None:
    made = create(api, label="Orders", transactional=True)
    assert made["format_name"].startswith("PUBLIC=")
    assert [row["name"] for row in api.get("/queues")["queues"]] == [HERE]
    changed = api.ask("PATCH", queue_path(HERE), {"label": "New"})
    assert changed.json["label"] == "New"
    row = enterprise.find("Queue", "path_name", r"sales01\orders")
    assert row is not None
    assert (row["label"], row["transactional"]) == ("New", True)
    assert api.ask("DELETE", queue_path(made["format_name"])).status == 204
    assert enterprise.find("Queue", "path_name", r"sales01\orders") is None


def test_permissions_of_a_public_queue_are_in_the_directory(
    enterprise: Enterprise, api: Api
) -> None:
    create(api)
    sddl = "O:SYD:(A;;0x2;;;AU)"
    answer = api.ask("PUT", queue_path(HERE, "/permissions"), {"sddl": sddl})
    assert answer.status == 200, answer.content
    row = enterprise.find("Queue", "path_name", r"sales01\orders")
    assert row is not None
    assert row["security"] == parse_sddl(sddl)


def test_messages_of_a_public_queue(api: Api) -> None:
    made = create(api, journaling=True)
    mine = made["format_name"]
    for name in (HERE, mine):
        api.post(queue_path(name, "/messages"), {"messages": [{"text": name}]})
    assert texts(api.get(queue_path(mine, "/messages"))) == [HERE, mine]
    assert texts(api.post(queue_path(HERE, "/receive"), {"count": 1})) == [HERE]
    assert texts(api.get(queue_path(rf"{HERE};journal", "/messages"))) == [HERE]
    assert api.post(queue_path(mine, "/purge")) == {"purged": 1}


def test_a_name_is_resolved(api: Api, far: str) -> None:
    mine = create(api)["format_name"]
    for name, format_name, is_local in (
        (HERE, mine, True),
        (mine, mine, True),
        (ELSEWHERE, far, False),
        (far, far, False),
        (r"sales02\private$\q", r"DIRECT=OS:sales02\private$\q", False),
    ):
        answer = api.get(f"/names/{quote(name, safe='')}")
        assert answer == {"name": name, "format_name": format_name, "is_local": is_local}
    for name in (r".\nothing", r"sales02\nothing"):
        status, error, _ = api.refused("GET", f"/names/{quote(name, safe='')}")
        assert (status, error) == (404, "MQ_ERROR_QUEUE_NOT_FOUND")


def test_a_queue_elsewhere_is_refused_to_readers_by_every_name(api: Api, far: str) -> None:
    for name in (ELSEWHERE, far):
        for method, path in (
            ("GET", queue_path(name)),
            ("GET", queue_path(name, "/messages")),
            ("POST", queue_path(name, "/purge")),
        ):
            status, error, detail = api.refused(method, path)
            assert (status, error) == (400, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION")
            assert detail.startswith(f"{name} is on another computer")
    assert api.get("/outgoing")["outgoing"] == []  # nothing was opened for it


def test_a_path_elsewhere_is_sent_to_in_every_way(
    controlled: ControlledManager, api: Api, far: str
) -> None:
    def content(*bodies: str) -> bytes:
        messages = [Message(body) for body in bodies]
        return to_packets(messages, destination_of(far), in_transaction=False)

    api.post(queue_path(ELSEWHERE, "/messages"), {"messages": [{"text": "json"}]})
    with controlled.client() as client:
        client.send_packets(ELSEWHERE, [Message("packet")])
        client.send_packets(far, [Message("packet")])
    table = io.BytesIO()
    batch = pa.record_batch({"body": pa.array([b"arrow"], pa.binary())})
    with pa.ipc.new_stream(table, batch.schema) as writer:
        writer.write_batch(batch)
    sent = api.ask(
        "POST",
        queue_path(ELSEWHERE, "/messages"),
        table.getvalue(),
        {"Content-Type": arrow.MEDIA_TYPE},
    )
    assert sent.status == 201, sent.content
    stage = api.ask(
        "POST",
        f"/ingests/key/1/stages?queue={quote(ELSEWHERE, safe='')}",
        content("ingest"),
        {"Content-Type": MEDIA_TYPE},
    ).json
    api.post("/ingests/key/1/commit", {"stages": [stage["stage"]]})
    packets = left_for(controlled, far)
    assert len(packets) == 5
    assert {packet.user.queue_manager_address for packet in packets} == {FAR_MANAGER.bytes_le}
    assert {packet.user.destination_queue for packet in packets} == {
        UUID(far.removeprefix("PUBLIC=")).bytes_le
    }


def test_packets_for_a_public_queue_name_it(controlled: ControlledManager, api: Api) -> None:
    mine = create(api)["format_name"]
    with controlled.client() as client:
        client.send_packets(HERE, [Message("one")])
        client.send_packets(mine, [Message("two")])
        assert [message.text for message in client.receive_packets(HERE, count=9)] == ["one", "two"]


@pytest.mark.usefixtures("far")
def test_what_waits_for_a_path_elsewhere_is_explained(
    controlled: ControlledManager, api: Api
) -> None:
    subject = quote(ELSEWHERE, safe="")
    assert api.get(f"/why?subject={subject}")["summary"].startswith("No message waits")
    api.post(queue_path(ELSEWHERE, "/messages"), {"messages": [{"text": "x"}]})
    assert api.get(f"/why?subject={subject}")["summary"].startswith("1 message waits")
    assert api.refused("GET", r"/why?subject=sales02%5Cnothing")[0] == 404
    # and what happens to it can be followed: the stream begins
    with controlled.client() as client, client.stream("GET", f"/events?queue={subject}") as pieces:
        assert next(pieces)


@pytest.mark.parametrize("kind", ["embedded", "unix", "aio-unix"])
def test_a_program_sends_to_a_path_elsewhere_through_every_interface(
    tmp_path: Path, enterprise: Enterprise, far: str, kind: str
) -> None:
    engine = member_engine(enterprise)
    with opened(kind, tmp_path, engine) as manager:
        queue = manager.queue(ELSEWHERE)
        assert (queue.format_name, queue.is_local) == (far, False)
        queue.send(Message("hello"))
        assert queue.count == 1
        own = manager.create_queue(HERE)
        own.send(Message("here"))
        assert manager.queue(rf"{manager.computer_name}\orders").receive(timeout=0).text == "here"
        with pytest.raises(QueueError, match="the directory knows no queue") as raised:
            manager.queue(r"sales02\nothing")
        assert raised.value.status is MqStatus.QUEUE_NOT_FOUND


def test_the_directory_is_asked_beside_the_event_loop(
    controlled: ControlledManager, api: Api, far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = controlled.engine.core.directory
    assert isinstance(directory, CachedDirectory)
    ask, asked_by = directory._ask, list[threading.Thread]()

    def watched(*asking: Any) -> Any:
        asked_by.append(threading.current_thread())
        return ask(*asking)

    monkeypatch.setattr(directory, "_ask", watched)
    api.post(queue_path(ELSEWHERE, "/messages"), {"messages": [{"text": "x"}]})
    api.refused("GET", queue_path(r"sales02\nothing"))
    assert len(left_for(controlled, far)) == 1
    assert len(asked_by) == 2
    assert controlled._thread not in asked_by


def test_a_directory_that_is_away_is_named_in_the_problem(
    enterprise: Enterprise, api: Api, far: str
) -> None:
    create(api)
    enterprise.is_connected = False
    status, error, detail = api.refused("POST", "/queues", {"name": r".\late"})
    assert (status, error) == (503, "MQ_ERROR_NO_DS")
    assert detail.endswith("the directory is away")
    sending = queue_path(ELSEWHERE, "/messages")
    status, error, detail = api.refused("POST", sending, {"messages": [{"text": "x"}]})
    assert (status, error) == (503, "MQ_ERROR_NO_DS")
    assert texts(api.post(queue_path(HERE, "/receive"), {})) == []  # what is here still works


# Queues as code


def declare(controlled: ControlledManager, *names: str, **properties: Any) -> list[Outcome]:
    wanted = [DeclaredQueue(PathName.parse(name), False, properties) for name in names]  # type: ignore[arg-type]
    results, _ = controlled.engine.run(declared.declare, wanted)
    assert are_postponed(results) == (Outcome.POSTPONED in [each.outcome for each in results])
    return [result.outcome for result in results]


def test_declared_public_queues_are_made_and_kept(
    enterprise: Enterprise, controlled: ControlledManager
) -> None:
    assert declare(controlled, HERE, r".\private$\p") == [Outcome.CREATED, Outcome.CREATED]
    assert declare(controlled, HERE) == [Outcome.UNCHANGED]
    assert declare(controlled, HERE, label="New") == [Outcome.CHANGED]
    row = enterprise.find("Queue", "path_name", r"sales01\orders")
    assert row is not None
    assert row["label"] == "New"


def test_a_declared_public_queue_waits_for_the_directory(
    enterprise: Enterprise, controlled: ControlledManager
) -> None:
    declare(controlled, HERE)
    enterprise.is_connected = False
    names = (HERE, r".\late", r".\private$\p")
    made = declare(controlled, *names)
    assert made == [Outcome.UNCHANGED, Outcome.POSTPONED, Outcome.CREATED]
    assert declare(controlled, HERE, label="New") == [Outcome.POSTPONED]
