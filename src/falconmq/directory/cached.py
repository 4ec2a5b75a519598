"""A directory that never keeps anybody waiting for long.

How to think about it. The queue manager is one thread's code, and asks its directory in the middle
of a turn; a directory is a server somewhere, which may be slow, or gone. `CachedDirectory` stands
between them:

    fresh answer    given again at once, for `cache_seconds`
    any other       asked for in a worker's thread; the queue manager waits `timeout_seconds`
    no answer       the directory is *away*: every call is refused at once, until the prober, a
                    thread that asks for the enterprise again and again, has got an answer

What was answered once is remembered while the directory is away (`remembered`). Whoever is not the
queue manager may wait: `fetch` asks in the caller's own thread, and the queue manager then finds
the answer fresh.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, TypeVar
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.answers import Answers
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError, present
from falconmq.directory.memory import KnownRow
from falconmq.directory.queries import find_all, query_error
from falconmq.directory.tables import table_of
from falconmq.directory.worker import TookTooLongError, Worker
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import NO_ROW, Filters, SortKey, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName, SingleFormatName
from falconmq.wire.sid import Sid

FIRST_PROBE_SECONDS: Final = 2.0
LONGEST_PROBE_SECONDS: Final = 30.0
_AWAY: Final = DirectoryResult.DIRECTORY_NOT_CONNECTED
_SUCCESS: Final = DirectoryResult.SUCCESS
_NOT_FOUND: Final = DirectoryResult.OBJECT_NOT_FOUND
_LONG_AGO: Final = float("-inf")
_T = TypeVar("_T")

_log = logging.getLogger("falconmq.directory")


class CachedDirectory:
    """A `DirectoryBackend` over another one. Any thread may call it.

    `on_change` is called, in whichever thread notices, when the directory goes away or comes back.
    """

    is_integrated = True

    def __init__(
        self,
        inner: DirectoryBase,
        clock: Clock,
        *,
        cache_seconds: float = 300.0,
        timeout_seconds: float = 2.0,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self.inner = inner
        self.on_change = on_change
        self.timeout_seconds = timeout_seconds
        self.away_since: float | None = None  # wall clock; None: it is there
        self.problem = ""  # why it is away
        self.last_problem: DirectoryError | None = None
        self._clock = clock
        self._answers = Answers(cache_seconds)
        self._worker = Worker("falconmq directory")
        self._mutex = threading.Lock()
        self._closing = threading.Event()
        self._prober: threading.Thread | None = None
        self._queries: dict[int, list[Row]] = {}
        self._handles = count(1)
        self._servers: Sequence[str] = ()

    @property
    def is_away(self) -> bool:
        """The last call failed, and nobody has reached it since; or it is closed."""
        return self.away_since is not None or self._closing.is_set()

    # What the queue manager asks

    def read(
        self, type_name: str, filters: Filters, attributes: Collection[str] | None
    ) -> tuple[DirectoryResult, Row]:
        if self.is_away:
            return self._refused_away(), NO_ROW
        is_fresh, row = self._answers.fresh(type_name, filters, self._now)
        if is_fresh:
            result = _NOT_FOUND if row is None else _SUCCESS
        else:
            asked = self._ask(lambda: self.inner.read(type_name, filters, None), (_AWAY, NO_ROW))
            result, row = self._learned(type_name, filters, *asked)
        return self._picked(type_name, result, row, attributes)

    def create(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]:
        answer = self._ask(lambda: self.inner.create(type_name, row), (_AWAY, NULL_UUID))
        self._answers.forget(type_name, answer[1])  # above all that it was not there
        return answer

    def write(self, type_name: str, row: Row) -> DirectoryResult:
        answer = self._ask(lambda: self.inner.write(type_name, row), _AWAY)
        identifier = row.get("identifier")
        self._answers.forget(type_name, identifier if isinstance(identifier, UUID) else None)
        return answer

    def delete(self, type_name: str, identifier: UUID) -> DirectoryResult:
        answer = self._ask(lambda: self.inner.delete(type_name, identifier), _AWAY)
        if answer is not _AWAY:
            self.forget(type_name, identifier)
        return answer

    def begin(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        sort_order: Sequence[SortKey] | None,
    ) -> tuple[DirectoryResult, int]:
        """A query is asked for as a whole, so that its rows need no more waiting."""

        def work() -> tuple[DirectoryResult, list[Row]]:
            result, handle = self.inner.begin(type_name, filters, attributes, sort_order)
            rows = []
            while result is _SUCCESS:
                result, row = self.inner.next(handle)
                rows.append(row)
            if handle:
                self.inner.end(handle)
            is_whole = result is DirectoryResult.END_OF_DATA
            return (_SUCCESS if is_whole else result), rows[:-1]

        nothing: list[Row] = []
        result, rows = self._ask(work, (_AWAY, nothing))
        if result is not _SUCCESS:
            return result, 0
        handle = next(self._handles)
        self._queries[handle] = rows[::-1]
        return result, handle

    def next(self, handle: int) -> tuple[DirectoryResult, Row]:
        rows = self._queries.get(handle)
        if rows is None:
            return DirectoryResult.GENERIC_ERROR, NO_ROW
        return (_SUCCESS, rows.pop()) if rows else (DirectoryResult.END_OF_DATA, NO_ROW)

    def end(self, handle: int) -> DirectoryResult:
        is_known = self._queries.pop(handle, None) is not None
        return _SUCCESS if is_known else DirectoryResult.GENERIC_ERROR

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        nobody: Sequence[SingleFormatName] = ()
        return self._ask(lambda: self.inner.resolve_distribution_list(name), (_AWAY, nobody))

    def computer_sid(self, computer_name: str) -> Sid | None:
        return self._ask(lambda: self.inner.computer_sid(computer_name), None)

    def find_servers(self, domain_name: str) -> Sequence[str]:
        """Those that were found last; they are asked for when nobody has asked yet."""
        if not self._servers and not self.is_away:
            self._servers = self._ask(lambda: self.inner.find_servers(domain_name), ())
        return self._servers

    # What others ask

    def remembered(self, type_name: str, filters: Filters) -> Row | None:
        """The last answer to a question, however old; None if there was none."""
        return self._answers.remembered(type_name, filters)

    def fetch(self, type_name: str, filters: Filters) -> Row | None:
        """Ask now, however long it takes, and remember the answer; None if there is no such object.

        For any thread but the queue manager's own. DirectoryError if it cannot be asked.
        """
        result, row = self._learned(type_name, filters, *self.inner.read(type_name, filters, None))
        if row is None and result is not _NOT_FOUND:
            raise query_error(self.inner, type_name, result)
        return row

    def fetch_servers(self, domain_name: str) -> None:
        """Ask who serves it, however long it takes."""
        self._servers = self.inner.find_servers(domain_name) or self._servers

    def fetch_all(
        self, type_name: str, filters: Filters = (), attributes: Sequence[str] | None = None
    ) -> list[Row]:
        """All objects that pass, now; whole ones are remembered. DirectoryError."""
        with self.noticing():
            rows = find_all(self.inner, type_name, filters, attributes)
        if attributes is None:
            self.know((type_name, row) for row in rows)
        return rows

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """Around questions to `inner`: one that nobody answers says that the directory is away."""
        try:
            yield
        except DirectoryError as error:
            if error.status is MqStatus.NO_DS:
                self._went_away(str(error))
            raise

    def know(self, rows: Iterable[KnownRow], *, are_fresh: bool = True) -> None:
        """Take rows as answers, of now, or else of some other day."""
        at = self._now if are_fresh else _LONG_AGO
        for type_name, row in rows:
            filters = (
                () if type_name == tables.ENTERPRISE else equals("identifier", row["identifier"])
            )
            self._answers.remember(type_name, filters, row, at)

    def time(self) -> float:
        """The time of day, as whoever asks it has it."""
        return self._clock.time()

    def forget(self, type_name: str | None = None, identifier: UUID | None = None) -> None:
        """Something changed: do not answer from memory for it."""
        self._answers.forget(type_name, identifier)

    def close(self) -> None:
        """Ask nobody any more."""
        self._closing.set()
        self._worker.close()
        prober = self._prober
        if prober is not None and prober is not threading.current_thread():
            prober.join(self.timeout_seconds)  # it may hang in a call: then it ends by itself
        self.inner.close()

    # How it is asked

    def _ask(self, work: Callable[[], _T], refusal: _T) -> _T:
        """Let the worker ask; `refusal` at once while the directory is away."""
        if self.is_away:
            self._refused_away()
            return refusal
        try:
            answer = self._worker.do(work, self.timeout_seconds)
        except TookTooLongError:
            self._went_away(f"no answer within {self.timeout_seconds:g} seconds")
            return refusal
        self._noticed(answer[0] if answer and isinstance(answer, tuple) else answer)
        return answer

    def _learned(
        self, type_name: str, filters: Filters, result: DirectoryResult, row: Row
    ) -> tuple[DirectoryResult, Row | None]:
        """Remember what came as an answer."""
        self._noticed(result)
        if result is _SUCCESS:
            self._answers.remember(type_name, filters, row, self._now)
            return result, row
        if result is _NOT_FOUND:
            self._answers.remember(type_name, filters, None, self._now)
        return result, None

    def _picked(
        self,
        type_name: str,
        result: DirectoryResult,
        row: Row | None,
        attributes: Collection[str] | None,
    ) -> tuple[DirectoryResult, Row]:
        if row is None:
            return result, NO_ROW
        try:
            return result, present(table_of(type_name), row, attributes)
        except DirectoryRefusedError as error:
            self.last_problem = error
            return error.result, NO_ROW

    def _noticed(self, result: object) -> None:
        if not isinstance(result, DirectoryResult) or result is _SUCCESS:
            return
        self.last_problem = self.inner.last_problem
        if result is _AWAY:
            self._went_away(str(self.last_problem or "it cannot be reached"))

    # Away and back

    def _refused_away(self) -> DirectoryResult:
        self.last_problem = _not_there(self.problem)
        return _AWAY

    def _went_away(self, problem: str) -> None:
        with self._mutex:
            if self.is_away or self._closing.is_set():
                return
            self.problem = problem
            self.away_since = self._clock.time()
            self._refused_away()
            self._prober = threading.Thread(
                target=self._probe, name="falconmq directory prober", daemon=True
            )
            self._prober.start()
        _log.warning("directory is away problem=%s", problem)
        self._tell()

    def _probe(self) -> None:
        """Ask again and again, ever more rarely, until somebody answers."""
        seconds = FIRST_PROBE_SECONDS
        while not self._closing.wait(seconds):
            seconds = min(2 * seconds, LONGEST_PROBE_SECONDS)
            result, _ = self.inner.read(tables.ENTERPRISE, (), None)
            if result is not _AWAY:
                break
            self.problem = str(self.inner.last_problem or self.problem)
        else:
            return
        if self._closing.is_set():
            return
        self._answers.age()  # who knows what happened meanwhile
        with self._mutex:
            self.problem, self.away_since, self._prober = "", None, None
        _log.info("directory is back")
        self._tell()

    def _tell(self) -> None:
        if self.on_change is not None:
            self.on_change()

    @property
    def _now(self) -> float:
        return self._clock.monotonic()


def _not_there(problem: str) -> DirectoryError:
    return DirectoryError(
        f"the directory is away: {problem}" if problem else "the directory is away",
        status=MqStatus.NO_DS,
        hint="it is asked again and again; what needs it can be tried when it is back",
    )
