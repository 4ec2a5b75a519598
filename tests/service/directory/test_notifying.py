"""Changes through the HTTP API: owners are told, and nothing stale is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from falconmq.directory.notification import notify_queue
from falconmq.directory.notification_sending import Told
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.security.keys import ManagerKeys
from falconmq.security.providers import ADVANCED
from falconmq.service.access import Role
from falconmq.service.configuration import DirectorySection
from falconmq.service.directory.hub import DirectoryHub
from falconmq.wire.change_notification import ChangeNotificationMessage
from falconmq.wire.property_ids import MachineProperty, QueueProperty
from tests.security import known
from tests.service.ports import HttpManager

KEYS = ManagerKeys({}, {ADVANCED: known.PAIR_1024})
ORDERS = r"beta\orders"


class Office:
    """A queue manager that keeps the directory, and a caller of its API."""

    def __init__(self, port: HttpManager, hub: DirectoryHub, client: httpx.Client) -> None:
        self.core = port.app.state.control.engine.core
        self.hub = hub
        self._client = client
        (site,) = self.objects("site")
        machine = {"computer_name": "beta", "site_identifiers": [site["identifier"]]}
        self.beta = UUID(self.create("queue-manager", machine)["identifier"])

    def objects(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", kind)["objects"]
        return found

    def create(self, kind: str, attributes: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = self.ask("POST", kind, {"attributes": attributes})["attributes"]
        return made

    def change(self, kind: str, name: str, **attributes: Any) -> None:
        self.ask("PATCH", f"{kind}/{quote(name, safe='')}", {"attributes": attributes})

    def delete(self, kind: str, name: str) -> None:
        self.ask("DELETE", f"{kind}/{quote(name, safe='')}")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, f"/api/v1/directory/{path}", json=body)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None

    def told(self) -> list[Any]:
        """What is on its way to beta."""
        queue = self.core.outgoing.get(notify_queue(self.beta))
        if queue is None:
            return []
        found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.lookup_ids()]
        bodies = [each.message.packet.properties.message_body for each in found if each is not None]
        return [ChangeNotificationMessage.decode(body).data for body in bodies]

    def result(self, type_name: str, name: str, value: object) -> tuple[DirectoryResult, Any]:
        return read_directory(self.core, type_name, equals(name, value))


@contextmanager
def office(place: Path, **section: Any) -> Iterator[Office]:
    with HttpManager(place) as port:
        control = port.app.state.control
        control.engine.core.key_source = lambda: KEYS
        chosen = DirectorySection(kind="embedded", domain="example.com", **section)
        hub = DirectoryHub(replace(port.configuration, directory=chosen), control.engine)
        port.do(hub.start)
        control.hub = hub
        try:
            with port.client(port.token(Role.MANAGE, name="boss")) as client:
                yield Office(port, hub, client)
        finally:
            port.do(hub.stop)


def test_the_owner_is_told_of_every_change_of_what_is_his(tmp_path: Path) -> None:
    with office(tmp_path) as ours:
        assert ours.told() == []  # a new queue manager reads its entry when it starts
        queue = UUID(ours.create("queue", {"path_name": ORDERS})["identifier"])
        ours.change("queue", ORDERS, label="Orders")
        ours.delete("queue", ORDERS)
        ours.change("queue-manager", "beta", quota_kilobytes=77)
        events = [(int(each.event), UUID(bytes_le=each.object_guid)) for each in ours.told()]
        assert events == [(1, queue), (2, queue), (3, queue), (4, ours.beta)]


def test_nobody_is_told_of_what_is_ours_or_has_no_owner(tmp_path: Path) -> None:
    with office(tmp_path) as ours:
        ours.create("site", {"name": "Paris"})
        ours.change("site", "Paris", foreign_site=True)
        ours.create("queue", {"path_name": r"sales01\own"})
        ours.change("queue-manager", "sales01", quota_kilobytes=77)
        ours.delete("queue-manager", "beta")
        assert ours.told() == []
        assert ours.hub.notifier is not None
        assert ours.hub.notifier.counters == {Told.OWN.value: 2}


def test_a_directory_service_says_what_is_new(tmp_path: Path) -> None:
    with office(tmp_path, is_directory_service=True) as ours:
        ours.create("queue", {"path_name": ORDERS})
        ours.change("queue", ORDERS, quota_kilobytes=66)
        ours.change("queue-manager", "beta", quota_kilobytes=77)
        _, (of_queue,), (of_machine,) = ours.told()
        owner = int(QueueProperty.PROPID_Q_QMID), ours.beta.bytes_le
        assert of_queue.properties == [owner, (int(QueueProperty.PROPID_Q_QUOTA), 66)]
        assert dict(of_machine.properties)[int(MachineProperty.PROPID_QM_QUOTA)] == 77


def test_what_was_changed_is_not_answered_from_memory(tmp_path: Path) -> None:
    with office(tmp_path) as ours:
        assert ours.result("Queue", "path_name", ORDERS)[0] is DirectoryResult.OBJECT_NOT_FOUND
        ours.create("queue", {"path_name": ORDERS})
        assert ours.result("Queue", "path_name", ORDERS)[1]["label"] == ""
        ours.change("queue", ORDERS, label="Orders")
        assert ours.result("Queue", "path_name", ORDERS)[1]["label"] == "Orders"
        ours.delete("queue", ORDERS)
        assert ours.result("Queue", "path_name", ORDERS)[0] is DirectoryResult.OBJECT_NOT_FOUND


def test_changes_of_other_queue_managers_are_not_answered_from_memory(tmp_path: Path) -> None:
    with office(tmp_path) as ours:
        assert ours.result("Site", "name", "Rome")[0] is DirectoryResult.OBJECT_NOT_FOUND
        rows = {"rows": [{"name": "Rome"}]}
        made = ours.ask("POST", "rows/site", rows)["results"][0]["identifier"]
        assert ours.result("Site", "name", "Rome")[1]["foreign_site"] is False
        ours.ask("PATCH", f"rows/site/{made}", {"row": {"foreign_site": True}})
        assert ours.result("Site", "name", "Rome")[1]["foreign_site"] is True
        ours.ask("DELETE", f"rows/site/{made}")
        assert ours.result("Site", "name", "Rome")[0] is DirectoryResult.OBJECT_NOT_FOUND
        assert ours.told() == []
