"""Suspicious results and ended audits for several tests."""

from __future__ import annotations

from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.verdict import Mode
from runs_app.models import BoardAudit, Evaluation, QuarantineCase
from tests import factories as make

SUSPICION = Suspicion(check=Check.SOURCE, reason="calls dlopen", line=1)
MEMCHECK = AuditCheck(
    name="memcheck", state=AuditState.PASSED, reason="no errors", report="0 errors", duration_s=2.5
)


def held(**overrides: Any) -> Evaluation:
    """A correct ranked evaluation that raises suspicions."""
    result = {"suspicions": (SUSPICION,), **overrides.pop("result", {})}
    fields = {"mode": "ranked", "result": result, "source": make.SOURCE, **overrides}
    return make.make_finished_evaluation(**fields)


def ranked(**overrides: Any) -> Evaluation:
    """A correct ranked evaluation without any suspicion."""
    return make.make_finished_evaluation(**{"mode": "ranked", **overrides})


def audit_of(evaluation: Evaluation) -> BoardAudit:
    """The audit of an evaluation's place on its board."""
    return BoardAudit.objects.get(submission=evaluation.submission, device=evaluation.device)


def under_way(evaluation: Evaluation) -> Evaluation:
    """The evaluation by which its place was audited last."""
    audit = audit_of(evaluation).evaluation
    assert audit is not None
    return audit


def case_of(evaluation: Evaluation) -> QuarantineCase:
    """Of a suspicious one."""
    assert evaluation.quarantine_case is not None
    return evaluation.quarantine_case


def end_audit(
    evaluation: Evaluation, *checks: AuditCheck, required: tuple[str, ...] = (MEMCHECK.name,),
    **overrides: Any,
) -> BoardAudit:  # fmt: skip
    """Let the latest audit of an evaluation's place end with these checks; the row after it."""
    audit = under_way(evaluation)
    assert audit.mode == Mode.AUDIT
    fields = {"audit": Audit(checks=checks, required=required)} if checks else {}
    document = make.make_result(audit, **{**fields, **overrides})
    make.send(audit, EventKind.FINISHED, {"result": codec.encode(document)}, seq=1)
    evaluation.refresh_from_db()
    return audit_of(evaluation)
