"""The first page, accounts, tokens, documentation, errors, and the content policy."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from kbench_web.models import ApiToken
from runs_app.messaging import queues
from tests import factories

pytestmark = pytest.mark.django_db

PASSWORD = "tensor-watcher-19"
PAGES = ("/", "/tasks/", "/leaderboard/", "/submit/", "/queue/", "/api/", "/sign-in/", "/sign-up/")


@pytest.fixture(autouse=True)
def _no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "enqueue", lambda evaluation: True)


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_an_empty_site(client: Client, path: str) -> None:
    answer = client.get(path)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert text.count("<h1") == 1
    assert 'lang="en"' in text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_needs_more_than_the_content_policy_allows(client: Client, path: str) -> None:
    answer = client.get(path)
    text = answer.content.decode()
    inline = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text)
    assert inline == []
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", text)
    assert not re.search(r"""(src|href)=["'](https?:)?//""", text), "a page loads from elsewhere"
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "'unsafe-inline'" not in re.sub(r"style-src-attr[^;]*", "", policy)


def test_home_shows_leaders_and_latest(client: Client) -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked", agent="robot")
    text = client.get("/").content.decode()
    assert text.count(f"/submissions/{evaluation.submission_id}/") >= 2
    assert "robot" in text


def test_sign_up_signs_in_and_leads_back(client: Client) -> None:
    fields = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}
    answer = client.post("/sign-up/", fields | {"next": "/submit/?task=scale"})
    assert answer["Location"] == "/submit/?task=scale"
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_sign_up_leads_nowhere_else(client: Client, target: str) -> None:
    fields = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD, "next": target}
    assert client.post("/sign-up/", fields)["Location"] == "/"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"username": "grace"}, "already exists"),
        ({"username": "a b"}, "valid username"),
        ({"password2": "other"}, "match"),
        ({"password1": "1234", "password2": "1234"}, "too short"),
    ],
)
def test_a_bad_sign_up_says_why(client: Client, change: dict[str, str], words: str) -> None:
    factories.make_user(username="grace")
    fields = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD} | change
    answer = client.post("/sign-up/", fields)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not User.objects.filter(username="ada").exists()


def test_a_token_is_shown_once_and_can_be_revoked(client: Client) -> None:
    user = factories.make_user()
    client.force_login(user)
    fields = {"name": "laptop", "scope": "read", "days": "30"}
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


@pytest.mark.parametrize("change", [{"name": ""}, {"scope": "admin"}, {"days": "99999"}])
def test_a_bad_token_is_not_made(client: Client, change: dict[str, str]) -> None:
    client.force_login(factories.make_user())
    fields = {"name": "laptop", "scope": "read", "days": "30"} | change
    assert client.post("/account/", fields).status_code == 422
    assert ApiToken.objects.count() == 0


@pytest.mark.parametrize("path", ["/sign-in/", "/admin/login/"])
def test_after_many_wrong_passwords_the_right_one_waits(client: Client, path: str) -> None:
    for name in ("ada", "grace"):
        User.objects.create_superuser(name, password=PASSWORD)
    right = {"username": "ada", "password": PASSWORD}
    wrong = right | {"password": "guess"}
    answers = [client.post(path, wrong, HTTP_USER_AGENT=f"{n}").status_code for n in range(10)]
    assert answers == [200] * 9 + [429]
    for password in (PASSWORD, "guess"):
        refused = client.post(path, right | {"password": password})
        assert refused.status_code == 429
        text = " ".join(refused.content.decode().split())
        assert "10 wrong passwords for this name" in text
        assert "again 10 minutes after the last" in text
    elsewhere = client.post(path, right, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 302
    client.logout()
    assert client.post(path, right | {"username": "grace"}).status_code == 302
    client.logout()
    assert client.post(path, right).status_code == 429
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=10, seconds=1))
    assert client.post(path, right).status_code == 302


def test_a_right_password_forgets_the_wrong_ones(client: Client) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    right = {"username": "ada", "password": PASSWORD}
    for password in ["guess"] * 9 + [PASSWORD] + ["guess"] * 9:
        client.logout()
        answer = client.post("/sign-in/", right | {"password": password})
        assert answer.status_code == (302 if password == PASSWORD else 200)


def test_the_account_asks_for_a_sign_in(client: Client) -> None:
    assert client.get("/account/")["Location"] == "/sign-in/?next=/account/"


def test_errors_have_pages(client: Client) -> None:
    text = client.get("/nowhere/").content.decode()
    assert "There is nothing here" in text
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/sign-in/", {"username": "a", "password": "b"})
    assert answer.status_code == 403
    assert "out of date" in answer.content.decode()
    assert "our mistake" in render_to_string("500.html")
    assert "You are not signed in" in render_to_string("403.html")


def test_who_may_not_is_told_whether_they_are_signed_in(client: Client) -> None:
    client.force_login(factories.make_user(username="ada"))
    answer = client.get("/curate/")
    assert answer.status_code == 403
    assert "signed in as ada" in answer.content.decode()
    assert "it is for admins" in answer.content.decode()
