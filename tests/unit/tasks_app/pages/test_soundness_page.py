"""The page and the API show the soundness report, and nothing of hidden workloads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import Soundness, Task, TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db

AT = datetime(2026, 1, 2, tzinfo=UTC)
PAGE, API = "/tasks/scale/soundness/", "/api/v1/tasks/scale/soundness"


def a_filter(name: str, passed: bool | None, **changes: Any) -> dict[str, Any]:
    found = {
        "name": name, "direction": "forward", "workload": "n4096", "value": 0.0417,
        "limit": "at most 0.9", "passed": passed, "text": f"4.2% of {name}",
    }  # fmt: skip
    return found | changes


def a_kernel(name: str, scaled: float | str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "direction": "forward", "workload": "n256", "scaled": scaled} | changes


DOCUMENT = {
    "filters": [
        a_filter("output range: out", True),
        a_filter("baseline", None, value=None, text="no floor is known to judge eager by"),
        a_filter("input impact: N", False, value=0.0, limit="1", workload=make.HIDDEN_WORKLOAD),
        a_filter("work: bytes", True, text=f"as {make.HIDDEN_WORKLOAD} shows"),
    ],
    "mutants": [
        a_kernel("zeros", 2100000.0, state="failed"),
        a_kernel("only the last", "inf", state="failed"),
        a_kernel("all but one", 163612.0, state="failed"),
        a_kernel("dropped tail", 0.875, state="survived"),
        a_kernel("half the reduction", 77.25, state="failed", workload=make.HIDDEN_WORKLOAD),
    ],
    "honest": [
        a_kernel("reference", 0.3125),
        a_kernel("in parts", 1.5, reason="output 1 at (3,): off by 1"),
        a_kernel("backwards", 1.2, reason="a value of it", workload=make.HIDDEN_WORKLOAD),
    ],
}


def store(version: TaskVersion, **changes: Any) -> None:
    document = DOCUMENT | changes
    Soundness.objects.create(
        version=version, passed=False, kind="cpu", device="cpu", document=document, created_at=AT,
        mutants=len(document["mutants"]), survivors=["forward: dropped tail"],
        filters=len(document["filters"]), flagged=["forward: input impact: N"],
    )  # fmt: skip


def test_the_page_shows_numbers_and_what_speaks_against_the_task_first(client: Client) -> None:
    version = make.make_task_version()
    store(version)
    text = client.get(PAGE).content.decode()
    for words in (
        "1 of 5 wrong kernels pass (dropped tail)",
        "1 filter flags it: input impact: N",
        "4 of 5<", "2 of 4<", "0.0417", "at most 0.9", "∞", "164,000<", "0.875", "0.312", "1.50",
        '<span title="2.1e6 times what is allowed">&gt; 1,000,000</span>',
        "4.2% of output range: out", "no floor is known", "output 1 at (3,): off by 1",
    ):  # fmt: skip
        assert words in text, words
    assert text.index("input impact: N<span") < text.index("output range: out<span")
    assert text.index("dropped tail<span") < text.index("zeros<span")
    assert f'href="{PAGE}"' in client.get("/tasks/scale/").content.decode()


def test_hidden_workloads_are_named_to_admins_alone(client: Client) -> None:
    store(make.make_task_version())
    for address in (PAGE, API, "/tasks/scale/", "/api/v1/tasks/scale"):
        text = client.get(address).content.decode()
        assert make.HIDDEN_WORKLOAD not in text, address
        assert "a value of it" not in text, address
    page = client.get(PAGE).content.decode()
    assert "a hidden workload" in page
    assert ">77.2<" in page
    hostile = [a_kernel("<b>x</b>", 2.0, state="<i>odd</i>")]
    store(make.make_task_version(name="other"), mutants=hostile)
    text = client.get("/tasks/other/soundness/").content.decode()
    assert ("<b>x" in text, "<i>odd" in text) == (False, False)
    Task.objects.filter(slug="other").update(state="review")
    hidden = ("/tasks/other/soundness/", "/api/v1/tasks/other/soundness")
    assert {client.get(each).status_code for each in hidden} == {404}
    client.force_login(make.make_admin())
    assert client.get("/tasks/other/soundness/").status_code == 200
    page = client.get(PAGE).content.decode()
    assert make.HIDDEN_WORKLOAD in page
    assert "a value of it" in page


def test_the_api_answers_with_the_same_report(client: Client) -> None:
    assert client.get(API).status_code == 404
    store(make.make_task_version())
    found = client.get(API).json()
    assert found["passed"] is False
    assert "dropped tail" in found["refusal"]
    assert [each["passed"] for each in found["filters"]] == [False, None, True, True]
    assert (found["filters"][0]["value"], found["filters"][1]["value"]) == (0.0, None)
    by_name = {each["name"]: each for each in found["mutants"]}
    assert by_name["zeros"] == {**DOCUMENT["mutants"][0]}
    assert by_name["only the last"]["scaled"] == "inf"
    assert by_name["half the reduction"]["workload"] == "a hidden workload"
    assert found["honest"][1] == DOCUMENT["honest"][1]
    short = client.get("/api/v1/tasks/scale").json()["soundness"]
    assert (short["filters"], short["flagged"]) == (4, ["forward: input impact: N"])
    assert short["refusal"] == found["refusal"]


def test_what_a_brief_report_counts_is_said_without_hidden_names(client: Client) -> None:
    counts = {"failed": {"n256": 40, make.HIDDEN_WORKLOAD: 2}, "passed": 8, "right": 1}
    store(make.make_task_version(), unlisted={"forward": counts})
    text = client.get(PAGE).content.decode()
    for words in ("46 of 47<", "10 of 12<", "42 wrong", "8 filters", "1 honest"):
        assert words in text, words
    public = client.get(API)
    assert public.json()["unlisted"]["forward"]["failed"] == {"n256": 40, "a hidden workload": 2}
    assert make.HIDDEN_WORKLOAD not in public.content.decode()
