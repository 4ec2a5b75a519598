"""How values look."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from falconmq.service.console import charts
from falconmq.service.console.drawing import (
    age_of,
    count,
    queue_link,
    size,
    span,
    time_of,
    with_query,
)
from falconmq.service.console.routes import host_of, picture
from falconmq.service.console.view import local_path

_NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.25, "1.2 s"),
        (45, "45 s"),
        (200, "3 min 20 s"),
        (7200, "2 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_numbers_and_sizes_are_grouped() -> None:
    assert (count(1234567), count(None), size(512), size(1536)) == (
        "1,234,567",
        "–",
        "512 B",
        "1.5 KB",
    )


def test_a_time_is_utc_in_the_page_and_says_so() -> None:
    assert 'datetime="2026-05-01T12:00:00.000Z"' in time_of("2026-05-01T14:00:00+02:00")
    assert "2026-05-01 12:00:00 UTC" in time_of(_NOON.timestamp())


def test_ages_look_back_and_ahead() -> None:
    assert ">1 h ago<" in age_of("2026-05-01T11:00:00+00:00", _NOON)
    assert ">in 1 min<" in age_of("2026-05-01T12:01:00+00:00", _NOON)


def test_a_name_is_one_segment_of_a_path_whatever_is_in_it() -> None:
    assert queue_link(r".\private$\a/b?c#d%e", "purge") == (
        "/queues/.%5Cprivate%24%5Ca%2Fb%3Fc%23d%25e/purge"
    )
    assert with_query("/queues", contains="a&b", page=None) == "/queues?contains=a%26b"


@pytest.mark.parametrize(
    "text",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "evil",
        "",
        "/a\nb",
        "javascript:x",
    ],
)
def test_after_a_log_in_nobody_is_sent_to_another_site(text: str) -> None:
    assert local_path(text) == "/"


def test_after_a_log_in_people_get_the_page_they_wanted() -> None:
    assert local_path("/queues?sort=-size") == "/queues?sort=-size"


def test_a_chart_keeps_the_peak_and_says_in_words_what_it_shows() -> None:
    times = [float(n) for n in range(1000)]
    values = [0.0] * 1000
    values[500] = 77.0
    drawn = charts.chart("Messages", times, [("in", values)], "/s")
    assert drawn.summary == "Messages: in 0/s now, 77/s at most"
    assert drawn.top == "100"
    assert " 27.6L" in drawn.curves[0].line  # 120 - 77% of 120: the peak was not thinned out


def test_a_chart_without_samples_is_empty() -> None:
    drawn = charts.chart("Messages", [], [("in", [])])
    assert (drawn.summary, drawn.curves[0].line) == ("Messages: no samples yet", "")


def test_a_route_has_a_stop_for_each_queue_manager_and_times_between_them() -> None:
    # given two events at one queue manager and one at the next
    here = {"manager": "a", "name": "SALES01", "queue": "", "time": "", "source": "here"}
    there = {**here, "manager": "b", "name": "", "source": "report"}
    stops = [
        {**here, "kind": "queued", "text": "put into an outgoing queue"},
        {**here, "kind": "delivered", "text": "handed over"},
        {**there, "kind": "expired", "text": "expired"},
    ]
    # when the route is drawn
    drawn = picture(stops, [{"start": 1, "end": 2, "seconds": 0.25}])
    # then there are two stops, and the time is written on the way between them
    assert [(stop.name, stop.text, stop.look) for stop in drawn.stops] == [
        ("SALES01", "handed over", ""),
        ("b", "expired", "bad"),
    ]
    (edge,) = drawn.edges
    assert (edge.start, edge.end) == (drawn.stops[0].x, drawn.stops[1].x)
    assert edge.text == "250 ms"
    assert drawn.summary == "SALES01 (handed over), then b (expired)"


def test_a_route_goes_on_to_the_queue_manager_that_has_the_message() -> None:
    sent = {"manager": "a", "name": "SALES01", "source": "here"}
    queue = r"DIRECT=TCP:10.0.0.8\private$\orders"
    stops = [
        {
            **sent,
            "kind": "queued",
            "text": "queued",
            "queue": queue,
            "time": "2026-05-01T12:00:00Z",
        },
        {
            **sent,
            "kind": "delivered",
            "text": "left",
            "queue": queue,
            "time": "2026-05-01T12:00:03Z",
        },
    ]
    drawn = picture(stops, [])
    assert [(stop.name, stop.look) for stop in drawn.stops] == [
        ("SALES01", ""),
        ("10.0.0.8", "beyond"),
    ]
    assert drawn.edges[0].text == "3 s"


@pytest.mark.parametrize(
    ("queue", "host"),
    [
        (r"DIRECT=OS:SALES02\private$\orders", "SALES02"),
        ("DIRECT=HTTP://sales.example/msmq/orders", "sales.example"),
        (
            "PUBLIC=6B29FC40-CA47-1067-B31D-00DD010662DA",
            "PUBLIC=6B29FC40-CA47-1067-B31D-00DD010662DA",
        ),
    ],
)
def test_the_computer_of_a_destination_is_found_in_its_name(queue: str, host: str) -> None:
    assert host_of(queue) == host
