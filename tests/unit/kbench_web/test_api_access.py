"""Whose budget a request counts for: the spelling of its header, and the proxies in between."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from kbench_web.proxies import TrustedProxyMiddleware
from tests import factories as make

pytestmark = pytest.mark.django_db


def left(**headers: str) -> int:
    """Requests that are left after one more, from one address unless `headers` say another."""
    answer = Client().get("/api/v1/tasks", headers=headers)
    return int(answer["RateLimit-Remaining"])


@pytest.fixture(autouse=True)
def _one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbench_web.rate_limit.time.time", lambda: 1_000_000.0)


def test_every_token_of_a_user_and_spelling_of_it_counts_together() -> None:
    user = make.make_user()
    token, other = make.make_token(user), make.make_token(user)
    spellings = (f"Bearer {token}", f"bEARER  {token}", f"  BEARER    {token} ", f"Bearer {other}")
    assert [left(authorization=each) for each in spellings] == [599, 598, 597, 596]


def test_a_junk_header_counts_for_the_address_and_an_ipv6_network_is_one() -> None:
    junk = ("Bearer one", "Bearer two", "Basic abc", "Bearer", "")
    assert [left(authorization=each) for each in junk] == [599, 598, 597, 596, 595]
    assert left() == 594
    addresses = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    answers = [Client(REMOTE_ADDR=each).get("/api/v1/tasks") for each in addresses]
    assert [int(answer["RateLimit-Remaining"]) for answer in answers] == [599, 598, 599]


def test_a_revoked_token_cannot_use_up_its_owners_budget() -> None:
    user = make.make_user()
    stolen, kept = make.make_token(user), make.make_token(user)
    user.api_tokens.filter(prefix=stolen[:9]).update(revoked_at=make.NOW)
    for _ in range(3):
        left(authorization=f"Bearer {stolen}")
    assert left(authorization=f"Bearer {kept}") == 599
    assert left() == 596


def test_a_token_is_looked_up_once(django_assert_num_queries: Any) -> None:
    headers = {"authorization": f"Bearer {make.make_token(make.make_user())}"}
    Client().get("/api/v1/tasks", headers=headers)  # notes the token's use
    with django_assert_num_queries(2):
        Client().get("/api/v1/tasks", headers=headers)
    with django_assert_num_queries(1):
        Client().post("/api/v1/submissions", headers=headers)


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
