"""Ctrl-C between two steps of a long work, never in the middle of one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupt:
    """Whether somebody pressed Ctrl-C; the step that runs may end first."""

    def __init__(self) -> None:
        self._pressed = threading.Event()

    @property
    def is_pressed(self) -> bool:
        return self._pressed.is_set()

    def press(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal; whoever presses again does not want to wait."""
        if self._pressed.is_set():
            signal.default_int_handler(number, frame)
        self._pressed.set()

    def sleep(self, seconds: float) -> None:
        """Wait, but not longer than until Ctrl-C."""
        self._pressed.wait(max(0.0, seconds))


@contextlib.contextmanager
def interrupt_between_steps() -> Iterator[Interrupt]:
    """Ctrl-C only sets `is_pressed` in this block; KeyboardInterrupt comes at its end."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread hears of signals
        return
    before = signal.signal(signal.SIGINT, interrupt.press)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupt.is_pressed:
        raise KeyboardInterrupt
