"""Ask for audits of records, say what came of them, and tell features who leads a board."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.integrity import Audit, AuditState
from gpu_runner.data.queue import Urgency
from gpu_runner.data.scores import geometric_mean
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.baselines import agreement
from runs_app.core.errors import NotAllowed, WrongState
from runs_app.core.hooks import place_changed
from runs_app.core.integrity import facts
from runs_app.core.integrity.eligibility import Board, leader
from runs_app.core.integrity.selectors import suspicions
from runs_app.core.work import audit_state, lifecycle
from runs_app.core.work.admins import flag
from runs_app.models import (
    Audited,
    BoardAudit,
    Device,
    Evaluation,
    Quarantine,
    QuarantineCase,
    Status,
    Submission,
)
from runs_app.models.runner_job import LONGEST_TEXT
from tasks_app.disclosure import public_text
from tasks_app.numbers import change, duration_text, plus_minus

_NO_CHECKS = Audit(checks=())
SLOWER = 1.5
"""An audit that measures so many times what its place rests on does not speak for that time."""

TIMES_DIFFER = "the times differ"
"""In the reason of an audit whose time and the ranked one lie outside each other's intervals."""

_SAYS_NOTHING = (Verdict.SYSTEM_ERROR, Verdict.UNSTABLE)  # of the place that was audited


def consider(board: Board, *, now: datetime) -> Evaluation | None:
    """Who leads a board; an audit of it is queued unless there was one."""
    best = leader(*board)
    if best is None:
        return None
    moments = {"created_at": now, "changed_at": now}
    audit, is_new = BoardAudit.objects.get_or_create(
        submission=best.submission, device=best.device, defaults=moments
    )
    if is_new:
        _begin(audit, now)
    return leader(*board) if is_new else best


def recheck(evaluation: Evaluation, *, now: datetime) -> None:
    """Queue another audit of a place whose new time is far below what its audit has measured."""
    if evaluation.audited != Audited.PASSED or not evaluation.is_correct:
        return
    pair = BoardAudit.objects.filter(submission=evaluation.submission, device=evaluation.device)
    audit = pair.select_for_update(of=("self",)).filter(state=Audited.PASSED).first()
    holds = _latest_that_says_something(audit) if audit else None
    if audit is None or holds is None or not _is_slower(holds, evaluation):
        return
    audit.state = Audited.WAITING
    if audit.evaluation is None or audit.evaluation.is_over:
        _begin(audit, now)
    else:
        audit_state.change(audit, Audited.WAITING, "", now=now)


@transaction.atomic
def request_audit(
    *, submission: Submission, device: Device, user: User, now: datetime
) -> Evaluation:
    """Queue an audit of a submission on a device, because an admin asks for it.

    What earlier audits said holds until this one has a result. Raises `NotAllowed` for others,
    and `WrongState` while one is under way or where there is nothing to audit.
    """
    if not user.is_staff:
        raise NotAllowed("", "only admins can ask for audits; records are audited automatically")
    if submission.origin == Submission.Origin.RUN:
        raise WrongState("", "this is a run's candidate, so it isn't on a board")
    ranked = submission.evaluations.filter(device=device, mode=Mode.RANKED.value)
    if not ranked.filter(verdict=Verdict.CORRECT.value).exists():
        raise WrongState("device", f"it has no correct ranked result on {device} to audit")
    moments = {"created_at": now, "changed_at": now}
    audit, _ = BoardAudit.objects.select_for_update(of=("self",)).get_or_create(
        submission=submission, device=device, defaults=moments
    )
    if audit.evaluation is not None and not audit.evaluation.is_over:
        raise WrongState("", "it is already being audited")
    audit.asked_by = user
    return _begin(audit, now)


def settle(evaluation: Evaluation, result: EvaluationResult, *, now: datetime) -> None:
    """Say what an audit that has ended means for the board; its row has been saved."""
    audit = audit_state.of(evaluation)
    if audit is None:
        return
    facts.keep(audit, result)
    state, reason = _outcome(evaluation, result)
    rests_on = _rests_on(evaluation)
    if evaluation.is_correct and rests_on is not None:
        slow = _compare(rests_on, evaluation, result, now=now)
        if slow:
            names = " and ".join(slow)
            reason = f"{reason}; it measured faster times for {names}, so the score now uses them"
    ratio, words = _difference(evaluation, rests_on)
    if words:
        reason = f"{reason}, but {TIMES_DIFFER}: {words}"
    if state is Audited.PASSED and (ratio > 1 or _is_slower(evaluation, rests_on)):
        state = Audited.INCONCLUSIVE
        if not words:
            reason = f"on unlisted sizes, it took more than {SLOWER:g} times as long"
    takes_back = bool(words) and audit.state == Audited.PASSED
    if state is Audited.INCONCLUSIVE and not takes_back:
        audit_state.inconclusive(audit, reason, now=now)
    else:
        audit_state.change(audit, state, reason, now=now)


