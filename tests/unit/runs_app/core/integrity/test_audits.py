"""Records are audited once, and stay unverified until an audit has passed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from gpu_runner.data.archive import Loaded
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.integrity.audits import TIMES_DIFFER, request_audit
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.core.integrity.quarantine import decide as decide_case
from runs_app.core.work import lifecycle
from runs_app.models import BoardAudit, Evaluation, QuarantineCase, Status
from runs_app.submitting.live import live_view
from runs_app.submitting.quota import quota as quota_of
from runs_app.submitting.services import cancel, rerun
from tests import factories as make
from tests.unit.queued import Jobs
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, audit_of, end_audit, ranked

pytestmark = pytest.mark.django_db

FAILED = AuditCheck(name="racecheck", state=AuditState.FAILED, reason="2 hazards")
SUSPICIOUS = AuditCheck(name="kernels", state=AuditState.SUSPICIOUS, reason="gemm ran")
SKIPPED = AuditCheck(name="ncu", state=AuditState.SKIPPED, reason="not on this host")


@pytest.fixture(autouse=True)
def _queue(jobs: Jobs) -> Jobs:
    return jobs


def test_an_audit_is_told_what_the_ranked_result_ran() -> None:
    ran = (Loaded(part="source", files=1, digest="ab"),)
    evaluation = ranked(result={"loaded": ran})
    audit = audit_of(evaluation).evaluation
    assert audit is not None
    assert audit.request().loaded == ran
    assert evaluation.request().loaded == ()


def slower(first: Evaluation, **result: object) -> Evaluation:
    """Another person's result on the same board, with this latency if no other is given."""
    fields = {"latency_ns": 2000.0, **result}
    source = f"// other, {fields['latency_ns']}\n"
    return ranked(task_version=first.task_version, source=source, result=fields)


def stands(evaluation: Evaluation) -> bool:
    return eligible_evaluations().filter(pk=evaluation.pk).exists()


def test_a_record_is_audited_in_the_background_and_costs_no_quota() -> None:
    evaluation = ranked()
    audit = audit_of(evaluation)
    assert audit.evaluation is not None
    assert (audit.evaluation.mode, audit.evaluation.background) == ("audit", True)
    evaluation.refresh_from_db()
    assert (audit.state, evaluation.audited) == ("waiting", "waiting")
    assert stands(evaluation)
    quota = quota_of(evaluation.submission.author, make.NOW)
    assert (quota.today, quota.waiting) == (1, 0)


def test_only_the_leader_is_audited_and_only_once() -> None:
    first = ranked()
    slower(first)
    assert BoardAudit.objects.count() == 1
    again = rerun(submission=first.submission, user=first.submission.author, now=make.later(5))
    make.finish(again, latency_ns=900.0)
    again.refresh_from_db()
    assert BoardAudit.objects.count() == 1
    assert again.audited == "waiting"
    slower(first, latency_ns=500.0)
    assert BoardAudit.objects.count() == 2


def test_neither_candidates_nor_private_nor_other_modes_are_audited() -> None:
    evaluation = ranked(private=True)
    make.make_finished_evaluation(task_version=evaluation.task_version, mode="quick")
    candidate = make.make_evaluation(task_version=evaluation.task_version, mode="ranked")
    make.give_to_run(candidate.submission)
    make.finish(candidate)
    assert not BoardAudit.objects.exists()


def test_a_passed_audit_verifies() -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, SKIPPED)
    assert (audit.state, evaluation.audited) == ("passed", "passed")
    assert audit.reason == "1 check passed, 1 did not fit here"
    assert evaluation.events.filter(kind="audited").count() == 2
    assert stands(evaluation)


@pytest.mark.parametrize("check", [FAILED, None])
def test_a_failed_audit_takes_the_entry_off_and_audits_the_next(check: AuditCheck | None) -> None:
    evaluation = ranked()
    next_best = slower(evaluation)
    if check:
        audit = end_audit(evaluation, MEMCHECK, check)
        assert audit.reason == "racecheck: 2 hazards"
    else:
        audit = end_audit(evaluation, verdict=Verdict.VIOLATION, reason="forged a time")
        assert audit.reason == "VIOLATION: forged a time"
    assert (audit.state, evaluation.audited) == ("failed", "failed")
    assert not stands(evaluation)
    assert audit_of(next_best).state == "waiting"
    again = rerun(
        submission=evaluation.submission, user=evaluation.submission.author, now=make.later(5)
    )
    make.finish(again)
    assert not stands(again)


