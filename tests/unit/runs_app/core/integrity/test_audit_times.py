"""An audit's time against the one it was to confirm."""

from __future__ import annotations

import pytest

from runs_app.core.integrity.audits import TIMES_DIFFER, request_audit
from runs_app.submitting.live import live_view
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


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
