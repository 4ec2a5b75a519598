"""archive: everything the queue managers tell, kept for ever and each event once.

How to think about it. Each queue manager's event log is read in batches of event numbers. Tasks
read it and write files (`falconmq.spark.jobs.archive_tasks`), which do not count yet. A batch
counts first in bronze/messages (events that carry their message), then, if something could not be
decoded, in rejects/archive, then in bronze/events, whose commit says how far the archive is. A run
that dies in between leaves a batch without that last commit: the next run does the same range
again, and the tables that have it already keep it as it is (`falconmq.spark.jobs.steps`).

A log forgets its oldest events after a while. If it has forgotten some that were not archived yet,
that is a loss: the run fails and says which, or goes on with `allow_loss` and keeps the gap in mind
(the ledger lists it as a finding, and accuses nobody of losing messages that the gap may hide).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.jobs.archive_tasks import Drafts, Outcome, write_pieces
from falconmq.spark.jobs.event_logs import DaemonLogs, EventLogs, LogStatus
from falconmq.spark.jobs.lake_tables import EVENTS, MESSAGES
from falconmq.spark.jobs.running import Progress, Summary, Tell, rejects_of
from falconmq.spark.jobs.snapshot import archive_queue
from falconmq.spark.jobs.steps import Step, next_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from falconmq.spark.tables import Lake, Table

JOB: Final = "archive"
REJECTS: Final = rejects_of(JOB)
SOURCE: Final = "archive:"  # and the GUID of the manager
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KEEP_SECONDS: Final = 3600.0  # what a run left behind that died: one of its tasks may still write
_NOTE_SECONDS: Final = 60.0  # how often a run that follows says that there was nothing new


@dataclass(frozen=True)
class Options:
    """What to archive, and for how long."""

    urls: tuple[str, ...] = ()  # of the queue managers
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    rows: int = 500_000  # events in one batch
    follow: bool = False  # go on until `tell` raises
    snapshot: tuple[str, ...] = ()  # queues to copy as they are now, instead of the event logs
    allow_loss: bool = False
    dry_run: bool = False
    wait_seconds: float = 1.0  # one wait for news of a manager


def run(
    spark: SparkSession,
    lake: Lake,
    options: Options,
    tell: Tell,
    *,
    logs: EventLogs | None = None,
) -> Summary:
    """Archive what is there now, or follow it; `tell` may raise to end it between two batches."""
    logs = logs or DaemonLogs(options.urls, options.token, options.ca_file)
    if not logs.urls:
        raise FalconMQError(
            "no queue manager to archive", hint="name one: --manager http://sales01:8018"
        )
    summary = Summary(JOB, is_dry=options.dry_run, facts={"managers": {}, "gaps": []})
    with lake.lock(JOB):
        if options.snapshot:
            for url in logs.urls:
                for queue in options.snapshot:
                    archive_queue(spark, lake, logs, url, queue, summary, tell, options.dry_run)
            return summary
        if not options.dry_run:
            for spec in (MESSAGES, REJECTS, EVENTS):
                lake.table(spec).sweep(_KEEP_SECONDS)
        archives = [_Archive(spark, lake, logs, url, options, summary, tell) for url in logs.urls]
        for archive in archives:
            archive.run()
        while options.follow and not options.dry_run:
            for archive in archives:
                archive.follow()
    return summary


class _Archive:
    """One queue manager's part of a run."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        logs: EventLogs,
        url: str,
        options: Options,
        summary: Summary,
        tell: Tell,
    ) -> None:
        self._spark, self._logs, self._url = spark, logs, url
        self._options, self._summary, self._tell = options, summary, tell
        self._messages, self._events = lake.table(MESSAGES), lake.table(EVENTS)
        self._rejects = lake.table(REJECTS)
        self._next = 0
        self._noted: datetime | None = None

    @property
    def _tables(self) -> tuple[Table, ...]:
        return self._messages, self._rejects, self._events

    def run(self) -> None:
        """Everything that is there now, in batches."""
        self._archive(self._logs.status(self._url))

    def follow(self) -> None:
        """What comes within the next seconds."""
        self._archive(self._logs.status(self._url, self._next, self._options.wait_seconds))

    def _archive(self, status: LogStatus) -> None:
        window, has_written = self._options.rows, False
        while True:
            step = next_step(self._tables, SOURCE + status.manager)
            plan = _begun(step.plan, status) if step.plan else _plan(status, step.last, window)
            self._check(status, plan)
            self._next = plan["to"]
            if self._options.dry_run:
                self._say(status, status.next - plan["from"])
                return
            if plan["from"] >= plan["to"]:
                if not has_written:
                    self._note(step, plan, status)
                self._say(status, 0)
                return
            count = self._write(step, plan, status)
            has_written = True
            # After a restore from a backup the numbers go on far behind: walk there quickly.
            window = self._options.rows if count else 2 * window

    def _check(self, status: LogStatus, plan: Mapping[str, Any]) -> None:
        if plan["from"] > status.next:
            raise FalconMQError(
                f"the event log of {status.computer} goes to {status.next - 1}, but was archived "
                f"up to {plan['from'] - 1}: it was replaced by an older one",
                hint="archive it into a lake of its own",
            )
        if plan["gap"] and not self._options.allow_loss:
            low, high = plan["gap"]
            raise FalconMQError(
                f"{status.computer} has forgotten the events {low} to {high - 1}, and they were "
                "not archived before",
                status=MqStatus.MESSAGE_NOT_FOUND,
                hint="go on without them: --allow-loss; keep more: max_age, max_bytes in [events]",
            )

    def _write(self, step: Step, plan: Mapping[str, Any], status: LogStatus) -> int:
        """Write the events and what they carry, and let all of it count in the right order."""
        start = max(plan["from"], status.first)
        pieces = self._logs.pieces(status, start, plan["to"])
        with (
            self._events.draft(self._spark) as events,
            self._messages.draft(self._spark) as messages,
            self._rejects.draft(self._spark) as rejects,
        ):
            drafts = Drafts(events, messages, rejects)
            found = write_pieces(self._spark, pieces, drafts)
            return self._settle(step, plan, status, drafts, found)

    def _settle(
        self,
        step: Step,
        plan: Mapping[str, Any],
        status: LogStatus,
        drafts: Drafts,
        found: Outcome,
    ) -> int:
        """Messages and rejects first; most logs carry none."""
        facts = {**plan, "first_at": _text(found.first_at), "last_at": _text(found.last_at)}
        facts["through"] = plan["asked_at"] if plan["to"] >= plan["latest"] else facts["last_at"]
        key: dict[str, Any] = {"source": step.source, "batch": step.batch, "facts": facts}
        if found.carried:
            staged = self._messages.stage_files(drafts.messages, found.messages)
            self._summary.add(MESSAGES.name, self._messages.settle(staged, **key).rows)
        if found.rejects:
            staged = self._rejects.stage_files(drafts.rejects, found.rejects)
            self._summary.rejected += self._rejects.settle(staged, **key).rows
        if plan["gap"]:
            low, high = plan["gap"]
            gap = {"computer": status.computer, "from": low, "to": high}
            self._summary.facts["gaps"].append(gap)
        staged = self._events.stage_files(drafts.events, found.events)
        self._summary.add(EVENTS.name, self._events.settle(staged, **key).rows)
        self._summary.read += staged.rows
        self._say(status, status.next - plan["to"])
        return staged.rows

    def _note(self, step: Step, plan: Mapping[str, Any], status: LogStatus) -> None:
        """Nothing came: that is worth knowing, too, for whoever asks how far the log was read."""
        last = self._noted or _time(step.last.get("asked_at"))
        is_due = last is None or (status.asked_at - last).total_seconds() >= _NOTE_SECONDS
        if is_due or not self._options.follow:
            facts = {**plan, "first_at": None, "last_at": None, "through": plan["asked_at"]}
            self._events.note(source=step.source, batch=step.batch, facts=facts)
            self._noted = status.asked_at

    def _say(self, status: LogStatus, left: int) -> None:
        self._summary.facts["managers"][status.computer] = {
            "manager": status.manager,
            "next": self._next,
            "left": left,
        }
        done = self._summary.read
        self._tell(Progress(f"archiving events of {status.computer}", done, done + left, "events"))


def _plan(status: LogStatus, last: Mapping[str, Any], window: int) -> dict[str, Any]:
    """The next range of a log, and what was lost before it."""
    position = last.get("to")
    start = status.first if position is None else max(position, status.first)
    return {
        "manager": status.manager,
        "computer": status.computer,
        "url": status.url,
        "from": start,
        "to": max(start, min(start + window, status.next)),
        "latest": status.next,
        "asked_at": status.asked_at.astimezone(UTC).isoformat(),
        "gap": None if position is None or position >= start else [position, start],
        "is_beginning": position is None,
    }


def _begun(plan: Mapping[str, Any], status: LogStatus) -> dict[str, Any]:
    """The plan of a batch that was begun; its log may have forgotten a part of it meanwhile."""
    if plan["from"] >= status.first:
        return dict(plan)
    low, _ = plan["gap"] or (plan["from"], None)
    return {**plan, "gap": [low, min(status.first, plan["to"])]}


def _text(microseconds: int | None) -> str | None:
    """A time since 1970, as commits have it."""
    if microseconds is None:
        return None
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
