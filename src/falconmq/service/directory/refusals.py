"""Why a queue manager does not join a directory, or does not leave it."""

from __future__ import annotations

from falconmq.errors import DirectoryError, MqStatus
from falconmq.service.configuration import Configuration, Source


def check_not_configured(configuration: Configuration) -> None:
    """What the configuration decides is not decided by a command."""
    source = configuration.sources.get("directory.kind", Source.DEFAULT)
    if source not in (Source.DEFAULT, Source.MEMBERSHIP):
        raise _refused(
            f"the configuration ({source.value}) says which directory this queue manager is in",
            "change directory.kind there, and start the service anew",
        )


def already_joined(kind: str) -> DirectoryError:
    return _refused(
        f"this queue manager is in a directory already ({kind})",
        "leave it first: falconmq directory leave",
    )


def not_joined() -> DirectoryError:
    return _refused("this queue manager is in no directory", "falconmq directory join")


def has_public_queues(count: int) -> DirectoryError:
    queues = "1 public queue" if count == 1 else f"{count} public queues"
    return _refused(
        f"{queues} would leave the directory",
        "delete them first, or leave with --force: they stay here with their messages, and others "
        "reach them by direct names only",
    )


def _refused(problem: str, hint: str) -> DirectoryError:
    return DirectoryError(problem, status=MqStatus.INVALID_PARAMETER, hint=hint)
