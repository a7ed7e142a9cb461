"""The first page, accounts, tokens, documentation, errors, the content policy, and compression."""

from __future__ import annotations

import gzip
import re

import pytest
from django.template.loader import render_to_string
from django.test import Client

from kbench_web.models import ApiToken
from tests import factories
from tests.unit.conftest import as_shown

pytestmark = pytest.mark.django_db


def test_pages_of_an_empty_site_need_no_more_than_the_content_policy_allows(client: Client) -> None:
    pages = ("", "tasks/", "leaderboard/", "submit/", "queue/", "api/", "sign-in/", "sign-up/")
    for path in pages:
        answer = client.get(f"/{path}")
        text = answer.content.decode()
        assert answer.status_code == 200
        assert text.count("<h1") == 1
        assert 'lang="en"' in text
        inline = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text)
        assert inline == []
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", text)
        assert not re.search(r"""(src|href)=["'](https?:)?//""", text), "it loads from elsewhere"
        policy = answer["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "'unsafe-inline'" not in re.sub(r"style-src-attr[^;]*", "", policy)


def test_a_token_is_shown_once_and_can_be_revoked(client: Client) -> None:
    user = factories.make_user()
    client.force_login(user)
    fields = {"name": "laptop", "scope": "read", "days": "30"}
    for change in ({"name": ""}, {"scope": "admin"}, {"days": "99999"}):
        assert client.post("/account/", fields | change).status_code == 422
    assert ApiToken.objects.count() == 0
    answer = client.post("/account/", fields)
    match = re.search(r"kb_[\w-]{20,}", answer.content.decode())
    assert match is not None
    token = ApiToken.objects.get()
    assert token.scopes == ["read"]
    assert match[0] not in client.get("/account/").content.decode()

    stranger = Client()
    stranger.force_login(factories.make_user())
    assert stranger.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    client.post(f"/account/tokens/{token.pk}/revoke/")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_errors_have_pages(client: Client) -> None:
    assert "Page not found" in client.get("/nowhere/").content.decode()
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/sign-in/", {"login": "a", "password": "b"})
    assert (answer.status_code, "expired" in answer.content.decode()) == (403, True)
    assert "wrong on our side" in render_to_string("500.html")
    assert "You are not signed in" in render_to_string("403.html")
    client.force_login(factories.make_user(username="ada"))
    answer = client.get("/curate/")
    assert (answer.status_code, "signed in as ada" in answer.content.decode()) == (403, True)


GZIP = {"Accept-Encoding": "gzip, br"}


def test_an_answer_is_compressed(client: Client) -> None:
    factories.make_finished_evaluation(mode="ranked")
    for path in ("/", "/queue/", "/api/v1/leaderboard?device=cpu"):
        plain = client.get(path)
        small = client.get(path, headers=GZIP)
        assert not plain.has_header("Content-Encoding")
        assert small["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in small["Vary"]
        assert len(small.content) < len(plain.content)
        text = gzip.decompress(small.content).decode()
        texts = [as_shown(text) if "<html" in text else text, plain.content.decode()]
        one, other = (re.sub(r"\bterm-\d+", "term", each) for each in texts)  # new every time
        assert one == other


def test_the_length_of_a_page_tells_nothing(client: Client) -> None:
    """The same content has many lengths, so guesses that are reflected cannot be compared."""
    answers = [client.get("/api/", headers=GZIP) for _ in range(12)]
    assert len({len(answer.content) for answer in answers}) > 3
