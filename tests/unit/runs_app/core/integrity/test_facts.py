"""What audits tell besides their checks: facts about a kernel's use, and times that differ."""

from __future__ import annotations

import pytest
from django.test import Client

from gpu_runner.data.facts import Facts
from gpu_runner.data.integrity import Audit
from runs_app.core.integrity.audits import TIMES_DIFFER, request_audit
from runs_app.core.integrity.facts import facts_of
from runs_app.models import Evaluation
from runs_app.submitting.live import live_view
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, audit_of, end_audit, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

TOLD = Facts(
    same_bits=True,
    graph=False,
    scratch_bytes=3 << 20,
    energy_joules=0.0042,
    energy_error=0.08,
    said={"graph": "it waits for the device on small", "same_bits": "3 calls each"},
    workload="small",
)


def told(evaluation: Evaluation, facts: Facts | None) -> None:
    audit = Audit(checks=(MEMCHECK,), required=(MEMCHECK.name,), facts=facts)
    end_audit(evaluation, audit=audit)


def test_facts_stand_on_the_result_and_in_the_api(client: Client) -> None:
    evaluation = ranked()
    told(evaluation, TOLD)
    assert facts_of(audit_of(evaluation)) == TOLD
    text = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert "Before you use this kernel" in text
    for words in ("3.00 MiB", "4.20 mJ ±8.0 %", "it waits for the device", "on small"):
        assert words in text, words
    [row] = [
        each
        for each in client.get(f"/api/v1/submissions/{evaluation.submission_id}").json()[
            "evaluations"
        ]
        if each["mode"] == "ranked"
    ]
    assert (row["facts"]["same_bits"], row["facts"]["scratch_bytes"]) == (True, 3 << 20)


def test_no_fact_bars_a_kernel(client: Client) -> None:
    evaluation = ranked()
    told(evaluation, Facts(same_bits=False, graph=False))
    evaluation.refresh_from_db()
    assert evaluation.audited == "passed"


def test_a_runners_words_are_cut_and_name_nothing_hidden() -> None:
    evaluation = ranked(task_version=make.make_task_version())
    hidden = evaluation.task_version.hidden_names
    name = hidden[0] if hidden else "nothing"
    told(evaluation, Facts(said={"graph": f"fails on {name} " + "x" * 5000}))
    kept = facts_of(audit_of(evaluation))
    assert kept is not None
    assert len(kept.said["graph"]) <= 300
    assert not hidden or name not in kept.said["graph"]


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
