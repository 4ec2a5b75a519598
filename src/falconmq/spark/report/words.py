"""Numbers, times and verdicts in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from falconmq.spark.report.facts import Headline, KindCount, Period, Report

GOOD: Final = "good"
WARN: Final = "warn"
BAD: Final = "bad"

KINDS: Final = {
    "lost": "Lost",
    "doubled": "Received twice",
    "out_of_order": "Out of order",
    "dead_letter": "Dead letters",
    "stuck": "Stuck on the way",
    "late": "Late",
    "unknown_fate": "Fate unknown",
    "archive_gap": "Gaps in the archive",
    "repeated": "Sent again, and dropped",
}
"""The kinds of findings as headings, the worst first."""

_NEXT: Final = {
    "lost": "Ask both queue managers: the sender shows whether it still has a copy.",
    "doubled": "Ask the receiver; an application that must not do a thing twice should receive in "
    "a transaction.",
    "out_of_order": "Look at the sequence in the sender's outgoing queue.",
    "dead_letter": "Mend the cause, then send them again: falconmq dead-letter redrive.",
    "stuck": "See why they do not leave.",
    "late": "See whether the receiver is too slow or the connection was down.",
    "unknown_fate": "Archive more often, or keep the event log for longer.",
    "archive_gap": "Archive more often, or keep the event log for longer.",
    "repeated": "Nothing to do: after a cut the sender sends again, and the receiver takes each "
    "message once.",
}
_HARMLESS: Final = ("archive_gap", "repeated")  # the first one is told in words of its own


class Verdict(NamedTuple):
    """The first thing that a reader sees."""

    tone: str  # GOOD, WARN or BAD
    text: str
    more: str  # a second sentence; may be empty


class Change(NamedTuple):
    """Against the period before."""

    text: str
    tone: str


def heading(kind: str) -> str:
    return KINDS.get(kind, kind.replace("_", " ").capitalize())


def next_step(kind: str) -> str:
    return _NEXT.get(kind, "")


def number(value: float) -> str:
    """`14,302`; `3.5`."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.1f}"


