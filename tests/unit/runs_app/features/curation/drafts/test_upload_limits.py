"""What an upload may cost the site: none is read that would not be kept, and few a minute."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import set_script_prefix

from runs_app.features.curation.drafts import forms
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import create_draft
from tasks_app.models import Draft
from tests import factories as make

pytestmark = pytest.mark.django_db


def upload() -> dict[str, Any]:
    return {"upload": [SimpleUploadedFile("a.py", b"# no task")]}


def test_beyond_the_limit_an_upload_is_not_read(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_OPEN_DRAFTS_PER_USER = 1
    user = make.make_user()
    client.force_login(user)
    create_draft(user=user, files=draft_page.example_files(), now=make.NOW)
    read: list[object] = []
    monkeypatch.setattr(forms, "read_upload", read.append)
    answer = client.post("/drafts/", upload())
    text = answer.content.decode()
    assert (answer.status_code, read) == (422, [])
    assert "Nothing was saved. You have 1 drafts that are open or in review; the limit is 1" in text
    assert Draft.objects.count() == 1


def test_refused_uploads_are_few_a_minute(client: Client, settings: Any) -> None:
    settings.UPLOADS_PER_MINUTE = 2
    client.force_login(make.make_user())
    answers = [client.post("/drafts/", upload()) for _ in range(5)]  # a minute may end in between
    assert answers[0].status_code == 422
    [refused, *_] = [answer for answer in answers if answer.status_code == 429]
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "you can upload only 2 times a minute" in refused.content.decode()
    assert client.get("/drafts/").status_code == 200
    other = Client()
    other.force_login(make.make_user())
    assert other.post("/drafts/", upload()).status_code == 422
    assert Client().post("/drafts/", upload()).status_code == 302


def test_they_are_counted_below_a_prefix_too(client: Client, settings: Any) -> None:
    settings.UPLOADS_PER_MINUTE = settings.API_REQUESTS_PER_MINUTE = 1
    client.force_login(make.make_user())
    set_script_prefix("/bench/")
    try:
        answers = [client.post("/drafts/", upload(), SCRIPT_NAME="/bench") for _ in range(3)]
        asked = [client.get("/api/v1/tasks", SCRIPT_NAME="/bench") for _ in range(3)]
    finally:
        set_script_prefix("/")
    assert 429 in [answer.status_code for answer in answers]
    assert 429 in [answer.status_code for answer in asked]
