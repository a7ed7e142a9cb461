"""What an audit refuses is refused for every entry of the same source."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import Verdict
from runs_app.core.integrity.audits import request_audit
from runs_app.core.work.audit_state import board_audit
from runs_app.models import Evaluation
from runs_app.optimiser.services.problem import seed_for
from runs_app.optimiser.services.request import RunRequest
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, audit_of, end_audit, ranked
from tests.unit.runs_app.core.integrity.test_audits import slower, stands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def entered_again(first: Evaluation) -> Evaluation:
    """The same source, by somebody else and some time later."""
    fields = {"task_version": first.task_version, "source": first.submission.source}
    return ranked(**fields, result={"latency_ns": 900.0})


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
