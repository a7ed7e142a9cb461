"""How the API tells of a submission: its evaluations, whether they count, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django.utils import timezone

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.core.baselines.missing import awaited_baselines, missing_baselines
from runs_app.core.integrity.board_place import board_place
from runs_app.core.integrity.eligibility import Why, eligibilities
from runs_app.core.integrity.facts import facts_of
from runs_app.core.integrity.selectors import decision_reason
from runs_app.core.profile.diagnosis import MEANINGS, diagnose
from runs_app.core.queue.selectors import waiting_reason as reason_to_wait
from runs_app.core.work.access import shown_results, visible_evaluations
from runs_app.core.work.audit_state import board_audit
from runs_app.core.work.result_state import compared_with, result_state
from runs_app.models import Audited, BoardAudit, Evaluation, Submission
from runs_app.submitting.brief_results import LEFT_OUT, Document, brief
from runs_app.submitting.remarks import told_reason
from tasks_app.people import Viewer, shown_name

_SCORES = ("score", "p_score", "speedup", "speedup_eager", "speedup_compiled", "unlisted_speedup")
_SCORE_OF_AUDIT = dict.fromkeys(_SCORES) | {"compared_with": ""}
"""The ranked result that an audit judges has them."""


def submission_answer(submission: Submission, user: Viewer, *, raw: bool) -> dict[str, object]:
    """A submission with its evaluations, as `user` sees it; `raw` includes all that is stored."""
    evaluations = _evaluations(submission, user)
    left_out = [] if raw else _brief(evaluations)
    return {
        **listed(submission),
        **{name: getattr(submission, name) for name in ("source", "entry", "files")},
        "author": shown_name(submission.author),
        "imported_from": _site_of(submission),
        "evaluations": evaluations,
        "left_out": left_out,
    }


def _brief(evaluations: Sequence[Document]) -> list[str]:
    """Shorten the newest result of each mode and device, and drop others; says what is missing."""
    cut: dict[str, None] = {}
    seen = set()
    for each in evaluations:
        if not each["result"]:
            continue
        if (key := (each["device"], each["mode"])) in seen:
            each["result"], names = None, ["results of earlier evaluations in the same mode"]
        else:
            each["result"], names = brief(each["result"])
        seen.add(key)
        cut |= dict.fromkeys(names)
    return [*LEFT_OUT, *cut]


def listed(submission: Submission) -> dict[str, object]:
    """The fields of a submission that lists show, too."""
    same = ("language", "direction", "private", "origin", "created_at")
    return {
        **{name: getattr(submission, name) for name in same},
        "id": submission.pk,
        "url": submission.get_absolute_url(),
        "task": submission.task_version.task.slug,
        "task_version": submission.task_version.number,
        "agent": submission.agent.name,
        "model": submission.language_model.name if submission.language_model else "",
    }


def _site_of(submission: Submission) -> str | None:
    """The site that has measured it, if it was imported."""
    if submission.origin not in (Submission.Origin.IMPORTED, Submission.Origin.RUN):
        return None
    first = submission.evaluations.select_related("device").first()
    return (first.device.imported_from or None) if first else None


def _evaluations(submission: Submission, user: Viewer) -> list[Document]:
    """All of a submission, newest first; how many there are costs no query more."""
    found = visible_evaluations(user).filter(submission=submission)
    light = found.defer(*Evaluation.LOCKED_WITHOUT)
    rows = list(light.prefetch_related("quarantine_case__decisions").order_by("-created_at"))
    whys, results = eligibilities(found), shown_results(rows, user)
    audited = {row.device_id for row in rows if row.audited != Audited.NONE}
    audits = {device: board_audit(submission, device) for device in audited}
    return [
        _evaluation(row, whys[row.pk], results.get(row.pk), user)
        | {"audited_reason": _audited_reason(row, audits), "facts": _facts(row, audits)}
        | {"noise": row.noise if row.is_correct else None}
        | {"reason": told_reason(row, submission, user)}
        | _result(results.get(row.pk))
        for row in rows
    ]


def _result(result: EvaluationResult | None) -> dict[str, object]:
    """The result, and what its profile says in a sentence."""
    return {
        "bottleneck": MEANINGS.get(diagnose(result), "") if result else "",
        "result": codec.encode(result),
    }


def _audited_reason(row: Evaluation, audits: Mapping[str, BoardAudit | None]) -> str:
    audit = audits.get(row.device_id)
    return audit.reason if audit and row.audited != Audited.NONE else ""


def _facts(row: Evaluation, audits: Mapping[str, BoardAudit | None]) -> object:
    """What the newest audit of its own has told, as the result's page shows it."""
    audit = audits.get(row.device_id)
    is_own = audit is not None and audit.submission_id == row.submission_id
    return codec.encode(facts_of(audit)) if is_own and row.audited != Audited.NONE else None


def _evaluation(
    evaluation: Evaluation, why: Why, result: EvaluationResult | None, user: Viewer
) -> dict[str, object]:
    same = ("id", "mode", "status", "verdict", "stage", "attempt", "latency_ns", "speedup_eager")
    more = ("speedup_compiled", "unlisted_speedup", "floor_fraction", "score", "p_score")
    trust = ("quarantine", "audited")
    times = ("created_at", "started_at", "finished_at")
    return {
        **{name: getattr(evaluation, name) for name in (*same, *more, *trust, *times)},
        "device": evaluation.device_id,
        "state": state.name if (state := result_state(evaluation)) else "",
        "compared_with": compared_with(evaluation),
        "speedup": evaluation.speedup_best,
        "waiting_reason": "" if why is Why.REPLACED else reason_to_wait(evaluation, timezone.now()),
        "eligibility": why.eligibility.value,
        "eligibility_reason": why.label,
        "quarantine_reason": decision_reason(evaluation),
        "awaited_baselines": awaited_baselines(evaluation, result),
        "missing_baselines": missing_baselines(evaluation, result),
        "place": asdict(board_place(evaluation, user)) if why is Why.COUNTS else None,
        **(_SCORE_OF_AUDIT if evaluation.mode == Mode.AUDIT else {}),
    }
