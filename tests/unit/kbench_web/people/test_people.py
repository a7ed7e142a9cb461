"""What admins see of people, and what they change about accounts."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from kbench_web.accounts.invitations import sign_up_mode
from kbench_web.models import Invitation, SignUpPolicy
from kbench_web.people import services
from runs_app.core.errors import NotAllowed
from runs_app.models import PersonalQuota
from tasks_app.models import AuditEntry
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> User:
    return make.make_admin(username="judge")


@pytest.fixture
def desk(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-pk")[0]


def test_nobody_else_gets_in(client: Client) -> None:
    who = make.make_user()
    pages = ("/operate/", "/operate/people/", f"/operate/people/{who.pk}/")
    posts = (f"/operate/people/{who.pk}/change/", f"/operate/people/{who.pk}/reset/",
             f"/operate/people/{who.pk}/sessions/", "/operate/people/sign-up/",
             "/operate/people/invitations/1/revoke/", "/operate/runners/1/",
             "/operate/announcements/1/end/", "/operate/queues/cpu/empty/")  # fmt: skip
    for _ in range(2):
        assert {client.get(path).status_code for path in pages} == {403}
        assert {client.post(path).status_code for path in (*pages, *posts)} == {403}
        client.force_login(who)
    assert not AuditEntry.objects.exists()


def test_people_are_found_by_name_and_state(desk: Client) -> None:
    make.make_user(username="ada", first_name="Countess")
    make.make_user(username="eve", is_active=False)
    make.make_user(username="kbench (site)")
    for query, names in (("?q=count", {"Countess"}), ("?state=x", {"Countess", "eve", "judge"}),
                         ("?state=inactive", {"eve"}), ("?state=admins", {"judge"}),
                         ("?q=nobody", set())):  # fmt: skip
        text = desk.get(f"/operate/people/{query}").content.decode()
        found = set(re.findall(r'/operate/people/\d+/">([^<]+)</a>', text))
        assert found == names, query


def test_a_deactivated_person_is_out_at_once(desk: Client) -> None:
    who = make.make_user(username="eve")
    token = make.make_token(who)
    theirs = Client()
    theirs.force_login(who)
    path = f"/operate/people/{who.pk}/change/"
    desk.post(path, {"change": "deactivate", "reason": " "})
    assert User.objects.get(pk=who.pk).is_active
    desk.post(path, {"change": "deactivate", "reason": "spam"})
    assert theirs.get("/account/").status_code == 302
    answer = Client().get("/api/v1/tasks", HTTP_AUTHORIZATION=f"Bearer {token}")
    assert answer.status_code == 401
    entry = last_entry()
    assert (entry.kind, entry.name, entry.reason) == (AuditEntry.Kind.ACCOUNT, "eve", "spam")
    desk.post(path, {"change": "activate", "reason": "a mistake"})
    assert User.objects.get(pk=who.pk).is_active


def test_admins_are_made_and_unmade_but_not_by_themselves(desk: Client, admin: User) -> None:
    who = make.make_user()
    path = f"/operate/people/{who.pk}/change/"
    desk.post(path, {"change": "admin", "reason": "helps"})
    who.refresh_from_db()
    assert (who.is_staff, who.is_superuser) == (True, True)
    desk.post(path, {"change": "no-admin", "reason": "left"})
    who.refresh_from_db()
    assert (who.is_staff, who.is_superuser) == (False, False)
    desk.post(f"/operate/people/{admin.pk}/change/", {"change": "no-admin", "reason": "x"})
    admin.refresh_from_db()
    assert admin.is_staff


def test_staff_does_not_rise_above_itself() -> None:
    staff, root = make.make_user(is_staff=True), make.make_admin()
    with pytest.raises(NotAllowed, match="superuser"):
        services.set_active(person=root, active=False, reason="x", user=staff, now=make.NOW)
    with pytest.raises(NotAllowed, match="superuser"):
        services.reset_link(person=root, user=staff, now=make.NOW)
    friend = make.make_user()
    services.set_admin(person=friend, admin=True, reason="x", user=staff, now=make.NOW)
    assert not friend.is_superuser


def test_a_reset_link_sets_a_password_once(desk: Client, client: Client) -> None:
    who = make.make_user(username="ada")
    text = desk.post(f"/operate/people/{who.pk}/reset/").content.decode()
    link = re.search(r"http://testserver(/reset-password/[^<\s\"]+)", text)
    assert link is not None
    assert link[1] not in desk.get(f"/operate/people/{who.pk}/").content.decode()
    there = client.get(link[1])["Location"]
    new = "another-long-one-7"
    assert client.post(there, {"password1": new, "password2": new}).status_code == 302
    who.refresh_from_db()
    assert who.check_password(new)
    assert "doesn't work" in Client().get(link[1]).content.decode()
    assert "reset link" in str(last_entry().details)


def test_limits_of_a_person_come_before_the_sites(desk: Client) -> None:
    who = make.make_user()
    path = f"/operate/people/{who.pk}/"
    for wrong in ({"waiting": "-1", "reason": "x"}, {"waiting": "3"}):
        assert desk.post(path, wrong).status_code == 422
    assert not PersonalQuota.objects.exists()
    assert desk.post(path, {"waiting": "3", "reason": "floods"}).status_code == 302
    own = PersonalQuota.objects.get(user=who)
    assert (own.waiting, own.per_day) == (3, None)
    assert last_entry().kind == AuditEntry.Kind.QUOTA
    desk.post(path, {"reason": "behaves"})
    assert not PersonalQuota.objects.exists()


def test_who_may_sign_up_is_decided_there_and_an_invitation_shown_once(desk: Client) -> None:
    assert desk.post("/operate/people/", {"note": ""}).status_code == 422
    text = desk.post("/operate/people/", {"note": "Ada"}).content.decode()
    assert re.search(r"/sign-up/\?invitation=[\w-]{40,}", text)
    assert "invitation=" not in desk.get("/operate/people/").content.decode()
    invitation = Invitation.objects.get()
    desk.post(f"/operate/people/invitations/{invitation.pk}/revoke/")
    invitation.refresh_from_db()
    assert invitation.revoked_at is not None
    desk.post("/operate/people/sign-up/", {"mode": "whoever"})
    assert sign_up_mode() is SignUpPolicy.Mode.OPEN
    desk.post("/operate/people/sign-up/", {"mode": "closed"})
    assert sign_up_mode() is SignUpPolicy.Mode.CLOSED
    assert last_entry().details == {"accounts": "from Everybody to Nobody"}


def test_an_admin_made_on_the_machine_is_in_the_log() -> None:
    call_command("createsuperuser", "--noinput", username="first", email="a@example.org")
    entry = AuditEntry.objects.get()
    assert (entry.kind, entry.name, entry.actor) == ("account", "first", None)
    assert entry.details["admin"] is True
