"""Every metric that `/metrics` shows: its name, what it counts, its labels.

One list for the scrape and for docs/reference/metrics.md. Names follow Prometheus: base units,
`_total` at the end of what only grows.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

QUEUES_MAX: Final = 10_000  # that have series of their own, unless the scrape says otherwise


class Metric(NamedTuple):
    """One family of series."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


_QUEUE: Final = ("queue",)
_DESTINATION: Final = ("destination",)
_PARTITION: Final = ("partition",)

METRICS: Final = (
    Metric("falconmq_build_info", "gauge", "Always 1; the version is in the label.", ("version",)),
    Metric(
        "falconmq_manager_info",
        "gauge",
        "Always 1; name and identifier of the queue manager are in the labels.",
        ("name", "id"),
    ),
    Metric("falconmq_start_time_seconds", "gauge", "When the service started, Unix time."),
    # Messages
    Metric(
        "falconmq_events_total",
        "counter",
        "Things that happened to messages: queued, arrived, delivered, received, expired, ...",
        ("kind",),
    ),
    Metric(
        "falconmq_event_bytes_total",
        "counter",
        "Bytes of the messages that something happened to, headers and body.",
        ("kind",),
    ),
    Metric(
        "falconmq_acknowledgements_total",
        "counter",
        "Acknowledgements that came back for messages of ours, by message class.",
        ("class",),
    ),
    Metric(
        "falconmq_refusals_total",
        "counter",
        "Messages of peers that were not taken, by the message class that says why.",
        ("class",),
    ),
    Metric(
        "falconmq_dead_letters_total",
        "counter",
        "Messages put into a dead-letter queue, by the message class that says why.",
        ("class",),
    ),
    Metric("falconmq_duplicates_total", "counter", "Messages that peers sent a second time."),
    Metric(
        "falconmq_out_of_order_total",
        "counter",
        "Transactional messages refused because an earlier one of the stream was missing.",
    ),
    Metric(
        "falconmq_messages_sent_again_total",
        "counter",
        "Messages sent again: the session ended, or no acknowledgement came in time.",
    ),
    Metric(
        "falconmq_messages_passed_on_total",
        "counter",
        "Messages of others that were routed through this queue manager.",
    ),
    Metric("falconmq_message_bytes", "gauge", "Bytes of all messages, against the quota."),
    Metric("falconmq_message_quota_bytes", "gauge", "Bytes that all messages may have together."),
    # Queues
    Metric("falconmq_queues", "gauge", "Queues that applications created."),
    Metric(
        "falconmq_queues_left_out",
        "gauge",
        "Queues and destinations without series of their own, for there are too many.",
    ),
    Metric("falconmq_queue_messages", "gauge", "Messages in the queue.", _QUEUE),
    Metric("falconmq_queue_bytes", "gauge", "Bytes of the messages in the queue.", _QUEUE),
    Metric("falconmq_queue_journal_messages", "gauge", "Messages in its journal.", _QUEUE),
    Metric("falconmq_queue_arrived_total", "counter", "Messages that became readable.", _QUEUE),
    Metric("falconmq_queue_received_total", "counter", "Messages that readers took.", _QUEUE),
    Metric(
        "falconmq_queue_oldest_message_age_seconds",
        "gauge",
        "How long the message at the head has been there; 0 if the queue is empty.",
        _QUEUE,
    ),
    Metric("falconmq_queue_waiting_readers", "gauge", "Reads that wait for a message.", _QUEUE),
    Metric("falconmq_waiting_readers", "gauge", "Reads that wait for a message, in all queues."),
    Metric(
        "falconmq_dead_letter_messages",
        "gauge",
        "Messages in the dead-letter queues: ordinary and transactional ones.",
        _QUEUE,
    ),
    Metric("falconmq_dead_letter_bytes", "gauge", "Bytes of the messages there.", _QUEUE),
    Metric("falconmq_journal_messages", "gauge", "Messages in the journal of the computer."),
    Metric("falconmq_journal_bytes", "gauge", "Bytes of the messages there."),
    Metric(
        "falconmq_consumer_behind_messages",
        "gauge",
        "Messages that a consumer has not acknowledged yet.",
        ("consumer", "queue"),
    ),
    Metric("falconmq_transactions", "gauge", "Transactions that have not ended.", ("state",)),
    # On the way to other queue managers
    Metric("falconmq_outgoing_messages", "gauge", "Messages that wait for delivery.", _DESTINATION),
    Metric("falconmq_outgoing_bytes", "gauge", "Bytes of these messages.", _DESTINATION),
    Metric(
        "falconmq_outgoing_oldest_message_age_seconds",
        "gauge",
        "How long the message at the head waits; 0 if none does.",
        _DESTINATION,
    ),
    Metric(
        "falconmq_outgoing_connection_failures_total",
        "counter",
        "Tries to open a session that failed.",
        _DESTINATION,
    ),
    Metric(
        "falconmq_outgoing_state",
        "gauge",
        "Always 1; the state of the outgoing queue is in the label.",
        ("destination", "state"),
    ),
    # Sessions
    Metric(
        "falconmq_sessions",
        "gauge",
        "Open sessions, by who opened them: in, the peer; out, this queue manager.",
        ("direction",),
    ),
    Metric("falconmq_sessions_opened_total", "counter", "Sessions that were opened."),
    Metric("falconmq_sessions_closed_total", "counter", "Sessions that ended."),
    Metric(
        "falconmq_sessions_broken_total",
        "counter",
        "Sessions closed for what the peer sent: no MSMQ, or against the protocol.",
    ),
    Metric("falconmq_connections_accepted_total", "counter", "Connections of peers."),
    Metric(
        "falconmq_connections_refused_total",
        "counter",
        "Connections of peers that were refused.",
        ("reason",),
    ),
    Metric("falconmq_transport_received_bytes_total", "counter", "Bytes from peers."),
    Metric("falconmq_transport_sent_bytes_total", "counter", "Bytes to peers."),
    # Store
    Metric("falconmq_store_commits_total", "counter", "Commits, each with one sync."),
    Metric("falconmq_store_batches_total", "counter", "Changes that these commits made durable."),
    Metric("falconmq_store_commit_failures_total", "counter", "Commits that failed."),
    Metric("falconmq_store_commit_seconds", "histogram", "How long a commit took."),
    Metric("falconmq_store_commit_batches", "histogram", "Changes that shared one commit."),
    Metric("falconmq_store_queued_bytes", "gauge", "Bytes that wait for a commit."),
    Metric("falconmq_store_used_bytes", "gauge", "Bytes of the file in use, with the index."),
    Metric("falconmq_store_reusable_bytes", "gauge", "Bytes of the file that were freed."),
    Metric("falconmq_store_file_bytes", "gauge", "Size of the file."),
    Metric("falconmq_store_limit_bytes", "gauge", "The file does not grow beyond this."),
    # The directory; a workgroup has none of these
    Metric(
        "falconmq_directory_up",
        "gauge",
        "1 while the directory answers, 0 while it is away.",
    ),
    Metric(
        "falconmq_directory_notifications_total",
        "counter",
        "Change notifications, in or out, by what became of them.",
        ("direction", "outcome"),
    ),
    # Copies of the directory on several servers; only a directory server has these
    Metric(
        "falconmq_directory_replication_last_number",
        "gauge",
        "Number of the last change of the partition that is here.",
        _PARTITION,
    ),
    Metric(
        "falconmq_directory_replication_lag_changes",
        "gauge",
        "Changes of the partition that were heard of, and are not here yet.",
        _PARTITION,
    ),
    Metric(
        "falconmq_directory_replication_pending_changes",
        "gauge",
        "Changes that came before others that are missing.",
        _PARTITION,
    ),
    Metric(
        "falconmq_directory_replication_full_sync",
        "gauge",
        "1 while the whole partition is fetched anew, else 0.",
        _PARTITION,
    ),
    Metric(
        "falconmq_directory_replication_waiting_writes",
        "gauge",
        "Writes that another server was asked for, and has not answered.",
    ),
    Metric(
        "falconmq_directory_replication_doubles",
        "gauge",
        "Objects that are in two sites, by what their servers say; 100 at most.",
    ),
    Metric(
        "falconmq_directory_replication_neighbour_changes",
        "gauge",
        "Changes that go to this server with the next message.",
        ("neighbour",),
    ),
    Metric(
        "falconmq_directory_replication_applied_total",
        "counter",
        "Changes of others that were applied.",
    ),
    Metric(
        "falconmq_directory_replication_decided_total",
        "counter",
        "Changes that this server decided.",
    ),
    Metric(
        "falconmq_directory_replication_sync_requests_total",
        "counter",
        "Requests for missing changes.",
    ),
    Metric(
        "falconmq_directory_replication_full_syncs_total",
        "counter",
        "Partitions to be fetched anew.",
    ),
    Metric(
        "falconmq_directory_replication_purged_total", "counter", "Deletions that were forgotten."
    ),
    Metric(
        "falconmq_directory_replication_sent_total",
        "counter",
        "Messages to other directory servers.",
    ),
    Metric(
        "falconmq_directory_replication_received_total",
        "counter",
        "Messages of the replication queue.",
    ),
    Metric(
        "falconmq_directory_replication_dropped_total",
        "counter",
        "Messages and changes that were not obeyed, by the reason.",
        ("reason",),
    ),
    # The service
    Metric(
        "falconmq_failures_total",
        "counter",
        "Events of the service that broke off, and commits it saw fail: each is in the log.",
    ),
    Metric(
        "falconmq_event_loop_lag_seconds",
        "histogram",
        "How late timers of the service fire: long turns, or a busy processor.",
    ),
    Metric(
        "falconmq_http_requests_total",
        "counter",
        "Answered requests of the HTTP API and the console.",
        ("route", "method", "code"),
    ),
    Metric(
        "falconmq_http_request_seconds",
        "histogram",
        "Time until an answer began; a read that waits for a message waits here too.",
        ("route",),
    ),
    Metric("falconmq_http_requests_in_progress", "gauge", "Requests that are not answered yet."),
    Metric("falconmq_live_readers", "gauge", "Followers of the live events."),
)
