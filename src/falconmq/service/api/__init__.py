"""The HTTP API: queues and messages as JSON, under /api/v1."""

from falconmq.service.api.app import PREFIX, create_app, end_waits

__all__ = ["PREFIX", "create_app", "end_waits"]
