"""A handler lets the directory be asked beside the loop, before the core has to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.cached import CachedDirectory
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.core import Settings
from falconmq.manager.path_names import resolve_path_name
from falconmq.manager.queues import create_queue
from falconmq.names import PathName
from falconmq.service.directory.asking_ahead import ask_ahead, reach
from falconmq.store import MemoryStore
from tests.directory.test_cached import PATIENCE, MoodyDirectory
from tests.service.services import run, until


class Scene:
    """A queue manager whose directory is elsewhere, and has a queue of another computer."""

    def __init__(self) -> None:
        self.moody = MoodyDirectory(VirtualClock())
        self.moody.create("Enterprise", {"name": "example.com"})
        _, site = self.moody.create("Site", {"name": "Berlin"})
        for name in ("SALES01", "beta"):
            self.moody.create("QueueManager", {"computer_name": name, "site_identifiers": [site]})
        _, self.bills = self.moody.create("Queue", {"path_name": r"beta\bills"})
        self.engine: Engine = start_engine(
            MemoryStore(), Settings(computer_name="SALES01"), is_threaded=False
        )
        self.cache = CachedDirectory(self.moody, self.engine.core.clock, timeout_seconds=PATIENCE)
        self.engine.core.directory = self.cache


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.moody.answers.set()
    found.cache.close()
    found.engine.close()


@pytest.mark.parametrize("kind", ["path", "guid", "several"])
def test_an_answer_is_there_before_the_core_asks(scene: Scene, kind: str) -> None:
    path = r"beta\bills"
    guid = f"PUBLIC={scene.bills}"
    name = {"path": path, "guid": guid, "several": rf"{guid},DIRECT=OS:x\private$\y"}[kind]

    async def main() -> None:
        scene.moody.answers.clear()
        asking = asyncio.create_task(ask_ahead(scene.engine, name))
        await until(lambda: scene.moody.asked > 0)
        assert not asking.done()  # and we are here
        scene.moody.answers.set()
        await asking
        asked = scene.moody.asked
        await ask_ahead(scene.engine, name)  # it is known now
        if kind == "path":
            assert scene.engine.look(resolve_path_name, PathName.parse(path)) is not None
        assert scene.moody.asked == asked

    run(main())


@pytest.mark.parametrize("name", [r"beta\private$\x", r".\bills", "DIRECT=OS:beta\\bills", "=?"])
def test_what_needs_no_directory_asks_nobody(scene: Scene, name: str) -> None:
    run(ask_ahead(scene.engine, name))
    assert scene.moody.asked == 0


@pytest.mark.parametrize("name", [r".\orders", "DIRECT=OS:.\\orders", "PUBLIC={}", ""])
def test_a_directory_that_hangs_is_noticed_before_something_is_changed(
    scene: Scene, name: str
) -> None:
    async def main() -> None:
        scene.moody.answers.clear()
        scene.cache.timeout_seconds = 0.05
        await reach(scene.engine, name.format(scene.bills))
        assert scene.cache.is_away
        scene.cache.timeout_seconds = PATIENCE
        with pytest.raises(DirectoryError) as refused:  # at once
            scene.engine.run(create_queue, PathName.parse(r".\orders"))
        assert refused.value.status is MqStatus.NO_DS

    run(main())


def test_a_distribution_list_is_asked_for_in_the_turn_but_not_if_the_directory_hangs(
    scene: Scene,
) -> None:
    async def main() -> None:
        scene.moody.answers.clear()
        scene.cache.timeout_seconds = 0.05
        await ask_ahead(scene.engine, f"DL={scene.bills}")
        assert scene.cache.is_away

    run(main())


@pytest.mark.parametrize("name", [r".\private$\orders", "DIRECT=OS:.\\private$\\orders", "=?"])
def test_a_private_queue_is_none_of_its_business(scene: Scene, name: str) -> None:
    run(reach(scene.engine, name))
    assert scene.moody.asked == 0


def test_a_directory_that_is_ours_or_away_is_not_asked_ahead(scene: Scene) -> None:
    scene.cache.is_local = True
    run(reach(scene.engine))
    run(ask_ahead(scene.engine, r"beta\bills"))
    scene.cache.is_local = False
    scene.engine.core.is_directory_offline = True
    run(reach(scene.engine))
    run(ask_ahead(scene.engine, r"beta\bills"))
    assert scene.moody.asked == 0


def test_who_waits_is_let_go_when_the_directory_is_left(scene: Scene) -> None:
    async def main() -> None:
        scene.moody.answers.clear()
        asking = asyncio.create_task(ask_ahead(scene.engine, r"beta\bills"))
        await until(lambda: scene.moody.asked > 0)
        scene.cache.timeout_seconds = 0.01
        await asyncio.to_thread(scene.cache.close)
        await asking

    run(main())
