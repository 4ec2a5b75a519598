"""Write deploy/grafana/falconmq.json, the dashboard; `--check` only compares.

A panel is a line of the table below, so that a metric is added or renamed in one place.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).parent.parent / "deploy" / "grafana" / "falconmq.json"
_ON: Final = 'instance=~"$instance"'
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    """One line of a chart."""

    expression: str  # `$on` stands for the chosen instances, `$rate` for a range of time
    legend: str = "{{instance}}"


class Panel(NamedTuple):
    """One chart, 8 of 24 columns wide unless it says otherwise."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    description: str = ""
    type: str = "timeseries"
    width: int = 8
    height: int = 8


def _quantiles(metric: str, by: str = "instance") -> tuple[Query, ...]:
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by ({by}, le) (rate({metric}_bucket{{$on}}[$rate])))",
            f"{{{{{by}}}}} {round(share * 100)} %",
        )
        for share in (0.5, 0.99)
    )


def _stat(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, (Query(expression),), unit, type="stat", width=4, height=4)


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Overview": (
        _stat("Messages", "sum by (instance) (falconmq_queue_messages{$on})"),
        _stat("Backlog", "sum by (instance) (falconmq_outgoing_messages{$on})"),
        _stat("Dead letters", "sum by (instance) (falconmq_dead_letter_messages{$on})"),
        _stat("Sessions", "sum by (instance) (falconmq_sessions{$on})"),
        _stat(
            "Quota used",
            "falconmq_message_bytes{$on} / falconmq_message_quota_bytes{$on}",
            "percentunit",
        ),
        _stat("Up since", "1000 * falconmq_start_time_seconds{$on}", "dateTimeFromNow"),
    ),
    "Messages": (
        Panel(
            "Messages a second",
            (
                Query(
                    "sum by (kind) (rate(falconmq_events_total"
                    '{$on, kind=~"arrived|received|queued|delivered"}[$rate]))',
                    "{{kind}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Bytes a second",
            (
                Query(
                    "sum by (kind) (rate(falconmq_event_bytes_total"
                    '{$on, kind=~"arrived|received|queued|delivered"}[$rate]))',
                    "{{kind}}",
                ),
            ),
            "Bps",
        ),
        Panel(
            "What went wrong, a minute",
            (
                Query(
                    "60 * sum by (kind) (rate(falconmq_events_total{$on, "
                    'kind=~"expired|rejected|dead_lettered|refused|duplicate|returned"}[$rate]))',
                    "{{kind}}",
                ),
                Query("60 * sum(rate(falconmq_out_of_order_total{$on}[$rate]))", "out of order"),
                Query(
                    "60 * sum(rate(falconmq_messages_sent_again_total{$on}[$rate]))", "sent again"
                ),
            ),
        ),
        Panel(
            "Why messages died, an hour",
            (
                Query(
                    "sum by (class) (increase(falconmq_dead_letters_total{$on}[1h]))", "{{class}}"
                ),
                Query(
                    "sum by (class) (increase(falconmq_refusals_total{$on}[1h]))",
                    "refused: {{class}}",
                ),
            ),
        ),
        Panel(
            "Acknowledgements, a minute",
            (
                Query(
                    "60 * sum by (class) (rate(falconmq_acknowledgements_total{$on}[$rate]))",
                    "{{class}}",
                ),
            ),
        ),
        Panel(
            "Transactions and waiting readers",
            (
                Query("sum by (state) (falconmq_transactions{$on})", "{{state}}"),
                Query("sum(falconmq_waiting_readers{$on})", "waiting readers"),
            ),
        ),
    ),
    "Queues": (
        Panel(
            "Longest queues",
            (Query("topk(10, falconmq_queue_messages{$on})", "{{instance}} {{queue}}"),),
        ),
        Panel(
            "Oldest messages",
            (
                Query(
                    "topk(10, falconmq_queue_oldest_message_age_seconds{$on})",
                    "{{instance}} {{queue}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Busiest queues, received a second",
            (
                Query(
                    "topk(10, rate(falconmq_queue_received_total{$on}[$rate]))",
                    "{{instance}} {{queue}}",
                ),
            ),
            "ops",
        ),
    ),
    "On the way": (
        Panel(
            "Backlog by destination",
            (Query("topk(10, falconmq_outgoing_messages{$on})", "{{destination}}"),),
        ),
        Panel(
            "Oldest message by destination",
            (
                Query(
                    "topk(10, falconmq_outgoing_oldest_message_age_seconds{$on})",
                    "{{destination}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Failed tries to connect, an hour",
            (
                Query(
                    "topk(10, increase(falconmq_outgoing_connection_failures_total{$on}[1h]))",
                    "{{destination}}",
                ),
            ),
        ),
        Panel("Sessions", (Query("falconmq_sessions{$on}", "{{instance}} {{direction}}"),)),
        Panel(
            "Bytes of peers",
            (
                Query("sum(rate(falconmq_transport_received_bytes_total{$on}[$rate]))", "in"),
                Query("sum(rate(falconmq_transport_sent_bytes_total{$on}[$rate]))", "out"),
            ),
            "Bps",
        ),
        Panel(
            "Connections refused, sessions broken, an hour",
            (
                Query(
                    "sum by (reason) (increase(falconmq_connections_refused_total{$on}[1h]))",
                    "{{reason}}",
                ),
                Query("sum(increase(falconmq_sessions_broken_total{$on}[1h]))", "broken"),
            ),
        ),
    ),
    "Store and service": (
        Panel("Time of a commit", _quantiles("falconmq_store_commit_seconds"), "s"),
        Panel(
            "Commits a second, and changes in one",
            (
                Query("rate(falconmq_store_commits_total{$on}[$rate])", "{{instance}} commits"),
                Query(
                    "rate(falconmq_store_commit_batches_sum{$on}[$rate]) / "
                    "rate(falconmq_store_commit_batches_count{$on}[$rate])",
                    "{{instance}} changes in one",
                ),
            ),
        ),
        Panel(
            "Space",
            (
                Query("falconmq_store_used_bytes{$on}", "{{instance}} used"),
                Query("falconmq_store_file_bytes{$on}", "{{instance}} file"),
                Query("falconmq_store_limit_bytes{$on}", "{{instance}} limit"),
            ),
            "bytes",
        ),
        Panel(
            "Requests a second",
            (
                Query(
                    "sum by (route, code) (rate(falconmq_http_requests_total{$on}[$rate]))",
                    "{{route}} {{code}}",
                ),
            ),
            "reqps",
        ),
        Panel("Time of an answer", _quantiles("falconmq_http_request_seconds", "route"), "s"),
        Panel("How late timers fire", _quantiles("falconmq_event_loop_lag_seconds"), "s"),
    ),
}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "falconmq",
        "title": "FalconMQ",
        "tags": ["falconmq", "msmq"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": list(_panels()),
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance",
            "label": "Queue manager",
            "type": "query",
            "datasource": _SOURCE,
            "query": "label_values(falconmq_start_time_seconds, instance)",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    top = 0
    for row, charts in ROWS.items():
        place = {"h": 1, "w": 24, "x": 0, "y": top}
        panels.append({"type": "row", "title": row, "gridPos": place, "panels": []})
        top += 1
        left = 0
        for panel in charts:
            if left + panel.width > 24:
                left, top = 0, top + panel.height
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            panels.append(_panel(panel, place))
            left += panel.width
        top += charts[-1].height
    for number, each in enumerate(panels, 1):
        each["id"] = number
    return panels


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": query.expression.replace("$on", _ON).replace("$rate", "$__rate_interval"),
                "legendFormat": query.legend,
            }
            for number, query in enumerate(panel.queries)
        ],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dashboard", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is out of date")
    options = parser.parse_args(arguments)
    text = json.dumps(dashboard(), indent=2) + "\n"
    if not options.check:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("error: the dashboard is out of date: run python -m tools.dashboard\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
