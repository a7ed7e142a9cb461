"""Whose address a request comes from: what a proxy says counts only if the site trusts it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SAID_BY_PROXIES = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO")
_IPV6_SITE = 64  # bits that an ISP gives to one customer


def client_address(request: HttpRequest) -> str | None:
    """Under which address a visitor is counted: of IPv6 the first of its network; None without any.

    A customer of an ISP has so many IPv6 addresses that counting each by itself would limit nobody.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    if not _is_address(address):
        return None
    known = ip_address(address)
    if not isinstance(known, IPv6Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ip_network((known.packed, _IPV6_SITE), strict=False).network_address)


class TrustedProxyMiddleware:
    """Puts the visitor's address into `REMOTE_ADDR`, and forgets what strangers forward."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Believe trusted proxies alone."""
        believe_trusted_proxies(request)
        return self.get_response(request)


def believe_trusted_proxies(request: HttpRequest) -> None:
    """Follow `X-Forwarded-For` from its end, as far as trusted proxies have written it."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not is_trusted(peer):
        for name in _SAID_BY_PROXIES:
            request.META.pop(name, None)
        return
    forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR", ""))
    for address in reversed(forwarded.split(",")):
        if not _is_address(address.strip()):
            break  # a proxy writes addresses, so a stranger wrote this and what is before it
        peer = address.strip()
        if not is_trusted(peer):
            break
    request.META["REMOTE_ADDR"] = peer


def is_trusted(address: str) -> bool:
    """Whether what a host of that address forwards is believed."""
    if not _is_address(address):
        return False
    return any(ip_address(address) in network for network in settings.TRUSTED_PROXIES)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
