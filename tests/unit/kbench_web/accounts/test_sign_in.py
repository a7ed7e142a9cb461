"""Signing in and up, invitations, passwords, sessions and tokens."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client, override_settings
from django.utils import timezone

from kbench_web.accounts import invitations
from kbench_web.accounts.tokens import find_token
from kbench_web.models import ApiToken, Invitation, SignUpPolicy
from tasks_app.models import AuditEntry
from tests import factories as make

pytestmark = pytest.mark.django_db

PASSWORD = "tensor-watcher-19"
FIELDS = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}
Mode = SignUpPolicy.Mode


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    memory = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    with override_settings(CACHES=memory):
        cache.clear()
        yield
        cache.clear()


def decide(mode: Mode) -> User:
    admin = make.make_admin()
    invitations.decide_sign_up(mode=mode, user=admin, now=timezone.now())
    return admin


class TestSignUp:
    def test_it_signs_in_and_leads_back(self, client: Client) -> None:
        answer = client.post("/sign-up/", FIELDS | {"next": "/submit/?task=scale"})
        assert answer["Location"] == "/submit/?task=scale"
        assert client.get("/account/").status_code == 200

        for target in ("https://evil.example/", "//evil.example", "javascript:x"):
            client.logout()
            User.objects.all().delete()
            fields = FIELDS | {"next": target}
            assert client.post("/sign-up/", fields)["Location"] == "/"

    def test_a_bad_one_says_why(self, client: Client) -> None:
        make.make_user(username="grace", first_name="Shown")
        make.make_submission(agent="robot")
        before = User.objects.count()
        for change, words in (
            ({"username": "grace"}, "already exists"),
            ({"username": "GRACE"}, "already exists"),
            ({"username": "shown"}, "already exists"),
            ({"username": "robot"}, "already exists"),
            ({"username": "deleted-7"}, "reserved for the site"),
            ({"username": "kbench-official"}, "reserved for the site"),
            ({"username": "a b"}, "valid username"),
            ({"username": ""}, "required"),
            ({"password2": "other"}, "same password"),
            ({"password1": "1234", "password2": "1234"}, "too short"),
        ):
            answer = client.post("/sign-up/", FIELDS | change)
            assert (answer.status_code, words in answer.content.decode()) == (422, True), change
        assert User.objects.count() == before

    def test_the_form_begins_at_the_name_and_says_that_there_is_no_mail(
        self, client: Client
    ) -> None:
        text = client.get("/sign-up/").content.decode()
        assert re.search(r'<input[^>]*name="username"[^>]*autofocus', text)
        assert ("This site doesn't send e-mail" in text) is not settings.EMAIL_CONFIGURED
        both = {"password1": "password", "password2": "passwort"}
        said = client.post("/sign-up/", FIELDS | both).content.decode()
        assert ("too common" in said, "same password" in said) == (True, True), "all at once"

    def test_closed_means_closed(self, client: Client) -> None:
        decide(Mode.CLOSED)
        for answer in (client.get("/sign-up/"), client.post("/sign-up/", FIELDS)):
            assert answer.status_code == 403
        assert not User.objects.filter(username="ada").exists()

    @override_settings(SIGN_UP="closed")
    def test_the_setting_counts_until_an_admin_decides(self, client: Client) -> None:
        assert client.get("/sign-up/").status_code == 403
        decide(Mode.OPEN)
        assert client.get("/sign-up/").status_code == 200
        assert AuditEntry.objects.get().kind == AuditEntry.Kind.SIGN_UP

    def test_an_invitation_opens_one_account(self, client: Client) -> None:
        admin = decide(Mode.INVITATION)
        now = timezone.now()
        invitation, secret = invitations.invite(note="Ada", user=admin, now=now)
        assert secret not in str(Invitation.objects.values())
        assert client.get("/sign-up/").status_code == 403
        assert client.get("/sign-up/?invitation=wrong").status_code == 403
        assert client.get(f"/sign-up/?invitation={secret}").status_code == 200
        other = Client()
        other.get(f"/sign-up/?invitation={secret}")
        assert client.post("/sign-up/", FIELDS).status_code == 302
        invitation.refresh_from_db()
        assert invitation.used_by is not None
        assert invitation.used_by.get_username() == "ada"
        assert other.post("/sign-up/", FIELDS | {"username": "eve"}).status_code == 403
        assert not User.objects.filter(username="eve").exists()

    def test_of_two_with_one_invitation_the_second_gets_no_account(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        admin = decide(Mode.INVITATION)
        _, secret = invitations.invite(note="Ada", user=admin, now=timezone.now())
        client.get(f"/sign-up/?invitation={secret}")
        monkeypatch.setattr(invitations, "may_sign_up", lambda request, now: True)
        Invitation.objects.update(used_at=timezone.now())
        assert client.post("/sign-up/", FIELDS).status_code == 403
        assert not User.objects.filter(username="ada").exists()

    def test_an_invitation_ends(self, client: Client) -> None:
        admin = decide(Mode.INVITATION)
        now = timezone.now()
        made = {"note": "Ada", "user": admin}
        _, expired = invitations.invite(**made, now=now - timedelta(days=15))
        invitation, revoked = invitations.invite(**made, now=now)
        assert invitations.revoke(invitation=invitation, user=admin, now=now)
        assert not invitations.revoke(invitation=invitation, user=admin, now=now)
        for secret in (expired, revoked):
            assert client.get(f"/sign-up/?invitation={secret}").status_code == 403


class TestSignIn:
    def test_after_many_wrong_passwords_the_right_one_waits(self, client: Client) -> None:
        for name in ("ada", "grace"):
            User.objects.create_superuser(name, password=PASSWORD)
        right = {"login": "ada", "password": PASSWORD}
        wrong = right | {"password": "guess"}
        tries = [client.post("/sign-in/", wrong, HTTP_USER_AGENT=f"{n}") for n in range(10)]
        assert [answer.status_code for answer in tries] == [200] * 9 + [429]
        for password in (PASSWORD, "guess"):
            refused = client.post("/sign-in/", right | {"password": password})
            assert refused.status_code == 429
            assert "10 failed sign-ins" in refused.content.decode()
        assert client.post("/sign-in/", right, REMOTE_ADDR="192.0.2.7").status_code == 302
        client.logout()
        assert client.post("/sign-in/", right | {"login": "grace"}).status_code == 302
        client.logout()
        assert client.post("/sign-in/", right).status_code == 429
        AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=10, seconds=1))
        assert client.post("/sign-in/", right).status_code == 302

    @pytest.mark.parametrize(
        ("addresses", "elsewhere"),
        [
            (["192.0.2.7"] * 2, "192.0.2.8"),
            (["2001:db8::1", "2001:db8::2:1"], "2001:db8:0:1::1"),
            (["::ffff:192.0.2.7", "192.0.2.7"], "::ffff:192.0.2.8"),
        ],
    )
    def test_one_password_for_each_of_many_names_locks_the_address_out(
        self, client: Client, addresses: list[str], elsewhere: str, settings: Any
    ) -> None:
        settings.SIGN_IN_FAILURES_PER_ADDRESS = 6
        User.objects.create_user("ada", password=PASSWORD)
        right = {"login": "ada", "password": PASSWORD}
        statuses = []
        for number in range(8):
            wrong = {"login": f"name{number}", "password": "guess"}
            answer = client.post("/sign-in/", wrong, REMOTE_ADDR=addresses[number % 2])
            statuses.append(answer.status_code)
            if number == 3:  # an account of one's own frees nothing
                assert client.post("/sign-in/", right, REMOTE_ADDR=addresses[0]).status_code == 302
                client.logout()
        assert statuses == [200] * 5 + [429] * 3
        refused = client.post("/sign-in/", right, REMOTE_ADDR=addresses[0])
        assert refused.status_code == 429
        assert "from your address" in refused.content.decode()
        assert client.post("/sign-in/", right, REMOTE_ADDR=elsewhere).status_code == 302
        client.logout()
        AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=10, seconds=1))
        assert client.post("/sign-in/", right, REMOTE_ADDR=addresses[0]).status_code == 302

    def test_a_right_password_forgets_the_wrong_ones(self, client: Client) -> None:
        User.objects.create_user("ada", password=PASSWORD)
        right = {"login": "ada", "password": PASSWORD}
        for password in ["guess"] * 9 + [PASSWORD] + ["guess"] * 9:
            client.logout()
            answer = client.post("/sign-in/", right | {"password": password})
            assert answer.status_code == (302 if password == PASSWORD else 200)

    def test_neither_the_admins_own_form_nor_a_deactivated_account_is_a_way(
        self, client: Client
    ) -> None:
        ada = User.objects.create_superuser("ada", password=PASSWORD)
        answer = client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
        assert (answer.status_code, answer["Location"][:9]) == (302, "/sign-in/")
        assert "_auth_user_id" not in client.session
        ada.is_active = False
        ada.save()
        client.post("/sign-in/", {"login": "ada", "password": PASSWORD})
        assert "_auth_user_id" not in client.session

    def test_other_sites_are_shown_only_where_they_are_configured(self, client: Client) -> None:
        assert "GitHub" not in client.get("/sign-in/").content.decode()
        for path in ("/sign-in/with/github/login/", "/sign-in/with/oidc/oidc/login/"):
            assert client.post(path).status_code == 404, path
        app = {"client_id": "kbench", "secret": "hush", "key": ""}
        with override_settings(SOCIALACCOUNT_PROVIDERS={"github": {"APPS": [app]}}):
            assert "Sign in with GitHub" in client.get("/sign-in/").content.decode()
            answer = client.post("/sign-in/with/github/login/")
        assert answer.status_code == 302
        assert answer["Location"].startswith("https://github.com/login/oauth/authorize?")
        assert "hush" not in answer["Location"]


class TestPasswords:
    def test_a_change_ends_all_other_sessions(self, client: Client) -> None:
        User.objects.create_user("ada", password=PASSWORD)
        elsewhere = Client()
        for each in (client, elsewhere):
            each.post("/sign-in/", {"login": "ada", "password": PASSWORD})
        assert client.get("/account/sessions/").content.decode().count("127.0.0.1</td>") == 2
        new = "another-long-one-7"
        fields = {"oldpassword": "wrong", "password1": new, "password2": new}
        assert client.post("/account/password/", fields).status_code == 422
        fields["oldpassword"] = PASSWORD
        assert client.post("/account/password/", fields)["Location"] == "/account/"
        assert client.get("/account/").status_code == 200
        assert elsewhere.get("/account/").status_code == 302
        assert client.get("/account/sessions/").content.decode().count("127.0.0.1</td>") == 1

    def test_a_link_by_e_mail_sets_a_new_password_and_tells_nobody_who_has_an_account(
        self, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        User.objects.create_user("ada", email="ada@kbench.example", password=PASSWORD)
        known = {"email": "ada@kbench.example"}
        assert client.post("/reset-password/", known).status_code == 200
        assert not mail.outbox, "this site sends none"
        settings.EMAIL_CONFIGURED = True
        assert client.post("/reset-password/", {"email": "nobody"}).status_code == 422
        unknown = {"email": "eve@kbench.example"}
        answers = [client.post("/reset-password/", each) for each in (unknown, known)]
        with monkeypatch.context() as patch:  # the server of mail is away

            def away(*_: object) -> int:
                raise ConnectionRefusedError("nobody listens")

            patch.setattr(mail.EmailMessage, "send", away)
            answers.append(client.post("/reset-password/", known))
        assert {answer["Location"] for answer in answers} == {"/reset-password/sent/"}
        link = re.search(r"/reset-password/\S+/", str(mail.outbox[-1].body))
        assert link is not None
        there = client.get(link[0])["Location"]
        new = "another-long-one-7"
        assert client.post(there, {"password1": "x", "password2": "x"}).status_code == 422
        client.post(there, {"password1": new, "password2": new})
        assert client.post("/sign-in/", {"login": "ada", "password": new}).status_code == 302
        again = Client()
        assert "doesn't work" in again.get(link[0]).content.decode()


class TestSessions:
    def test_one_is_ended_by_its_owner_alone(self, client: Client) -> None:
        User.objects.create_user("ada", password=PASSWORD)
        elsewhere = Client()
        for each in (client, elsewhere):
            each.post("/sign-in/", {"login": "ada", "password": PASSWORD})
        text = client.get("/account/sessions/").content.decode()
        end = re.search(r"/account/sessions/\d+/end/", text)
        assert end is not None
        stranger = Client()
        stranger.force_login(make.make_user())
        assert stranger.post(end[0]).status_code == 404
        assert elsewhere.get("/account/").status_code == 200
        assert client.post(end[0]).status_code == 302
        assert elsewhere.get("/account/").status_code == 302
        assert client.get("/account/").status_code == 200
        others = [Client() for _ in range(3)]
        for each in others:
            each.post("/sign-in/", {"login": "ada", "password": PASSWORD})
        client.post("/account/sessions/end/")
        assert [each.get("/account/").status_code for each in others] == [302] * 3
        assert client.get("/account/").status_code == 200


class TestEmail:
    def test_addresses_are_kept_only_where_e_mail_is_sent(self, client: Client) -> None:
        ada = make.make_user(username="ada")
        client.force_login(ada)
        fields = {"email": "ada@kbench.example", "action_add": ""}
        assert client.post("/account/email/", fields).status_code == 404
        assert not EmailAddress.objects.exists()
        with override_settings(EMAIL_CONFIGURED=True):
            assert client.get("/account/email/").status_code == 200
            assert client.post("/account/email/", fields).status_code == 302
        assert EmailAddress.objects.get().user == ada
        assert mail.outbox[0].to == ["ada@kbench.example"]


def test_a_token_is_found_by_its_text_which_is_not_stored() -> None:
    text = make.make_token(make.make_user())
    token = ApiToken.objects.get()
    assert find_token(text, make.NOW) == token
    assert find_token(text + "x", make.NOW) is None
    stored = " ".join(str(value) for value in ApiToken.objects.values()[0].values())
    assert text not in stored
    assert text[9:] not in stored
    for seconds, recorded in ((0, 0), (30, 0), (90, 90)):
        find_token(text, make.later(seconds))
        assert ApiToken.objects.get().last_used_at == make.later(recorded)


def test_the_command_prints_the_token_alone() -> None:
    make.make_user(username="ada")
    out, err = io.StringIO(), io.StringIO()
    call_command("create_token", "ada", "--days", "2", "--scope", "read", stdout=out, stderr=err)
    token = ApiToken.objects.get()
    assert find_token(out.getvalue().strip(), make.NOW) == token
    assert token.scopes == ["read"]
    remaining = token.expires_at - datetime.now(UTC)
    assert timedelta(days=1) < remaining <= timedelta(days=2)
    assert "expires on" in err.getvalue()
