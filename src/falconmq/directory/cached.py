"""A directory that never keeps anybody waiting for long.

How to think about it. The queue manager is one thread's code, and asks its directory in the middle
of a turn; a directory is a server somewhere, which may be slow, or gone. `CachedDirectory` stands
between them:

    fresh answer    given again at once, for `cache_seconds`
    any other       asked for in a worker's thread; the queue manager waits `timeout_seconds`
    no answer       the directory is *away* (`presence`): every call is refused at once, until the
                    prober has got an answer to its question for the enterprise

Nobody waits who can come again: `known` says what needs no waiting, `ask_beside` lets another
thread ask (`asking`), and tells when there is an answer.

What was answered once is remembered while the directory is away (`remembered`). Whoever is not the
queue manager may wait: `fetch` asks in the caller's own thread, and the queue manager then finds
the answer fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.answers import Answers, key_of
from falconmq.directory.asking import Asker
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError, present
from falconmq.directory.memory import KnownRow
from falconmq.directory.presence import Presence
from falconmq.directory.queries import find_all, query_error
from falconmq.directory.tables import table_of
from falconmq.directory.whole_queries import WholeQueries, ask_whole
from falconmq.directory.worker import TookTooLongError, Worker
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import NO_ROW, Filters, SortKey, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName, SingleFormatName
from falconmq.wire.sid import Sid

JUST_ASKED_SECONDS: Final = 5.0  # that an answer is there for whoever let it be asked beside
_AWAY: Final = DirectoryResult.DIRECTORY_NOT_CONNECTED
_SUCCESS: Final = DirectoryResult.SUCCESS
_NOT_FOUND: Final = DirectoryResult.OBJECT_NOT_FOUND
_LONG_AGO: Final = float("-inf")
_T = TypeVar("_T")


class CachedDirectory:
    """A `DirectoryBackend` over another one. Any thread may call it.

    `on_change` is called, in whichever thread notices, when the directory goes away or comes back.
    One that `is_local` is in our own store: there is nothing to wait for.
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
        is_local: bool = False,
    ) -> None:
        self.inner = inner
        self.on_change = on_change
        self.timeout_seconds = timeout_seconds
        self.is_local = is_local
        self.last_problem: DirectoryError | None = None
        self._clock = clock
        self._answers = Answers(cache_seconds)
        self._worker = Worker("falconmq directory")
        self._asker = Asker("falconmq directory asker")
        self._askers_worker = Worker("falconmq directory beside")  # nobody else waits behind it
        self._presence = Presence(self._probe, clock.time, self._changed)
        self._queries = WholeQueries()
        self._servers: Sequence[str] | None = None  # None: nobody has asked yet
        self._computer_sids: dict[str, Sid | None] = {}

    @property
    def is_away(self) -> bool:
        """The last call failed, and nobody has reached it since; or it is closed."""
        return self._presence.is_away

    @property
    def away_since(self) -> float | None:
        """When that was, on the wall clock; None: it is there."""
        return self._presence.away_since

    @property
    def problem(self) -> str:
        """Why it is away."""
        return self._presence.problem

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
            result, row = self._read_now(type_name, filters, self._worker)
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
        nothing: list[Row] = []
        work = partial(ask_whole, self.inner, type_name, filters, attributes, sort_order)
        result, rows = self._ask(work, (_AWAY, nothing))
        return result, self._queries.begin(rows) if result is _SUCCESS else 0

    def next(self, handle: int) -> tuple[DirectoryResult, Row]:
        return self._queries.next(handle)

    def end(self, handle: int) -> DirectoryResult:
        return self._queries.end(handle)

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        nobody: Sequence[SingleFormatName] = ()
        return self._ask(lambda: self.inner.resolve_distribution_list(name), (_AWAY, nobody))

    def computer_sid(self, computer_name: str) -> Sid | None:
        """The one that was found last: every queue that is created asks for it."""
        if computer_name not in self._computer_sids:
            return self._ask(lambda: self.inner.computer_sid(computer_name), None)
        return self._computer_sids[computer_name]

    def find_servers(self, domain_name: str) -> Sequence[str]:
        """Those that were found last; they are asked for when nobody has asked yet."""
        if self._servers is None and not self.is_away:
            nobody: Sequence[str] = ()
            self._servers = self._ask(lambda: self.inner.find_servers(domain_name), nobody)
        return () if self._servers is None else self._servers

    # What is asked by those who can come again

    def known(self, type_name: str, filters: Filters) -> tuple[DirectoryResult, Row] | None:
        """The answer, if nobody has to wait for it; None: let it be asked beside, and come again.

        What was asked for so is there for a while, also where nothing is remembered for longer.
        """
        if self.is_away:
            return self._refused_away(), NO_ROW
        is_fresh, row = self._answers.fresh(type_name, filters, self._now, JUST_ASKED_SECONDS)
        if is_fresh:
            return (_NOT_FOUND, NO_ROW) if row is None else (_SUCCESS, row)
        return self.read(type_name, filters, None) if self.is_local else None

    def ask_beside(self, type_name: str, filters: Filters, done: Callable[[], None]) -> None:
        """Let a thread ask now; `done` is called there when there is an answer, or will be none."""
        ask = partial(self._read_now, type_name, filters, self._askers_worker)
        self._asker.ask(key_of(type_name, filters), ask, done)

    def is_asked(self, type_name: str, filters: Filters) -> bool:
        """Whether a thread asks this already."""
        return self._asker.is_asked(key_of(type_name, filters))

    def answer_number(self, type_name: str, filters: Filters) -> int:
        """Which answer it is that a question has: another number for each; 0: none."""
        return self._answers.number(type_name, filters)

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
        self._servers = self.inner.find_servers(domain_name) or self._servers or ()

    def fetch_computer_sid(self, computer_name: str) -> None:
        """Ask for the account of a computer, however long it takes; a failure is no answer."""
        before = self.inner.last_problem
        found = self.inner.computer_sid(computer_name)
        if found is not None or self.inner.last_problem is before:
            self._computer_sids[computer_name] = found

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
                self._presence.went_away(str(error))
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
        self._presence.close(self.timeout_seconds)
        self._asker.close()
        self._askers_worker.close()
        self._worker.close()
        self.inner.close()

    # How it is asked

    def _read_now(
        self, type_name: str, filters: Filters, worker: Worker
    ) -> tuple[DirectoryResult, Row | None]:
        work = partial(self.inner.read, type_name, filters, None)
        return self._learned(type_name, filters, *self._ask(work, (_AWAY, NO_ROW), worker))

    def _ask(self, work: Callable[[], _T], refusal: _T, worker: Worker | None = None) -> _T:
        """Let a worker ask; `refusal` at once while the directory is away."""
        if self.is_away:
            self._refused_away()
            return refusal
        try:
            answer = (worker or self._worker).do(work, self.timeout_seconds)
        except TookTooLongError:
            self._presence.went_away(f"no answer within {self.timeout_seconds:g} seconds")
            self._refused_away()
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
            self._presence.went_away(str(self.last_problem or "it cannot be reached"))
            self._refused_away()

    # Away and back

    def _refused_away(self) -> DirectoryResult:
        self.last_problem = _not_there(self.problem)
        return _AWAY

    def _probe(self) -> str:
        result, _ = self.inner.read(tables.ENTERPRISE, (), None)
        if result is _AWAY:
            return str(self.inner.last_problem or self.problem)
        self._answers.age()  # who knows what happened meanwhile
        return ""

    def _changed(self) -> None:
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
