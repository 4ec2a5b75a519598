"""Watching a service: live events, the samples of the last hour, requests and how late timers are.

`Control.watch` is always there; what has to run by itself is started by the service alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.service.observation.http_meter import HttpMeter
from falconmq.service.observation.live import LiveEvents
from falconmq.service.observation.metrics import Metrics
from falconmq.service.observation.sampling import INTERVAL_SECONDS, Sampler
from falconmq.store.measuring import Histogram

if TYPE_CHECKING:
    from falconmq.service.api.context import Control
    from falconmq.service.observation.spans import Spans

_TICK_SECONDS: Final = 0.25
_LAGS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Watch:
    """What is seen of one service."""

    def __init__(self, control: Control) -> None:
        self._control = control
        engine, transport = control.engine, control.transport
        self.started_at = engine.core.clock.time()
        self.meter = HttpMeter()
        self.lag = Histogram(_LAGS)
        self.sampler = Sampler(engine, transport)
        self.live = LiveEvents(
            engine, lambda: control.events, self.sampler.latest, control.stopping
        )
        self.metrics = Metrics(control)
        self._task: asyncio.Task[None] | None = None
        self._spans: Spans | None = None

    def start(self) -> None:
        """Take samples and measure delays until `stop`; make spans, if they are wanted."""
        self._spans = _spans(self._control)
        if self._spans is not None:
            self._spans.start()
        self.sampler.take()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self.live.close_all()
        if self._spans is not None:
            await self._spans.stop()
            self._spans = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_sample = loop.time() + INTERVAL_SECONDS
        while True:
            due = loop.time() + _TICK_SECONDS
            await asyncio.sleep(_TICK_SECONDS)
            now = loop.time()
            self.lag.add(max(0.0, now - due))
            if now >= next_sample:
                next_sample = max(next_sample + INTERVAL_SECONDS, now)
                with contextlib.suppress(FalconMQError):  # it is closing, or the disk is full
                    self.sampler.take()


def _spans(control: Control) -> Spans | None:
    """What makes spans of messages, if the configuration wants it and the packages are there."""
    configuration = control.configuration
    if configuration is None or not configuration.telemetry.enabled:
        return None
    try:
        from falconmq.service.observation.spans import Spans, otlp_processor  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise FalconMQError(
            f"telemetry.enabled is true, but {error.name} is not installed",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="pip install 'falconmq[telemetry]', or set telemetry.enabled = false",
        ) from error
    core = control.engine.core
    return Spans(
        control.events,
        core.settings.computer_name,
        core.identifier.bytes_le,
        otlp_processor(configuration.telemetry.endpoint),
    )
