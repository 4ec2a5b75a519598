"""`/metrics` for Prometheus: the numbers of one queue manager, under the names of `metric_names`.

Nothing is counted here. A scrape reads what the queue manager, the transport, the committer and the
HTTP API count anyway, and writes it down in a thread of its own, so that messages do not wait for
the text of ten thousand queues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Final

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder

from falconmq.errors import StoreError
from falconmq.manager.events import EventKind
from falconmq.service.directory.replication_view import status_json
from falconmq.service.observation.event_texts import class_text, queue_text
from falconmq.service.observation.gauging import Heads, Numbers, gather
from falconmq.service.observation.metric_names import METRICS, QUEUES_MAX
from falconmq.service.observation.replication_metrics import add_replication
from falconmq.store import GroupCommitter
from falconmq.store.interface import StoreStatistics
from falconmq.transport.binding import AsyncioNetwork
from falconmq.transport.session import SessionState
from falconmq.transport.transport import Transport

if TYPE_CHECKING:
    from falconmq.service.api.context import Control
    from falconmq.service.directory.hub import DirectoryHub
    from falconmq.store.measuring import Histogram

_KIBIBYTE: Final = 1024
_TYPES: Final = {metric.name: metric for metric in METRICS}
# What the transport counts, and what it is called here.
_COUNTERS: Final = {
    "duplicates": "falconmq_duplicates_total",
    "out of order": "falconmq_out_of_order_total",
    "messages to send again": "falconmq_messages_sent_again_total",
    "passed on": "falconmq_messages_passed_on_total",
    "sessions opened": "falconmq_sessions_opened_total",
    "sessions closed": "falconmq_sessions_closed_total",
    "sessions closed for what a peer sent": "falconmq_sessions_broken_total",
}


class Families:
    """All families of one scrape; those without a sample are shown all the same."""

    def __init__(self) -> None:
        self._families = {
            metric.name: Family(metric.name.removesuffix("_total"), metric.help, metric.type)
            for metric in METRICS
        }

    def add(self, name: str, value: float, *labels: str) -> None:
        names = _TYPES[name].labels
        self.add_labelled(name, value, dict(zip(names, labels, strict=True)))

    def add_labelled(self, name: str, value: float, labels: dict[str, str]) -> None:
        """The same with labels that several series share: they are many."""
        self._families[name].add_sample(name, labels, value)

    def add_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        family, named = self._families[name], dict(zip(_TYPES[name].labels, labels, strict=True))
        count = 0
        for bound, count in histogram.cumulative():
            text = "+Inf" if bound == float("inf") else str(float(bound))
            family.add_sample(f"{name}_bucket", {**named, "le": text}, count)
        family.add_sample(f"{name}_count", named, count)
        family.add_sample(f"{name}_sum", named, histogram.sum)

    def collect(self) -> Iterator[Family]:
        yield from self._families.values()


class Metrics:
    """The scrapes of one service."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._heads = Heads()

    async def scrape(self, accept: str = "", queues_max: int = QUEUES_MAX) -> tuple[bytes, str]:
        """The text, and its content type: Prometheus' own, or OpenMetrics if it is accepted."""
        engine = self._control.engine
        numbers = await gather(engine, self._heads, queues_max)
        families = Families()
        self._add_service(families)
        hub = self._control.hub
        replication = None if hub is None else hub.replication
        encode, content_type = choose_encoder(accept)

        def write() -> bytes:
            _add_numbers(families, numbers)
            _add_store(families, engine.store.statistics())
            if replication is not None:
                with contextlib.suppress(StoreError):  # its status tells
                    add_replication(families, status_json(replication, engine.core.clock))
            return encode(families)

        return await asyncio.to_thread(write), content_type

    def _add_service(self, families: Families) -> None:
        control = self._control
        core = control.engine.core
        families.add("falconmq_build_info", 1, _version())
        name, identifier = core.settings.computer_name, str(core.identifier)
        families.add("falconmq_manager_info", 1, name, identifier)
        watch = control.watch
        families.add("falconmq_start_time_seconds", watch.started_at)
        families.add("falconmq_live_readers", watch.live.readers)
        families.add_histogram("falconmq_event_loop_lag_seconds", watch.lag)
        counters = control.status().get("counters", {})
        families.add("falconmq_failures_total", counters.get("failures", 0))
        meter = watch.meter
        families.add("falconmq_http_requests_in_progress", meter.in_progress)
        for (route, method, code), count in meter.requests.items():
            families.add("falconmq_http_requests_total", count, route, method, str(code))
        for route, histogram in meter.seconds.items():
            families.add_histogram("falconmq_http_request_seconds", histogram, route)
        self._add_consumers(families)
        committer = control.engine.committer
        if isinstance(committer, GroupCommitter):
            _add_committer(families, committer)
        if isinstance(control.transport, Transport):
            _add_transport(families, control.transport)
        if control.hub is not None and control.hub.directory is not None:
            _add_directory(families, control.hub)

    def _add_consumers(self, families: Families) -> None:
        with contextlib.suppress(StoreError):  # a damaged record: the list of consumers tells
            for consumer in self._control.consumers.all():
                for queue in consumer["queues"]:
                    labels = consumer["name"], queue["queue"]
                    families.add("falconmq_consumer_behind_messages", queue["behind"], *labels)


