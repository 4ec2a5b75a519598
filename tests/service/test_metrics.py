"""`/metrics`: what a scrape says, that it is what the page says, and what it costs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from falconmq import Message
from falconmq.message import Acknowledge
from falconmq.service.daemon import Service
from falconmq.service.observation.http_meter import route_of
from falconmq.service.observation.metric_names import METRICS
from tests.service.observed import at, observed
from tests.service.services import ORDERS, direct, run, until

ROOT = Path(__file__).parents[2]
parse_openmetrics: Any = openmetrics.text_string_to_metric_families  # it has no types
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scrape(http: httpx.AsyncClient, **parameters: int) -> Series:
    answer = await http.get("http://service/metrics", params=parameters)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(answer.text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


def test_queues_and_messages(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, journaling=True)
            for _ in range(3):
                await orders.send(Message("hello"))
            await orders.receive(timeout=0)
            waiting = asyncio.create_task(
                (await service.manager.create_queue(r".\private$\idle")).receive(timeout=10)
            )
            await asyncio.sleep(0)
            found = await scrape(http)
            assert value(found, "falconmq_queue_messages", queue=ORDERS) == 2
            assert value(found, "falconmq_queue_bytes", queue=ORDERS) == orders.size_bytes
            assert value(found, "falconmq_queue_arrived_total", queue=ORDERS) == 3
            assert value(found, "falconmq_queue_received_total", queue=ORDERS) == 1
            assert value(found, "falconmq_queue_journal_messages", queue=ORDERS) == 1
            age = value(found, "falconmq_queue_oldest_message_age_seconds", queue=ORDERS)
            assert 0 < age < 20
            idle = r".\private$\idle"
            assert value(found, "falconmq_queue_oldest_message_age_seconds", queue=idle) == 0
            assert value(found, "falconmq_queue_waiting_readers", queue=idle) == 1
            assert value(found, "falconmq_waiting_readers") == 1
            assert value(found, "falconmq_events_total", kind="arrived") == 3
            assert value(found, "falconmq_events_total", kind="expired") == 0
            assert value(found, "falconmq_event_bytes_total", kind="arrived") > 100
            assert value(found, "falconmq_queues") == 2
            assert value(found, "falconmq_message_bytes") > 0
            waiting.cancel()

    run(main())


def test_the_age_is_that_of_the_head(tmp_path: Path) -> None:
    """The head is remembered between scrapes: a new one must not have the age of the old."""

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, transactional=True)
            now = service.engine.core.clock.time
            async with service.manager.transaction() as transaction:
                await orders.send(Message("old"), transaction)
            service.engine.core.clock.time = lambda: now() + 500  # type: ignore[method-assign]
            async with service.manager.transaction() as transaction:
                await orders.send(Message("new"), transaction)
            name = "falconmq_queue_oldest_message_age_seconds"
            assert value(await scrape(http), name, queue=ORDERS) == pytest.approx(500, abs=20)
            async with service.manager.transaction() as transaction:
                await orders.receive(transaction=transaction, timeout=0)
                # a reader holds it, but it is still there
                assert value(await scrape(http), name, queue=ORDERS) == pytest.approx(500, abs=20)
            assert value(await scrape(http), name, queue=ORDERS) < 20

    run(main())


def test_messages_for_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            observed(tmp_path / "a") as (here, http),
            observed(tmp_path / "b") as (there, other),
        ):
            await there.manager.create_queue(ORDERS)
            answers = await here.manager.create_queue(r".\private$\answers")
            ask = {
                "acknowledgements": Acknowledge.FULL_REACH_QUEUE,
                "administration_queue": direct(here, "answers"),
            }
            away = await here.manager.queue(direct(there))
            await away.send(Message("hello", **ask))  # type: ignore[arg-type]
            lost = await here.manager.queue(direct(there, "nowhere"))
            await lost.send(Message("hello", **ask))  # type: ignore[arg-type]
            await until(lambda: answers.count == 1 and bool(there.transport.refusals))
            nobody = r"DIRECT=TCP:127.0.0.254\private$\nobody"
            await (await here.manager.queue(nobody)).send(Message("wait"))
            failures = "falconmq_outgoing_connection_failures_total"
            while not value(await scrape(http), failures, destination=nobody):
                pass
            found, others = await scrape(http), await scrape(other)
            assert value(found, "falconmq_outgoing_messages", destination=nobody) == 1
            assert value(found, "falconmq_outgoing_bytes", destination=nobody) > 0
            age = "falconmq_outgoing_oldest_message_age_seconds"
            assert 0 < value(found, age, destination=nobody) < 20
            states = {dict(labels)["state"] for name, labels in found if name.endswith("_state")}
            assert "connected" in states
            assert value(found, "falconmq_sessions", direction="out") >= 1
            assert value(others, "falconmq_sessions", direction="in") >= 1
            assert value(others, "falconmq_connections_accepted_total") >= 1
            sent = value(found, "falconmq_transport_sent_bytes_total")
            assert sent == value(others, "falconmq_transport_received_bytes_total") > 500
            refused = value(others, "falconmq_refusals_total", **{"class": "NACK_BAD_DST_Q"})
            assert refused == 1
            await here.stop()
            await until(lambda: not there.network.links)
            found = await scrape(other)  # bytes of closed connections still count
            assert value(found, "falconmq_transport_received_bytes_total") >= sent
            assert value(found, "falconmq_sessions_closed_total") >= 1

    run(main())


def test_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            before = await scrape(http)
            await asyncio.gather(*(orders.send(Message("x")) for _ in range(50)))
            found = await scrape(http)
            commits = value(found, "falconmq_store_commits_total")
            assert commits > value(before, "falconmq_store_commits_total")
            assert value(found, "falconmq_store_commit_seconds_count") == commits
            assert value(found, "falconmq_store_commit_seconds_bucket", le="+Inf") == commits
            assert value(found, "falconmq_store_commit_seconds_sum") > 0
            batches = value(found, "falconmq_store_batches_total")
            assert value(found, "falconmq_store_commit_batches_sum") == batches >= commits
            file, limit = "falconmq_store_file_bytes", "falconmq_store_limit_bytes"
            assert 0 < value(found, file) <= value(found, limit)
            assert value(found, "falconmq_store_commit_failures_total") == 0

    run(main())


def test_requests_are_counted_by_kind(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            await http.post(at(ORDERS, "messages"), json={"messages": [{"text": "x"}]})
            await http.get("/queues/nonsense")
            await http.request("BREW", "/status")
            found = await scrape(http)
            name = "falconmq_http_requests_total"
            assert value(found, name, route="queues/messages", method="POST", code="201") == 1
            assert value(found, name, route="queues", method="GET", code="400") == 1
            assert value(found, name, route="status", method="other", code="405") == 1
            seconds = "falconmq_http_request_seconds_count"
            assert value(found, seconds, route="queues/messages") == 1
            assert value(found, "falconmq_http_requests_in_progress") == 1  # the scrape itself

    run(main())


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/api/v1/queues", "queues"),
        ("/api/v1/queues/.%5Cprivate$%5Ca/b/receive", "queues/receive"),
        ("/api/v1/queues/secret-name", "queues"),
        ("/api/v1/transactions/5f/commit", "transactions"),
        ("/api/v1/whatever", "other"),
        ("/metrics", "metrics"),
        ("/readyz", "readyz"),
        ("/queues/anything", "console"),
        ("/static/app.css", "static"),
    ],
)
def test_a_path_becomes_one_of_few_words(path: str, route: str) -> None:
    assert route_of(path) == route


def test_transactions_and_dead_letters(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, transactional=True)
            open_one, prepared = service.manager.transaction(), service.manager.transaction()
            await orders.send(Message("x"), prepared)
            await prepared.prepare()
            found = await scrape(http)
            assert value(found, "falconmq_transactions", state="active") == 1
            assert value(found, "falconmq_transactions", state="prepared") == 1
            assert value(found, "falconmq_dead_letter_messages", queue="dead_letter") == 0
            await open_one.abort()
            await prepared.commit()

    run(main())


def test_many_queues_can_be_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            for number in range(5):
                await service.manager.create_queue(rf".\private$\q{number}")
            found = await scrape(http, queues=2)
            shown = {dict(labels)["queue"] for name, labels in found if "queue_bytes" in name}
            assert shown == {r".\private$\q0", r".\private$\q1"}
            assert value(found, "falconmq_queues_left_out") == 3
            assert value(found, "falconmq_queues") == 5
            found = await scrape(http)
            assert value(found, "falconmq_queues_left_out") == 0

    run(main())


def test_who_accepts_openmetrics_gets_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(r".\private$\odd{'}")
            headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
            answer = await http.get("http://service/metrics", headers=headers)
            assert answer.headers["content-type"].startswith("application/openmetrics-text")
            families = {family.name for family in parse_openmetrics(answer.text)}
            assert families == {metric.name.removesuffix("_total") for metric in METRICS}

    run(main())


def test_the_scrape_has_what_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(falconmq_\w+)` \| (\w+) \|", page, re.MULTILINE))

    async def main() -> None:
        async with observed(tmp_path) as (_, http):
            text = (await http.get("http://service/metrics")).text
            shown = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
            assert shown == documented

    run(main())


def test_the_lag_of_the_loop_is_measured(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (_, http):
            name = "falconmq_event_loop_lag_seconds_count"
            while not value(await scrape(http), name):
                pass

    run(main())


async def _create_many(service: Service, count: int) -> None:
    for number in range(count):
        queue = await service.manager.create_queue(rf".\private$\orders{number:05}")
        await queue.send(Message("x", recoverable=number % 2 == 0))


@pytest.mark.slow
def test_thousands_of_queues_are_scraped(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await _create_many(service, 2_000)
            text = (await http.get("http://service/metrics")).text
            assert text.count("falconmq_queue_messages{") >= 2_000

    asyncio.run(asyncio.wait_for(main(), 250))


def test_every_route_of_the_api_has_a_word_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (_, http):
            paths = (await http.get("/openapi.json")).json()["paths"]
            assert len(paths) > 20
            assert [path for path in paths if route_of(path) == "other"] == []

    run(main())
