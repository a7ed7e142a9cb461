"""The attempts at a task: whose they are, what they changed, and which may be ranked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Submission
from runs_app.submitting.services import rerun
from runs_app.submitting.workbench.attempts import Attempt, attempts
from tasks_app.models import TaskVersion
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HTMX = {"HTTP_HX_REQUEST": "true"}
PART = "/submit/attempts/?task=scale&device=cpu&direction=forward"


def tried(ada: User, version: TaskVersion, hour: int, **overrides: Any) -> Evaluation:
    """A finished attempt of hers, at some hour."""
    at = factories.NOW + timedelta(hours=hour)
    values: dict[str, Any] = {"mode": "quick", "source": f"{factories.SOURCE}// {hour}\n"}
    return factories.make_finished_evaluation(
        **{**values, "task_version": version, "user": ada, "now": at, **overrides}
    )


def rows_of(version: TaskVersion, user: User) -> list[Attempt]:
    """Her attempts on the CPU, newest first."""
    return list(attempts(version, "forward", factories.make_cpu(), user).rows)


def test_each_says_what_it_changed_since_the_one_before(ada: User) -> None:
    version = factories.make_task_version()
    for hour in (1, 2, 3):
        tried(ada, version, hour)
    tried(factories.make_user(), version, 4)
    rows = rows_of(version, ada)
    assert [row.number for row in rows] == [3, 2, 1]
    assert [row.change and (row.change.added, row.change.removed) for row in rows] == [
        (1, 1), (1, 1), None,
    ]  # fmt: skip
    assert len(attempts(version, "forward", factories.make_cpu(), ada).speedups) == 3


def test_what_was_right_in_a_quick_run_may_be_ranked_once(ada: User) -> None:
    version = factories.make_task_version()
    tried(ada, version, 1)
    tried(ada, version, 2, verdict=Verdict.WRONG_RESULT)
    tried(ada, version, 3, private=True)
    ranked = tried(ada, version, 4, mode="ranked")
    tried(ada, version, 5, source=ranked.submission.source)
    assert [row.may_rank for row in rows_of(version, ada)] == [False] * 4 + [True]


def test_an_attempt_keeps_its_times_of_other_modes(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    first = tried(ada, version, 1, result={"latency_ns": 1500.0})
    ranked = rerun(submission=first.submission, user=ada, mode="ranked", now=factories.later(9000))
    factories.finish(ranked)
    [row] = rows_of(version, ada)
    assert (row.evaluation, list(row.others)) == (ranked, [first])
    assert row.spread == Evaluation.objects.get(pk=ranked.pk).score_spread
    assert "1.50 µs" in signed_in.get(PART).content.decode()


def test_the_newest_evaluation_of_a_submission_is_shown(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    first = tried(ada, version, 1)
    assert "Rank it" in signed_in.get(PART).content.decode()
    answer = signed_in.post(f"/submit/rank/{first.submission_id}/", {"device": "cpu"}, **HTMX)
    assert answer.status_code == 200
    assert answer["HX-Replace-Url"] == f"/submit/?submission={first.submission_id}"
    text = answer.content.decode()
    assert 'id="attempts" hx-swap-oob' in text
    assert "Rank it" not in text
    [row] = rows_of(version, ada)
    assert (row.evaluation.mode, row.evaluation.status) == ("ranked", "QUEUED")
    assert f'data-rank="{first.submission_id}"' in text
    again = {"device": "cpu", "mode": "profile"}
    assert (
        "profile"
        in signed_in.post(f"/submit/rank/{first.submission_id}/", again, **HTMX).content.decode()
    )
    assert Submission.objects.filter(author=ada).count() == 1


def test_a_refusal_to_rank_is_said_beside_the_editor(signed_in: Client) -> None:
    other = factories.make_finished_evaluation(mode="quick")
    answer = signed_in.post(f"/submit/rank/{other.submission_id}/", {}, **HTMX)
    assert answer.status_code == 422
    assert answer["HX-Retarget"] == "#refusal"
    assert "Only its author" in answer.content.decode()


def test_a_restored_attempt_brings_its_console_alone(signed_in: Client, ada: User) -> None:
    done = tried(ada, factories.make_task_version(), 1)
    page = signed_in.get(PART).content.decode()
    assert f'data-source="/submissions/{done.submission_id}/source/"' in page
    assert "left today" in page
    answer = signed_in.get(f"/submit/?submission={done.submission_id}", **HTMX)
    assert answer["HX-Replace-Url"] == f"/submit/?submission={done.submission_id}"
    text = answer.content.decode()
    assert 'id="live"' in text
    assert "<html" not in text


def test_whoever_is_not_signed_in_has_none(client: Client) -> None:
    factories.make_task_version()
    factories.make_finished_evaluation()
    answer = client.get(PART)
    assert (answer.status_code, answer.content.decode().strip()) == (200, "")
