"""Results that were stored under an older name of a time are read under the new one."""

from __future__ import annotations

import importlib
import json

import pytest
from django.apps import apps

from tests import factories

pytestmark = pytest.mark.django_db

migration = importlib.import_module("runs_app.migrations.0015_time_ns")


def test_stored_results_are_renamed_and_back() -> None:
    result = factories.make_finished_evaluation().result
    now = result.document
    then = json.loads(json.dumps(now).replace('"time_ns"', '"median_ns"'))
    assert then != now
    type(result).objects.update(document=then)
    migration.forwards(apps, None)
    result.refresh_from_db()
    assert result.document == now
    migration.backwards(apps, None)
    result.refresh_from_db()
    assert result.document == then
