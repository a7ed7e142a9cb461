"""What the site refuses of a draft: a lost name, kept agents, bad files, and too many of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse, set_script_prefix

from runs_app.features.curation.drafts import forms
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import (
    copy_version,
    create_draft,
    publish_draft,
    send_to_review,
    take_over,
)
from runs_app.features.curation.drafts.uploads import Upload, read_upload
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Task
from tasks_app.publishing.services import admit
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import created, edited, example, shown, signed_in
from tests.unit.tasks_app.formats.test_importing import CONFIG, ROBUST

pytestmark = pytest.mark.django_db

LOST = "another task 'wave' has been loaded or published in the meantime: choose another name"


def published_first(draft: Draft) -> None:
    """Another draft of the same name and author becomes public."""
    first = sent(checked(draft.author, "first"))
    publish_draft(draft=first, user=make.make_admin(), override="seen", now=make.later(3))


def faults(draft: Draft) -> list[str]:
    return [str(fault) for fault in draft_page.read_draft(Draft.objects.get(pk=draft.pk))[1]]


def renamed(**changes: str) -> str:
    """The example's task.toml with other names."""
    text = example()["task.toml"]
    for old, new in changes.items():
        assert f'"{old}"' in text
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


def checked(user: User, note: str) -> Draft:
    """A draft of the name "wave" of which a version has been made."""
    draft = edited(created(user), **{"notes.txt": note})
    snapshot(draft=draft, now=make.NOW)
    draft.refresh_from_db()
    return draft


def sent(draft: Draft) -> Draft:
    return send_to_review(draft=draft, user=draft.author, now=make.later(2))


class TestALostName:
    def test_a_second_draft_of_the_name_says_so_and_goes_on_under_another(self) -> None:
        draft = checked(make.make_user(), "second")
        published_first(draft)
        assert faults(draft) == [f"task.toml, line 1: name: {LOST}"]
        with pytest.raises(CurationError) as caught:
            sent(draft)
        assert (caught.value.field, caught.value.reason) == ("name", LOST)
        other = edited(draft, **{"task.toml": renamed(wave="tide")})
        assert (other.task, faults(other)) == (None, [])
        version = publish_draft(
            draft=sent(other), user=make.make_admin(), override="seen", now=make.later(4)
        )
        assert (version.task.slug, version.number) == ("tide", 1)
        assert Task.objects.get(slug="wave").current_version != draft.version

    def test_a_task_that_is_loaded_meanwhile_takes_the_name(self) -> None:
        draft = checked(make.make_user(), "mine")
        admit(data=make.make_task(name="wave"), now=make.NOW)  # it waits in review
        assert faults(draft) == [f"task.toml, line 1: name: {LOST}"]
        again = edited(draft, **{"notes.txt": "still mine"})
        assert faults(again) == faults(draft)
        with pytest.raises(CurationError, match="choose another name"):
            snapshot(draft=again, now=make.NOW)

    def test_a_next_version_keeps_its_task(self) -> None:
        admin = make.make_admin()
        draft = sent(checked(admin, "first"))
        first = publish_draft(draft=draft, user=admin, override="seen", now=make.later(3))
        following = copy_version(version=first, user=admin, now=make.later(4))
        other = edited(following, **{"task.toml": renamed(wave="tide")})
        assert other.task == first.task
        [fault] = faults(other)
        assert "must stay 'wave'" in fault


class TestKeptAgents:
    def test_a_draft_has_no_kernels_of_kbench(self) -> None:
        author, admin = make.make_user(), make.make_admin()
        for agent in ("kbench-good", "KBench-Naive ", "kbench-islands", "origin", "x (shipped)"):
            draft = created(author, **{"task.toml": renamed(naive=agent)})
            lines = draft.files["task.toml"].splitlines()
            places = [n for n, line in enumerate(lines, 1) if line.startswith("agent")]
            kept = [
                f"task.toml, line {line}: kernels[{index}].agent: {agent!r} is reserved for kernels"
                for index, line in enumerate(places)
            ]
            told = faults(draft)
            assert len(told) == len(kept) == 2
            assert all(text.startswith(start) for text, start in zip(told, kept, strict=True))
            with pytest.raises(CurationError) as caught:
                sent(draft)
            assert caught.value.field == "kernels[0].agent"
            taken = take_over(draft=draft, user=admin, now=make.NOW)
            assert len(faults(taken)) == 2  # its kernels are still a stranger's

    def test_a_kernel_of_another_format_gets_another_name(self) -> None:
        robust = {"func_forward.py": ROBUST, "config_forward.json": json.dumps(CONFIG)}
        parts = (robust | {"forward.cu": make.SOURCE}).items()
        uploads = [Upload(name=name, content=text.encode()) for name, text in parts]
        [files] = read_upload(uploads).folders
        draft = create_draft(user=make.make_user(), files=files, now=make.NOW)
        [fault] = draft_page.read_draft(draft)[1]
        assert (fault.field, fault.file) == ("kernels[0].agent", "task.toml")
        assert 'agent = "origin"' in files["task.toml"].splitlines()[(fault.line or 0) - 1]
        mended = files["task.toml"].replace('"origin"', '"its author"')
        assert faults(edited(draft, **{"task.toml": mended})) == []

    def test_an_admin_may_and_who_is_none_any_more_may_not(self) -> None:
        author = make.make_admin()
        draft = created(author, **{"task.toml": renamed(naive="kbench-good")})
        assert faults(draft) == []
        assert "by kbench-good" in shown(signed_in(author), draft)
        draft = sent(draft)
        author.is_staff = False
        author.save()
        with pytest.raises(CurationError, match="is reserved for kernels"):
            publish_draft(draft=draft, user=make.make_admin(), override="seen", now=make.NOW)


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
    assert (answer.status_code, read) == (422, [])
    assert Draft.objects.count() == 1


def test_refused_uploads_are_few_a_minute(client: Client, settings: Any) -> None:
    settings.UPLOADS_PER_MINUTE = 2
    client.force_login(make.make_user())
    answers = [client.post("/drafts/", upload()) for _ in range(5)]  # a minute may end in between
    assert answers[0].status_code == 422
    [refused, *_] = [answer for answer in answers if answer.status_code == 429]
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "2 times" in refused.content.decode()
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