@pytest.mark.parametrize(("decision", "state"), [("cleared", "passed"), ("rejected", "failed")])
def test_a_suspicious_audit_waits_for_a_person(decision: str, state: str) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, SUSPICIOUS)
    assert (audit.state, evaluation.audited) == ("suspicious", "suspicious")
    assert not stands(evaluation)
    assert audit.evaluation is not None
    case = audit.evaluation.quarantine_case
    assert case is not None
    assert case.suspicions[0]["reason"] == "kernels: gemm ran"
    decide_case(
        case=case, user=make.make_admin(), state=decision, reason="I looked", now=make.later(9)
    )
    evaluation.refresh_from_db()
    assert evaluation.audited == audit_of(evaluation).state == state
    assert audit_of(evaluation).reason == f"{decision} by a person: I looked"
    assert stands(evaluation) is (decision == "cleared")


@pytest.mark.parametrize("verdict", [Verdict.SYSTEM_ERROR, Verdict.UNSTABLE])
def test_an_audit_without_a_result_can_be_repeated(verdict: Verdict) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, verdict=verdict, reason="no luck")
    assert (audit.state, audit.reason) == ("inconclusive", f"{verdict}: no luck")
    assert stands(evaluation)
    request_audit(
        submission=evaluation.submission, device=evaluation.device, user=make.make_admin(),
        now=make.later(9),
    )  # fmt: skip
    assert audit_of(evaluation).state == "waiting"
    assert end_audit(evaluation, MEMCHECK).state == "passed"


INCONCLUSIVE = replace(SKIPPED, state=AuditState.INCONCLUSIVE, reason="it needs more memory")


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ((SKIPPED,), "memcheck not made; ncu skipped: not on this host"),
        ((MEMCHECK, SKIPPED), "ncu skipped: not on this host"),
        ((MEMCHECK, INCONCLUSIVE), "ncu inconclusive: it needs more memory"),
        ((replace(MEMCHECK, state=AuditState.SKIPPED, reason="not on this host"), SKIPPED),
         "memcheck, ncu skipped: not on this host"),
    ],
)  # fmt: skip
def test_a_required_check_without_a_result_leaves_it_unverified(
    checks: tuple[AuditCheck, ...], words: str
) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, *checks, required=("memcheck", "ncu"))
    assert (audit.state, evaluation.audited) == ("inconclusive", "inconclusive")
    assert audit.reason == f"some required checks haven't passed: {words}"
    assert stands(evaluation)


def test_an_audit_that_names_no_required_check_verifies_nothing() -> None:
    audit = end_audit(ranked(), MEMCHECK, required=())
    assert (audit.state, "does not say which" in audit.reason) == ("inconclusive", True)


def test_whoever_clears_a_suspicion_has_not_made_the_missing_checks() -> None:
    evaluation = ranked()
    required = ("memcheck", "kernels", "ncu")
    audit = end_audit(evaluation, MEMCHECK, SUSPICIOUS, SKIPPED, required=required)
    assert audit.state == "suspicious"
    assert audit.evaluation is not None
    case = audit.evaluation.quarantine_case
    assert case is not None
    decide_case(
        case=case, user=make.make_admin(), state="cleared", reason="fine", now=make.later(9)
    )
    audit = audit_of(evaluation)
    assert audit.state == "inconclusive"
    assert audit.reason == (
        "cleared by a person: fine; but some required checks haven't passed: "
        "ncu skipped: not on this host"
    )
    assert stands(evaluation)


def test_a_lost_audit_and_a_cancelled_one_say_nothing() -> None:
    evaluation = ranked()
    audit = audit_of(evaluation).evaluation
    assert audit is not None
    with pytest.raises(NotAllowed, match="only admins"):
        cancel(evaluation=audit, user=evaluation.submission.author, now=make.NOW)
    with transaction.atomic():
        lifecycle.give_up(audit, reason="lost 3 times", now=make.NOW)
    assert audit_of(evaluation).state == "inconclusive"
    assert audit_of(evaluation).reason == "lost 3 times"


