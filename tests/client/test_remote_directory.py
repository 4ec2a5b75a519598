"""The directory of another queue manager: servers that are down, slow, somebody else or unwilling.

What a directory does when all is well is in tests/directory/test_back_ends.py, over this back end
as over the others.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Self
from urllib.parse import quote
from uuid import UUID

import pytest

from falconmq.client import remote_directory
from falconmq.client.remote_directory import RemoteDirectory
from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import find_all
from falconmq.errors import DirectoryError, FalconMQError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName
from falconmq.service.access import Role
from falconmq.store import MemoryStore
from tests.embedded.helpers import Background
from tests.service.ports import HttpManager
from tests.service.test_http_tls import write_pair

SUCCESS = DirectoryResult.SUCCESS
NOT_CONNECTED = DirectoryResult.DIRECTORY_NOT_CONNECTED
GENERIC = DirectoryResult.GENERIC_ERROR
SITE = UUID(int=5)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    with HttpManager(tmp_path_factory.mktemp("remote")) as port:
        yield port


@pytest.fixture(scope="module")
def token(served: HttpManager) -> str:
    return served.token(Role.DIRECTORY, name="neighbour")


@pytest.fixture
def kept(served: HttpManager) -> EmbeddedDirectory:
    """What the other queue manager keeps: an enterprise with one site and one queue manager."""
    directory = EmbeddedDirectory(MemoryStore(), VirtualClock(), Random(1))
    served.app.state.directory = directory
    assert directory.create("Enterprise", {"name": "example.com"})[0] is SUCCESS
    assert directory.create("Site", {"name": "Berlin", "identifier": SITE})[0] is SUCCESS
    machine = {"computer_name": "alpha", "site_identifiers": [SITE], "directory_server": True}
    assert directory.create("QueueManager", machine)[0] is SUCCESS
    return directory


@contextlib.contextmanager
def connected(*urls: str, token: str = "", **more: float | str) -> Iterator[RemoteDirectory]:
    directory = RemoteDirectory(urls, token, **more)  # type: ignore[arg-type]
    try:
        yield directory
    finally:
        directory.close()


class Stranger:
    """A server of one word: what it answers to every request, or that it does not."""

    def __init__(self, answer: bytes | None) -> None:
        self.asked: list[bytes] = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        for connection in self._held:
            connection.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.asked.append(connection.recv(65536))
                if self._answer is None:
                    self._held.append(connection)  # silence, and the line stays open
                    continue
                connection.sendall(self._answer)
                connection.close()


def http(status: str, content: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def nobody() -> str:
    """The address of a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def read_site(directory: RemoteDirectory) -> DirectoryResult:
    return directory.read("Site", equals("name", "Berlin"), None)[0]


def words(directory: RemoteDirectory) -> str:
    assert directory.last_problem is not None
    return str(directory.last_problem)


@pytest.mark.usefixtures("kept")
def test_the_next_server_is_asked_when_one_is_down(served: HttpManager, token: str) -> None:
    with connected(nobody(), served.url, token=token) as directory:
        assert read_site(directory) is SUCCESS
        assert directory.create("Site", {"name": "Paris"})[0] is SUCCESS
        assert directory.last_problem is None


@pytest.mark.usefixtures("kept")
def test_one_that_cannot_work_is_passed_by_and_the_one_that_answered_stays(
    served: HttpManager, token: str
) -> None:
    with (
        Stranger(http("503 Service Unavailable", b"busy")) as proxy,
        connected(proxy.url, served.url, token=token) as directory,
    ):
        for _ in range(3):
            assert read_site(directory) is SUCCESS
        assert len(proxy.asked) == 1


