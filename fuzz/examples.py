"""Examples of the Hypothesis strategies, as bytes to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

_EXAMPLES: Final = 20


def examples(strategy: SearchStrategy[Any], to_bytes: Callable[[Any], bytes]) -> list[bytes]:
    """The same examples of a strategy on every run."""
    found: list[bytes] = []

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(to_bytes(value))

    collect()
    return found


def encoded(value: Any) -> bytes:
    data: bytes = value.encode()
    return data
