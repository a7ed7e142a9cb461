"""Requests to strangers' addresses: only to public ones, which are looked up once and kept to."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import httpcore2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]
"""Looks a host up; raises `OSError`."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PORTS = (80, 443)
_FIRST_FREE_PORT = 1024
_LONGEST = 500


class NotPublicError(httpcore2.ConnectError):
    """The host has an address that is not public, or none at all."""


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def is_public(text: str) -> bool:
    """Whether an address is anybody's on the internet, also by what it wraps."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    inner = _wrapped(address)
    if inner is not None and not is_public(str(inner)):
        return False
    bad = address.is_multicast or address.is_reserved or address.is_unspecified
    return (address.is_global and not bad) or (inner is not None and address in _NAT64)


def _wrapped(address: Address) -> Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def public_address(host: str, port: int, look_up: Resolve = resolve) -> str:
    """An address of the host; raises `NotPublicError` unless all that it has are public.

    The sentence is the same for a host that doesn't exist: else anybody could ask which names there
    are in the site's own network.
    """
    try:
        found = look_up(host, port)
    except (OSError, UnicodeError):
        found = []
    if not found or not all(map(is_public, found)):
        raise NotPublicError(
            f"{host} wasn't found on the internet: use a host whose addresses are all public"
        )
    return found[0]


def url_refusal(url: str, look_up: Resolve = resolve) -> str:
    """Why nothing is sent to `url`; empty if something may be."""
    if len(url) > _LONGEST or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        return f"must have at most {_LONGEST} characters and no spaces"
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with https:// or http://, and include a host"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user name or password: verify the signature instead"
    if port not in _PORTS and port < _FIRST_FREE_PORT:
        return "must use port 80 or 443, or one above 1023"
    try:
        public_address(parts.hostname, port, look_up)
    except NotPublicError as error:
        return str(error)
    return ""


class PublicBackend(httpcore2.SyncBackend):
    """Connects to the very address that was found to be public, so a second look-up cannot lie."""

    def __init__(
        self, look_up: Resolve = resolve, connect: Callable[..., object] | None = None
    ) -> None:
        super().__init__()
        self._look_up = look_up
        self._connect = connect or super().connect_tcp

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        """Connect; raises `NotPublicError`."""
        address = public_address(host, port, self._look_up)
        return self._connect(address, port, timeout, local_address, socket_options)


def post(url: str, content: bytes, headers: dict[str, str], backend: PublicBackend) -> int:
    """Send `content`; the status of the answer. A redirect is an answer, and nobody follows it.

    Raises `httpcore2`'s errors of connections and times.
    """
    limits = dict.fromkeys(("connect", "read", "write", "pool"), 10.0)
    with (
        httpcore2.ConnectionPool(network_backend=backend, max_connections=1) as pool,
        pool.stream(
            "POST",
            url,
            headers=list(headers.items()),
            content=content,
            extensions={"timeout": limits},
        ) as answer,
    ):
        return int(answer.status)
