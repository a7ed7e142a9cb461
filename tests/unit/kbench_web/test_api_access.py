"""Whose budget a request of the API counts for, however its header is spelt."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

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
