"""Requirement markers: checked against the catalogue, and their outcome recorded for the report."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from conformance.catalogue import load_catalogue

# The same examples every time, so that `make test` tells the code's state and not the day's luck;
# HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("falconmq", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "falconmq"))


# Whoever starts the tests in the background lets them ignore Ctrl-C; commands under test must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Streams and jobs of a few rows: Java should not spend its time on compiling well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A run in the background of a shell (`make test &`) ignores Ctrl-C, and so would all it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Real processes, browsers and time-outs: whole folders and modules that `make check` leaves out.
SLOW = (
    "cli/test_asking.py",
    "cli/test_backup.py",
    "cli/test_completion.py",
    "cli/test_config.py",
    "cli/test_dead_letter.py",
    "cli/test_decode.py",
    "cli/test_demo_orders.py",
    "cli/test_directory.py",
    "cli/test_events.py",
    "cli/test_key.py",
    "cli/test_ping.py",
    "cli/test_places.py",
    "cli/test_queue.py",
    "cli/test_receive.py",
    "cli/test_send.py",
    "cli/test_serve.py",
    "cli/test_signing.py",
    "cli/test_tail.py",
    "cli/test_transfer.py",
    "client/test_connect.py",
    "client/test_faults.py",
    "client/test_ingests.py",
    "client/test_interrupts.py",
    "client/test_restarts.py",
    "conformance_wire/",
    "console/",
    "e2e/",
    "embedded/test_crash.py",
    "embedded/test_startup.py",
    "hostile/",
    "service/test_access_door.py",
    "service/test_api.py",
    "service/test_api_arrivals.py",
    "service/test_api_arrow.py",
    "service/test_api_browse.py",
    "service/test_api_bulk.py",
    "service/test_api_events.py",
    "service/test_api_fuzz.py",
    "service/test_api_handles.py",
    "service/test_api_leases.py",
    "service/test_api_roles.py",
    "service/test_api_transactions.py",
    "service/test_backup.py",
    "service/test_consumers.py",
    "service/test_daemon.py",
    "service/test_dead_letters.py",
    "service/test_event_log.py",
    "service/test_http.py",
    "service/test_http_limits.py",
    "service/test_ingests.py",
    "service/test_keys.py",
    "service/test_live.py",
    "service/test_metrics.py",
    "service/test_permissions.py",
    "service/test_reload.py",
    "service/test_restore.py",
    "service/test_spans.py",
    "simulation/test_seeds.py",
    "spark/test_connect.py",
    "spark/test_exactly_once.py",
    "spark/test_shipping.py",
    "store/test_data_directory.py",
    "test_processes.py",
    "transport/test_hostile_peers_fuzz.py",
)
SLOW_FIXTURES = {"spark", "estate"}  # a Java, daemons


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements-json",
        type=Path,
        metavar="PATH",
        help="write which requirement rows the passing and the failing tests name",
    )


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--requirements-json")
    if path is not None and not hasattr(config, "workerinput"):  # with xdist: the controller only
        config.pluginmanager.register(RequirementRecorder(path))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    catalogue = load_catalogue()
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if _file_of(item).startswith(SLOW) or SLOW_FIXTURES & fixtures:
            item.add_marker("slow")
        ids = sorted({id for mark in item.iter_markers("requirement") for id in mark.args})
        if unknown := [id for id in ids if id not in catalogue]:
            raise pytest.UsageError(f"{item.nodeid} names {unknown}, not in conformance/*.tsv")
        item.user_properties.append(("requirements", ids))


def _file_of(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).as_posix()


class RequirementRecorder:
    """Collects, per requirement id, the tests that passed and those that did not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, dict[str, list[str]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call":
            return
        for name, ids in report.user_properties:
            if name == "requirements" and isinstance(ids, list):
                for id in ids:
                    tests = self.outcomes.setdefault(id, {"passed": [], "failed": []})
                    tests["passed" if report.passed else "failed"].append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.outcomes, sort_keys=True), encoding="utf-8")
