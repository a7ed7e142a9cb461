"""What pages and the API show of suspicions, decisions, audits and the outside clock."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.integrity import (
    AuditCheck,
    AuditState,
    Burst,
    Check,
    OutsideTime,
    Suspicion,
)
from gpu_runner.data.verdict import Verdict
from runs_app.core.integrity.page import outside_rows, suspicion_views
from runs_app.models import Evaluation, QuarantineDecision
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import (
    MEMCHECK,
    audit_of,
    end_audit,
    held,
    ranked,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

SOURCE = "// 1\n// 2\n// 3\n// 4\n#include <dlfcn.h> // <5>\n" + make.SOURCE
LINE_5 = Suspicion(check=Check.SOURCE, reason="includes <dlfcn.h>", line=5)
OUTSIDE = OutsideTime(
    bound_ns=900.0, error_ns=25.0, cpu_ns=950.0, null_intercept_ns=3900.0, gate_ns=871.0,
    bursts=(Burst(calls=3, held_ns=6850.0),),
)  # fmt: skip


@pytest.fixture
def admin(client: Client) -> Client:
    """An admin's browser."""
    client.force_login(make.make_admin(username="judge"))
    return client


def page_of(client: Client, evaluation: Evaluation, query: str = "") -> str:
    answer = client.get(f"/submissions/{evaluation.submission_id}/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def suspicious(**overrides: Any) -> Evaluation:
    return held(source=SOURCE, result={"suspicions": (LINE_5,)}, **overrides)


def test_the_author_sees_what_tripped_and_that_a_person_decides(client: Client) -> None:
    evaluation = suspicious()
    client.force_login(evaluation.submission.author)
    text = page_of(client, evaluation)
    assert "In quarantine" in text
    assert "Unverified" not in text
    assert "a person will look at it and decide" in text
    assert "includes &lt;dlfcn.h&gt;" in text
    assert "<mark>#include &lt;dlfcn.h&gt; // &lt;5&gt;</mark>" in text
    assert 'href="#L-5"' in text
    assert "data-waits" in text
    assert client.get("/quarantine/").status_code == 403


def test_an_admin_decides_on_the_page_and_everybody_sees_who_and_why(admin: Client) -> None:
    evaluation = suspicious()
    case = evaluation.quarantine_case
    assert case is not None
    text = admin.get("/quarantine/").content.decode()
    assert "#outside-clock" in text
    assert "includes &lt;dlfcn.h&gt;" in text
    assert "Quarantine (1)" in text
    refused = admin.post(
        f"/quarantine/{case.pk}/decide/", {"state": "cleared", "reason": " "}, follow=True
    )
    assert "Not decided: say why" in refused.content.decode()
    form = {"state": "rejected", "reason": "it loads <cuBLAS>"}
    text = admin.post(f"/quarantine/{case.pk}/decide/", form, follow=True).content.decode()
    assert "Nothing to decide." in text
    assert "it loads &lt;cuBLAS&gt;" in text
    assert QuarantineDecision.objects.get().decided_by.username == "judge"
    text = page_of(Client(), evaluation)
    assert "<strong>Rejected</strong> by judge" in text
    assert "Rejected: it doesn't count anywhere" in text
    assert "Unverified" not in text
    assert "pheld" not in text
    assert "it loads &lt;cuBLAS&gt;" in text


def test_people_decide_nothing(client: Client) -> None:
    evaluation = suspicious()
    client.force_login(evaluation.submission.author)
    form = {"state": "cleared", "reason": "mine"}
    path = f"/quarantine/{evaluation.quarantine_case_id}/decide/"
    assert client.post(path, form).status_code == 403
    assert client.post(f"/submissions/{evaluation.submission_id}/audit/").status_code == 403


def test_an_audit_is_reported_with_the_tools_own_words(client: Client) -> None:
    evaluation = ranked()
    page = page_of(client, evaluation)
    assert "Unverified" in page
    assert "data-waits" in page
    audit = end_audit(evaluation, MEMCHECK).evaluation
    assert audit is not None
    page = page_of(client, evaluation)
    assert "Verified" in page
    assert "1 check passed" in page
    assert f"?evaluation={audit.pk}" in page
    report = page_of(client, evaluation, f"?evaluation={audit.pk}")
    assert "Report of the audit" in report
    assert "0 errors" in report
    assert "2.50 s" in report


def test_pages_say_which_check_an_unverified_result_lacks(client: Client) -> None:
    evaluation = ranked()
    lacking = AuditCheck(name="kernels", state=AuditState.SKIPPED, reason="ncu is <not> installed")
    audit = end_audit(evaluation, MEMCHECK, lacking, required=("memcheck", "kernels"))
    page = page_of(client, evaluation)
    assert "has passed: kernels skipped: ncu is &lt;not&gt; installed." in page
    assert "It is shown as unverified" in page
    report = page_of(client, evaluation, f"?evaluation={audit.evaluation_id}")
    assert report.count(">required<") == 2
    assert ">Ranked</button>" in client.get("/leaderboard/?device=cpu").content.decode()


def test_an_entry_of_a_refused_source_says_so_and_links_to_the_audit(client: Client) -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, verdict=Verdict.WRONG_RESULT, reason="off by 2").evaluation
    assert audit is not None
    copy = ranked(task_version=evaluation.task_version, source=evaluation.submission.source)
    page = page_of(client, copy)
    assert "Audit failed" in page
    assert "WRONG_RESULT: off by 2." in page
    assert "Another submission of the same source was audited" in page
    link = f'href="/submissions/{evaluation.submission_id}/?evaluation={audit.pk}"'
    assert link in page
    evaluation.submission.private = True
    evaluation.submission.save()
    page = page_of(client, copy)
    assert "WRONG_RESULT: off by 2." in page
    assert link not in page


