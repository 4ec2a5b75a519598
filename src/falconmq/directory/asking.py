"""Questions for a directory, asked in a thread for those who must not wait.

Who asks goes on with something else, and is told when there is an answer, or none to be had. The
same question is asked once, however many wait for its answer; one question comes after the other,
so that a slow server is not asked for everything at the same time.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Hashable
from itertools import chain

Done = Callable[[], None]

_log = logging.getLogger("falconmq.directory")


class Asker:
    """One thread that asks. Any thread may call it; it ends with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._mutex = threading.Lock()
        self._waiting: dict[Hashable, list[Done]] = {}  # by what they want to know
        self._questions: queue.SimpleQueue[tuple[Hashable, Callable[[], object]] | None] | None = (
            None
        )
        self._is_closed = False

    def is_asked(self, subject: Hashable) -> bool:
        """Whether somebody waits for this answer already."""
        return subject in self._waiting

    def ask(self, subject: Hashable, ask: Callable[[], object], done: Done) -> None:
        """Let `ask` be called in the thread, and `done` behind it, there.

        Once it is closed nobody is asked, and `done` is called at once.
        """
        if not self._take(subject, ask, done):
            done()

    def close(self) -> None:
        """Ask nobody any more: who waits is told now. A call that hangs ends by itself."""
        with self._mutex:
            self._is_closed = True
            waiting, self._waiting = self._waiting, {}
            if self._questions is not None:
                self._questions.put(None)
        for done in chain.from_iterable(waiting.values()):
            done()

    def _take(self, subject: Hashable, ask: Callable[[], object], done: Done) -> bool:
        with self._mutex:
            if self._is_closed:
                return False
            waiting = self._waiting.setdefault(subject, [])
            waiting.append(done)
            if len(waiting) > 1:
                return True  # it is asked already
            if self._questions is None:
                self._questions = queue.SimpleQueue()
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._questions.put((subject, ask))
            return True

    def _work(self) -> None:
        questions = self._questions
        assert questions is not None, "the thread starts behind it"
        while (question := questions.get()) is not None:
            subject, ask = question
            try:
                if not self._is_closed:
                    ask()
            except Exception:  # noqa: BLE001  # whoever waits is told all the same
                _log.exception("the directory could not be asked")
            with self._mutex:
                waiting = self._waiting.pop(subject, [])
            for done in waiting:
                done()
