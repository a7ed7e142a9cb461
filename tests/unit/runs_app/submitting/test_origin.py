"""How a submission came to be entered is stored with it, and agrees with its other columns."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs_app.models import Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

Origin = Submission.Origin


def test_what_is_private_and_for_a_version_that_was_never_public_is_a_dry_run() -> None:
    version = make.make_task_version()
    entered = make.make_submission(task_version=version, private=True, origin=Origin.API)
    version.published_at = None
    tried = make.make_submission(task_version=version, private=True, origin=Origin.API)
    shown = make.make_submission(task_version=version)
    assert [each.origin for each in (entered, tried, shown)] == ["api", "dry_run", "person"]


def test_the_database_refuses_an_origin_that_the_other_columns_deny() -> None:
    submission = make.make_submission()
    earlier = make.make_submission(task_version=submission.task_version)
    run = make.make_run(task_version=submission.task_version)
    cases: tuple[dict[str, Any], ...] = (
        {"origin": ""},
        {"origin": "guess"},
        {"origin": "run"},
        {"origin": "dry_run"},
        {"origin": "dry_run", "private": True, "carried_from": earlier},
        {"origin": "person", "carried_from": earlier},
        {"origin": "person", "run": run},
    )
    for columns in cases:
        with pytest.raises(IntegrityError, match="submission_"), transaction.atomic():
            Submission.objects.filter(pk=submission.pk).update(**columns)


def test_a_carried_one_stays_so_when_the_earlier_one_is_deleted() -> None:
    earlier = make.make_submission()
    later = make.make_submission(task_version=earlier.task_version)
    Submission.objects.filter(pk=later.pk).update(origin=Origin.CARRIED, carried_from=earlier)
    earlier.delete()
    later.refresh_from_db()
    assert (later.origin, later.carried_from) == ("carried", None)
