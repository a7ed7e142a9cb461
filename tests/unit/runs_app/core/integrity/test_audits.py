"""Records are audited once; what an audit refuses is refused for every entry of its source."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from gpu_runner.data.archive import Loaded
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.integrity.audits import request_audit
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.core.integrity.quarantine import decide as decide_case
from runs_app.core.work import lifecycle
from runs_app.core.work.audit_state import board_audit
from runs_app.models import BoardAudit, Evaluation, Status
from runs_app.optimiser.services.problem import seed_for
from runs_app.optimiser.services.request import RunRequest
from runs_app.submitting.quota import quota as quota_of
from runs_app.submitting.services import cancel, rerun
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import (
    MEMCHECK,
    audit_of,
    case_of,
    end_audit,
    ranked,
    under_way,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

FAILED = AuditCheck(name="racecheck", state=AuditState.FAILED, reason="2 hazards")
SUSPICIOUS = AuditCheck(name="kernels", state=AuditState.SUSPICIOUS, reason="gemm ran")
SKIPPED = AuditCheck(name="ncu", state=AuditState.SKIPPED, reason="not on this host")
INCONCLUSIVE = replace(SKIPPED, state=AuditState.INCONCLUSIVE, reason="it needs more memory")


def ask_again(evaluation: Evaluation, seconds: float = 9) -> Evaluation:
    """Another audit of the evaluation's place."""
    return request_audit(
        submission=evaluation.submission, device=evaluation.device, user=make.make_admin(),
        now=make.later(seconds),
    )  # fmt: skip


def decide(audit: Evaluation, state: str = "cleared") -> None:
    """Let a person decide."""
    user, now = make.make_admin(), make.later(20)
    decide_case(case=case_of(audit), user=user, state=state, reason="I looked", now=now)


def measure_again(evaluation: Evaluation, seconds: float, latency_ns: float) -> Evaluation:
    """Its author lets it run once more."""
    user, now = evaluation.submission.author, make.later(seconds)
    again = rerun(submission=evaluation.submission, user=user, now=now)
    make.finish(again, latency_ns=latency_ns)
    again.refresh_from_db()
    return again


def slower(first: Evaluation, **result: object) -> Evaluation:
    """Another person's result on the same board, with this latency if no other is given."""
    fields = {"latency_ns": 2000.0, **result}
    source = f"// other, {fields['latency_ns']}\n"
    return ranked(task_version=first.task_version, source=source, result=fields)


def stands(evaluation: Evaluation) -> bool:
    return eligible_evaluations().filter(pk=evaluation.pk).exists()


def test_a_record_is_audited_in_the_background_and_costs_no_quota() -> None:
    ran = (Loaded(part="source", files=1, digest="ab"),)
    evaluation = ranked(result={"loaded": ran})
    audit = under_way(evaluation)
    assert (audit.request().loaded, evaluation.request().loaded) == (ran, ())
    assert (audit.mode, audit.urgency) == ("audit", Urgency.AUDITS)
    evaluation.refresh_from_db()
    assert (audit_of(evaluation).state, evaluation.audited) == ("waiting", "waiting")
    assert stands(evaluation)
    quota = quota_of(evaluation.submission.author, make.NOW)
    assert (quota.today, quota.waiting) == (1, 0)


def test_only_the_leader_is_audited_and_only_once() -> None:
    first = ranked()
    slower(first)
    assert BoardAudit.objects.count() == 1
    again = measure_again(first, 5, 900.0)
    assert (BoardAudit.objects.count(), again.audited) == (1, "waiting")
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
    assert audit.reason == "1 check passed, 1 did not apply"
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
    assert not stands(measure_again(evaluation, 5, 1000.0))


