"""Finds TCP ports to listen on."""

from __future__ import annotations

import socket

_TRIES = 50


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def next_free(host: str, first: int) -> int:
    """The first free port from `first` on. Raises `OSError` if there is none near."""
    for port in range(first, min(first + _TRIES, 65536)):
        if is_free(host, port):
            return port
    raise OSError(f"no free port on {host} from {first} to {first + _TRIES - 1}")
