"""The pictures of a result: what they say, and where their marks lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.environment import Environment, Peaks, Rates
from gpu_runner.data.formats import find_task
from runs_app.core.baselines.selectors import Baselines
from runs_app.models import Evaluation
from runs_app.submitting.page import library_speedups, workload_rows
from runs_app.submitting.pictures.comparison import comparison, workload_plot
from runs_app.submitting.pictures.plot import Plot
from runs_app.submitting.pictures.roofline import missing, roofline
from runs_app.submitting.selectors import rivals
from tasks_app.publishing.services import store_version
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

PEAK = Rates(bytes_per_s=1e9, flop_per_s=1e10, fraction=0.5, source="measured")
MEASURED = Environment(peaks=Peaks(measured=PEAK))


def finished(**overrides: Any) -> Evaluation:
    return factories.make_finished_evaluation(**({"mode": "ranked"} | overrides))


def compared(evaluation: Evaluation, known: Baselines | None = None) -> Plot:
    found = comparison(
        evaluation,
        workload_rows(evaluation.result.data),
        rivals(evaluation, evaluation.submission.author),
        known or Baselines(),
        library_speedups(evaluation.result.data, evaluation.task_version),
    )
    assert found is not None
    return found


def test_a_library_has_the_name_that_the_task_gives_it() -> None:
    """A runner could write anything, and a board's headline would show it."""
    task = find_task("multi_head_attention_bf16")
    _, version, _ = store_version(task, factories.NOW)
    result = finished().result.data
    told = Environment(libraries={"cudnn": "spam", "ours": "spam"})
    lying = replace(result, speedups={"cudnn": 2.0, "ours": 3.0, "best": 2.0}, environment=told)
    assert library_speedups(lying, version) == {"Fused attention of cuDNN": 2.0}


def test_a_picture_has_its_rivals() -> None:
    version = factories.make_task_version()
    finished(task_version=version, result={"latency_ns": 500.0})
    shown = compared(finished(task_version=version))
    speeds = {row.label: (row.value, row.note) for row in shown.rows}
    assert speeds == {
        "Leader": ("500 ns", "3.00×"), "Physical limit": ("500 ns", "3.00×"),
        "This kernel": ("1.00 µs", "1.50× on listed sizes"),
        "Best baseline: PyTorch compiled": ("1.50 µs", "1.00×"),
        "PyTorch eager": ("2.00 µs", "0.750×"),
    }  # fmt: skip
    alone = factories.make_workload_result(baselines={}, speedups={})
    result = {"workloads": (alone,), "speedups": {}, "unlisted_speedups": {}}
    fresh = factories.make_task_version(name="fresh")
    quick = finished(mode="quick", task_version=fresh, result=result)
    shown = compared(quick, Baselines(times_ns={"eager": 3000.0}))  # which are known
    assert ("This kernel", "3.00×") in [(row.label, row.note[:5]) for row in shown.rows]


def test_each_workload_has_its_interval_and_hidden_ones_stay_hidden(client: Client) -> None:
    evaluation = finished()
    result = evaluation.result.data
    picture = workload_plot([row for row in workload_rows(result) if not row.hidden])
    assert picture is not None
    [row] = picture.rows
    assert (row.label, row.value) == ("N=256", "1.50×")
    own = next(mark for mark in row.marks if mark.kind == "own")
    assert own.low is not None
    assert own.high is not None
    assert own.low < own.at < own.high
    page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert "N=256" in page
    assert "1777" not in page


def test_a_peak_that_was_measured_later_draws_the_roofline_of_an_earlier_result(
    client: Client,
) -> None:
    """Of its runner and in its dtype alone: another host's peak says nothing of it."""
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    earlier, later = (finished(result={"workloads": (work,)}) for _ in range(2))
    later.result.document["environment"] = codec.encode(MEASURED)
    later.result.save()
    own, other = factories.make_runner(), factories.make_runner(name="other")
    for runner, is_known in ((other, False), (own, True)):
        Evaluation.objects.filter(pk=earlier.pk).update(runner=own)
        rows = Evaluation.objects.filter(pk=later.pk)
        rows.update(runner=runner, created_at=factories.later(60))
        page = client.get(earlier.submission.get_absolute_url()).content.decode()
        assert ("Measured peak" in page) == is_known
        assert ('id="no-roofline"' in page) != is_known


@pytest.mark.parametrize(("bytes_moved", "is_drawn"), [(500.0, True), (2000.0, False)])
def test_a_measured_peak_slower_than_the_kernel_is_no_limit(
    bytes_moved: float,
    is_drawn: bool,
) -> None:
    """A probe that another process disturbed says nothing of what the device can do."""
    work = factories.make_workload_result(bytes=bytes_moved, flops=0.0, floor_ns=None)
    made = finished(result={"workloads": (work,), "environment": MEASURED, "floor_fraction": None})
    assert ("Measured peak" in [row.label for row in compared(made).rows]) == is_drawn
    picture = workload_plot(workload_rows(made.result.data))
    assert picture is not None
    assert ("limit" in {mark.kind for row in picture.rows for mark in row.marks}) == is_drawn


def test_a_roofline_lies_below_its_roof() -> None:
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    result = finished(result={"workloads": (work,)}).result.data
    result = replace(result, environment=MEASURED)
    picture = roofline(result, workload_rows(result), "float32")
    assert picture is not None
    [roof], [point] = picture.roofs, picture.points
    slope, flat = roof.segments
    assert slope.y1 > slope.y2 == flat.y1 == flat.y2
    assert (slope.x2, slope.y2) == (flat.x1, flat.y1)
    assert "4.00 FLOP per byte, 4.00 GFLOP/s: 100 %" in point.words
    without = replace(result, environment=Environment())
    assert roofline(without, workload_rows(result), "float32") is None
    assert "profile mode" in missing(without, workload_rows(result), "float32")
    assert missing(replace(result, workloads=()), [], "float32") == ""
    copies = factories.make_workload_result(flops=0.0, bytes=1000.0)
    result = finished(result={"workloads": (copies,)}).result.data
    assert "no arithmetic" in missing(result, workload_rows(result), "float32")
    work = factories.make_workload_result(flops=40_000.0, bytes=10_000.0)
    result = replace(finished(result={"workloads": (work,)}).result.data, environment=MEASURED)
    picture = roofline(result, workload_rows(result), "float32")
    assert picture is not None
    assert "10.0 times what memory" in picture.points[0].words  # that means caches
