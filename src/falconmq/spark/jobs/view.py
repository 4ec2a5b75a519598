"""What the ledger knows beside the facts of a message: limits, coverage, addresses, clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from falconmq.spark.jobs.coverage import Cover


@dataclass(frozen=True)
class Limits:
    """What counts as wrong, in seconds."""

    late: float = 60.0
    stuck: float = 3600.0
    grace: float = 300.0  # a message that was handed over must be seen within it
    tolerance: float = 2.0  # clocks may differ by so much without a word
    settle: float = 3600.0  # rows of messages that ended stay open for so long
    forget: float = 7 * 24 * 3600.0  # and those of lost ones


@dataclass(frozen=True)
class View:
    """What is known beside the facts of a message."""

    covers: Mapping[str, Cover]
    addresses: Mapping[str, str] = field(default_factory=dict)  # to the manager there
    clocks: Mapping[str, float] = field(default_factory=dict)  # seconds ahead, by manager
    limits: Limits = Limits()

    @property
    def watermark(self) -> datetime | None:
        """Everything up to here is known, of all managers."""
        return min((cover.through for cover in self.covers.values()), default=None)
