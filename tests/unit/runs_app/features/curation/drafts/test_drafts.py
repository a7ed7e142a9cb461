"""Drafts: kept as they are, made into versions, reviewed, and published or closed."""

from __future__ import annotations

from typing import Any

import pytest

from runs_app.features.curation.decisions.services import restore, retire
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import (
    close_draft,
    copy_version,
    create_draft,
    edit_draft,
    publish_draft,
    reopen_draft,
    send_back,
    send_to_review,
    take_over,
)
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Override, Task
from tasks_app.publishing.services import admit
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import created, edited, example, in_review, prove

pytestmark = pytest.mark.django_db


def kinds(draft: Draft) -> list[str]:
    return [entry.kind for entry in reversed(draft.audit_entries.all())]


def test_what_is_wrong_is_kept_and_named_and_cannot_become_a_version() -> None:
    draft = created(**{"reference.py": "def make_inputs(N:\n"})
    _, [fault, *_] = draft_page.read_draft(draft)
    assert (fault.file, fault.line) == ("reference.py", 1)
    with pytest.raises(CurationError, match=r"reference\.py"):
        send_to_review(draft=draft, user=draft.author, now=make.NOW)
    draft.refresh_from_db()
    assert (draft.state, draft.version, Task.objects.count()) == ("draft", None, 0)


def test_what_no_task_may_be_is_not_stored() -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "files"),
        ({"../task.toml": ""}, "files.../task.toml"),
        ({"/etc/passwd": ""}, "files./etc/passwd"),
        ({"a": "", "a/b": ""}, "files.a"),
        ({"task.toml": "\0"}, "files.task.toml"),
        ({"task.toml": "\ud800"}, "files.task.toml"),
        ({"task.toml": "x" * (2 * 1024 * 1024 + 1)}, "files"),
        ({f"{number}.txt": "" for number in range(257)}, "files"),
        ({"a" * 201: ""}, f"files.{'a' * 40}…"),
    ]
    for files, field in cases:
        with pytest.raises(CurationError) as caught:
            create_draft(user=make.make_user(), files=files, now=make.NOW)
        assert caught.value.field == field
    assert not Draft.objects.exists()


def test_lines_end_as_on_unix_and_equal_texts_change_nothing() -> None:
    draft = created()
    version = snapshot(draft=draft, now=make.NOW)
    same = {path: text.replace("\n", "\r\n") for path, text in example().items()}
    again = edit_draft(draft=draft, user=draft.author, files=same, revision=1, now=make.later(1))
    assert (again.revision, again.version) == (1, version)
    assert kinds(draft) == ["uploaded"]


def test_a_change_clears_the_version_and_a_stale_one_is_refused() -> None:
    draft = created()
    first = snapshot(draft=draft, now=make.NOW)
    assert snapshot(draft=draft, now=make.NOW) == first
    after = edited(draft, **{"notes.txt": "x"})
    assert (after.revision, after.version) == (2, None)
    second = snapshot(draft=after, now=make.NOW)
    assert (second.number, second.task) == (2, first.task)
    assert (second.task.state, second.task.current_version) == ("draft", None)
    with pytest.raises(CurationError) as caught:
        edit_draft(draft=draft, user=draft.author, files=example(), revision=1, now=make.NOW)
    assert caught.value.field == "revision"


def test_a_draft_becomes_public_only_by_an_admin_and_with_a_proof() -> None:
    admin, draft = make.make_admin(), in_review()
    task = Task.objects.get(slug="wave")
    assert task.state == "review"
    with pytest.raises(CurationError, match="only admins"):
        publish_draft(draft=draft, user=draft.author, now=make.NOW)
    with pytest.raises(CurationError, match="no soundness report"):
        publish_draft(draft=draft, user=admin, now=make.NOW)
    prove(draft.version)
    version = publish_draft(draft=draft, user=admin, now=make.later(3), override="unneeded")
    task.refresh_from_db()
    draft.refresh_from_db()
    assert (task.state, task.current_version, draft.state) == ("published", version, "published")
    assert version.published_at == make.later(3)
    assert kinds(draft) == ["uploaded", "sent", "published"]
    assert not Override.objects.exists()
    with pytest.raises(CurationError):
        publish_draft(draft=draft, user=admin, now=make.NOW)