def test_nobody_there_is_not_connected_and_says_why() -> None:
    first, second = nobody(), nobody()
    with connected(first, second) as directory:
        assert read_site(directory) is NOT_CONNECTED
        assert directory.last_problem is not None
        assert directory.last_problem.status is MqStatus.NO_DS
        assert first in words(directory)
        assert second in words(directory)
        assert directory.last_problem.hint
        assert directory.begin("Site", (), None, None)[0] is NOT_CONNECTED
        assert directory.create("Site", {"name": "Paris"})[0] is NOT_CONNECTED
        both = directory.create_many("Site", [{"name": "Paris"}, {"name": "Rome"}])
        assert [result for result, _ in both] == [NOT_CONNECTED] * 2
        assert directory.write("Site", {"identifier": SITE}) is NOT_CONNECTED
        assert directory.delete("Site", SITE) is NOT_CONNECTED
        name = DistributionListFormatName(SITE)
        assert directory.resolve_distribution_list(name) == (NOT_CONNECTED, ())
        assert directory.resolve_queue_alias("CN=x") == (NOT_CONNECTED, None)
        assert directory.find_servers("example.com") == ()
        assert directory.computer_sid("alpha") is None


def test_silence_is_not_connected_after_the_time_that_was_given() -> None:
    with Stranger(None) as silent, connected(silent.url, timeout_seconds=0.2) as directory:
        asking = Background(lambda: read_site(directory))
        assert asking.result() is NOT_CONNECTED
        assert "did not answer" in words(directory)


def test_only_what_is_wanted_goes_over() -> None:
    answer = http("200 OK", b'{"rows": [], "next": null}')
    with Stranger(answer) as stranger, connected(stranger.url) as directory:
        directory.read("Queue", equals("label", "Orders"), ("journaling", "scope"))
        (request,) = stranger.asked
        assert b"attributes=journaling&attributes=scope" in request
        assert quote('["label","=","Orders"]').encode() in request


def test_what_a_newer_server_adds_is_not_looked_at() -> None:
    row = {"identifier": SITE.hex, "name": "Berlin", "colour": {"red": 7}}
    answer = http("200 OK", json.dumps({"rows": [row], "next": None, "more": 1}).encode())
    with Stranger(answer) as stranger, connected(stranger.url) as directory:
        found = directory.read("Site", (), None)
        assert found == (SUCCESS, {"identifier": SITE, "name": "Berlin"})


@pytest.mark.usefixtures("kept")
def test_a_question_that_is_not_answered_is_put_to_the_next(
    served: HttpManager, token: str
) -> None:
    with Stranger(b"") as rude, connected(rude.url, served.url, token=token) as directory:
        assert read_site(directory) is SUCCESS
        assert len(rude.asked) == 1


def test_a_change_that_is_not_answered_is_not_made_again_elsewhere(
    served: HttpManager, token: str, kept: EmbeddedDirectory
) -> None:
    with Stranger(b"") as rude, connected(rude.url, served.url, token=token) as directory:
        assert directory.create("Site", {"name": "Paris"})[0] is NOT_CONNECTED
        assert len(rude.asked) == 1
        assert directory.last_problem is not None
        assert "look before asking again" in directory.last_problem.hint
    assert kept.read("Site", equals("name", "Paris"), None)[0] is DirectoryResult.OBJECT_NOT_FOUND


@pytest.mark.parametrize(
    "content",
    [
        b"<html>welcome</html>",
        b"[]",
        b"{}",
        b'{"rows": 7, "next": null}',
        b'{"rows": [7], "next": null}',
        b'{"rows": [], "next": "x"}',
        b'{"results": [], "problem": "", "hint": ""}',
    ],
)
def test_somebody_who_is_no_directory_is_not_connected(content: bytes) -> None:
    with Stranger(http("200 OK", content)) as stranger, connected(stranger.url) as directory:
        assert read_site(directory) is NOT_CONNECTED
        assert directory.create("Site", {"name": "Paris"})[0] is NOT_CONNECTED
        both = directory.create_many("Site", [{"name": "Paris"}, {"name": "Rome"}])
        assert [result for result, _ in both] == [NOT_CONNECTED] * 2


@pytest.mark.usefixtures("kept")
def test_a_wrong_token_is_a_clear_problem_and_not_a_directory_that_is_away(
    served: HttpManager,
) -> None:
    with connected(served.url, nobody(), token="wrong") as directory:
        assert read_site(directory) is GENERIC
        assert directory.last_problem is not None
        assert directory.last_problem.status is MqStatus.ACCESS_DENIED
        assert "token" in words(directory)
        assert "--role directory" in directory.last_problem.hint