def test_a_failed_audit_says_why_and_an_admin_can_repeat_it(admin: Client) -> None:
    evaluation = ranked()
    end_audit(evaluation, AuditCheck(name="racecheck", state=AuditState.FAILED, reason="<2> races"))
    page = page_of(admin, evaluation)
    assert "Audit failed" in page
    assert "Racecheck: &lt;2&gt; races" in page
    admin.post(f"/submissions/{evaluation.submission_id}/audit/", {"device": "cpu"})
    audit = audit_of(evaluation)
    assert audit.evaluation is not None
    assert not audit.evaluation.is_over
    assert audit.asked_by is not None
    assert "The audit under way" in page_of(admin, evaluation)
    again = admin.post(f"/submissions/{evaluation.submission_id}/audit/", follow=True)
    assert "No audit: it is already being audited." in again.content.decode()


def test_the_outside_clock_stands_beside_the_claimed_time(client: Client) -> None:
    workload = make.make_workload_result(outside=OUTSIDE)
    hidden = make.make_workload_result(name=make.HIDDEN_WORKLOAD, hidden=True, outside=OUTSIDE)
    evaluation = ranked(result={"workloads": (workload, hidden)})
    text = page_of(client, evaluation)
    assert "The supervisor’s own clock" in text
    assert "± 25.0 ns" in text
    assert re.search(r'data-label="Processor time">[^–]*950', text)
    assert re.search(r'data-label="At the gate">[^–]*871', text)
    assert make.HIDDEN_WORKLOAD not in text


def test_a_claim_below_the_bound_is_marked() -> None:
    entry = make.make_workload_result(outside=OUTSIDE, measurement=make.make_measurement(874.0))
    [row] = outside_rows([entry])
    assert not row.holds
    entry = replace(entry, measurement=make.make_measurement(876.0))
    assert outside_rows([entry])[0].holds
    [raised] = outside_rows([replace(entry, claimed_ns=300.0)])
    assert (raised.claimed_ns, raised.holds) == (300.0, False)


@pytest.mark.parametrize(("line", "shown"), [(1, 4), (None, 0), (0, 0), (99, 0), (7, 4)])
def test_excerpts_stay_inside_the_source(line: int | None, shown: int) -> None:
    source = "\n".join(str(number) for number in range(1, 8))
    [view] = suspicion_views([Suspicion(check=Check.SOURCE, reason="r", line=line)], source)
    assert len(view.lines) == shown


def test_the_advice_is_of_what_raised_the_suspicion(client: Client) -> None:
    of_code, of_times = "A re-run raises the same suspicion", "A busy host can cause a suspicion"
    first = suspicious()
    text = page_of(client, first)
    assert of_code in text
    assert of_times not in text
    clock = Suspicion(check=Check.CLOCK, reason="claims 1 ns")
    other = held(
        task_version=first.task_version, source="// 2\n", result={"suspicions": (clock, clock)}
    )
    text = page_of(client, other)
    assert text.count(of_times) == 1
    assert of_code not in text


def test_two_rules_on_one_line_share_an_excerpt() -> None:
    found = [
        Suspicion(check=Check.SOURCE, reason=reason, line=line)
        for reason, line in (("a", 2), ("b", None), ("c", 5), ("d", 2), ("e", None))
    ]
    views = suspicion_views(found, SOURCE)
    shown = [(view.reason, [line.number for line in view.lines if line.tripped]) for view in views]
    assert shown == [("a", []), ("d", [2]), ("b", []), ("c", [5]), ("e", [])]


def test_hidden_workloads_stay_hidden_in_suspicions_and_audits(client: Client) -> None:
    reason = f"faster than light on {make.HIDDEN_WORKLOAD}"
    evaluation = held(result={"suspicions": (Suspicion(check=Check.FLOOR, reason=reason),)})
    assert make.HIDDEN_WORKLOAD not in page_of(client, evaluation)
    other = ranked(task_version=evaluation.task_version, source="// other\n")
    check = AuditCheck(
        name="ncu", state=AuditState.PASSED, reason=make.HIDDEN_WORKLOAD,
        report=make.HIDDEN_WORKLOAD,
    )  # fmt: skip
    audit = end_audit(other, check).evaluation
    assert audit is not None
    for path in (f"/submissions/{other.pk}/", f"/evaluations/{audit.pk}/json/"):
        assert make.HIDDEN_WORKLOAD not in client.get(path).content.decode()


def test_the_api_tells_the_state(client: Client) -> None:
    evaluation = held()
    path = f"/api/v1/submissions/{evaluation.submission_id}"
    [row] = client.get(path).json()["evaluations"]
    assert (row["quarantine"], row["quarantine_reason"], row["audited"]) == ("open", "", "none")
    assert row["result"]["suspicions"][0]["reason"] == "calls dlopen"


def test_admins_ask_for_audits_over_the_api(client: Client) -> None:
    evaluation = ranked()
    end_audit(evaluation, MEMCHECK)
    path = f"/api/v1/submissions/{evaluation.submission_id}/audit"

    def ask(user: Any) -> Any:
        headers = {"Authorization": f"Bearer {make.make_token(user)}"}
        return client.post(path, {}, content_type="application/json", headers=headers)

    assert ask(evaluation.submission.author).status_code == 403
    judge = make.make_admin()
    answer = ask(judge)
    assert answer.status_code == 201
    assert answer.json()["url"].endswith(answer.json()["evaluation"])
    assert ask(judge).status_code == 409
    evaluations = client.get(f"/api/v1/submissions/{evaluation.submission_id}").json()[
        "evaluations"
    ]
    assert {row["mode"]: row["audited"] for row in evaluations}["ranked"] == "passed"