def test_an_inconclusive_repetition_changes_nothing() -> None:
    evaluation = ranked()
    end_audit(evaluation, FAILED)
    repeated = request_audit(
        submission=evaluation.submission, device=evaluation.device, user=make.make_admin(),
        now=make.later(9),
    )  # fmt: skip
    assert audit_of(evaluation).state == "failed"
    cancel(evaluation=repeated, user=make.make_admin(), now=make.later(10))
    assert audit_of(evaluation).state == "failed"


def ask_again(evaluation: Evaluation, seconds: float = 9) -> Evaluation:
    """Another audit of the evaluation's place."""
    return request_audit(
        submission=evaluation.submission, device=evaluation.device, user=make.make_admin(),
        now=make.later(seconds),
    )  # fmt: skip


def decide(case: QuarantineCase | None, state: str = "cleared") -> None:
    """Let a person decide."""
    assert case is not None
    decide_case(
        case=case, user=make.make_admin(), state=state, reason="I looked", now=make.later(20)
    )


@pytest.mark.parametrize(("decision", "state"), [("cleared", "passed"), ("rejected", "failed")])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_decision_on_an_older_audit_counts_if_its_repetition_says_nothing(
    ends: str, decision: str, state: str
) -> None:
    evaluation = ranked()
    first = end_audit(evaluation, MEMCHECK, SUSPICIOUS).evaluation
    assert first is not None
    ask_again(evaluation)
    if ends == "before":
        end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
        assert audit_of(evaluation).state == "suspicious"
    decide(first.quarantine_case, decision)
    assert audit_of(evaluation).state == state
    if ends == "after":
        end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
    evaluation.refresh_from_db()
    assert audit_of(evaluation).state == evaluation.audited == state
    assert stands(evaluation) is (decision == "cleared")


def test_an_older_audit_that_is_cleared_without_a_result_waits_for_the_one_under_way() -> None:
    evaluation = ranked()
    required = ("memcheck", "kernels", "ncu")
    audit = end_audit(evaluation, MEMCHECK, SUSPICIOUS, SKIPPED, required=required)
    assert audit.evaluation is not None
    ask_again(evaluation)
    decide(audit.evaluation.quarantine_case)
    assert audit_of(evaluation).state == "waiting"


def test_a_decision_on_an_older_audit_does_not_touch_what_a_newer_one_said() -> None:
    evaluation = ranked()
    first = end_audit(evaluation, MEMCHECK, SUSPICIOUS).evaluation
    assert first is not None
    ask_again(evaluation)
    other = replace(SUSPICIOUS, reason="trsm ran")
    second = end_audit(evaluation, MEMCHECK, other).evaluation
    assert second is not None
    assert second.quarantine_case != first.quarantine_case
    ask_again(evaluation, 15)
    end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
    decide(first.quarantine_case)
    assert audit_of(evaluation).state == "suspicious"
    decide(second.quarantine_case)
    assert audit_of(evaluation).state == "passed"


def test_whoever_clears_a_suspicion_has_not_cleared_a_check_that_failed() -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, FAILED, SUSPICIOUS)
    assert (audit.state, audit.reason) == ("failed", "racecheck: 2 hazards")
    assert audit.evaluation is not None
    decide(audit.evaluation.quarantine_case)
    audit = audit_of(evaluation)
    assert (audit.state, audit.reason) == ("failed", "racecheck: 2 hazards")
    assert not stands(evaluation)


def test_only_admins_ask_and_only_one_is_under_way() -> None:
    evaluation = ranked()
    submission, device = evaluation.submission, evaluation.device
    with pytest.raises(NotAllowed):
        request_audit(submission=submission, device=device, user=submission.author, now=make.NOW)
    with pytest.raises(WrongState, match="already being audited"):
        request_audit(submission=submission, device=device, user=make.make_admin(), now=make.NOW)
    with pytest.raises(WrongState, match="no correct ranked result"):
        request_audit(
            submission=submission, device=make.make_device(), user=make.make_admin(), now=make.NOW
        )
    with pytest.raises(SubmissionError, match="admins can request"):
        rerun(submission=submission, user=submission.author, mode="audit", now=make.NOW)


