"""What the workbench answers: what is at fault, not saved or not seen, and how much is too much."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse, set_script_prefix

from runs_app.features.curation.drafts import forms
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.files import free_name
from runs_app.features.curation.drafts.services import close_draft, create_draft
from tasks_app.models import Draft, Task
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import act, created, example, shown

pytestmark = pytest.mark.django_db

BROKEN = "def make_inputs(N:\n"


@pytest.fixture
def author(client: Client) -> User:
    user = make.make_user()
    client.force_login(user)
    return user


def edit(client: Client, draft: Draft, **values: Any) -> str:
    text = draft.files["task.toml"]
    posted = {"path": "task.toml", "text": text, "revision": draft.revision} | values
    answer = client.post(draft.get_absolute_url(), posted)
    assert answer.status_code in (409, 422)
    return answer.content.decode()


def start(client: Client) -> Draft:
    client.post(reverse("draft-example"))
    return Draft.objects.order_by("-changed_at").first() or pytest.fail("no draft was made")


def test_a_refusal_names_the_file_the_line_and_the_field(client: Client, author: User) -> None:
    draft = created(author, **{"reference.py": BROKEN})
    assert "reference.py: is not valid" in act(client, draft, "send").content.decode()
    assert "reference.py, line 1</button>" in shown(client, draft)
    toml = example("tide")["task.toml"].replace('abi = "c"', 'abi = "z"')
    draft = created(author, **{"task.toml": toml})
    assert "</strong> abi: &#x27;z&#x27;" in act(client, draft, "send").content.decode()


def test_what_cannot_be_kept_is_said_and_stays_in_the_editor(client: Client, author: User) -> None:
    draft = created(author)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"do": "upload"}, "choose a file"),
        ({"do": "upload", "upload": SimpleUploadedFile("a.bin", b"\xff")}, "not UTF-8"),
        ({"do": "upload", "upload": SimpleUploadedFile("a.h", b"\xff\xfe/\0")}, "is UTF-16"),
        ({"do": "add"}, "s path, such as"),
        ({"do": "add", "new_path": "../x"}, "is not a relative path"),
        ({"do": "add", "new_path": "reference.py"}, "reference.py already exists"),
        ({"do": "add", "new_path": "notes.txt", "revision": 9}, "notes.txt"),
        ({"do": "rename", "rename_to": "reference.py"}, "reference.py already exists"),
    )
    for values, words in cases:
        for upload in filter(None, [values.get("upload")]):
            upload.seek(0)
        text = edit(client, draft, text="# written", **values)
        assert words.lower() in text.lower(), values
        assert ("# written" in text, "Not saved." in text) == (True, True), values
    for values in ({"text": "\0"}, {"revision": 9}):
        assert "Not saved." in edit(client, draft, **values)
    as_stored = edit(client, draft, do="add")
    assert ("Not saved." in as_stored, "data-unsaved" in as_stored) == (False, False)
    draft.refresh_from_db()
    assert draft.revision == 1


class TestTheExamplesName:
    def test_it_has_no_fault_whatever_there_is(self, client: Client, author: User) -> None:
        make.make_task_version(name="scaled_sum")
        names = []
        for _ in range(2):
            draft = start(client)
            assert draft_page.read_draft(draft)[1] == ()
            names.append(draft.name)
        assert names == ["scaled_sum_2", "scaled_sum_3"]
        assert "void scaled_sum(" in draft.files["task.toml"]
        client.force_login(make.make_admin())
        assert (start(client).name, Draft.objects.filter(task=None).count()) == ("scaled_sum_2", 3)

    def test_a_name_that_another_writes_under_is_left_to_them(
        self, client: Client, author: User
    ) -> None:
        other = created(name="scaled_sum")
        snapshot(draft=other, now=make.NOW)
        for user in (author, make.make_user()):
            assert free_name("scaled_sum", user) == "scaled_sum_2"
        mine = created(name="scaled_sum")
        [fault] = draft_page.read_draft(mine)[1]
        assert "a task that is not public" in fault.reason
        close_draft(draft=other, user=other.author, reason="mistaken", now=make.NOW)
        assert start(client).name == "scaled_sum"
        make.make_task_version(name="scaled_sum")
        [fault] = draft_page.read_draft(mine)[1]
        assert "choose another name" in fault.reason
        Task.objects.update(state=Task.State.RETIRED)
        assert draft_page.read_draft(mine)[1] == (fault,)


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
    assert "you can upload only 2 times per minute" in refused.content.decode()
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
