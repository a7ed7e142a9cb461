"""What the site refuses of a draft: a name that was lost, kept agents, one draft too many."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import (
    copy_version,
    create_draft,
    edit_draft,
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
from tests.unit.tasks_app.formats.test_importing import CONFIG, ROBUST

pytestmark = pytest.mark.django_db

LOST = "another task 'wave' has been loaded or published in the meantime: choose another name"


def toml_of(**changes: str) -> str:
    text = draft_page.example_files()["task.toml"].replace('"scaled_sum"', '"wave"')
    for old, new in changes.items():
        assert f'"{old}"' in text
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


def created(user: User, **changes: str) -> Draft:
    files = draft_page.example_files() | {"task.toml": toml_of(**changes)}
    return create_draft(user=user, files=files, now=make.NOW)


def checked(user: User, note: str) -> Draft:
    """A draft of the name "wave" of which a version has been made."""
    draft = created(user)
    draft = edited(draft, **{"notes.txt": note})
    snapshot(draft=draft, now=make.NOW)
    draft.refresh_from_db()
    return draft


def edited(draft: Draft, **files: str) -> Draft:
    return edit_draft(
        draft=draft, user=draft.author, files={**draft.files, **files}, revision=draft.revision,
        now=make.later(1),
    )  # fmt: skip


def sent(draft: Draft) -> Draft:
    return send_to_review(draft=draft, user=draft.author, now=make.later(2))


def published_first(draft: Draft) -> None:
    """Another draft of the same name and author becomes public."""
    first = sent(checked(draft.author, "first"))
    publish_draft(draft=first, user=make.make_admin(), override="seen", now=make.later(3))


def faults(draft: Draft) -> list[str]:
    return [str(fault) for fault in draft_page.read_draft(Draft.objects.get(pk=draft.pk))[1]]


class TestALostName:
    def test_a_second_draft_of_the_name_says_so_and_goes_on_under_another(self) -> None:
        draft = checked(make.make_user(), "second")
        published_first(draft)
        assert faults(draft) == [f"task.toml, line 1: name: {LOST}"]
        with pytest.raises(CurationError) as caught:
            sent(draft)
        assert (caught.value.field, caught.value.reason) == ("name", LOST)
        renamed = edited(draft, **{"task.toml": toml_of(wave="tide")})
        assert (renamed.task, faults(renamed)) == (None, [])
        in_review = sent(renamed)
        version = publish_draft(
            draft=in_review, user=make.make_admin(), override="seen", now=make.later(4)
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

    def test_a_name_that_cannot_be_read_detaches_nothing(self) -> None:
        draft = checked(make.make_user(), "mine")
        make.make_task_version(name="wave")
        assert edited(draft, **{"task.toml": "name = "}).task is not None

    def test_in_review_both_are_told_and_nothing_is_offered_that_would_be_refused(
        self, client: Client
    ) -> None:
        draft = sent(checked(make.make_user(), "mine"))
        make.make_task_version(name="wave")
        client.force_login(make.make_admin())
        text = client.get(draft.get_absolute_url()).content.decode()
        words = f"It cannot be published: name: {LOST}".replace("'", "&#x27;")
        assert f"{words}. Send it back." in text
        assert "Nothing speaks against it" not in text
        assert 'value="publish"' not in text
        assert 'value="override"' not in text
        assert "loaded or published in the meantime" in client.get("/drafts/").content.decode()
        posted = {"action": "override", "reason": "x", "revision": draft.revision, "replaces": "1"}
        assert client.post(reverse("draft-act", args=[draft.pk]), posted).status_code == 422
        client.force_login(draft.author)
        text = client.get(draft.get_absolute_url()).content.decode()
        assert f"{words}. Take it back and fix that." in text

    def test_a_next_version_keeps_its_task(self) -> None:
        admin = make.make_admin()
        draft = sent(checked(admin, "first"))
        first = publish_draft(draft=draft, user=admin, override="seen", now=make.later(3))
        following = copy_version(version=first, user=admin, now=make.later(4))
        renamed = edited(following, **{"task.toml": toml_of(wave="tide")})
        assert renamed.task == first.task
        [fault] = faults(renamed)
        assert "must stay 'wave'" in fault


class TestKeptAgents:
    @pytest.mark.parametrize(
        "agent", ["kbench-good", "KBench-Naive ", "kbench-islands", "origin", "x (shipped)"]
    )
    def test_a_draft_has_no_kernels_of_kbench(self, agent: str) -> None:
        draft = created(make.make_user(), naive=agent)
        lines = draft.files["task.toml"].splitlines()
        places = [n for n, line in enumerate(lines, 1) if line.startswith("agent")]
        words = f"{agent!r} is reserved for kernels that come with kbench: name who wrote this one"
        assert faults(draft) == [
            f"task.toml, line {line}: kernels[{index}].agent: {words}"
            for index, line in enumerate(places)
        ]
        with pytest.raises(CurationError) as caught:
            sent(draft)
        assert caught.value.field == "kernels[0].agent"
        taken = take_over(draft=draft, user=make.make_admin(), now=make.NOW)
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

    def test_one_that_was_in_review_before_is_not_published(self) -> None:
        author = make.make_admin()
        draft = sent(created(author, naive="kbench-good"))
        author.is_staff = False
        author.save()
        with pytest.raises(CurationError, match="is reserved for kernels that come with kbench"):
            publish_draft(draft=draft, user=make.make_admin(), override="seen", now=make.NOW)

    def test_an_admin_may_and_everybody_reads_whose_kernels_they_are(self, client: Client) -> None:
        admin = make.make_admin()
        draft = created(admin, naive="kbench-good")
        assert faults(draft) == []
        client.force_login(admin)
        facts = client.get(draft.get_absolute_url()).content.decode().partition("draft-facts")[2]
        assert '<span class="mono">kernels/naive.cpp</span> by kbench-good' in facts


class TestTheLimit:
    def test_what_an_admin_took_over_counts_no_more(self, settings: Any) -> None:
        settings.MAX_OPEN_DRAFTS_PER_USER = 1
        author = make.make_user()
        first = created(author)
        with pytest.raises(CurationError, match="close one first"):
            created(author, wave="tide")
        take_over(draft=first, user=make.make_admin(), now=make.NOW)
        created(author, wave="tide")
        with pytest.raises(CurationError, match="you have 1 drafts"):
            created(author, wave="surf")
