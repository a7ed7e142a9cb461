"""One button leads from a correct result to its profile, and the page shows it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, KernelResources, Profile
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation
from runs_app.submitting.live import live_view
from runs_app.submitting.profile_page import ProfileStep
from runs_app.submitting.services import rerun
from runs_app.submitting.workbench.attempts import attempts
from tasks_app.people import Viewer
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

CAUSE = "Denormals: with `-ffast-math`, a call is 9× as fast."
SEEN = Profile(
    tool="portable", reason="no ncu here", workload="n256", causes=(CAUSE,),
    metrics=dict.fromkeys(THROUGHPUTS, 20.0),
)  # fmt: skip


def step(evaluation: Evaluation, user: Viewer | None = None) -> ProfileStep | None:
    return live_view(evaluation, user or AnonymousUser(), factories.later(60)).profile_step


def test_a_button_makes_the_profile_then_a_link_leads_to_it(client: Client) -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    submission = evaluation.submission
    client.force_login(submission.author)
    address = f"/submissions/{submission.pk}/"
    answer = client.post(f"{address}rerun/", {"mode": "profile", "device": evaluation.device_id})
    profiled = Evaluation.objects.get(mode="profile")
    own = f"{address}?evaluation={profiled.pk}"
    assert answer["Location"] == own, "who asked for it watches it"
    assert step(evaluation) is None
    waiting = Client().get(address).content.decode()
    line = waiting.split('id="under-way"')[1].split("</p>")[0]
    assert own in line
    assert "profile on" in line
    factories.start(profiled)
    factories.finish(profiled, profile=SEEN)
    found = step(evaluation)
    assert found is not None
    assert found.address == "#h-profile"
    assert step(Evaluation.objects.get(pk=profiled.pk)) is None
    page = client.get(own).content.decode()
    shown = CAUSE.replace("`-ffast-math`", "<code>-ffast-math</code>")
    assert f'href="#h-profile">{shown.rstrip(".")}</a>.' in page, "the cause follows the sentence"
    assert f"Cause:</strong> {shown}" in page
    panel = page.split('id="h-profile"')[1]
    assert panel.index("Cause:") < panel.index("ar from both limits") < panel.index("no ncu here")


def test_a_profile_does_not_hide_the_evaluation_that_counts() -> None:
    """The page, its citation, its badge and the attempt show the ranked one; the page, both."""
    ranked = factories.make_finished_evaluation(mode="ranked")
    submission = ranked.submission
    evaluated = {"submission": submission, "user": submission.author, "mode": "profile"}
    profiled = rerun(**evaluated, now=factories.later(60))
    factories.start(profiled)
    factories.finish(profiled, profile=SEEN, speedups={"best": 3.67}, latency_ns=400.0)
    address, reader = f"/submissions/{submission.pk}/", Client()
    page = reader.get(address).content.decode()
    assert f'data-evaluation="{ranked.pk}"' in page
    assert ("Not on a board" in page, "3.67×" in page.split("All evaluations")[0]) == (False, False)
    assert "under-way" not in page
    panel = page.split('id="h-profile"')[1]
    assert panel.index(f"?evaluation={profiled.pk}") < panel.index("profile evaluation</a>")
    assert panel.index("profile evaluation</a>") < panel.index("Cause:")
    for part in (page, reader.get(f"{address}?evaluation={profiled.pk}").content.decode()):
        assert f"@misc{{kbench-{ranked}," in part
    assert "1.50×" in reader.get(f"{address}badge.svg").content.decode()
    found = attempts(ranked.task_version, "forward", ranked.device, submission.author)
    assert [(row.evaluation.pk, row.under_way) for row in found.rows] == [(ranked.pk, None)]
    again = rerun(**evaluated, now=factories.later(120))
    found = attempts(ranked.task_version, "forward", ranked.device, submission.author)
    assert [(row.evaluation.pk, row.under_way) for row in found.rows] == [(ranked.pk, again)]
    reader.force_login(submission.author)
    known = f"/submit/attempts/?task={ranked.task_version.task.slug}&device={ranked.device_id}"
    row = reader.get(known).content.decode()
    assert "profile under way" in row
    assert ">Correct</span>" in row, "beside its speedup"
    assert "1.50×" in row


def test_others_profile_a_copy_and_wrong_results_have_nothing_to_profile() -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    for user in (None, factories.make_user()):
        found = step(evaluation, user)
        assert found is not None
        assert found.address.startswith(f"/submit/?submission={evaluation.submission_id}")
        assert "mode=profile" in found.address
    factories.make_task_version(title="Scale a vector, again")
    old = Evaluation.objects.get(pk=evaluation.pk)
    assert step(old) is None, "nobody can submit to an old version"
    wrong = factories.make_finished_evaluation(Verdict.WRONG_RESULT)
    assert step(wrong) is None


SHARES = {
    "compute_throughput_pct": 12.0,
    "dram_throughput_pct": 81.25,
    "memory_throughput_pct": 84.0,
}
COUNTED = Profile(
    tool="ncu",
    reason="",
    workload="n256",
    metrics={**SHARES, "l2_hit_rate_pct": 40.0, "max_bandwidth_pct": 77.0,
             "dram_bytes_per_s": 3.9e12, "mem_pipes_busy_pct": 9.0},
    kernels=(
        KernelMetrics(name="reduce<4>(float*)", duration_ns=2500.0,
                      metrics={"dram_throughput_pct": 83.0, "registers_per_thread": 32.0}),
        KernelMetrics(name="finish", metrics={"block_threads": 256.0}),
    ),
    notes=("peaks: the data sheet",),
)  # fmt: skip


def page(client: Client, **result: Any) -> str:
    """Text of the page of an evaluation in the mode profile."""
    evaluation = factories.make_finished_evaluation(mode=Mode.PROFILE.value, result=result)
    return client.get(f"/submissions/{evaluation.submission_id}/").content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
def test_the_page_shows_resources_and_profile(client: Client) -> None:
    build = BuildReport(
        ok=True, cached=False, duration_s=0.5, log="", command="nvcc", compiler="nvcc 13",
        digest="0" * 64,
        resources=(
            KernelResources(name="tile<float>", registers=255, shared_bytes=4096,
                            spill_store_bytes=48, spill_load_bytes=64),
            KernelResources(name="finish", registers=16),
        ),
    )  # fmt: skip
    portable = dataclasses.replace(COUNTED, tool="portable", reason="ncu is not installed")
    text = page(client, build=build, profile=portable)
    for part in ("tile&lt;float&gt;", "255", "4.00 KiB", "48.0 B · 64.0 B", "none"):
        assert part in text
    bare = page(client)
    assert ("h-profile" in bare, "Resources of the kernels" in bare) == (False, False)
    for part in ("ncu is not installed", "81.2 %", "3.90 TB/s", "reduce&lt;4&gt;", "data sheet"):
        assert part in text
