"""The falconmq command."""

from falconmq.cli.app import main

__all__ = ["main"]
