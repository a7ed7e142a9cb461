"""A database of before keeps all that was read out of its audit log, now in columns and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from runs_app.models import Evaluation, Reevaluation
from tasks_app.models import Draft, Task
from tests import factories as make

BEFORE = [("tasks_app", "0008_cancelled_act"), ("runs_app", "0018_runner_compiler")]
DRAFTS = {name: UUID(int=number) for number, name in enumerate(("own", "next", "edited"), 1)}

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.site]


@pytest.fixture
def database() -> Iterator[Any]:
    """The models of before, in a database of before; afterwards it is one of today again."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    yield executor.loader.project_state(BEFORE).apps
    migrate_to_today()


def migrate_to_today() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


class Past:
    """Rows of before."""

    def __init__(self, models: Any) -> None:
        self._models = models
        self.ada = self.add("auth.User", username="ada", is_staff=True)
        self.task = self.add(
            "tasks_app.Task", slug="scale", title="Scale", state="retired", created_at=make.NOW
        )
        self.versions = [self.version(self.task, number) for number in (1, 2, 3)]

    def add(self, name: str, /, **columns: Any) -> Any:
        """A row of a model."""
        return self._models.get_model(name).objects.create(**columns)

    def version(self, task: Any, number: int) -> Any:
        """A version of a task."""
        return self.add(
            "tasks_app.TaskVersion", task=task, number=number, digest=f"{task.pk}-{number}",
            document={}, abi="c", dtype="fp32", created_at=make.NOW,
        )  # fmt: skip

    def draft(self, name: str, **columns: Any) -> Any:
        """A draft that ada writes."""
        return self.add(
            "tasks_app.Draft", pk=DRAFTS[name], author=self.ada, files={}, created_at=make.NOW,
            changed_at=make.NOW, **columns,
        )  # fmt: skip

    def entry(self, kind: str, seconds: float, **columns: Any) -> Any:
        """An entry of the audit log."""
        return self.add(
            "tasks_app.Act", kind=kind, name="scale", created_at=make.later(seconds), **columns
        )

    def evaluation(self, version: Any, **columns: Any) -> Any:
        """A queued evaluation of a submission."""
        agent = self._models.get_model("runs_app.Agent").objects.get_or_create(
            name="fast", defaults={"kind": "agent", "created_at": make.NOW}
        )[0]
        device = self._models.get_model("runs_app.Device").objects.get_or_create(
            slug="cpu", defaults={"kind": "cpu", "name": "CPU", "created_at": make.NOW}
        )[0]
        submission = self.add(
            "runs_app.Submission", author=self.ada, task_version=version, source="", language="cpp",
            direction="forward", digest="d", agent=agent, created_at=make.NOW,
        )  # fmt: skip
        return self.add(
            "runs_app.Evaluation", submission=submission, task_version=version, device=device,
            direction="forward", mode="ranked", created_at=make.NOW, queued_at=make.NOW, **columns,
        )  # fmt: skip


def write_log(past: Past) -> None:
    """Three drafts: a proposal, the next version of a task, and one that was edited since."""
    first, second, third = past.versions
    own = past.draft("own", task=past.task, version=first, state="published")
    following = past.draft("next", task=past.task, version=third, state="draft")
    edited = past.draft("edited", state="closed")
    past.entry("uploaded", 1, draft=own, actor=past.ada)
    past.entry("published", 2, draft=own, task=past.task, version=first, actor=past.ada)
    past.entry("labelled", 2, task=past.task)
    details = {"version": 1, "public": 2}
    past.entry("uploaded", 3, draft=following, task=past.task, details=details)
    past.entry("returned", 4, draft=following, reason="too few sizes")
    past.entry("checked", 5, draft=edited, version=second, task=past.task)
    past.entry("returned", 6, draft=edited, reason="mend it")
    past.entry("closed", 7, draft=edited, reason="given up")
    past.entry("retired", 8, task=past.task, reason="an old reason")
    past.entry("retired", 9, task=past.task, reason="too easy")


def test_drafts_and_tasks_keep_what_the_log_said_of_them(database: Any) -> None:
    past = Past(database)
    write_log(past)
    log = database.get_model("tasks_app.Act").objects.count()
    migrate_to_today()

    task = Task.objects.get()
    assert (task.why_retired, task.labelled, task.published_by_id) == (
        "too easy",
        True,
        past.ada.pk,
    )
    drafts = {name: Draft.objects.get(pk=key) for name, key in DRAFTS.items()}
    found = {
        name: (
            draft.follows_id,
            draft.base_version_id,
            draft.last_reason,
            [version.number for version in draft.versions.order_by("number")],
        )
        for name, draft in drafts.items()
    }
    assert found == {
        "own": (None, None, "", [1]),
        "next": (task.pk, past.versions[1].pk, "too few sizes", [3]),
        "edited": (None, None, "given up", [2]),
    }
    assert log == task.acts.count() + 4  # those of drafts have no task


def test_reevaluations_are_rows_with_the_numbers_that_addresses_have(database: Any) -> None:
    past = Past(database)
    first, second, third = past.versions
    past.entry("labelled", 1, task=past.task)
    details = {"from": 1, "to": 2, "devices": ["cpu"], "what": "top", "top": 3, "evaluations": 1}
    fields = {"task": past.task, "actor": past.ada}
    carried = past.entry("reevaluated", 2, version=second, details=details, **fields)
    past.entry("reevaluated", 3, version=second, details={"cancelled": 1, "of": 7}, **fields)
    details = {"from": 3, "to": 3, "devices": ["cpu"], "what": "best", "evaluations": 0}
    again = past.entry("reevaluated", 4, version=third, details=details, **fields)
    mine = past.evaluation(second, reevaluation=carried)
    other = past.evaluation(first)
    migrate_to_today()

    assert {row.pk: str(row) for row in Reevaluation.objects.all()} == {
        carried.pk: "the best 3 of the board of version 1 on version 2, on cpu",
        again.pk: "the best of each agent of version 3, measured again on cpu",
    }
    row = Reevaluation.objects.get(pk=carried.pk)
    assert (row.asked_by_id, row.created_at) == (past.ada.pk, make.later(2))
    assert [each.pk for each in row.evaluations.all()] == [mine.pk]
    assert Evaluation.objects.get(pk=other.pk).reevaluation is None
    new = Reevaluation.objects.create(
        source=row.source, target=row.target, devices=[], asked_by=row.asked_by, created_at=make.NOW
    )
    assert new.pk > again.pk
