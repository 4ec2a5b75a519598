"""Errors out of results: the words of a directory, when they are about this result."""

from __future__ import annotations

from random import Random

from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import query_error
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.store import MemoryStore


def test_the_words_of_another_thread_are_not_about_this_result() -> None:
    # given a directory that somebody has asked in vain
    directory = EmbeddedDirectory(MemoryStore(), VirtualClock(), Random(1))
    directory.read("Site", equals("name", "Nowhere"), None)
    # then these words are for a result like that
    error = query_error(directory, "Site", DirectoryResult.OBJECT_NOT_FOUND)
    assert "Nowhere" in str(error)
    # and not for others
    away = query_error(directory, "Site", DirectoryResult.DIRECTORY_NOT_CONNECTED)
    assert away.status is MqStatus.NO_DS
    wrong = query_error(directory, "Site", DirectoryResult.GENERIC_ERROR)
    assert wrong.status is MqStatus.DS_ERROR
    exists = query_error(directory, "Site", DirectoryResult.OBJECT_ALREADY_EXISTS)
    assert exists.status is MqStatus.QUEUE_EXISTS
    assert "Nowhere" not in str(away) + str(wrong) + str(exists)
