"""What the site refuses of a draft: a name that was lost, kept agents, one draft too many."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

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
from tests.unit.runs_app.features.curation.drafted import (
    act,
    created,
    edited,
    example,
    shown,
    signed_in,
)
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
        text = shown(client, draft)
        words = LOST.replace("'", "&#x27;")
        assert words in text
        assert 'value="publish"' not in text
        assert 'value="override"' not in text
        assert words in client.get("/drafts/").content.decode()
        assert act(client, draft, "override", "x", replaces=1).status_code == 422
        client.force_login(draft.author)
        assert words in shown(client, draft)

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