def test_sent_back_and_closed_the_task_is_a_draft_again() -> None:
    admin, draft = make.make_admin(), in_review()
    with pytest.raises(CurationError) as caught:
        send_back(draft=draft, user=admin, reason=" ", now=make.NOW)
    assert caught.value.field == "reason"
    back = send_back(draft=draft, user=admin, reason="too easy", now=make.NOW)
    assert (back.state, Task.objects.get().state) == ("draft", "draft")
    send_to_review(draft=back, user=draft.author, now=make.NOW)
    closed = close_draft(draft=back, user=draft.author, reason="mistaken", now=make.NOW)
    assert (closed.state, Task.objects.get().state) == ("closed", "draft")
    with pytest.raises(CurationError):
        edited(closed, **{"a.txt": ""})


def test_its_author_takes_a_draft_back_from_review() -> None:
    draft = in_review()
    with pytest.raises(CurationError, match="in review"):
        edited(draft, **{"a.txt": ""})
    with pytest.raises(CurationError):
        reopen_draft(draft=draft, user=make.make_admin(), now=make.NOW)
    back = reopen_draft(draft=draft, user=draft.author, now=make.NOW)
    assert (back.state, Task.objects.get().state) == ("draft", "draft")
    with pytest.raises(CurationError, match="not in review"):
        reopen_draft(draft=back, user=draft.author, now=make.NOW)


def test_after_taking_over_admins_write_and_the_author_does_not() -> None:
    admin, other, draft = make.make_admin(), make.make_admin(), created()
    with pytest.raises(CurationError, match="take it over first"):
        edited(draft, admin, **{"a.txt": ""})
    with pytest.raises(CurationError, match="only admins"):
        take_over(draft=draft, user=draft.author, now=make.NOW)
    taken = take_over(draft=draft, user=admin, now=make.NOW)
    edited(taken, other, **{"a.txt": ""})
    for refused in (
        lambda: edited(draft, **{"b.txt": ""}),
        lambda: send_to_review(draft=draft, user=draft.author, now=make.NOW),
        lambda: close_draft(draft=draft, user=draft.author, reason="x", now=make.NOW),
        lambda: take_over(draft=draft, user=other, now=make.NOW),
    ):
        with pytest.raises(CurationError):
            refused()
    with pytest.raises(CurationError):
        edited(created(name="mine"), make.make_user(), **{"b.txt": ""})


def test_a_name_is_taken_by_a_task_and_by_anothers_draft_until_it_is_closed() -> None:
    make.make_task_version(name="known")
    for name in ("known", "with.dot"):
        with pytest.raises(CurationError) as caught:
            snapshot(draft=created(name=name), now=make.NOW)
        assert caught.value.field == "name"
    first, second = created(), created()
    snapshot(draft=first, now=make.NOW)
    snapshot(draft=created(first.author), now=make.NOW)
    with pytest.raises(CurationError, match="choose another name"):
        snapshot(draft=second, now=make.NOW)
    for own in first.author.task_drafts.all():
        close_draft(draft=own, user=first.author, reason="mistaken", now=make.NOW)
    assert snapshot(draft=second, now=make.NOW).task.slug == "wave"
    renamed = edited(second, **example("other"))
    with pytest.raises(CurationError, match="must stay 'wave'"):
        snapshot(draft=renamed, now=make.NOW)
    loaded = make.make_task_version(name="wave")  # what is only proposed keeps no name from it
    assert (loaded.task.state, loaded.task.current_version) == ("published", loaded)


