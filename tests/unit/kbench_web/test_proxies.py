"""The address of a visitor, with and without proxies in between."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from kbench_web.proxies import TrustedProxyMiddleware


def seen(peer: str, forwarded: str | None, trusted: list[str], settings: Any) -> HttpRequest:
    """The request as the site sees it."""
    settings.TRUSTED_PROXIES = [ip_network(each) for each in trusted]
    extra = {"HTTP_X_FORWARDED_PROTO": "https"}
    if forwarded is not None:
        extra["HTTP_X_FORWARDED_FOR"] = forwarded
    request = RequestFactory().get("/", REMOTE_ADDR=peer, **extra)
    TrustedProxyMiddleware(lambda _: HttpResponse())(request)
    return request


def test_the_address_is_what_the_nearest_stranger_had(settings: Any) -> None:
    for peer, forwarded, trusted, address in (
        ("9.9.9.9", "1.2.3.4", [], "9.9.9.9"),
        ("9.9.9.9", "1.2.3.4", ["10.0.0.0/8"], "9.9.9.9"),
        ("10.0.0.1", "1.2.3.4", ["10.0.0.1"], "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", ["10.0.0.1"], "1.2.3.4"),  # first is what a visitor says
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", ["10.0.0.0/8"], "1.2.3.4"),
        ("10.0.0.1", None, ["10.0.0.1"], "10.0.0.1"),
        ("10.0.0.1", "", ["10.0.0.1"], "10.0.0.1"),
        ("10.0.0.1", "nonsense", ["10.0.0.1"], "10.0.0.1"),
        ("10.0.0.1", "1.2.3.4, nonsense", ["10.0.0.1"], "10.0.0.1"),
        ("10.0.0.1", "2001:db8::1", ["10.0.0.1"], "2001:db8::1"),
        ("::1", "1.2.3.4", ["::1"], "1.2.3.4"),
        ("", "1.2.3.4", ["10.0.0.1"], ""),  # a UNIX socket has none
    ):
        assert seen(peer, forwarded, trusted, settings).META["REMOTE_ADDR"] == address


def test_a_stranger_cannot_say_that_the_connection_is_secure(settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert not seen("9.9.9.9", None, ["10.0.0.1"], settings).is_secure()
    assert seen("10.0.0.1", None, ["10.0.0.1"], settings).is_secure()
