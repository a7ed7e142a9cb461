"""How a submission came to be entered is stored with it, and agrees with its other columns."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.utils import timezone

from gpu_runner.data.verdict import Mode
from runs_app.models import Submission
from runs_app.submissions.shipped import submit_shipped_kernels
from tasks_app.models import TaskVersion
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

Origin = Submission.Origin
migration = importlib.import_module("runs_app.migrations.0020_submission_origin")


def never_public(submission: Submission) -> None:
    TaskVersion.objects.filter(pk=submission.task_version_id).update(published_at=None)


def test_what_is_private_and_for_a_version_that_was_never_public_is_a_dry_run() -> None:
    version = make.make_task_version()
    entered = make.make_submission(task_version=version, private=True, origin=Origin.API)
    version.published_at = None
    tried = make.make_submission(task_version=version, private=True, origin=Origin.API)
    shown = make.make_submission(task_version=version)
    assert [each.origin for each in (entered, tried, shown)] == ["api", "dry_run", "person"]


@pytest.mark.parametrize(
    "columns",
    [
        {"origin": ""},
        {"origin": "guess"},
        {"origin": "run"},
        {"origin": "dry_run"},
        {"origin": "dry_run", "private": True, "carried_from": "other"},
        {"origin": "person", "carried_from": "other"},
        {"origin": "person", "run": "one"},
    ],
)
def test_the_database_refuses_an_origin_that_the_other_columns_deny(
    columns: dict[str, Any],
) -> None:
    submission = make.make_submission()
    columns = dict(columns)
    if "carried_from" in columns:
        columns["carried_from"] = make.make_submission(task_version=submission.task_version)
    if "run" in columns:
        columns["run"] = make.make_run(task_version=submission.task_version)
    with pytest.raises(IntegrityError, match="submission_"), transaction.atomic():
        Submission.objects.filter(pk=submission.pk).update(**columns)


def test_a_carried_one_stays_so_when_the_earlier_one_is_deleted() -> None:
    earlier = make.make_submission()
    later = make.make_submission(task_version=earlier.task_version)
    Submission.objects.filter(pk=later.pk).update(origin=Origin.CARRIED, carried_from=earlier)
    earlier.delete()
    later.refresh_from_db()
    assert (later.origin, later.carried_from) == ("carried", None)


def test_rows_from_before_get_the_origin_that_pages_guessed() -> None:
    version = make.make_task_version()

    def entered(**fields: Any) -> Submission:
        return make.make_submission(task_version=version, **fields)

    kernel = submit_shipped_kernels(
        device=make.make_cpu(), now=timezone.now(), mode=Mode.QUICK, versions=[version]
    )[0].submission
    person, private, before = entered(), entered(private=True), entered(private=True)
    Submission.objects.filter(pk=before.pk).update(created_at=make.later(-60))
    unpublished = make.make_submission(
        task_version=make.make_task_version(name="other"), private=True
    )
    never_public(unpublished)
    carried = entered(private=True)
    of_a_run, of_a_candidate = entered(private=True), entered(private=True)
    make.give_to_run(of_a_run)
    assert of_a_run.run is not None
    make.make_candidate(of_a_run.run, submission=of_a_run, entry=of_a_candidate)
    Submission.objects.filter(pk=carried.pk).update(origin="carried", carried_from=person)
    expected = {
        kernel: "shipped",
        person: "person",
        private: "person",
        before: "dry_run",
        unpublished: "dry_run",
        carried: "carried",
        of_a_run: "run",
        of_a_candidate: "entered",
    }
    rows = Submission.objects.exclude(pk__in=[of_a_run.pk, carried.pk])  # constraints hold these
    rows.update(origin="person")
    migration.derive(apps, None)
    for submission, origin in expected.items():
        submission.refresh_from_db()
        assert submission.origin == origin
