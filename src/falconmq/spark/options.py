"""The options of the source as values: what `option_table` lists, read and checked together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from falconmq.client.doors import from_anywhere
from falconmq.client.ranges import PATIENCE
from falconmq.spark.option_table import (
    BROWSE,
    CONSUME,
    DEADLETTER,
    DEFAULT_URL,
    EARLIEST,
    EVENTS,
    LATEST,
    MESSAGES,
    OPTIONS,
    check_names,
    refuse,
    split_list,
)

_BY_NAME: Final = {name.lower(): option for option in OPTIONS for name in option.names}


@dataclass(frozen=True)
class Place:
    """Where a queue manager is, and who asks."""

    url: str
    token: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True)
class SourceOptions:
    """The options as values. They hold no connection: they are sent to the executors."""

    places: tuple[Place, ...]
    queues: tuple[str, ...] = ()
    pattern: str = ""
    source: str = MESSAGES
    mode: str = BROWSE
    consumer: str = ""
    starting: str | dict[str, Any] = EARLIEST
    ending: str | dict[str, Any] = LATEST
    starting_time: datetime | None = None
    ending_time: datetime | None = None
    messages_per_trigger: int | None = None
    bytes_per_trigger: int | None = None
    min_partitions: int = 1
    messages_per_partition: int = 100_000
    fail_on_data_loss: bool = False
    columns: tuple[str, ...] | None = None
    include_body: bool = True
    body_format: str = "binary"
    poll_seconds: float = 0.5
    acknowledge_lag: int = 0
    lease_seconds: int = 60
    timeout: float = PATIENCE
    packets: bool = False

    @property
    def is_consuming(self) -> bool:
        return self.mode == CONSUME

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        """Make values of what Spark hands over; FalconMQError names the option that is wrong."""
        check_names(given, (name for option in OPTIONS for name in option.names))
        values = _values(given)
        source, mode = values.get("source", MESSAGES), values.get("mode", BROWSE)
        is_browsing = source == MESSAGES and mode == BROWSE
        defaults = cls(places=())

        def value(name: str, default: Any) -> Any:
            return values.get(name, default)

        options = cls(
            places=_places(values),
            queues=value("queue", ()),
            pattern=value("queuePattern", ""),
            source=source,
            mode=mode,
            consumer=value("consumer", ""),
            starting=value("startingOffsets", EARLIEST),
            ending=value("endingOffsets", LATEST),
            starting_time=value("startingTimestamp", None),
            ending_time=value("endingTimestamp", None),
            messages_per_trigger=value("maxMessagesPerTrigger", None),
            bytes_per_trigger=value("maxBytesPerTrigger", None),
            min_partitions=value("minPartitions", defaults.min_partitions),
            messages_per_partition=value(
                "maxMessagesPerPartition", defaults.messages_per_partition
            ),
            fail_on_data_loss=value("failOnDataLoss", not is_browsing),
            columns=value("columns", None),
            include_body=value("includeBody", True),
            body_format=value("bodyFormat", defaults.body_format),
            poll_seconds=value("pollTimeoutMs", 500) / 1000,
            acknowledge_lag=value("acknowledgeLag", defaults.acknowledge_lag),
            lease_seconds=value("leaseSeconds", defaults.lease_seconds),
            timeout=float(value("timeout", PATIENCE)),
            packets=value("packets", False),
        )
        _check(options, values)
        return options


def _values(given: Mapping[str, str]) -> dict[str, Any]:
    """By the first name of each option."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        option = _BY_NAME[name.lower()]
        if option.name in values:
            raise refuse(f"{' and '.join(option.names)} are one option", "give one of them")
        try:
            values[option.name] = option.read(text)
        except ValueError as error:
            shown = "" if option.name == "token" else f" {text!r}"
            raise refuse(f"option {option.name}{shown}: {error}") from error
    return values


def _places(values: Mapping[str, Any]) -> tuple[Place, ...]:
    urls = values.get("url") or split_list(os.environ.get("FALCONMQ_URL", ""))
    if not urls:
        data = os.environ.get("FALCONMQ_DATA")
        urls = (f"unix:{data}",) if data else (DEFAULT_URL,)
    tokens = values.get("token") or split_list(os.environ.get("FALCONMQ_TOKEN", "")) or (None,)
    if len(tokens) not in (1, len(urls)):
        raise refuse(f"there are {len(urls)} urls and {len(tokens)} tokens", "give one for each")
    if len(tokens) < len(urls):
        tokens = tokens * len(urls)
    ca_file = values.get("caFile")
    return tuple(
        Place(from_anywhere(url), token, ca_file) for url, token in zip(urls, tokens, strict=True)
    )


def _check(options: SourceOptions, values: Mapping[str, Any]) -> None:
    """What does not go together."""
    has_queues = bool(options.queues or options.pattern)
    if options.queues and options.pattern:
        raise refuse("queue and queuePattern are both given", "give one of them")
    if options.source == MESSAGES and not has_queues:
        raise refuse("no queue is named", r"give the option queue, '.\private$\orders' for one")
    if options.source in (DEADLETTER, EVENTS) and has_queues:
        raise refuse(
            f"source {options.source} is one of the whole queue manager", "leave the queue out"
        )
    if options.is_consuming and options.source == EVENTS:
        raise refuse("the event log cannot be consumed", "leave mode out")
    if options.is_consuming and not options.consumer:
        raise refuse("mode consume needs a name", "give the option consumer, one for each query")
    if options.is_consuming and (options.starting != EARLIEST or options.starting_time):
        raise refuse(
            "a query that consumes begins with the oldest message: those before would be removed "
            "unread",
            "leave startingOffsets and startingTimestamp out, or purge the queue",
        )
    if options.consumer and not options.is_consuming:
        raise refuse("consumer is given, but mode is browse", "set mode to consume")
    for one, other in (
        ("startingOffsets", "startingTimestamp"),
        ("endingOffsets", "endingTimestamp"),
    ):
        if one in values and other in values:
            raise refuse(f"{one} and {other} are both given", "give one of them")
    if options.packets and options.source != EVENTS:
        raise refuse("packets belongs to source events", "leave it out: body has the content")
