"""A real Chromium for tests and screenshots, which talks to nobody but the service."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
)


def chromium() -> str | None:
    """Where it is, if it is there."""
    return shutil.which("chromium")


def driver_runs() -> bool:
    """Whether the program that Playwright brings finds its libraries here."""
    command = [sys.executable, "-m", "playwright", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Watch:
    """What a browser complained about, and whom it asked."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.expected: list[str] = []  # parts of complaints that a test provokes

    def expects(self, text: str) -> bool:
        return any(part in text for part in self.expected)

    def follow(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")


@contextmanager
def browsing(profile: Path, **options: Any) -> Iterator[BrowserContext]:
    """A browser with an empty profile; Playwright has no browser of its own here."""
    executable = chromium()
    assert executable is not None
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=executable,
            args=list(FLAGS),
            **{"viewport": {"width": 1280, "height": 800}, "headless": True, **options},
        )
        try:
            yield context
        finally:
            context.close()
