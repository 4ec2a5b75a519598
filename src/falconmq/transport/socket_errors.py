"""What the operating system says about sockets, in the words of connection histories and people."""

from __future__ import annotations

import errno
import os
from typing import Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.states import ConnectionStatus

_BIND_PROBLEMS: Final = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES})
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class ListenError(FalconMQError):
    """An address or port that we cannot have."""


def connection_failure(error: OSError) -> tuple[ConnectionStatus, str]:
    """What a connection history says about a failed try, and the same in words."""
    code = error.errno
    if code is None:
        words = "no answer" if isinstance(error, TimeoutError) else str(error)
        return ConnectionStatus.SOCKET_CONNECT_FAILURE, words
    words = os.strerror(code).lower()
    if code == errno.ECONNREFUSED:
        return ConnectionStatus.CONNECTION_REFUSED, words
    if code in _BIND_PROBLEMS:  # of our own end
        return ConnectionStatus.SOCKET_BIND_FAILURE, words
    if code in _SHORTAGES:
        return ConnectionStatus.LOW_RESOURCE, words
    if code == errno.EAFNOSUPPORT:
        return ConnectionStatus.TCP_NOT_ENABLED, words
    return ConnectionStatus.SOCKET_CONNECT_FAILURE, words


def cannot_listen(error: OSError, kind: str, address: str, port: int) -> ListenError:
    """The error for a port that could not be taken; `kind` is TCP or UDP."""
    code = error.errno or 0
    if code == errno.EADDRINUSE:
        family = "u" if kind == "UDP" else "t"
        hint = (
            "another queue manager may run here: stop it, or give this one an address of its own "
            f"with --bind; to see who has the port: ss -l{family}np 'sport = :{port}'"
        )
    elif code == errno.EADDRNOTAVAIL:
        hint = "this computer has no such address; to see those it has: ip address"
    elif code == errno.EACCES:
        hint = "a port below 1024 needs the right CAP_NET_BIND_SERVICE"
    else:
        hint = "check bind and port in the configuration"
    words = os.strerror(code).lower() if code else str(error)
    return ListenError(
        f"cannot listen on {kind} {endpoint(address, port)}: {words}",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint=hint,
    )


def endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
