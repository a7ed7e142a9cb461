"""Whose address a request comes from: what a proxy says counts only if the site trusts it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SAID_BY_PROXIES = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO")


class TrustedProxyMiddleware:
    """Puts the visitor's address into `REMOTE_ADDR`, and forgets what strangers forward."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Wrap the next handler."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Follow `X-Forwarded-For` from its end, as far as trusted proxies have written it."""
        peer = str(request.META.get("REMOTE_ADDR", ""))
        if not _is_trusted(peer):
            for name in _SAID_BY_PROXIES:
                request.META.pop(name, None)
            return self.get_response(request)
        forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR", ""))
        for address in reversed(forwarded.split(",")):
            if not _is_address(address.strip()):
                break  # a proxy writes addresses, so a stranger wrote this and what is before it
            peer = address.strip()
            if not _is_trusted(peer):
                break
        request.META["REMOTE_ADDR"] = peer
        return self.get_response(request)


def _is_trusted(address: str) -> bool:
    if not _is_address(address):
        return False
    return any(ip_address(address) in network for network in settings.TRUSTED_PROXIES)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
