"""Brief soundness reports, which count what is as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from gpu_runner.data.formats import load_task
from tasks_app import selectors
from tasks_app.models import Soundness
from tests.unit.tasks_app.publishing.test_publish import write_task
from tests.unit.tasks_app.publishing.test_soundness import MUTANT, load, report

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a task."""
    return write_task(tmp_path / "tasks" / "double")


@pytest.fixture
def digest(task: Path) -> str:
    """The digest of that task."""
    return load_task(task, "auto").digest()


COUNTS = {"failed": {"n256": 3, "n4096": 1}, "passed": 2, "right": 1}


def test_a_brief_report_counts_and_proves_no_less(task: Path, digest: str) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"unlisted": {}}, "tries no wrong kernel"),
        ({"unlisted": {"forward": COUNTS | {"failed": {}}}}, "tries no wrong kernel"),
        ({"unlisted": {"forward": COUNTS | {"passed": 0}}}, "cover filters"),
        ({"mutants": [MUTANT | {"state": "survived"}]}, "1 of 5 wrong kernels pass it"),
        ({"honest": []}, "did not pass"),
        ({}, ""),
    )
    short: dict[str, Any] = {"mutants": [], "filters": [], "unlisted": {"forward": COUNTS}}
    for changes, words in cases:
        folder = report(task.parents[1] / "reports", digest, **(short | changes))
        assert words in load(task, "--soundness", folder)
        assert (selectors.find_task("double") is None) == bool(words)
    found = Soundness.objects.get()
    assert (found.mutants, found.filters, found.untried) == (4, 2, 0)


def test_counts_that_count_nothing_are_refused(task: Path, digest: str) -> None:
    for unlisted in (
        [], {"sideways": COUNTS}, {"forward": COUNTS | {"passed": -1}},
        {"forward": COUNTS | {"right": 10**12}}, {"forward": {"failed": {"n256": "3"}}},
    ):  # fmt: skip
        folder = report(task.parents[1] / "reports", digest, unlisted=unlisted)
        with pytest.raises(CommandError, match="unlisted"):
            load(task, "--soundness", folder)