def test_a_late_end_of_an_older_audit_decides_nothing() -> None:
    evaluation = ranked()
    audit = audit_of(evaluation)
    old = audit.evaluation
    assert old is not None
    newer = lifecycle.evaluate(
        submission=evaluation.submission, device=evaluation.device, mode=Mode.AUDIT,
        now=make.NOW,
    )  # fmt: skip
    BoardAudit.objects.filter(pk=audit.pk).update(evaluation=newer)
    make.finish(old, verdict=Verdict.VIOLATION)
    assert audit_of(evaluation).state == "waiting"


def test_names_of_hidden_workloads_stay_out_of_the_reason() -> None:
    evaluation = ranked()
    check = replace(FAILED, reason=f"2 hazards on {make.HIDDEN_WORKLOAD}")
    assert make.HIDDEN_WORKLOAD not in end_audit(evaluation, check).reason


def test_the_database_keeps_audits_to_judged_evaluations_and_one_a_place() -> None:
    evaluation = ranked()
    other = make.make_evaluation(task_version=evaluation.task_version, mode="quick")
    with pytest.raises(IntegrityError), transaction.atomic():
        Evaluation.objects.filter(pk=other.pk).update(audited="passed")
    with pytest.raises(IntegrityError), transaction.atomic():
        BoardAudit.objects.create(
            submission=evaluation.submission, device=evaluation.device, created_at=make.NOW,
            changed_at=make.NOW,
        )  # fmt: skip
    assert Evaluation.objects.filter(status=Status.QUEUED, mode="audit").count() == 1


@pytest.mark.parametrize(
    ("measured_ns", "state", "words"),
    [
        (1600.0, "inconclusive", "1.60 µs ±6.0 % in the audit, 1.00 µs ±6.0 % in the ranked"),
        (1130.0, "inconclusive", "(+13 %)"),
        (1110.0, "passed", ""),
        (880.0, "passed", "(−12 %)"),
    ],
)
def test_an_audit_whose_time_lies_outside_both_intervals_says_so(
    measured_ns: float, state: str, words: str
) -> None:
    evaluation = ranked(result={"latency_ns": 1000.0})
    audit = end_audit(evaluation, MEMCHECK, latency_ns=measured_ns)
    assert (audit.state, evaluation.audited) == (state, state)
    assert (TIMES_DIFFER in audit.reason) is bool(words)
    assert words in audit.reason
    for each in (evaluation, audit.evaluation):
        assert each is not None
        shown = live_view(each, evaluation.submission.author, make.later(60)).summary
        assert ("Times differ" in [chip.words for chip in shown.chips]) is bool(words)


def test_a_repeated_audit_whose_time_differs_takes_the_first_ones_word_back() -> None:
    evaluation = ranked(result={"latency_ns": 1000.0})
    assert end_audit(evaluation, MEMCHECK, latency_ns=1000.0).state == "passed"
    fields = {"submission": evaluation.submission, "device": evaluation.device}
    request_audit(**fields, user=make.make_admin(), now=make.later(5))
    audit = end_audit(evaluation, MEMCHECK, latency_ns=1600.0)
    assert (audit.state, evaluation.audited) == ("inconclusive", "inconclusive")


def test_a_new_time_that_no_audit_has_seen_is_audited_again() -> None:
    evaluation = ranked(result={"latency_ns": 1000.0})
    end_audit(evaluation, MEMCHECK, latency_ns=1000.0)
    user = evaluation.submission.author
    again = rerun(submission=evaluation.submission, user=user, now=make.later(5))
    make.finish(again, latency_ns=700.0)
    again.refresh_from_db()
    assert (again.audited, audit_of(again).state) == ("passed", "passed")
    third = rerun(submission=evaluation.submission, user=user, now=make.later(9))
    make.finish(third, latency_ns=600.0)
    third.refresh_from_db()
    assert (third.audited, audit_of(third).state) == ("waiting", "waiting")
    assert Evaluation.objects.filter(mode="audit").count() == 2
    assert end_audit(third, MEMCHECK, latency_ns=1000.0).state == "inconclusive"