def count_of(value: int, noun: str) -> str:
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """`340 ms`, `12 s`, `4 min`, `3.5 h`, `2 days`."""
    if seconds is None:
        return "unknown"
    if not seconds:
        return "0"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    for size, unit, most in ((60, "min", 3600), (3600, "h", 172_800)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def moment(at: datetime | None, *, day: bool = True) -> str:
    """UTC; without the day where the reader knows it."""
    if at is None:
        return "unknown"
    return _utc(at).strftime("%Y-%m-%d %H:%M" if day else "%H:%M")


def period_text(period: Period) -> str:
    """`16 November 2026, 00:00 to 24:00`; both days if it is longer than one."""
    since, until = _utc(period.since), _utc(period.until)
    last = until - timedelta(microseconds=1)
    end = "24:00" if until.time() == datetime.min.time() else until.strftime("%H:%M")
    if since.date() == last.date():
        return f"{_day(since)}, {since:%H:%M} to {end}"
    return f"{_day(since)}, {since:%H:%M} to {_day(last)}, {end}"


def span(first: datetime | None, last: datetime | None) -> str:
    """`between 10:02 and 10:04`; with the day if there are two of them."""
    if first is None:
        return ""
    last = last or first
    is_one_day = _utc(first).date() == _utc(last).date()
    begin, end = moment(first, day=not is_one_day), moment(last, day=not is_one_day)
    return f"at {begin}" if begin == end else f"between {begin} and {end}"


def verdict(report: Report) -> Verdict:
    """The worst that was found, in a sentence; how sure that is, in another."""
    total = report.now.messages
    unsure = _doubt(report)
    if not total and not report.kinds:
        return Verdict(WARN, "No messages were sent in this time.", unsure)
    lost = report.kind("lost")
    if lost.messages:
        return Verdict(BAD, _of(lost, total, "lost"), _also(report, "lost") + unsure)
    doubled = report.kind("doubled")
    if doubled.messages:
        text = _of(doubled, total, "received more than once")
        return Verdict(BAD, text, _also(report, "doubled") + unsure)
    now = report.now
    dead = max(now.undelivered, now.dead_letters, report.kind("dead_letter").messages)
    if dead:
        was = "was" if dead == 1 else "were"
        text = f"Nothing was lost, but {dead:,} of {total:,} messages {was} not delivered."
        return Verdict(WARN, text, _also(report, "dead_letter") + unsure)
    if others := [kind for kind in report.kinds if kind.kind not in _HARMLESS]:
        text = f"All is accounted for: of {count_of(total, 'message')} none was lost, but "
        worst = others[0]
        text += f"{count_of(worst.messages, 'message')} {_trouble(worst)}."
        return Verdict(WARN, text, _also(report, worst.kind) + unsure)
    if unsure:
        return Verdict(WARN, f"Of {count_of(total, 'message')} none is known to be lost.", unsure)
    delivered = now.delivered
    if delivered >= total:
        text = f"All {count_of(total, 'message')} arrived." if total > 1 else "The message arrived."
    else:
        way = total - delivered
        text = f"Nothing was lost: of {total:,} messages {delivered:,} arrived, {way:,} "
        text += "is on its way." if way == 1 else "are on their way."
    return Verdict(GOOD, text, "")


def change(now: float | None, before: float | None, *, less_is_better: bool | None) -> Change:
    """`12 % more`, and whether that is good."""
    if now is None or before is None:
        return Change("", "")
    text = _difference(now, before)
    if not text or less_is_better is None:
        return Change(text or "as before", "")
    return Change(text, BAD if (now > before) is less_is_better else GOOD)


def _difference(now: float, before: float) -> str:
    """Empty if there is none that is worth a word."""
    if not before or not now:
        return "" if now == before else f"{number(before)} before" if before else "none before"
    ratio = now / before
    if ratio >= 3:
        return f"{ratio:.1f} times as much"
    percent = round(abs(ratio - 1) * 100)
    return f"{percent} % {'more' if ratio > 1 else 'less'}" if percent else ""


def delivered_share(headline: Headline) -> str:
    """In percent; 99.99 must not look like all."""
    if not headline.messages:
        return "none"
    share = headline.delivered / headline.messages
    if 0.9995 < share < 1:
        return "< 100 %"
    return f"{share * 100:.1f} %".replace("100.0 %", "100 %")


def delivered_change(now: Headline, before: Headline | None) -> Change:
    if before is None or not now.messages or not before.messages:
        return Change("", "")
    was, is_ = before.delivered / before.messages, now.delivered / now.messages
    if delivered_share(now) == delivered_share(before):
        return Change("as before", "")
    return Change(f"{delivered_share(before)} before", GOOD if is_ > was else BAD)


def _of(kind: KindCount, total: int, done: str) -> str:
    was = "was" if kind.messages == 1 else "were"
    total = max(total, kind.messages)
    where = _way(kind.routes[0], is_all=len(kind.routes) == 1) if kind.routes else ""
    when = span(kind.first_at, kind.last_at)
    tail = " ".join(part for part in (where, when) if part)
    return f"{kind.messages:,} of {total:,} messages {was} {done}{', ' + tail if tail else ''}."


def _way(route: str, *, is_all: bool) -> str:
    most = "" if is_all else "most of them "
    begin, arrow, end = route.partition(" -> ")
    return f"{most}on the way from {begin} to {end}" if arrow else f"{most}at {begin}"


def _also(report: Report, said: str) -> str:
    """What else was found, without the details."""
    rest = [k for k in report.kinds if k.kind not in (said, *_HARMLESS)]
    if not rest:
        return ""
    texts = [f"{k.messages:,} {_trouble(k)}" for k in rest]
    return f"Also: {', '.join(texts)}. "


def _trouble(kind: KindCount) -> str:
    is_one = kind.messages == 1
    return {
        "lost": "was lost" if is_one else "were lost",
        "doubled": "was received twice" if is_one else "were received twice",
        "out_of_order": "came out of order",
        "dead_letter": "became a dead letter" if is_one else "became dead letters",
        "stuck": "is stuck on its way" if is_one else "are stuck on their way",
        "late": "came late",
        "unknown_fate": "has an unknown fate" if is_one else "have an unknown fate",
    }.get(kind.kind, f"({heading(kind.kind).lower()})")


def _doubt(report: Report) -> str:
    gaps = report.kind("archive_gap")
    texts = []
    if gaps.findings:
        texts.append(f"the archive has {count_of(gaps.findings, 'gap')}")
    if rejected := sum(rejects.rows for rejects in report.rejects):
        texts.append(f"{count_of(rejected, 'row')} could not be read")
    if not report.coverage:
        texts.append("it is not known which queue managers were asked")
    return f"The data are not complete: {' and '.join(texts)}." if texts else ""


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
