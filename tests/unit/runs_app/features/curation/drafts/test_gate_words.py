"""What pages say of a version that may not be published, or of which not all is known."""

from __future__ import annotations

import dataclasses

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.verdict import DeviceKind
from runs_app.features.curation.drafts.services import publish_draft
from tasks_app.models import Soundness, TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    act,
    example,
    in_review,
    prove,
    shown,
    signed_in,
)

pytestmark = pytest.mark.django_db

BRIEF = "7 of 9 wrong kernels pass (wrong 1, wrong 2, wrong 3 and 4 more); 2 filters flag it: a, b"


FOUR = "wrong 1, wrong 2, wrong 3, wrong 4"


@pytest.fixture
def judge(client: Client) -> User:
    """An admin, who is signed in."""
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def report(version: TaskVersion | None, survivors: int = 0, untried: int = 0) -> Soundness:
    """A report of nine wrong kernels; with survivors, two filters flag it as well."""
    names = [f"wrong {number}" for number in range(1, 10)]
    states = [*["survived"] * survivors, *["untried"] * untried, *["failed"] * 9][:9]
    mutants = [
        {"name": name, "direction": "forward", "state": state, "workload": "n256", "scaled": 2.0}
        for name, state in zip(names, states, strict=True)
    ]
    flagged = ["a", "b"] if survivors else []
    filters = [{"name": name, "direction": "forward", "passed": False} for name in flagged]
    return prove(
        version, passed=not survivors, mutants=9, filters=3,
        survivors=[f"forward: {name}" for name in names[:survivors]],
        flagged=[f"forward: {name}" for name in flagged],
        document={"mutants": mutants, "filters": filters},
    )  # fmt: skip


def test_a_refused_draft_names_all_that_pass_in_its_report_alone(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, survivors=7)
    text = shown(client, draft)
    assert text.count(BRIEF) == 2  # what is to be done, and the head of the report
    assert text.count("wrong 7") == 2  # the list of those that pass, and the whole report
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" not in button
    refused = act(client, draft, "publish").content.decode()
    assert "wrong 1" not in refused.partition('role="alert"')[2].partition("</p>")[0]
    assert '<details class="panel" open><summary>Publish anyway' in refused
    few = [report(make.make_task_version(name=f"few{count}"), count) for count in (1, 4)]
    assert few[0].brief_refusal.startswith("1 of 9 wrong kernels pass (wrong 1);")
    assert few[1].brief_refusal.startswith(f"4 of 9 wrong kernels pass ({FOUR});")
    assert few[1].refusal.count("wrong ") == 5


def test_wrong_kernels_that_were_not_tried_are_counted_wherever_none_passes(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, untried=2)
    text = shown(client, draft)
    assert "(2 untried)" in text
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" in button
    publish_draft(draft=draft, user=judge, now=make.NOW)
    for address in ("", "soundness/", "curate/"):
        text = client.get(f"/tasks/wave/{address}").content.decode()
        assert "(2 untried)" in text, address


def test_kinds_of_devices_without_hidden_workloads_are_said_to_who_decides(
    client: Client, judge: User
) -> None:
    words = "No hidden workloads on cpu and cuda"
    assert make.make_task_version().without_hidden == ()
    public = example()["task.toml"].replace("hidden = true\n", "")
    draft = in_review(**{"task.toml": public})
    assert words in shown(client, draft)
    assert words not in shown(signed_in(draft.author), draft)
    publish_draft(draft=draft, user=judge, override="seen", now=make.NOW)
    assert words in client.get("/tasks/wave/curate/").content.decode()
    first, hidden = make.make_task().workloads[0], make.make_task().workloads[2]
    rows = (first, dataclasses.replace(hidden, devices=(DeviceKind.CUDA,)))
    assert make.make_task_version(workloads=rows).without_hidden == ("cpu",)
