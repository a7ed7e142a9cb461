"""The column says what the rule says, in whatever order evaluations are made and end."""

from __future__ import annotations

import json
import random
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Exists

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work import lifecycle
from runs_app.core.work.replaced import later
from runs_app.models import Device, Evaluation, Submission
from tests import factories as make
from tests.unit.runs_app.features.transfer.measured import exported, forget, imported, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

VERDICTS = (Verdict.CORRECT, Verdict.WRONG_RESULT, Verdict.SYSTEM_ERROR)


def again(submission: Submission, device: Device, number: int, mode: Mode) -> Evaluation:
    """Queue it once more, as the numbered one."""
    return lifecycle.evaluate(
        submission=submission, device=device, mode=mode,
        now=make.NOW + timedelta(seconds=number // 2),
    )  # fmt: skip


def end(evaluation: Evaluation, drawn: random.Random) -> None:
    """End it in one of the ways there are; some go on."""
    way = drawn.choice((*VERDICTS, "cancelled", "lost", "left"))
    locked = lifecycle.lock(Evaluation, evaluation.pk)
    if isinstance(way, Verdict):
        make.finish(evaluation, verdict=way)
    elif way == "cancelled":
        lifecycle.cancel(locked, reason="", now=make.NOW)
    elif way == "lost":
        lifecycle.give_up(locked, reason="lost", now=make.NOW)


@pytest.mark.parametrize("seed", range(2))
def test_after_each_end_the_column_agrees_with_the_rule(seed: int) -> None:
    drawn = random.Random(seed)
    submission = make.make_submission(mode="ranked")
    devices = [make.make_cpu(), make.make_device()]
    modes = (Mode.RANKED, Mode.RANKED, Mode.QUICK)
    draws = ((drawn.choice(devices), number, drawn.choice(modes)) for number in range(10))
    made = [again(submission, *draw) for draw in draws]
    for evaluation in drawn.sample(made, len(made)):
        end(evaluation, drawn)
        rows = Evaluation.objects.all()
        marked = set(rows.filter(replaced=True).values_list("pk", flat=True))
        ruled = rows.filter(Exists(later()), mode="ranked")
        assert marked == set(ruled.values_list("pk", flat=True))
    assert marked


def test_an_older_result_that_is_imported_later_counts_not(tmp_path: Path) -> None:
    ranked(800.0)
    document = exported(tmp_path / "newer.json")
    forget()
    (newer,) = document["results"]
    older = newer | {"evaluation": str(uuid.uuid4()), "measured_at": "2026-01-01T00:00:00+00:00"}
    for number, record in enumerate((newer, older)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document | {"results": [record]}))
        assert "1 new result(s)" in imported(path)
    marked = {str(row.pk): row.replaced for row in Evaluation.objects.all()}
    assert marked == {newer["evaluation"]: False, older["evaluation"]: True}