def _compare(
    ranked: Evaluation, audit: Evaluation, result: EvaluationResult, *, now: datetime
) -> list[str]:
    """Mend the baselines that a place rests on, and doubt the runner that measured it.

    Another runner of the same device must confirm its times. Returns the baselines that were slow.
    """
    slow = agreement.mend(ranked, audit, result, now)
    if ranked.runner is None or audit.runner is None:
        return slow
    theirs, ours = ranked.runner.token, audit.runner.token
    if theirs.pk == ours.pk or ranked.latency_ns is None or audit.latency_ns is None:
        return slow
    noise = 1 + (ranked.latency_spread or 0.0) + (audit.latency_spread or 0.0)
    found = {
        "the same kernel": audit.latency_ns / ranked.latency_ns,
        "the same kernel on unlisted sizes": _ratio(_unlisted_ns(audit), _unlisted_ns(ranked)),
    }
    for what, ratio in found.items():
        if ratio is not None and ratio > noise * SLOWER:
            reason = (
                f"runner {ours} measured {ratio:.2f}× the time that {theirs} reported for {what}"
                f" on {audit.device}"
            )
            flag(theirs, reason, now=now, evaluation=ranked)
    if slow:
        reason = f"runner {ours} measured faster baselines than {theirs} on {audit.device}"
        flag(theirs, reason, now=now, evaluation=ranked)
    return slow


def _ratio(over: Mapping[str, float], under: Mapping[str, float]) -> float | None:
    """The mean ratio on the workloads that both have."""
    return geometric_mean(over[name] / under[name] for name in over.keys() & under.keys())


def settle_decision(case: QuarantineCase, reason: str, *, now: datetime) -> None:
    """Say what a person's decision means for the boards whose audits had to wait for it.

    An audit may have been repeated since; if the repetition says nothing, the older one holds.
    """
    audits = Evaluation.objects.filter(
        quarantine_case=case,
        mode=Mode.AUDIT.value,
        submission=OuterRef("submission"),
        device=OuterRef("device"),
    )
    rows = BoardAudit.objects.select_for_update(of=("self",)).filter(Exists(audits))
    for row in rows.select_related("evaluation").order_by("pk"):
        holds = _latest_that_says_something(row)
        if holds is None or holds.quarantine_case_id != case.pk:
            continue
        state, words = _outcome(holds, holds.result.data, reason)
        if state is Audited.INCONCLUSIVE and row.evaluation and not row.evaluation.is_over:
            state, words = Audited.WAITING, ""
        audit_state.change(row, state, words, now=now)


def _begin(audit: BoardAudit, now: datetime) -> Evaluation:
    audit.evaluation = lifecycle.evaluate(
        submission=audit.submission,
        device=audit.device,
        mode=Mode.AUDIT,
        now=now,
        urgency=Urgency.AUDITS,
    )
    known = audit.state not in (Audited.WAITING, Audited.INCONCLUSIVE)
    state = Audited(audit.state) if known else Audited.WAITING
    audit_state.change(audit, state, audit.reason if known else "", now=now)
    return audit.evaluation


def _latest_that_says_something(audit: BoardAudit) -> Evaluation | None:
    """The place's newest audit that passed, failed, or raised a suspicion."""
    ended = Evaluation.objects.filter(
        submission=audit.submission_id,
        device=audit.device_id,
        mode=Mode.AUDIT.value,
        status=Status.FINISHED,
    )
    for evaluation in ended.select_related("result", "task_version").order_by("-created_at", "-pk"):
        if evaluation.verdict in _SAYS_NOTHING:
            continue
        is_a_case = evaluation.quarantine_case_id is not None
        if is_a_case or _outcome(evaluation, evaluation.result.data)[0] is not Audited.INCONCLUSIVE:
            return evaluation
    return None


def _outcome(
    evaluation: Evaluation, result: EvaluationResult, decision: str = ""
) -> tuple[Audited, str]:
    """State and reason for everybody; `decision` is the reason where a person has decided."""
    if evaluation.verdict in _SAYS_NOTHING:
        return Audited.INCONCLUSIVE, f"{evaluation.verdict}: {evaluation.reason}"
    if evaluation.verdict != Verdict.CORRECT:
        return Audited.FAILED, f"{evaluation.verdict}: {evaluation.reason}"
    audit = result.audit or _NO_CHECKS
    failed = next((check for check in audit.checks if check.state is AuditState.FAILED), None)
    if failed is not None:
        return Audited.FAILED, _public(f"{failed.name}: {failed.reason}", evaluation)
    if evaluation.quarantine_case is not None:
        case = Quarantine(evaluation.quarantine)
        return _by_case(case, evaluation, result, decision or _raised(evaluation, result))
    if not audit.passed:
        return Audited.INCONCLUSIVE, _lacking(audit, evaluation)
    passed = sum(check.state is AuditState.PASSED for check in audit.checks)
    others = len(audit.checks) - passed
    left_out = f", {others} did not apply" if others else ""
    return Audited.PASSED, f"{passed} check{'s' if passed > 1 else ''} passed{left_out}"


