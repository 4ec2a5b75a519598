"""The page: facts in, one HTML file out. Everything that came from outside is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from falconmq.spark.report import charts, words
from falconmq.spark.report.facts import (
    Coverage,
    Finding,
    Headline,
    KindCount,
    Rejects,
    Report,
    Timeline,
)

_STYLE: Final = Path(__file__).with_name("style.css")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_TIME: Final = re.compile(r"[\d: -]+|\d+ \w{3}( \d\d:\d\d(:\d\d)?)?")
_SHOWN: Final = 20  # findings of a kind that are listed; the table has all of them
_SHOWN_OF_INFO: Final = 3  # of those that nobody need worry about
_TONES: Final = {"error": words.BAD, "warning": words.WARN}


def render(report: Report) -> str:
    """The whole file."""
    title = f"FalconMQ report, {words.period_text(report.period)}"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE.read_text('utf-8')}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{escape(title)} <span class='muted'>(UTC)</span></h1>",
            _verdict(report),
            _figures(report),
            _plots(report),
            _findings(report),
            _completeness(report),
            _footer(report),
            "</main>",
            "</body>",
            "</html>",
            "",
        )
    )


def _footer(report: Report) -> str:
    made = escape(words.moment(report.made_at))
    return f"<footer>Made by <code>falconmq pipeline report</code> at {made} UTC.</footer>"


def _verdict(report: Report) -> str:
    tone, text, more = words.verdict(report)
    second = f"<p>{escape(more.strip())}</p>" if more else ""
    return f'<div class="verdict {tone}" role="status"><p>{escape(text)}</p>{second}</div>'


def _figures(report: Report) -> str:
    now, before = report.now, report.earlier
    entries = (
        (
            "Messages",
            f"{now.messages:,}",
            words.change(now.messages, _value(before, "messages"), less_is_better=None),
        ),
        (
            "Delivered",
            words.delivered_share(now),
            words.delivered_change(now, before),
        ),
        (
            "p95 latency",
            "unknown" if now.p95_seconds is None else words.duration(now.p95_seconds),
            words.change(now.p95_seconds, _value(before, "p95_seconds"), less_is_better=True),
        ),
        (
            "Dead letters",
            f"{now.dead_letters:,}",
            words.change(now.dead_letters, _value(before, "dead_letters"), less_is_better=True),
        ),
    )
    boxes = "".join(
        f'<div><dt>{name}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="change {change.tone}">{escape(change.text)}</dd></div>'
        for name, value, change in entries
    )
    length = words.duration(report.period.length.total_seconds())
    compared = f"Changes are against the {length} before."
    if before is None:
        compared = "The lake does not reach back far enough to compare with the time before."
    return (
        f'<dl class="figures">{boxes}</dl><p class="muted note">{compared} p95: 95 of 100 messages '
        "were quicker, from sending until they were in their queue.</p>"
    )


def _value(headline: Headline | None, name: str) -> float | None:
    value: float | None = None if headline is None else getattr(headline, name)
    return value


def _plots(report: Report) -> str:
    unit = f"Messages a {'second' if report.is_close else 'minute'}"
    parts = [
        _card(
            "Throughput",
            f"{unit}, all queues together.",
            report.throughput,
            charts.lines("throughput", unit, report.throughput),
            wide=True,
        ),
        _card(
            "Latency",
            "From sending until the message was in its queue.",
            report.latency,
            charts.lines("latency", "Latency", report.latency, words.duration),
            text=words.duration,
        ),
        _card(
            "Dead letters by cause",
            "Messages that could not be delivered.",
            report.dead_letters,
            charts.stacked_bars("dead", "Dead letters by cause", report.dead_letters),
        ),
        _card(
            "How long the oldest message waited",
            "The queues with the longest waits.",
            report.backlog,
            charts.heat_strips("backlog", "Age of the oldest message by queue", report.backlog),
            wide=True,
            text=words.duration,
        ),
        _routes(report),
    ]
    return f'<h2>What happened</h2><div class="cards">{"".join(parts)}</div>'


def _card(
    title: str,
    explained: str,
    timeline: Timeline,
    chart: str,
    *,
    wide: bool = False,
    text: charts.Text = words.number,
) -> str:
    kind = "card wide" if wide else "card"
    head = f"<h3>{escape(title)}</h3>"
    if not timeline.series:
        return f'<section class="{kind}">{head}<p class="muted">None in this time.</p></section>'
    return (
        f'<section class="{kind}">{head}<p class="muted">{escape(explained)}</p>{chart}'
        f"{_numbers(timeline, text)}</section>"
    )


def _numbers(timeline: Timeline, text: charts.Text) -> str:
    """The table behind a plot."""
    rows = [
        [
            charts.step_text(moment, timeline.step),
            *(_cell(series.values[place], text) for series in timeline.series),
        ]
        for place, moment in enumerate(timeline.moments)
        if any(series.values[place] is not None for series in timeline.series)
    ]
    table = _table(["Time", *(series.label for series in timeline.series)], rows, numbers_from=1)
    return f"<details><summary>Numbers</summary>{table}</details>"


def _routes(report: Report) -> str:
    if not report.routes:
        return ""
    rows = [
        [route.name, f"{route.messages:,}", words.duration(route.p95_seconds)]
        for route in report.routes
    ]
    table = _table(["Route", "Messages", "p95, worst hour"], rows, numbers_from=1)
    return (
        f'<section class="card wide"><h3>Routes</h3><p class="muted">From which computer to which.'
        f"</p>{charts.bars(report.routes)}<details><summary>Numbers</summary>{table}</details>"
        "</section>"
    )


def _findings(report: Report) -> str:
    if not report.kinds:
        return "<h2>Findings</h2><p>Nothing was found that needs attention.</p>"
    parts = [_kind(report, kind) for kind in report.kinds]
    return f"<h2>Findings</h2>{''.join(parts)}"


def _kind(report: Report, kind: KindCount) -> str:
    found = [finding for finding in report.findings if finding.kind == kind.kind]
    is_info = all(finding.severity == "info" for finding in found)
    shown = found[: _SHOWN_OF_INFO if is_info else _SHOWN]
    rest = kind.findings - len(shown)
    tone = max((_TONES.get(one.severity, words.WARN) for one in found), default=words.WARN)
    tone = words.BAD if any(_TONES.get(one.severity) == words.BAD for one in found) else tone
    tone = words.GOOD if is_info else tone
    more = f'<p class="muted">{rest:,} more: see the table silver/findings.</p>' if rest > 0 else ""
    step = words.next_step(kind.kind)
    return (
        f'<section class="card"><h3>{escape(words.heading(kind.kind))} '
        f'<span class="tag {tone}">{kind.messages:,}</span></h3>'
        f"{f'<p class=muted>{escape(step)}</p>' if step else ''}"
        f"{''.join(map(_finding, shown))}{more}</section>"
    )


def _finding(finding: Finding) -> str:
    facts = [words.span(finding.first_at, finding.last_at), finding.route or finding.queue or ""]
    if finding.route and finding.queue:
        facts.append(finding.queue)
    said = ", ".join(fact for fact in facts if fact)
    subject = finding.message_id or finding.queue
    command = f"<pre>falconmq why {escape(_shell(subject))}</pre>" if subject else ""
    return (
        f'<div class="finding"><p>{escape(finding.explanation)}</p>'
        f'<p class="muted">{escape(said)}</p>{command}</div>'
    )


def _completeness(report: Report) -> str:
    parts = [
        "<h2>How complete the data are</h2>",
        f'<section class="card">{_coverage(report.coverage)}</section>',
    ]
    if report.rejects:
        parts.append(f'<section class="card">{_rejects(report.rejects)}</section>')
    return "".join(parts)


def _coverage(coverage: Sequence[Coverage]) -> str:
    if not coverage:
        return "<h3>Queue managers</h3><p>No queue manager has been archived.</p>"
    rows = [
        [
            one.computer,
            words.moment(one.first_at),
            words.moment(one.last_at),
            f"{one.events:,}",
            "unknown" if one.behind is None else f"{one.behind:,}",
        ]
        for one in coverage
    ]
    names = ["Queue manager", "From", "To", "Events", "Not read yet"]
    return f"<h3>Queue managers</h3>{_table(names, rows, numbers_from=3)}"


def _rejects(rejects: Sequence[Rejects]) -> str:
    rows = [
        [one.job, f"{one.rows:,}", "; ".join(f"{reason} ({n:,})" for reason, n in one.reasons)]
        for one in rejects
    ]
    return f"<h3>Rows that could not be used</h3>{_table(['Job', 'Rows', 'Reasons'], rows)}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 99) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{_class(text, is_number=place >= numbers_from)}>{escape(text)}</{tag}>"
            for place, text in enumerate(texts)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = cells("th", names)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="table"><table><thead><tr>{head}'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _class(text: str, *, is_number: bool) -> str:
    if is_number:
        return " class=number"
    return " class=time" if _TIME.fullmatch(text) else ""


def _cell(value: float | None, text: charts.Text) -> str:
    return "" if value is None else text(value)


def _shell(text: str) -> str:
    """As a shell takes it, in single quotes; line breaks cannot leave the line."""
    flat = "".join(c if c.isprintable() else "?" for c in text)
    return "'" + flat.replace("'", "'\\''") + "'"
