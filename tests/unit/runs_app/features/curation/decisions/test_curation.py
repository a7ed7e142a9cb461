"""What admins decide about tasks, each with a trace; the labels that built-in tasks come with."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from gpu_runner.data.formats import catalog_folder
from runs_app.features.curation.decisions import services as curation
from runs_app.features.curation.decisions.many import decide_many, preview, read_bulk
from runs_app.features.curation.decisions.services import (
    clear_contamination,
    label,
    make_public,
    mark_contaminated,
    restore,
    retire,
)
from runs_app.features.curation.decisions.services import label as label_task
from tasks_app.errors import CurationError
from tasks_app.formats import loader
from tasks_app.models import AuditEntry, Draft, Override, Task, TaskVersion
from tasks_app.publishing.labels import clean_tags
from tasks_app.publishing.services import store_version
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import prove

pytestmark = pytest.mark.django_db

AT = make.later(60)


@pytest.fixture
def admin() -> User:
    """Who decides."""
    return make.make_admin(username="judge")


@pytest.fixture
def task() -> Task:
    """A published task without a soundness report."""
    return make.make_task_version().task


def log() -> list[tuple[str, str, str]]:
    """Kind, task and reason of each entry, the oldest first."""
    return list(AuditEntry.objects.order_by("pk").values_list("kind", "name", "reason"))


def test_a_task_is_retired_and_restored_with_a_trace(task: Task, admin: User) -> None:
    retired = retire(task=task, user=admin, reason=" too easy ", now=AT)
    assert (retired.state, retired.why_retired) == (Task.State.RETIRED, "too easy")
    with pytest.raises(CurationError, match="scale is retired"):
        retire(task=task, user=admin, reason="again", now=AT)
    restored = restore(task=task, user=admin, now=AT)
    restored.refresh_from_db()
    assert (restored.state, restored.why_retired) == (Task.State.PUBLISHED, "")
    with pytest.raises(CurationError, match="scale is published, not retired"):
        restore(task=task, user=admin, now=AT)
    assert log() == [("retired", "scale", "too easy"), ("restored", "scale", "")]
    entries = AuditEntry.objects.order_by("pk")
    assert [entry.actor for entry in entries] == [admin, admin]
    assert entries[0].details == {"from": "published"}
    retire(task=task, user=admin, reason="unsound", now=AT)
    prove(task.current_version, passed=False, survivors=["forward: zeros"])
    assert restore(task=task, user=admin, now=AT).state == Task.State.REVIEW


def test_contamination_is_marked_once_and_cleared(task: Task, admin: User) -> None:
    mark_contaminated(task=task, user=admin, reason="in a blog", now=AT)
    with pytest.raises(CurationError, match="is marked contaminated: in a blog"):
        mark_contaminated(task=task, user=admin, reason="still", now=AT)
    assert clear_contamination(task=task, user=admin, now=AT).contaminated == ""
    with pytest.raises(CurationError, match="is not marked contaminated"):
        clear_contamination(task=task, user=admin, now=AT)
    assert log() == [("contaminated", "scale", "in a blog"), ("cleared", "scale", "")]


def test_labels_are_made_alike_and_noted_only_if_they_change(task: Task, admin: User) -> None:
    def label(tags: list[str], difficulty: str = "hard") -> Task:
        return label_task(task=task, user=admin, tags=tags, difficulty=difficulty, now=AT)

    labelled = label([" Memory-Bound", "attention", "memory-bound", ""])
    assert (labelled.tags, labelled.difficulty) == (["attention", "memory-bound"], "hard")
    label(["memory-bound", "ATTENTION"])
    entry = AuditEntry.objects.get()
    assert entry.details == {
        "tags": {"from": [], "to": ["attention", "memory-bound"]},
        "difficulty": {"from": "", "to": "hard"},
    }
    for tags, difficulty, field in (
        (["two words"], "", "tags"),
        (["x" * 31], "", "tags"),
        ([f"t{i}" for i in range(11)], "", "tags"),
        ([], "gruelling", "difficulty"),
    ):
        with pytest.raises(CurationError) as caught:
            label(tags, difficulty)
        assert caught.value.field == field
    task.refresh_from_db()
    assert task.tags == ["attention", "memory-bound"]


def test_reasons_and_right_fields_are_asked_for(task: Task, admin: User) -> None:
    for decide in (retire, mark_contaminated):
        for reason in ("", "  \n", "\0", "x" * 2001):
            with pytest.raises(CurationError) as caught:
                decide(task=task, user=admin, reason=reason, now=AT)
            assert caught.value.field == "reason"
    task.refresh_from_db()
    assert (task.state, task.contaminated, log()) == ("published", "", [])
    for fields, field in (
        ({"action": "delete"}, "action"),
        ({"action": "restore", "reason": "x" * 2001}, "reason"),
        ({"action": "add-tag", "tag": ""}, "tag"),
        ({"action": "difficulty", "difficulty": "x"}, "difficulty"),
    ):
        with pytest.raises(CurationError) as caught:
            read_bulk(**fields)
        assert caught.value.field == field


def test_only_admins_decide(task: Task) -> None:
    user = make.make_user()
    assert task.current_version is not None
    for decide, fields in (
        (retire, {"reason": "x"}),
        (restore, {}),
        (mark_contaminated, {"reason": "x"}),
        (clear_contamination, {}),
        (label_task, {"tags": ["x"], "difficulty": ""}),
        (make_public, {"reason": "x", "version": task.current_version}),
    ):
        with pytest.raises(CurationError, match="only admins"):
            decide(task=task, user=user, now=AT, **fields)  # type: ignore[operator]
    bulk = read_bulk(action="retire", reason="x")
    with pytest.raises(CurationError, match="only admins"):
        decide_many(bulk=bulk, tasks=[task], user=user, now=AT)
    task.refresh_from_db()
    assert (task.state, log()) == ("published", [])


def test_an_older_version_becomes_public_again(admin: User) -> None:
    first = make.make_task_version()
    second = make.make_task_version(title="Better")
    task = second.task
    prove(first)
    make_public(task=task, version=first, user=admin, reason="v2 is wrong", now=AT)
    task.refresh_from_db()
    assert (task.current_version, task.title) == (first, "Scale a vector")
    assert log() == [("version", "scale", "v2 is wrong")]
    assert AuditEntry.objects.get().details == {"from": 2, "to": 1}
    with pytest.raises(CurationError, match="version 1 is public"):
        make_public(task=task, version=first, user=admin, reason="again", now=AT)
    other = make.make_task_version(name="other")
    with pytest.raises(CurationError, match="belongs to another task"):
        make_public(task=task, version=other, user=admin, reason="x", now=AT)


def test_what_was_never_public_needs_a_proof_or_a_word(admin: User) -> None:
    task = make.make_task_version().task
    _, stored, _ = store_version(make.make_task(title="Tried"), make.NOW)
    with pytest.raises(CurationError, match="no soundness report") as caught:
        make_public(task=task, version=stored, user=admin, reason="newer", now=AT)
    assert caught.value.field == "override"
    task.refresh_from_db()
    assert task.title == "Scale a vector"
    make_public(
        task=task, version=stored, user=admin, reason="newer", override="two read it", now=AT
    )
    stored.refresh_from_db()
    assert stored.published_at == AT
    override = Override.objects.get()
    assert (override.reason, override.decided_by) == ("two read it", admin)
    assert log() == [("overridden", "scale", "two read it"), ("version", "scale", "newer")]


def test_many_tasks_are_decided_at_once_and_the_rest_says_why(admin: User) -> None:
    tasks = [make.make_task_version(name=name).task for name in ("a", "b", "c")]
    retire(task=tasks[1], user=admin, reason="old", now=AT)
    tasks[1].refresh_from_db()
    bulk = read_bulk(action="retire", reason="a series that ends")
    expected = [("a", ""), ("b", "is retired"), ("c", "")]
    assert [(o.task.slug, o.refusal) for o in preview(bulk, tasks)] == expected
    assert Task.objects.filter(state="retired").count() == 1
    done = decide_many(bulk=bulk, tasks=tasks, user=admin, now=AT)
    assert [(o.task.slug, o.refusal) for o in done] == expected
    assert Task.objects.filter(state="retired").count() == 3
    assert log()[1:] == [("retired", name, "a series that ends") for name in ("a", "c")]

    for name, fields, labels in (
        ("add-tag", {"tag": "Old"}, (["old"], "")),
        ("difficulty", {"difficulty": "easy"}, (["old"], "easy")),
        ("remove-tag", {"tag": "old"}, ([], "easy")),
    ):
        bulk = read_bulk(action=name, **fields)
        first, again = (decide_many(bulk=bulk, tasks=tasks[:1], user=admin, now=AT) for _ in "12")
        assert (first[0].refusal, again[0].refusal) == ("", "already is")
        tasks[0].refresh_from_db()
        assert (tasks[0].tags, tasks[0].difficulty) == labels


def test_a_report_that_comes_while_many_are_published_holds_back_its_task_alone(
    admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [make.make_task_version(name=name).task for name in ("a", "b", "c")]
    for task in tasks:
        prove(task.versions.get())
    Task.objects.update(state=Task.State.REVIEW)
    look = curation.must_be_seen

    def wait(version: TaskVersion, reports: str | None) -> None:
        if version.task.slug == "b":  # what had the version's lock meanwhile
            version.reports.update(passed=False, survivors=["forward: zeros"])
        look(version, reports)

    monkeypatch.setattr(curation, "must_be_seen", wait)
    bulk = read_bulk(action="publish", reason="checked")
    done = decide_many(bulk=bulk, tasks=Task.objects.order_by("pk"), user=admin, now=AT)
    reason = "stays as it is: 1 of 3 wrong kernels pass (zeros)"
    assert [(o.task.slug, o.refusal) for o in done] == [("a", ""), ("b", reason), ("c", "")]
    states = Task.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["published", "review", "published"]


def test_loading_notes_new_versions_and_what_became_public(tmp_path: Path) -> None:
    folder = tmp_path / "double"
    folder.mkdir()
    toml = (
        'name = "double"\ntitle = "Double"\nabi = "c"\nsignature = "void f(float* o, int N)"\n'
        '[[workloads]]\nname = "small"\nparameters = { N = 8 }\n'
    )
    (folder / "task.toml").write_text(toml)
    (folder / "reference.py").write_text(
        'def make_inputs(N):\n    return {"x": None}\n\n\ndef forward_fn(x):\n    return x\n'
    )
    call_command("load_tasks", str(folder), verbosity=0)
    call_command("load_tasks", str(folder), verbosity=0)
    assert [row[:2] for row in log()] == [("loaded", "double")]
    call_command("load_tasks", str(folder), "--publish-unproven", "by hand", verbosity=0)
    assert log()[1:] == [("overridden", "double", "by hand"), ("published", "double", "")]
    entry = AuditEntry.objects.latest("pk")
    assert (entry.actor, entry.version) == (None, TaskVersion.objects.get())


@pytest.mark.django_db
def test_they_are_given_once() -> None:
    admin = make.make_admin()

    def loaded() -> tuple[str, list[str]]:
        call_command("load_tasks", catalog_folder() / "softmax", verbosity=0)
        task = Task.objects.get(slug="softmax_bf16")
        return task.difficulty, task.tags

    own = make.make_task_version(name="linear").task
    assert loaded() == ("medium", ["reduction"])
    own.refresh_from_db()
    assert not own.tags  # it was not loaded from the catalogue
    assert AuditEntry.objects.filter(kind=AuditEntry.Kind.LABELLED, actor=None).count() == 2
    task = Task.objects.get(slug="softmax_bf16")
    label(task=task, user=admin, tags=["ours"], difficulty="hard", now=make.NOW)
    assert loaded() == ("hard", ["ours"])
    label(task=task, user=admin, tags=[], difficulty="", now=make.NOW)
    assert loaded() == ("", [])


def test_every_built_in_task_has_some() -> None:
    for difficulty, tags in loader.labels_of(catalog_folder()).values():
        assert difficulty in Task.Difficulty.values
        assert clean_tags(tags) == tags != []


def test_a_version_of_an_open_draft_becomes_public_with_its_draft_alone(admin: User) -> None:
    task = make.make_task_version().task
    _, stored, _ = store_version(make.make_task(title="Tried"), make.NOW)
    times = {"created_at": make.NOW, "changed_at": make.NOW}
    Draft.objects.create(
        author=admin, task=task, name="scale", files={}, state="review", version=stored, **times
    )
    with pytest.raises(CurationError, match="belongs to a draft"):
        make_public(task=task, version=stored, user=admin, reason="x", override="y", now=AT)
