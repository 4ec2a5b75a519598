"""Where a service of this computer is to be found: its data directory and the socket in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from falconmq.errors import FalconMQError, MqStatus

CONTROL_SOCKET: Final = "control.sock"
_NAME_MAX: Final = 100  # bytes; the name of a socket has 108 in Linux, in all


def default_data_directory() -> Path:
    """Where `falconmq serve` keeps its data when nobody says."""
    if os.geteuid() == 0:
        return Path("/var/lib/falconmq")
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "falconmq"


def data_directory(config: Path | None = None) -> Path:
    """The data directory that a configuration file names, or the default one.

    Only this one key is read: whoever sends a message need not know what the service knows. The
    variable that sets the key for the service counts here as it counts there.
    """
    if given := os.environ.get("FALCONMQ_MANAGER_DATA"):
        return Path(given).expanduser().absolute()
    if config is None:
        return default_data_directory()
    data = _manager_section(config).get("data")
    if data is None:
        return default_data_directory()
    if not isinstance(data, str):
        raise _refuse(f"{config}: manager.data is no text", 'write data = "/var/lib/falconmq"')
    return config.absolute().parent / Path(data).expanduser()


def _manager_section(config: Path) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 - most commands need none

    try:
        with config.open("rb") as file:
            section = tomllib.load(file).get("manager", {})
    except OSError as error:
        hint = "check the path, or name the data directory: --data DIR"
        raise _refuse(f"cannot read {config}: {error.strerror}", hint) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refuse(f"{config}: {error}", "name the data directory: --data DIR") from error
    if not isinstance(section, dict):
        raise _refuse(f"{config}: manager is no section", "write [manager]")
    return section


@contextlib.contextmanager
def socket_name(path: Path) -> Iterator[str]:
    """A name for a socket that fits, however long the path is: by way of its open directory."""
    if len(os.fsencode(path)) <= _NAME_MAX:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def _refuse(message: str, hint: str) -> FalconMQError:
    return FalconMQError(message, status=MqStatus.INVALID_PARAMETER, hint=hint)