def _raised(evaluation: Evaluation, result: EvaluationResult) -> str:
    """What an audit found that a person decides on, or that one had decided before."""
    found = "; ".join(each.reason for each in suspicions(result))
    words = f"it raised suspicion: {found}" if found else "its source has been rejected before"
    return _public(words[:LONGEST_TEXT], evaluation)


def _rests_on(audit: Evaluation) -> Evaluation | None:
    """The ranked evaluation on which the place of an audit rests, locked."""
    ranked = lifecycle.lockable(Evaluation).filter(
        submission=audit.submission_id,
        device=audit.device_id,
        mode=Mode.RANKED.value,
        verdict=Verdict.CORRECT.value,
    )
    return ranked.order_by("-created_at", "-pk").first()


def _is_slower(audit: Evaluation, ranked: Evaluation | None) -> bool:
    """Whether an audit took so much longer, on listed sizes or on unlisted ones."""
    if ranked is None or ranked.latency_ns is None or audit.latency_ns is None:
        return False
    if audit.latency_ns > SLOWER * ranked.latency_ns:
        return True
    ratio = _ratio(_unlisted_ns(audit), _unlisted_ns(ranked))
    return ratio is not None and ratio > SLOWER


def _difference(audit: Evaluation, ranked: Evaluation | None) -> tuple[float, str]:
    """How many times the ranked time an audit measured if that lies outside both intervals.

    The intervals hold what evaluations of one source differ by on the device. Else 1 and no words.
    """
    if ranked is None or ranked.latency_ns is None or audit.latency_ns is None:
        return 1.0, ""
    ours, theirs = (each.spread("latency") or 0.0 for each in (audit, ranked))
    ratio = audit.latency_ns / ranked.latency_ns
    if abs(math.log(ratio)) <= ours + theirs:
        return 1.0, ""
    measured = f"{duration_text(audit.latency_ns)} {plus_minus(ours)}"
    was = f"{duration_text(ranked.latency_ns)} {plus_minus(theirs)}"
    return ratio, f"{measured} in the audit, {was} in the ranked result ({change(ratio)})"


def _unlisted_ns(evaluation: Evaluation) -> dict[str, float]:
    timed = [w for w in evaluation.result.data.workloads if w.hidden]
    return {w.name: w.measurement.time_ns for w in timed if w.measurement}


def _by_case(
    case: Quarantine, evaluation: Evaluation, result: EvaluationResult, reason: str
) -> tuple[Audited, str]:
    """What an audit means whose suspicions a person decides on; `reason` is for that decision.

    Whoever clears them has not made the checks that could not be made.
    """
    if case is Quarantine.OPEN:
        return Audited.SUSPICIOUS, reason
    if case is Quarantine.REJECTED:
        return Audited.FAILED, reason
    audit = result.audit or _NO_CHECKS
    if audit.lacking(cleared=True):
        return Audited.INCONCLUSIVE, f"{reason}; but {_lacking(audit, evaluation, cleared=True)}"
    return Audited.PASSED, reason


def _lacking(audit: Audit, evaluation: Evaluation, *, cleared: bool = False) -> str:
    """Why an audit that found nothing verifies nothing."""
    words = "; ".join(audit.lacking(cleared=cleared)) or "a check raised suspicion"
    return _public(f"some required checks haven't passed: {words}", evaluation)


def _public(words: str, evaluation: Evaluation) -> str:
    return public_text(words, evaluation.task_version.hidden_names)


def board_of(evaluation: Evaluation) -> Board:
    """The board on which the evaluation's submission stands, or may come to stand."""
    return evaluation.task_version, evaluation.direction, evaluation.device_id


@contextmanager
def watched(boards: Iterable[Board], *, now: datetime) -> Iterator[None]:
    """Have whoever leads one of these boards at the end audited, unless that was done.

    Send `place_changed` for each that another submission leads then.
    """
    before = {board: leader(*board) for board in boards}
    yield
    for board, was in before.items():
        after = consider(board, now=now)
        pks = {each.submission_id for each in (was, after) if each is not None}
        if len(pks) == 2 or (was is None) != (after is None):
            place_changed.send(sender=Evaluation, before=was, after=after, now=now)
