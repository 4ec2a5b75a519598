"""The door to the package `cryptography`: asked for late, and missed in plain words."""

from __future__ import annotations

import importlib
from typing import Any

from falconmq.security.problems import CryptographyMissingError


def load(name: str) -> Any:
    """A module of `cryptography` by its name behind the dot: `load("x509")`."""
    try:
        return importlib.import_module(f"cryptography.{name}")
    except ModuleNotFoundError as error:
        raise CryptographyMissingError from error