@pytest.mark.parametrize(("decision", "state"), [("cleared", "passed"), ("rejected", "failed")])
def test_a_suspicious_audit_waits_for_a_person(decision: str, state: str) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, SUSPICIOUS)
    assert SUSPICIOUS.reason in audit.reason
    assert (audit.state, evaluation.audited) == ("suspicious", "suspicious")
    assert not stands(evaluation)
    assert case_of(under_way(evaluation)).suspicions[0]["reason"] == "kernels: gemm ran"
    decide(under_way(evaluation), decision)
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
    ask_again(evaluation)
    assert audit_of(evaluation).state == "waiting"
    assert end_audit(evaluation, MEMCHECK).state == "passed"


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ((SKIPPED,), "memcheck not made; ncu skipped: not on this host"),
        ((MEMCHECK, SKIPPED), "ncu skipped: not on this host"),
        ((MEMCHECK, INCONCLUSIVE), "ncu inconclusive: it needs more memory"),
        ((replace(SKIPPED, name="memcheck"), SKIPPED), "memcheck, ncu skipped: not on this host"),
    ],
)
def test_a_missing_check_leaves_it_unverified(checks: tuple[AuditCheck, ...], words: str) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, *checks, required=("memcheck", "ncu"))
    assert (audit.state, evaluation.audited) == ("inconclusive", "inconclusive")
    assert audit.reason.endswith(f": {words}")
    assert stands(evaluation)


@pytest.mark.parametrize("repeated", [False, True])
def test_whoever_clears_a_suspicion_has_not_made_the_missing_checks(repeated: bool) -> None:
    evaluation = ranked()
    required = ("memcheck", "kernels", "ncu")
    audit = end_audit(evaluation, MEMCHECK, SUSPICIOUS, SKIPPED, required=required)
    assert audit.state == "suspicious"
    suspicious = under_way(evaluation)
    if repeated:
        ask_again(evaluation)
    decide(suspicious)
    audit = audit_of(evaluation)
    assert audit.state == ("waiting" if repeated else "inconclusive")
    assert repeated or "some required checks haven't passed" in audit.reason
    assert stands(evaluation)


def test_an_audit_that_names_no_required_check_verifies_nothing() -> None:
    assert end_audit(ranked(), MEMCHECK, required=()).state == "inconclusive"


def test_a_lost_audit_and_a_cancelled_one_say_nothing() -> None:
    evaluation = ranked()
    audit = under_way(evaluation)
    with pytest.raises(NotAllowed, match="only admins"):
        cancel(evaluation=audit, user=evaluation.submission.author, now=make.NOW)
    with transaction.atomic():
        lifecycle.give_up(audit, reason="lost 3 times", now=make.NOW)
    given_up = audit_of(evaluation)
    assert (given_up.state, given_up.reason) == ("inconclusive", "lost 3 times")
    ask_again(evaluation)
    end_audit(evaluation, FAILED)
    repeated = ask_again(evaluation)
    assert audit_of(evaluation).state == "failed"
    cancel(evaluation=repeated, user=make.make_admin(), now=make.later(10))
    assert audit_of(evaluation).state == "failed"


@pytest.mark.parametrize(("decision", "state"), [("cleared", "passed"), ("rejected", "failed")])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_decision_outlasts_a_mute_repetition(ends: str, decision: str, state: str) -> None:
    evaluation = ranked()
    end_audit(evaluation, MEMCHECK, SUSPICIOUS)
    first = under_way(evaluation)
    ask_again(evaluation)
    if ends == "before":
        end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
        assert audit_of(evaluation).state == "suspicious"
    decide(first, decision)
    assert audit_of(evaluation).state == state
    if ends == "after":
        end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
    evaluation.refresh_from_db()
    assert audit_of(evaluation).state == evaluation.audited == state
    assert stands(evaluation) is (decision == "cleared")


def test_a_decision_on_an_older_audit_does_not_touch_what_a_newer_one_said() -> None:
    evaluation = ranked()
    end_audit(evaluation, MEMCHECK, SUSPICIOUS)
    first = under_way(evaluation)
    ask_again(evaluation)
    end_audit(evaluation, MEMCHECK, replace(SUSPICIOUS, reason="trsm ran"))
    second = under_way(evaluation)
    assert second.quarantine_case != first.quarantine_case
    ask_again(evaluation, 15)
    end_audit(evaluation, verdict=Verdict.UNSTABLE, reason="noise")
    decide(first)
    assert audit_of(evaluation).state == "suspicious"
    decide(second)
    assert audit_of(evaluation).state == "passed"


