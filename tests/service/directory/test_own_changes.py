"""What is changed in the directory about a queue manager, on that queue manager itself."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.queue_names import find_queue
from falconmq.names import PathName
from tests.service.directory.test_notifying import office

OWN = r"sales01\own"


def test_entries_of_our_own_queues_and_of_ourselves_count_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with office(tmp_path) as ours:
        core = ours.core
        made = UUID(ours.create("queue", {"path_name": OWN, "transactional": True})["identifier"])
        queue: Queue = core.public[made]
        assert queue is find_queue(core, PathName.parse(r".\own"))
        assert queue.properties.transactional
        ours.change("queue", OWN, label="New", quota_kilobytes=66)
        assert (queue.properties.label, queue.properties.quota_kilobytes) == ("New", 66)
        ours.change("queue-manager", "sales01", quota_kilobytes=77_000)
        assert core.settings.quota_kilobytes == 77_000
        ours.delete("queue", OWN)
        assert queue.is_deleted
        # and what is of others stays theirs
        ours.create("queue", {"path_name": r"beta\orders"})
        ours.change("queue-manager", "beta", quota_kilobytes=5)
        assert (core.public, core.settings.quota_kilobytes) == ({}, 77_000)
        assert "change not applied" not in caplog.text  # it was not even tried


def test_an_entry_that_does_not_fit_what_is_here_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with office(tmp_path) as ours:
        first = UUID(ours.create("queue", {"path_name": OWN})["identifier"])
        own = ours.core.public[first]
        # given a directory that lost the queue behind our back
        ours.hub.kept.delete("Queue", first)
        ours.hub.directory.forget()  # type: ignore[union-attr]
        second = UUID(ours.create("queue", {"path_name": OWN})["identifier"])
        assert ours.core.public == {first: own}
        ours.change("queue", OWN, label="x")  # of the one that is not here
        ours.delete("queue", OWN)
        assert second not in ours.core.public
        assert own.properties.label == ""
        assert caplog.text.count("change not applied") == 1  # to create it; the others mean nobody
