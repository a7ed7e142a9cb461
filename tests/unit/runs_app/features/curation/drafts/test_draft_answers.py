"""What the workbench answers: which file is at fault, what was not saved, what was not seen."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.refusals import free_name
from runs_app.features.curation.drafts.services import close_draft
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
        ({"do": "add"}, "say the file"),
        ({"do": "add", "new_path": "../x"}, "is not a relative path"),
        ({"do": "add", "new_path": "reference.py"}, "there is a file reference.py"),
        ({"do": "add", "new_path": "notes.txt", "revision": 9}, "notes.txt"),
        ({"do": "rename", "rename_to": "reference.py"}, "there is a file reference.py"),
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
