"""Dashboard and alerts speak of metrics that exist, with the labels that they have."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from falconmq.manager.events import EventKind
from falconmq.service.observation.metric_names import METRICS
from tools import dashboard

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_BY_NAME = {metric.name: metric for metric in METRICS}
_ADDED = {"instance", "job", "le"}  # by Prometheus, and by histograms
_NAME = re.compile(r"\bfalconmq_\w+")
_MATCHERS = re.compile(r"(falconmq_\w+|\bup)\{([^}]*)\}")
_GROUPS = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def load_yaml(name: str) -> Any:
    return import_module("yaml").safe_load((DEPLOY / "prometheus" / name).read_text("utf-8"))


def rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load_yaml("alerts.yml")["groups"][0]["rules"]
    return found


def expressions() -> list[tuple[str, str]]:
    shown = json.loads((DEPLOY / "grafana" / "falconmq.json").read_text("utf-8"))
    found = [
        (panel["title"], target["expr"])
        for panel in shown["panels"]
        for target in panel.get("targets", ())
    ]
    return [*found, *((rule["alert"], rule["expr"]) for rule in rules())]


def metric_of(name: str) -> str:
    """The family of a series; a histogram has three kinds of them."""
    family = re.sub(r"_(bucket|sum|count)$", "", name)
    return family if family in _BY_NAME and _BY_NAME[family].type == "histogram" else name


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_an_expression_uses_what_exists(title: str, expression: str) -> None:
    names = [metric_of(name) for name in _NAME.findall(expression)]
    assert set(names) <= _BY_NAME.keys(), title
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")
    labels = {label for name in names for label in _BY_NAME[name].labels} | _ADDED
    for name, matchers in _MATCHERS.findall(expression):
        known = _ADDED if name == "up" else {*_BY_NAME[metric_of(name)].labels, *_ADDED}
        assert {m.partition("=")[0].strip("~! ") for m in matchers.split(",")} <= known, title
    for group in _GROUPS.findall(expression):
        assert {label.strip() for label in group.split(",")} <= labels, title


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_counters_are_looked_at_as_rates(title: str, expression: str) -> None:
    """The value of a counter says nothing by itself: it begins at 0 with every start."""
    for name in _NAME.findall(expression):
        if name.endswith(("_total", "_bucket", "_count", "_sum")):
            assert re.search(rf"(rate|increase)\({name}[^\])]*\[", expression), title


def test_the_kinds_of_events_exist() -> None:
    kinds = {kind.name.lower() for kind in EventKind}
    for title, expression in expressions():
        for given in re.findall(r'kind=~"([^"]*)"', expression):
            assert set(given.split("|")) <= kinds, title


def test_every_metric_of_importance_is_on_the_dashboard() -> None:
    text = (DEPLOY / "grafana" / "falconmq.json").read_text("utf-8")
    for metric in METRICS:
        if metric.type == "histogram":
            assert metric.name in text, metric.name


def test_the_dashboard_is_up_to_date() -> None:
    assert dashboard.main(["--check"]) == 0


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    shown = dashboard.dashboard()["panels"]
    assert len({panel["id"] for panel in shown}) == len(shown)
    for panel in shown:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) >= 10
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith((".", "'", "list"))
        for label in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
            used = {metric_of(name) for name in _NAME.findall(rule["expr"])}
            known = {each for name in used for each in _BY_NAME[name].labels} | _ADDED
            assert label in known, rule["alert"]


def test_the_scrape_finds_the_alerts_and_the_tokens() -> None:
    scrape = load_yaml("prometheus.yml")
    assert scrape["rule_files"] == ["alerts.yml"]
    down = next(rule for rule in rules() if rule["alert"] == "FalconMQDown")
    [name] = re.findall(r'job=~"([^"]*)"', down["expr"])
    jobs = scrape["scrape_configs"]
    for job in jobs:
        assert re.fullmatch(name, job["job_name"])
        assert job["metrics_path"] == "/metrics"
        assert job["authorization"]["type"] == "Bearer"
    files = [job["authorization"]["credentials_file"] for job in jobs]
    assert len(set(files)) == len(jobs)  # a token is one queue manager's


def test_the_scrape_has_the_managers_of_the_compose_file() -> None:
    compose = import_module("yaml").safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    managers = {name for name in compose["services"] if name != "prometheus"}
    jobs = load_yaml("prometheus.yml")["scrape_configs"]
    targets = {
        target for job in jobs for each in job["static_configs"] for target in each["targets"]
    }
    assert targets == {f"{name}:8018" for name in managers}
