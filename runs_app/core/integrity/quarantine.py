"""Keep suspicious results from counting until a person has decided."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.integrity import audits
from runs_app.core.integrity.selectors import suspicions
from runs_app.core.work import journal, noise
from runs_app.core.work.lifecycle import lockable
from runs_app.models import Evaluation, Quarantine, QuarantineCase, QuarantineDecision, Submission
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

_DECISIONS = (Quarantine.CLEARED.value, Quarantine.REJECTED.value)
_LONGEST_REASON, _MOST_SHOWN = 2000, 100
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")  # none inside a name


def hold(evaluation: Evaluation, result: EvaluationResult, *, now: datetime) -> None:
    """Put a correct but suspicious result under its case; the caller saves the row.

    What a person decided of the same source, task version and reasons holds; and a source that was
    refused stays so for whatever reasons, also for none: some only show in some measurements.
    Candidates of runs are on no board, so nobody is asked about them.
    """
    found = suspicions(result)
    is_candidate = evaluation.submission.origin == Submission.Origin.RUN
    if is_candidate or evaluation.verdict != Verdict.CORRECT:
        return
    about = {"digest": evaluation.submission.digest, "task_version": evaluation.task_version}
    alike = {**about, "fingerprint": _fingerprint(found)}
    decided = QuarantineCase.objects.filter(**about, state__in=_DECISIONS)
    fingerprints = dict(decided.values_list("fingerprint", "state"))
    if alike["fingerprint"] not in fingerprints and Quarantine.REJECTED in fingerprints.values():
        refused = decided.filter(state=Quarantine.REJECTED).select_for_update(of=("self",))
        if (earlier := refused.first()) is not None:
            evaluation.quarantine, evaluation.quarantine_case = earlier.state, earlier
            return
    if not found:
        return
    cut = (replace(each, reason=each.reason[:_LONGEST_REASON]) for each in found[:_MOST_SHOWN])
    # locked, so that a decision made at this moment reaches this row as well
    case, _ = QuarantineCase.objects.select_for_update(of=("self",)).get_or_create(
        **alike, defaults={"suspicions": [*map(codec.encode, cut)], "created_at": now}
    )
    evaluation.quarantine, evaluation.quarantine_case = case.state, case


@transaction.atomic
def decide(
    *, case: QuarantineCase, user: User, state: str, reason: str, now: datetime
) -> QuarantineDecision:
    """Clear or reject a case, for all its evaluations, and for later ones that are the same.

    `state` is "cleared" or "rejected". A case can be decided again; the newest decision holds.
    Raises `NotAllowed` for anybody but admins and `SubmissionError` without a reason.
    """
    if not (user.is_active and user.is_staff):
        raise NotAllowed("", "only admins can decide on quarantined results")
    reason = _checked(state, reason)
    locked = QuarantineCase.objects.select_for_update(of=("self",)).get(pk=case.pk)
    decision = QuarantineDecision.objects.create(
        case=locked, state=state, reason=reason, decided_by=user, created_at=now
    )
    locked.state = state
    locked.save(update_fields=["state"])
    add_entry(
        AuditEntry.Kind.DECIDED, now=now, actor=user, version=locked.task_version, reason=reason,
        details={"case": locked.pk, "decision": state},
    )  # fmt: skip
    rows = list(lockable(Evaluation).filter(quarantine_case=locked).order_by("created_at"))
    boards = {audits.board_of(row) for row in rows if row.mode in (Mode.RANKED, Mode.AUDIT)}
    with audits.watched(boards, now=now):
        _apply(rows, decision, now)
    return decision


def _checked(state: str, reason: str) -> str:
    """The reason as it is stored; raises `SubmissionError` for what is no decision."""
    if state not in _DECISIONS:
        raise SubmissionError("state", f"{state[:20]!r} is not one of {', '.join(_DECISIONS)}")
    reason = reason.replace("\0", "").strip()
    if not reason:
        raise SubmissionError("reason", "enter a reason: the author and other admins will read it")
    if len(reason) > _LONGEST_REASON:
        raise SubmissionError(
            "reason", f"has {len(reason)} characters; the limit is {_LONGEST_REASON}"
        )
    return reason


def _apply(rows: list[Evaluation], decision: QuarantineDecision, now: datetime) -> None:
    """Carry a decision to the evaluations of its case, and tell their watchers."""
    case = decision.case
    payload = {"state": case.state, "reason": decision.reason}
    for evaluation in rows:
        evaluation.quarantine = case.state
        journal.tell(evaluation, "decided", payload, now=now)
    Evaluation.objects.bulk_update(rows, ["quarantine", "events_stored"])
    noise.pool(*rows)
    audits.settle_decision(case, f"{case.state} by a person: {decision.reason}", now=now)


def _fingerprint(suspicions: list[Suspicion]) -> str:
    """Digest of what tripped; times below the floor are alike if they are about the same."""
    found = ([s.check, _alike(s), s.line, *filter(None, [s.file])] for s in suspicions)
    lines = sorted(map(json.dumps, found))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _alike(suspicion: Suspicion) -> str:
    """The reason without measured numbers, or with their powers of two: no two runs are alike."""
    if suspicion.check is Check.WORK:
        return _NUMBER.sub("n", suspicion.reason)
    if suspicion.check is not Check.FLOOR:
        return suspicion.reason
    return _NUMBER.sub(lambda found: _magnitude(float(found[0])), suspicion.reason)


def _magnitude(value: float) -> str:
    return f"2^{round(math.log2(value))}" if value else "0"