def test_a_version_that_was_made_public_by_itself_ends_its_draft() -> None:
    admin, draft = make.make_admin(), in_review()
    prove(draft.version)
    assert draft.version is not None
    admit(data=draft.version.data, now=make.NOW)
    assert publish_draft(draft=draft, user=admin, now=make.NOW) == draft.version


def test_a_next_version_is_written_beside_the_public_one() -> None:
    admin, old = make.make_admin(), make.make_task_version(
        files={**make.make_task().files, "reference.py": _REFERENCE}
    )  # fmt: skip
    with pytest.raises(CurationError, match="only admins"):
        copy_version(version=old, user=make.make_user(), now=make.NOW)
    draft = copy_version(version=old, user=admin, now=make.NOW)
    assert snapshot(draft=draft, now=make.NOW) == old
    with pytest.raises(CurationError, match="the same as version"):
        send_to_review(draft=draft, user=admin, now=make.NOW)
    draft = edited(draft, admin, **{"hints.py": "# new\n"})
    draft = send_to_review(draft=draft, user=admin, now=make.NOW)
    task = Task.objects.get()
    assert (task.state, task.current_version) == ("published", old)
    close_draft(draft=draft, user=admin, reason="not needed", now=make.NOW)
    task.refresh_from_db()
    assert (task.state, task.current_version) == ("published", old)
    again = copy_version(version=old, user=admin, now=make.NOW)
    again = edited(again, admin, **{"hints.py": "# newer\n"})
    again = send_to_review(draft=again, user=admin, now=make.NOW)
    prove(again.version)
    new = publish_draft(draft=again, user=admin, now=make.later(9))
    task.refresh_from_db()
    assert (task.current_version, new.number) == (new, 3)


def test_a_draft_of_a_retired_task_waits_until_it_is_restored() -> None:
    admin, old = make.make_admin(), make.make_task_version(
        files={**make.make_task().files, "reference.py": _REFERENCE}
    )  # fmt: skip
    draft = copy_version(version=old, user=admin, now=make.NOW)
    draft = edited(draft, admin, **{"hints.py": "# new\n"})
    draft = send_to_review(draft=draft, user=admin, now=make.NOW)
    prove(draft.version)
    retire(task=old.task, user=admin, reason="too easy", now=make.NOW)
    with pytest.raises(CurationError, match="restore it first"):
        publish_draft(draft=draft, user=admin, now=make.NOW)
    restore(task=old.task, user=admin, now=make.NOW)
    assert publish_draft(draft=draft, user=admin, now=make.NOW) == draft.version


_REFERENCE = """def make_inputs(N):
    return {"x": None}


def forward_fn(x):
    return x
"""


def test_a_user_has_few_open_drafts_and_an_admin_many(settings: Any) -> None:
    settings.MAX_OPEN_DRAFTS_PER_USER = 2
    user, admin = make.make_user(), make.make_admin()
    first = created(user)
    created(user, "b")
    with pytest.raises(CurationError, match="the limit is 2"):
        created(user, "c")
    close_draft(draft=first, user=user, reason="mistaken", now=make.NOW)
    second = created(user, "c")
    with pytest.raises(CurationError, match="close one first"):
        created(user, "d")
    take_over(draft=second, user=admin, now=make.NOW)  # it counts no more
    created(user, "d")
    for name in ("e", "f", "g"):
        created(admin, name)


def test_a_user_starts_few_drafts_a_day(settings: Any) -> None:
    settings.MAX_OPEN_DRAFTS_PER_USER = 1
    user = make.make_user()
    for _ in range(4):
        close_draft(draft=created(user), user=user, reason="mistaken", now=make.NOW)
    with pytest.raises(CurationError, match="made 4 drafts in the last 24 hours"):
        created(user)
    tomorrow = make.later(24 * 3600 + 1)
    create_draft(user=user, files=example(), now=tomorrow)
