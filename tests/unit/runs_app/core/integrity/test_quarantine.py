"""A suspicious result counts nowhere until a person has said so."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.verdict import Verdict
from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.hooks import place_changed
from runs_app.core.integrity.eligibility import eligible_evaluations, judged_evaluations
from runs_app.core.integrity.quarantine import decide as decide_case
from runs_app.core.integrity.selectors import open_case_count
from runs_app.models import BoardAudit, Evaluation, QuarantineCase, QuarantineDecision
from runs_app.optimiser.services.problem import seed_for
from runs_app.optimiser.services.request import RunRequest
from runs_app.submitting.services import rerun
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import SUSPICION, case_of, held, ranked
from tests.unit.runs_app.core.test_hooks import heard

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def decide(evaluation: Evaluation, state: str = "cleared", seconds: float = 1) -> None:
    user, now, reason = make.make_admin(), make.later(seconds), "I have read it"
    decide_case(case=case_of(evaluation), user=user, state=state, reason=reason, now=now)


def stands(evaluation: Evaluation) -> bool:
    return eligible_evaluations().filter(pk=evaluation.pk).exists()


def test_a_suspicious_result_waits_for_a_person() -> None:
    evaluation = held()
    assert (evaluation.verdict, evaluation.quarantine) == ("CORRECT", "open")
    [suspicion] = case_of(evaluation).suspicions
    assert suspicion == {"check": "source", "reason": "calls dlopen", "line": 1}
    assert not stands(evaluation)
    assert not judged_evaluations().exists()
    assert not BoardAudit.objects.exists()
    assert open_case_count() == 1


def test_a_cleared_one_stands_and_is_audited_and_all_of_its_case_do() -> None:
    evaluation = held()
    second = held(user=evaluation.submission.author, task_version=evaluation.task_version)
    decide(second)
    assert set(Evaluation.objects.values_list("quarantine", flat=True)) == {"cleared", "none"}
    assert (stands(evaluation), stands(second)) == (True, True)
    assert BoardAudit.objects.get().submission in (evaluation.submission, second.submission)
    [decision] = QuarantineDecision.objects.all()
    assert (decision.state, decision.reason) == ("cleared", "I have read it")
    event = evaluation.events.get(kind="decided")
    assert event.payload == {"state": "cleared", "reason": "I have read it"}
    entry = AuditEntry.objects.get(kind="decided")
    assert (entry.actor, entry.name, entry.reason) == (
        decision.decided_by,
        "scale",
        "I have read it",
    )
    assert entry.details == {"case": decision.case_id, "decision": "cleared"}


def test_a_rejected_one_stays_away_and_can_be_decided_again() -> None:
    evaluation = held()
    with heard(place_changed) as told:
        decide(evaluation, "rejected")
        assert not stands(evaluation)
        decide(evaluation, "cleared", seconds=2)
        assert stands(evaluation)
        decide(evaluation, "rejected", seconds=3)
        decide(evaluation, "cleared", seconds=4)
    places = [(about["before"], about["after"]) for about in told]
    assert places == [(None, evaluation), (evaluation, None), (None, evaluation)]
    case = QuarantineCase.objects.get()
    assert [each.state for each in case.decisions.all()] == ["cleared", "rejected"] * 2


@pytest.mark.parametrize(("state", "later"), [("rejected", "rejected"), ("cleared", "none")])
def test_what_was_refused_does_not_return_by_a_luckier_run(state: str, later: str) -> None:
    first = held()
    decide(first, state)
    same = held(user=first.submission.author, task_version=first.task_version)
    assert (same.quarantine, same.quarantine_case) == (state, first.quarantine_case)
    assert open_case_count() == 0
    again = rerun(submission=first.submission, user=first.submission.author, now=make.later(2))
    make.finish(again)
    again.refresh_from_db()
    assert again.quarantine == later
    assert stands(again) is (later == "none")
    other = (Suspicion(check=Check.LUCK, reason="lucky"),)
    third = held(
        user=first.submission.author, task_version=first.task_version, result={"suspicions": other}
    )
    assert third.quarantine == ("rejected" if state == "rejected" else "open")
    decide(first, "cleared", seconds=3)
    again.refresh_from_db()
    assert stands(again)


def test_another_source_or_reason_is_another_case() -> None:
    first = held()
    version = first.task_version
    decide(first)
    other_source = held(task_version=version, source=f"// other\n{make.SOURCE}")
    more = (SUSPICION, Suspicion(check=Check.LIBRARY, reason="needs libcublas"))
    other_reason = held(task_version=version, result={"suspicions": more})
    assert [other_source.quarantine, other_reason.quarantine] == ["open", "open"]
    assert open_case_count() == 2

    def faster(us: str) -> Evaluation:
        slip = Suspicion(check=Check.FLOOR, reason=f"n256 took {us} us, less than 20 us")
        return held(task_version=version, result={"suspicions": (slip,)})

    decide(faster("12.3"))
    # about the same time is the same reason
    assert [faster(us).quarantine for us in ("12.1", "0.3")] == ["cleared", "open"]


def test_a_suspicious_re_run_hides_what_was_before() -> None:
    before = ranked()
    assert stands(before)
    again = rerun(submission=before.submission, user=before.submission.author, now=make.later(9))
    make.finish(again, suspicions=(SUSPICION,))
    assert not stands(before)
    assert not stands(again)


def test_only_correct_results_are_held_and_candidates_of_runs_are_not() -> None:
    assert held(verdict=Verdict.WRONG_RESULT).quarantine == "none"
    evaluation = make.make_evaluation(source="// a trial\n", mode="quick")
    make.give_to_run(evaluation.submission)
    make.finish(evaluation, suspicions=(SUSPICION,))
    evaluation.refresh_from_db()
    assert evaluation.quarantine == "none"


def test_a_suspicious_kernel_is_no_seed_of_runs() -> None:
    evaluation = held()
    request = RunRequest(task="scale", device="cpu", strategy="autotune", seed_kernel="best")
    version, device = evaluation.task_version, evaluation.device
    with pytest.raises(SubmissionError, match="nothing correct"):
        seed_for(request, version, device, evaluation.submission.author)


def test_a_decision_is_an_admins_and_needs_a_state_and_a_reason() -> None:
    evaluation = held()
    case, author, admin = case_of(evaluation), evaluation.submission.author, make.make_admin()
    with pytest.raises(NotAllowed):
        decide_case(case=case, user=author, state="cleared", reason="it is mine", now=make.NOW)
    wrong = [
        ("cleared", "  ", "reason"),
        ("open", "why", "state"),
        ("cleared", "x" * 2001, "reason"),
    ]
    for state, reason, field in wrong:
        with pytest.raises(SubmissionError) as refusal:
            decide_case(case=case, user=admin, state=state, reason=reason, now=make.NOW)
        assert refusal.value.field == field
    assert not QuarantineDecision.objects.exists()


@pytest.mark.parametrize("state", ["none", "open", "cleared", "rejected"])
def test_the_database_wants_a_case_and_its_state_together(state: str) -> None:
    evaluation = held() if state == "none" else ranked()
    with pytest.raises(IntegrityError), transaction.atomic():
        Evaluation.objects.filter(pk=evaluation.pk).update(quarantine=state)


def test_of_suspicions_without_end_a_case_keeps_a_part() -> None:
    """A runner may say anything, and the list of cases is one page."""
    many = tuple(Suspicion(check=Check.SOURCE, reason="x" * 9000, line=n) for n in range(1, 200))
    case = case_of(held(result={"suspicions": many}))
    assert len(str(case.suspicions)) < 300_000
    assert case.suspicions[0]["line"] == 1
