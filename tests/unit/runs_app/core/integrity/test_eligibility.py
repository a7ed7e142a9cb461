"""An evaluation is eligible, pending or rejected, and one sentence says why."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from runs_app.core.integrity import eligibility as subject
from runs_app.core.integrity.eligibility import Eligibility, Why
from runs_app.core.work import replaced
from runs_app.models import Evaluation, QuarantineCase, Submission
from tasks_app.models import Task, TaskVersion
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

ENDS = [
    ("QUEUED", ""),
    ("RUNNING", ""),
    ("CANCELLED", ""),
    ("FINISHED", "CORRECT"),
    ("FINISHED", "WRONG_RESULT"),
    ("FINISHED", "SYSTEM_ERROR"),
]
VERSIONS = ("current", "older", "retired")
LATER = ("", "open", "WRONG_RESULT", "SYSTEM_ERROR", "quick", "queued")
"""What was made later of the same submission on the device."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """All on which it depends whether an evaluation counts."""

    mode: str
    status: str
    verdict: str
    quarantine: str
    audited: str
    private: bool
    of_a_run: bool
    version: str
    later: str


def combinations() -> Iterator[Combination]:
    """All that the database allows; what keeps a submission from boards whole comes alone."""
    fits = [((False, False), *rest) for rest in itertools.product(VERSIONS, LATER)]
    keeps_away = [(pair, VERSIONS[0], "") for pair in ((True, False), (False, True), (True, True))]
    for mode, (status, verdict) in itertools.product(("ranked", "audit"), ENDS):
        states = ("none", "open", "cleared", "rejected") if verdict == "CORRECT" else ("none",)
        audits = ("none", "waiting", "passed", "failed", "suspicious", "inconclusive")
        known = audits if mode == "ranked" else audits[:1]
        for state, audited, rest in itertools.product(states, known, fits + keeps_away):
            (private, of_a_run), version, later = rest
            yield Combination(
                mode=mode, status=status, verdict=verdict, quarantine=state, audited=audited,
                private=private, of_a_run=of_a_run, version=version, later=later,
            )  # fmt: skip


def expected(each: Combination) -> Why:
    """The rules again, as a person would tell them: the first line that is true."""
    lines = {
        Why.REFUSED: each.quarantine == "rejected",
        Why.QUARANTINED: each.quarantine == "open",
        Why.AUDIT_FAILED: each.audited == "failed",
        Why.AUDIT_QUARANTINED: each.audited == "suspicious",
        Why.NOT_RANKED: each.mode != "ranked",
        Why.OF_A_RUN: each.of_a_run,
        Why.PRIVATE: each.private,
        Why.CANCELLED: each.status == "CANCELLED",
        Why.UNDER_WAY: each.status != "FINISHED",
        Why.SYSTEM_ERROR: each.verdict == "SYSTEM_ERROR",
        Why.NOT_CURRENT: each.version != "current",
        Why.NOT_CORRECT: each.verdict != "CORRECT",
        Why.REPLACED: each.later in ("WRONG_RESULT", "open"),
        Why.COUNTS: True,
    }
    return next(why for why, is_true in lines.items() if is_true)


class World:
    """A row for each combination, with what was made later."""

    def __init__(self) -> None:
        """Make them."""
        older = make.make_task_version()
        current = make.make_task_version(description="another")
        retired = make.make_task_version(name="retired")
        Task.objects.filter(pk=retired.task_id).update(state="retired")
        assert older.task_id == current.task_id
        self.versions = {"older": older, "current": current, "retired": retired}
        self.run = make.make_run(task_version=current)
        self.like = make.make_submission(task_version=current)
        self.device = make.make_cpu()
        self.case = QuarantineCase.objects.create(
            digest="", task_version=current, fingerprint="", suspicions=[], created_at=make.NOW
        )
        self.submissions: list[Submission] = []
        self.evaluations: list[Evaluation] = []
        self.rows = {self._row(each).pk: each for each in combinations()}
        Submission.objects.bulk_create(self.submissions)
        Evaluation.objects.bulk_create(self.evaluations)
        with connection.cursor() as cursor:  # thousands where a planner has seen none: minutes
            cursor.execute("ANALYZE")
        replaced.settle([submission.pk for submission in self.submissions])

    def _row(self, each: Combination) -> Evaluation:
        submission = Submission(
            author=self.like.author, task_version=self.versions[each.version], source="",
            language="cpp", direction="forward", agent=self.like.agent, private=each.private,
            origin="run" if each.of_a_run else "person", run=self.run if each.of_a_run else None,
            created_at=make.NOW,
        )  # fmt: skip
        self.submissions.append(submission)
        if each.later:
            change = {
                "WRONG_RESULT": {"status": "FINISHED", "verdict": "WRONG_RESULT"},
                "SYSTEM_ERROR": {"status": "FINISHED", "verdict": "SYSTEM_ERROR"},
                "quick": {"mode": "quick", "status": "FINISHED", "verdict": "CORRECT"},
                "open": {"status": "FINISHED", "verdict": "CORRECT", "quarantine": "open"},
                "queued": {"status": "QUEUED", "verdict": ""},
            }[each.later]
            plain = {"mode": "ranked", "quarantine": "none", "audited": "none"}
            self._evaluation(submission, replace(each, **{**plain, **change}), seconds=1)
        return self._evaluation(submission, each, seconds=0)

    def _evaluation(
        self, submission: Submission, each: Combination, *, seconds: float
    ) -> Evaluation:
        at = make.NOW + timedelta(seconds=seconds)
        evaluation = Evaluation(
            submission=submission, task_version=submission.task_version, direction="forward",
            device=self.device, mode=each.mode, status=each.status, verdict=each.verdict,
            latency_ns=1.0 if each.verdict == "CORRECT" else None, quarantine=each.quarantine,
            quarantine_case=None if each.quarantine == "none" else self.case,
            audited=each.audited, created_at=at, queued_at=at,
            finished_at=at if each.status in ("FINISHED", "CANCELLED") else None,
        )  # fmt: skip
        self.evaluations.append(evaluation)
        return evaluation

    def those(self, *whys: Why) -> set[Combination]:
        """The combinations that one of these keeps away."""
        return {each for each in self.rows.values() if expected(each) in whys}

    def found(self, rows: object) -> set[Combination]:
        """The combinations among `rows`."""
        keys = Evaluation.objects.filter(pk__in=rows).values_list("pk", flat=True)
        return {self.rows[key] for key in keys if key in self.rows}


def test_a_row_and_a_query_of_many_say_the_same_of_all_combinations() -> None:
    world = World()
    assert len(world.rows) > 1000
    found = subject.eligibilities(Evaluation.objects.all())
    assert {key: found[key] for key in world.rows} == {
        key: expected(each) for key, each in world.rows.items()
    }
    one_of_each = {why: key for key, why in found.items()}
    assert set(one_of_each) == set(Why)
    for why, key in one_of_each.items():
        assert subject.eligibility(Evaluation.objects.get(pk=key)) is why
    assert world.found(subject.eligible_evaluations().values("pk")) == world.those(Why.COUNTS)
    if connection.vendor == "sqlite":
        board = {"task_version": world.versions["current"], "direction": "forward", "device": "cpu"}
        first = subject.eligible_evaluations().filter(**board).order_by("latency_ns")
        assert "INDEX evaluation_record" in first.explain()
    judged = (Why.COUNTS, Why.NOT_CORRECT, Why.REPLACED)
    assert world.found(subject.judged_evaluations().values("pk")) == world.those(*judged)
    entered = world.found(subject.entered_evaluations().values("pk"))
    assert entered == world.those(*judged, Why.NOT_CURRENT)
    clear = world.found(subject.without_doubts(Evaluation.objects.all()).values("pk"))
    assert clear == {each for each in world.rows.values() if not expected(each).is_doubt}
    audits = world.found(subject.doubted_by_audits(Evaluation.objects.all()).values("pk"))
    assert audits == {
        each for each in world.rows.values() if each.audited in ("failed", "suspicious")
    }

    for name, version in world.versions.items():
        _on_a_version_stands_what_would_if_it_were_current(world, name, version)


def _on_a_version_stands_what_would_if_it_were_current(
    world: World, name: str, version: TaskVersion
) -> None:
    def would(each: Combination) -> bool:
        return each.version == name and expected(replace(each, version="current")) is Why.COUNTS

    found = world.found(subject.eligible_on(version).values("pk"))
    assert found == {each for each in world.rows.values() if would(each)}


def test_each_reason_is_of_one_kind_and_has_one_sentence() -> None:
    kinds = {kind: {why for why in Why if why.eligibility is kind} for kind in Eligibility}
    assert kinds[Eligibility.ELIGIBLE] == {Why.COUNTS}
    assert kinds[Eligibility.PENDING] == {Why.QUARANTINED, Why.AUDIT_QUARANTINED, Why.UNDER_WAY}
    assert all(why.label.endswith(".") and why.label.count(".") == 1 for why in Why)


def test_page_and_api_say_it(client: Client) -> None:
    first = make.make_finished_evaluation(mode="ranked")
    quick = make.make_finished_evaluation(task_version=first.task_version)
    make.pass_audits()
    for evaluation, kind, words in (
        (first, "eligible", Why.COUNTS.label),
        (quick, "rejected", Why.NOT_RANKED.label),
    ):
        page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
        assert (words[1:-1] if kind == "rejected" else "1st of 1 on the") in page
        shown = client.get(f"/api/v1/submissions/{evaluation.submission_id}").json()
        row = next(each for each in shown["evaluations"] if each["id"] == str(evaluation.pk))
        assert (row["eligibility"], row["eligibility_reason"]) == (kind, words)
