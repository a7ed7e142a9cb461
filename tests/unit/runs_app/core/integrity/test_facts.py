"""What audits tell of a kernel's use is kept, shown and told, and moves nobody."""

from __future__ import annotations

import pytest
from django.test import Client

from gpu_runner.data.facts import Facts
from gpu_runner.data.integrity import Audit
from runs_app.core.integrity.facts import facts_of
from runs_app.models import Evaluation
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
    assert "Before you use it" in text
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


def test_without_an_audit_nothing_is_told(client: Client) -> None:
    evaluation = ranked()
    text = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert "Before you use it" not in text
    told(evaluation, None)
    assert audit_of(evaluation).facts == {}
    assert facts_of(audit_of(evaluation)) is None


def test_a_runners_words_are_cut_and_name_nothing_hidden() -> None:
    evaluation = ranked(task_version=make.make_task_version())
    hidden = evaluation.task_version.hidden_names
    name = hidden[0] if hidden else "nothing"
    told(evaluation, Facts(said={"graph": f"fails on {name} " + "x" * 5000}))
    kept = facts_of(audit_of(evaluation))
    assert kept is not None
    assert len(kept.said["graph"]) <= 300
    assert not hidden or name not in kept.said["graph"]
