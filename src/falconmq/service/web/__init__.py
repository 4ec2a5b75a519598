"""Sockets and HTTP: the control socket, the port, its limits, errors as answers."""