def test_whoever_clears_a_suspicion_has_not_cleared_a_check_that_failed() -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, FAILED, SUSPICIOUS)
    assert (audit.state, audit.reason) == ("failed", "racecheck: 2 hazards")
    decide(under_way(evaluation))
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
    old = under_way(evaluation)
    newer = lifecycle.evaluate(
        submission=evaluation.submission, device=evaluation.device, mode=Mode.AUDIT,
        now=make.NOW,
    )  # fmt: skip
    BoardAudit.objects.update(evaluation=newer)
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


def test_a_new_time_that_no_audit_has_seen_is_audited_again() -> None:
    evaluation = ranked(result={"latency_ns": 1000.0})
    end_audit(evaluation, MEMCHECK, latency_ns=1000.0)
    again = measure_again(evaluation, 5, 700.0)
    assert (again.audited, audit_of(again).state) == ("passed", "passed")
    third = measure_again(evaluation, 9, 600.0)
    assert (third.audited, audit_of(third).state) == ("waiting", "waiting")
    assert Evaluation.objects.filter(mode="audit").count() == 2
    assert end_audit(third, MEMCHECK, latency_ns=1000.0).state == "inconclusive"


def entered_again(first: Evaluation) -> Evaluation:
    """The same source, by somebody else and some time later."""
    fields = {"task_version": first.task_version, "source": first.submission.source}
    return ranked(**fields, now=make.later(1), result={"latency_ns": 900.0})


def test_what_an_audit_refuses_is_refused_for_every_entry_of_the_same_source() -> None:
    evaluation = ranked()
    earlier = entered_again(evaluation)
    other = slower(evaluation)
    assert earlier.submission.digest == evaluation.submission.digest
    end_audit(evaluation, verdict=Verdict.WRONG_RESULT, reason="off by 2.07e-03")
    later = entered_again(evaluation)
    for entry in (evaluation, earlier, later):
        entry.refresh_from_db()
        assert entry.audited == "failed"
        assert not stands(entry)
        counts = board_audit(entry.submission, entry.device_id)
        assert counts == audit_of(evaluation)
        assert counts.reason == "WRONG_RESULT: off by 2.07e-03"
    assert earlier.events.filter(kind="audited", payload__state="failed").exists()
    other.refresh_from_db()
    assert stands(other)


def test_an_audit_decides_on_its_own_version_of_the_task_alone() -> None:
    evaluation = ranked()
    end_audit(evaluation, verdict=Verdict.WRONG_RESULT)
    version = make.make_task_version(title="Mended")
    elsewhere = ranked(task_version=version, source=evaluation.submission.source)
    assert elsewhere.task_version != evaluation.task_version
    assert elsewhere.audited == "waiting"
    assert stands(elsewhere)


def test_entries_come_back_when_the_audit_that_refused_them_is_repeated_and_passes() -> None:
    evaluation = ranked()
    copy = entered_again(evaluation)
    asked = {"device": evaluation.device, "user": make.make_admin()}
    request_audit(submission=copy.submission, now=make.later(8), **asked)
    end_audit(evaluation, verdict=Verdict.WRONG_RESULT)
    end_audit(copy, MEMCHECK)  # a copy's own audit does not outweigh the refusal
    assert not stands(copy)
    request_audit(submission=evaluation.submission, now=make.later(9), **asked)
    end_audit(evaluation, MEMCHECK)
    copy.refresh_from_db()
    assert copy.audited == "passed"
    assert stands(copy)


def test_no_run_begins_with_a_refused_source() -> None:
    evaluation = ranked()
    entered_again(evaluation)
    slow = slower(evaluation, latency_ns=5000.0)
    request = RunRequest(task="scale", device="cpu", strategy="autotune", seed_kernel="best")

    def seed() -> str:
        version, device = evaluation.task_version, evaluation.device
        return seed_for(request, version, device, evaluation.submission.author).source

    assert seed() == evaluation.submission.source
    end_audit(evaluation, verdict=Verdict.WRONG_RESULT)
    assert seed() == slow.submission.source
