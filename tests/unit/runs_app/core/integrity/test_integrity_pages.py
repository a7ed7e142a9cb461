"""What pages and the API show of suspicions, decisions, audits and the outside clock."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.integrity import AuditCheck, AuditState, Burst, Check, OutsideTime, Suspicion
from gpu_runner.data.verdict import Verdict
from runs_app.core.integrity.page import outside_rows, suspicion_views
from runs_app.models import Evaluation, QuarantineDecision
from tasks_app.templatetags.source import ShownFile
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import (
    MEMCHECK,
    audit_of,
    end_audit,
    held,
    ranked,
    under_way,
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


def test_the_author_sees_what_tripped_and_decides_nothing(client: Client) -> None:
    evaluation = suspicious()
    client.force_login(evaluation.submission.author)
    text = page_of(client, evaluation)
    for words in ("In quarantine", "includes &lt;dlfcn.h&gt;", 'href="#L-5"', "data-waits",
                  "<mark>#include &lt;dlfcn.h&gt; // &lt;5&gt;</mark>"):  # fmt: skip
        assert words in text, words
    assert "Unverified" not in text
    assert client.get("/quarantine/").status_code == 403
    form = {"state": "cleared", "reason": "mine"}
    path = f"/quarantine/{evaluation.quarantine_case_id}/decide/"
    assert client.post(path, form).status_code == 403
    path = f"/submissions/{evaluation.submission_id}/"
    assert client.post(f"{path}audit/").status_code == 403
    [row] = client.get(f"/api/v1{path}".rstrip("/")).json()["evaluations"]
    assert (row["quarantine"], row["quarantine_reason"], row["audited"]) == ("open", "", "none")
    assert row["result"]["suspicions"][0]["reason"] == LINE_5.reason


def test_an_admin_decides_on_the_page_and_everybody_sees_who_and_why(admin: Client) -> None:
    evaluation = suspicious()
    path = f"/quarantine/{evaluation.quarantine_case_id}/decide/"
    text = admin.get("/quarantine/").content.decode()
    assert ("includes &lt;dlfcn.h&gt;" in text, "Quarantine (1)" in text) == (True, True)
    refused = admin.post(path, {"state": "cleared", "reason": " "}, follow=True)
    assert "Not decided: enter a reason" in refused.content.decode()
    form = {"state": "rejected", "reason": "it loads <cuBLAS>"}
    text = admin.post(path, form, follow=True).content.decode()
    assert ("Nothing to decide." in text, "it loads &lt;cuBLAS&gt;" in text) == (True, True)
    assert QuarantineDecision.objects.get().decided_by.username == "judge"
    text = page_of(Client(), evaluation)
    assert "<strong>Rejected</strong> by judge" in text
    assert "it loads &lt;cuBLAS&gt;" in text
    assert ("Unverified" in text, "pheld" in text) == (False, False)


def test_an_audit_is_reported_with_the_tools_own_words(client: Client) -> None:
    evaluation = ranked()
    page = page_of(client, evaluation)
    assert ("Unverified" in page, "data-waits" in page) == (True, True)
    assert ("would lead its board" in " ".join(page.split()), "leads" in page) == (True, False)
    audit = end_audit(evaluation, MEMCHECK)
    page = page_of(client, evaluation)
    assert ("Verified" in page, f"?evaluation={audit.evaluation_id}" in page) == (True, True)
    report = page_of(client, evaluation, f"?evaluation={audit.evaluation_id}")
    assert ("0 errors" in report, "2.50 s" in report) == (True, True)


def test_pages_say_which_check_an_unverified_result_lacks(client: Client) -> None:
    evaluation = ranked()
    lacking = AuditCheck(name="kernels", state=AuditState.SKIPPED, reason="ncu is <not> installed")
    audit = end_audit(evaluation, MEMCHECK, lacking, required=("memcheck", "kernels"))
    page = page_of(client, evaluation)
    assert "kernels skipped: ncu is &lt;not&gt; installed." in page
    report = page_of(client, evaluation, f"?evaluation={audit.evaluation_id}")
    assert report.count(">required<") == 2


def test_an_entry_of_a_refused_source_says_so_and_links_to_the_audit(client: Client) -> None:
    evaluation = ranked()
    end_audit(evaluation, verdict=Verdict.WRONG_RESULT, reason="off by 2")
    audit = under_way(evaluation)
    copy = ranked(task_version=evaluation.task_version, source=evaluation.submission.source)
    page = page_of(client, copy)
    assert "WRONG_RESULT: off by 2." in page
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
    assert "Racecheck: &lt;2&gt; races" in page_of(admin, evaluation)
    admin.post(f"/submissions/{evaluation.submission_id}/audit/", {"device": "cpu"})
    assert not under_way(evaluation).is_over
    assert audit_of(evaluation).asked_by is not None
    again = admin.post(f"/submissions/{evaluation.submission_id}/audit/", follow=True)
    assert "No audit: it is already being audited." in again.content.decode()


def test_the_outside_clock_stands_beside_the_claimed_time(client: Client) -> None:
    workload = make.make_workload_result(outside=OUTSIDE)
    hidden = make.make_workload_result(name=make.HIDDEN_WORKLOAD, hidden=True, outside=OUTSIDE)
    evaluation = ranked(result={"workloads": (workload, hidden)})
    text = page_of(client, evaluation)
    assert "± 25.0 ns" in text
    assert re.search(r'data-label="Processor time">[^–]*950', text)
    assert re.search(r'data-label="At the gate">[^–]*871', text)
    assert make.HIDDEN_WORKLOAD not in text
    claims = [replace(workload, measurement=make.make_measurement(ns)) for ns in (874.0, 876.0)]
    rows = outside_rows([*claims, replace(claims[1], claimed_ns=300.0)])
    assert [row.holds for row in rows] == [False, True, False]  # of claims below the bound


def test_excerpts_stay_inside_the_source() -> None:
    text = "\n".join(str(number) for number in range(1, 8))
    files = [ShownFile(name="kernel.cpp", text=text, language="cpp", anchor="L")]
    for line, shown in ((1, 4), (None, 0), (0, 0), (99, 0), (7, 4)):
        [view] = suspicion_views([Suspicion(check=Check.SOURCE, reason="r", line=line)], files)
        assert len(view.lines) == shown


def test_hidden_workloads_stay_hidden_in_suspicions_and_audits(client: Client) -> None:
    reason = f"faster than light on {make.HIDDEN_WORKLOAD}"
    evaluation = held(result={"suspicions": (Suspicion(check=Check.FLOOR, reason=reason),)})
    assert make.HIDDEN_WORKLOAD not in page_of(client, evaluation)
    other = ranked(task_version=evaluation.task_version, source="// other\n")
    told = {"reason": make.HIDDEN_WORKLOAD, "report": make.HIDDEN_WORKLOAD}
    audit = end_audit(other, AuditCheck(name="ncu", state=AuditState.PASSED, **told))
    for path in (f"/submissions/{other.pk}/", f"/evaluations/{audit.evaluation_id}/json/"):
        assert make.HIDDEN_WORKLOAD not in client.get(path).content.decode()


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
    shown = client.get(path.removesuffix("/audit")).json()["evaluations"]
    assert {row["mode"]: row["audited"] for row in shown}["ranked"] == "passed"