def _add_committer(families: Families, committer: GroupCommitter) -> None:
    families.add("falconmq_store_commits_total", committer.groups)
    families.add("falconmq_store_batches_total", committer.batches)
    families.add("falconmq_store_commit_failures_total", committer.failures)
    families.add("falconmq_store_queued_bytes", committer.queued_bytes)
    families.add_histogram("falconmq_store_commit_seconds", committer.seconds)
    families.add_histogram("falconmq_store_commit_batches", committer.sizes)


def _add_transport(families: Families, transport: Transport) -> None:
    for counter, name in _COUNTERS.items():
        families.add(name, transport.counters[counter])
    for message_class, count in transport.refusals.items():
        families.add("falconmq_refusals_total", count, class_text(message_class))
    is_open = [s.is_initiator for s in transport.sessions if s.state is SessionState.OPEN]
    families.add("falconmq_sessions", is_open.count(False), "in")
    families.add("falconmq_sessions", is_open.count(True), "out")
    network = transport.network
    if isinstance(network, AsyncioNetwork):
        families.add("falconmq_connections_accepted_total", network.accepted)
        for reason, count in network.refused.items():
            families.add("falconmq_connections_refused_total", count, reason)
        families.add("falconmq_transport_received_bytes_total", network.bytes_received)
        families.add("falconmq_transport_sent_bytes_total", network.bytes_sent)


def _add_directory(families: Families, hub: DirectoryHub) -> None:
    directory = hub.directory
    families.add("falconmq_directory_up", directory is not None and not directory.is_away)
    for direction, counting in (("in", hub.notifications), ("out", hub.notifier)):
        for outcome, count in () if counting is None else counting.counters.items():
            families.add("falconmq_directory_notifications_total", count, direction, outcome)


def _add_store(families: Families, statistics: StoreStatistics) -> None:
    families.add("falconmq_store_used_bytes", statistics.used_bytes)
    families.add("falconmq_store_reusable_bytes", statistics.reusable_bytes)
    families.add("falconmq_store_file_bytes", statistics.file_bytes)
    families.add("falconmq_store_limit_bytes", statistics.limit_bytes)


def _add_numbers(families: Families, numbers: Numbers) -> None:
    for kind in EventKind:
        label = kind.name.lower()
        families.add("falconmq_events_total", numbers.events.get(kind, 0), label)
        families.add("falconmq_event_bytes_total", numbers.event_bytes.get(kind, 0), label)
    for (kind, reason), count in numbers.by_reason.items():
        if kind is EventKind.TOLD:
            families.add("falconmq_acknowledgements_total", count, class_text(reason))
        elif kind is EventKind.DEAD_LETTERED:
            families.add("falconmq_dead_letters_total", count, class_text(reason))
    families.add("falconmq_message_bytes", numbers.message_bytes)
    families.add("falconmq_message_quota_bytes", numbers.quota_kilobytes * _KIBIBYTE)
    families.add("falconmq_queues", numbers.queues_in_all)
    families.add("falconmq_queues_left_out", numbers.left_out)
    families.add("falconmq_waiting_readers", numbers.waiting_readers)
    families.add("falconmq_transactions", numbers.transactions - numbers.prepared, "active")
    families.add("falconmq_transactions", numbers.prepared, "prepared")
    for name in ("dead_letter", "transactional_dead_letter"):
        messages, size = numbers.system[name]
        families.add("falconmq_dead_letter_messages", messages, name)
        families.add("falconmq_dead_letter_bytes", size, name)
    messages, size = numbers.system["journal"]
    families.add("falconmq_journal_messages", messages)
    families.add("falconmq_journal_bytes", size)
    _add_queues(families, numbers)
    _add_outgoing(families, numbers)


def _add_queues(families: Families, numbers: Numbers) -> None:
    add = families.add_labelled
    for each in numbers.queues:
        labels = {"queue": queue_text(each.queue)}
        add("falconmq_queue_messages", each.messages, labels)
        add("falconmq_queue_bytes", each.size, labels)
        add("falconmq_queue_journal_messages", each.journal_messages, labels)
        add("falconmq_queue_arrived_total", each.arrived, labels)
        add("falconmq_queue_received_total", each.received, labels)
        age = _age(numbers, each.since)
        add("falconmq_queue_oldest_message_age_seconds", age, labels)
        add("falconmq_queue_waiting_readers", each.waiting_readers, labels)


def _add_outgoing(families: Families, numbers: Numbers) -> None:
    add = families.add_labelled
    for each in numbers.outgoing:
        labels = {"destination": queue_text(each.queue)}
        add("falconmq_outgoing_messages", each.messages, labels)
        add("falconmq_outgoing_bytes", each.size, labels)
        age = _age(numbers, each.since)
        add("falconmq_outgoing_oldest_message_age_seconds", age, labels)
        add("falconmq_outgoing_connection_failures_total", each.failures, labels)
        add("falconmq_outgoing_state", 1, {**labels, "state": each.state})


def _age(numbers: Numbers, since: float) -> float:
    return max(0.0, round(numbers.time - since, 3)) if since else 0.0


@lru_cache(maxsize=1)
def _version() -> str:
    try:
        return metadata.version("falconmq")
    except metadata.PackageNotFoundError:  # run from a source tree that was not installed
        return "unknown"
