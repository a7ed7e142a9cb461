"""What the author of a draft reads after an admin sent it back, and an admin after publishing."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.drafts.page import example_files
from runs_app.features.curation.drafts.services import (
    copy_version,
    create_draft,
    edit_draft,
    publish_draft,
    send_to_review,
)
from tasks_app.models import Draft, Override
from tests import factories as make

pytestmark = pytest.mark.django_db

REASON = "say how large the values are"


def act(client: Client, draft: Draft, action: str, **values: Any) -> None:
    draft.refresh_from_db()
    public = draft.task.current_version if draft.task else None
    seen = {"revision": draft.revision, "replaces": public.number if public else 0}
    posted = {"action": action, **seen} | values
    assert client.post(reverse("draft-act", args=[draft.pk]), posted).status_code == 302


def page(client: Client, draft: Draft) -> str:
    return client.get(draft.get_absolute_url()).content.decode()


def test_why_it_was_sent_back_stands_above_its_files_until_it_is_sent_again() -> None:
    user, admin = make.make_user(), make.make_admin()
    client, curator = Client(), Client()
    client.force_login(user)
    curator.force_login(admin)
    draft = create_draft(user=user, files=example_files(), now=make.NOW)
    act(client, draft, "send")
    act(curator, draft, "back", reason=REASON)
    assert f"<strong>Sent back.</strong> {REASON}" in page(client, draft)
    assert f"sent back: {REASON}" in client.get("/drafts/").content.decode()
    act(client, draft, "send")
    assert "<strong>Sent back.</strong>" not in page(client, draft)


def test_the_next_version_of_a_task_leads_to_what_changes_and_to_evaluating_again() -> None:
    admin, curator = make.make_admin(), Client()
    curator.force_login(admin)
    begun = create_draft(user=admin, files=example_files(), now=make.NOW)
    send_to_review(draft=begun, user=admin, now=make.NOW)
    begun.refresh_from_db()
    first = publish_draft(draft=begun, user=admin, now=make.NOW, override="an example")
    draft = copy_version(version=first, user=admin, now=make.NOW)
    task = first.task
    files = {
        **draft.files,
        "task.toml": draft.files["task.toml"].replace('title = "', 'title = "New '),
    }
    draft = edit_draft(draft=draft, user=admin, files=files, revision=draft.revision, now=make.NOW)
    act(curator, draft, "send")
    draft.refresh_from_db()
    assert draft.version is not None
    changes = reverse("task-version", args=[task.slug, draft.version.number])
    assert f'href="{changes}?against={first.number}"' in page(curator, draft)
    again = f'href="{reverse("task-reevaluate", args=[task.slug])}"'
    assert again not in page(curator, draft)
    act(curator, draft, "override", reason="seen by hand")
    assert Override.objects.exists()
    assert again in page(curator, draft)


def test_a_draft_that_a_newer_version_has_overtaken_says_what_it_would_undo() -> None:
    admin, curator = make.make_admin(), Client()
    curator.force_login(admin)
    begun = create_draft(user=admin, files=example_files(), now=make.NOW)
    begun = send_to_review(draft=begun, user=admin, now=make.NOW)
    first = publish_draft(draft=begun, user=admin, now=make.NOW, override="an example")
    drafts = [copy_version(version=first, user=admin, now=make.NOW) for _ in range(2)]
    for count, draft in enumerate(drafts):
        files = {**draft.files, "hints.py": f"# {count}\n"}
        edit_draft(draft=draft, user=admin, files=files, revision=draft.revision, now=make.NOW)
        act(curator, draft, "send")
        draft.refresh_from_db()
    one, other = drafts
    assert "has become public since this draft was started" not in page(curator, one)
    seen = {"revision": other.revision, "replaces": first.number}
    assert f'name="replaces" value="{first.number}"' in page(curator, other)
    act(curator, one, "override", reason="seen by hand")
    one.refresh_from_db()
    assert one.version is not None
    assert other.version is not None
    address = reverse("draft-act", args=[other.pk])
    form = {"action": "override", "reason": "seen by hand", **seen}
    refused = curator.post(address, form)
    assert refused.status_code == 422
    text = refused.content.decode()
    assert curator.post(address, {k: form[k] for k in form if k != "replaces"}).status_code == 422
    assert f"Version {one.version.number} has become public since you opened it" in text
    changes = reverse("task-version", args=[first.task.slug, other.version.number])
    assert f'href="{changes}?against={one.version.number}">What differs' in text
    assert curator.post(address, {**form, "replaces": one.version.number}).status_code == 302