@pytest.mark.usefixtures("kept")
def test_a_token_for_other_things_is_refused(served: HttpManager) -> None:
    with connected(served.url, token=served.token(Role.SEND, name="sender")) as directory:
        assert read_site(directory) is GENERIC
        assert "directory" in words(directory)
        assert directory.last_problem is not None
        assert directory.last_problem.status is MqStatus.ACCESS_DENIED


def test_objects_come_page_by_page(
    served: HttpManager, token: str, kept: EmbeddedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_directory, "FIRST_PAGE", 3)
    monkeypatch.setattr(remote_directory, "NEXT_PAGES", 4)
    monkeypatch.setattr(remote_directory, "TOGETHER", 5)
    paths = [f"alpha\\q{number:02}" for number in range(16)]
    with connected(served.url, token=token) as directory:
        made = directory.create_many("Queue", [{"path_name": path} for path in paths])
        assert [result for result, _ in made] == [SUCCESS] * 16
        for filters in ((), equals("computer_name", "ALPHA")):
            rows = find_all(directory, "Queue", filters, ["path_name"])
            assert sorted(str(row["path_name"]) for row in rows) == paths
            assert all(set(row) == {"identifier", "path_name"} for row in rows)
        assert {row["identifier"] for row in rows} == {identifier for _, identifier in made}
        whole = find_all(directory, "Queue")
    assert whole == find_all(kept, "Queue")


def test_many_objects_go_together_and_each_has_its_own_result(
    served: HttpManager, token: str, kept: EmbeddedDirectory
) -> None:
    rows = [{"name": "Rome"}, {"name": "Berlin"}, {"name": ""}, {"name": "Oslo"}]
    with connected(served.url, token=token) as directory:
        results = directory.create_many("Site", rows)
        exists = DirectoryResult.OBJECT_ALREADY_EXISTS
        assert [result for result, _ in results] == [SUCCESS, exists, GENERIC, SUCCESS]
        assert "Berlin" in words(directory)
        wrong = directory.create_many("Planet", [{"name": "Mars"}, {"name": "Venus"}])
        assert [result for result, _ in wrong] == [GENERIC] * 2
    for number in (0, 3):
        found = kept.read("Site", equals("name", rows[number]["name"]), None)[1]
        assert found["identifier"] == results[number][1]


@pytest.mark.usefixtures("kept")
def test_who_serves_the_directory_is_known(served: HttpManager, token: str) -> None:
    with connected(served.url, token=token) as directory:
        assert directory.find_servers("example.com") == ["alpha"]


@pytest.mark.usefixtures("kept")
def test_any_thread_may_ask(served: HttpManager, token: str) -> None:
    results: list[DirectoryResult] = []
    with connected(served.url, token=token) as directory:
        threads = [
            threading.Thread(target=lambda: results.append(read_site(directory))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [SUCCESS] * 4


def test_the_server_proves_who_it_is(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "directory")
    with HttpManager(tmp_path, certificate=certificate, key=key) as secured:
        token = secured.token(Role.DIRECTORY, name="neighbour")
        assert secured.url.startswith("https://")
        with connected(secured.url, token=token, ca_file=str(certificate)) as directory:
            assert directory.create("Enterprise", {"name": "example.com"})[0] is SUCCESS
        with connected(secured.url, token=token) as directory:
            assert directory.read("Enterprise", (), None)[0] is NOT_CONNECTED
            assert "not trusted" in words(directory)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: RemoteDirectory([]), DirectoryError),
        (lambda: RemoteDirectory(["ftp://alpha"]), FalconMQError),
        (lambda: RemoteDirectory(["https://alpha"], ca_file="nowhere.pem"), DirectoryError),
    ],
)
def test_a_server_that_is_none_is_refused_at_once(
    make: Callable[[], RemoteDirectory], kind: type[FalconMQError]
) -> None:
    with pytest.raises(kind) as refused:
        make()
    assert refused.value.hint
