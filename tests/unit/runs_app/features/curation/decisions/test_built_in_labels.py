"""Built-in tasks come with a difficulty and tags, which an admin's own replace for good."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from gpu_runner.data.formats import catalog_folder
from runs_app.features.curation.decisions.services import label
from tasks_app.formats import loader
from tasks_app.models import AuditEntry, Task
from tasks_app.publishing.labels import clean_tags
from tests import factories as make


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
