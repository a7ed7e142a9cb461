"""The pictures of a result: what they say, and where their marks lie."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from PIL import ImageFont

from gpu_runner.data.environment import Environment, Peaks, Rates
from gpu_runner.data.formats import find_task
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import Mode
from runs_app.core.baselines.selectors import Baselines
from runs_app.models import Evaluation
from runs_app.submitting import card
from runs_app.submitting.page import above_limit_sentence, library_speedups, workload_rows
from runs_app.submitting.pictures.comparison import comparison, workload_plot
from runs_app.submitting.pictures.plot import Plot, axis_of
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


def test_an_axis_goes_by_powers_of_two_and_holds_one() -> None:
    axis = axis_of([3.0, 5.0])
    assert (axis.low, axis.high) == (0, 3)
    assert axis.at(1.0) < axis.at(2.0) < axis.at(4.0)
    assert math.isclose(axis.at(4.0) - axis.at(2.0), axis.at(2.0) - axis.at(1.0), abs_tol=0.02)
    assert [tick.label for tick in axis.ticks()] == ["1×", "2×", "4×", "8×"]
    assert axis_of([]).ticks()[1].is_one
    assert len(axis_of([1e-9, 1e9]).ticks()) <= 17


@pytest.mark.parametrize("ends", [(-40, 11), (-12, 1), (-6, 6), (-4, 3), (-1, 1), (0, 11), (0, 3)])
def test_labels_of_an_axis_never_touch(ends: tuple[int, int]) -> None:
    font = ImageFont.truetype(settings.BASE_DIR / card._FONT, 100)
    font.set_variation_by_axes([650])
    ticks = axis_of(2.0**end for end in ends).ticks()
    rules = (settings.BASE_DIR / "static/css/verdict.css").read_text()
    for rem in (5, 6, 8, 9, 12, 16, 20, 24, 32, 60):
        shown = [tick for tick in ticks if tick.room <= rem]
        half = [font.getlength(tick.label) / 100 * 0.6875 / 2 for tick in shown]
        at = [tick.at / 100 * rem for tick in shown]
        for left, right in itertools.pairwise(range(len(shown))):
            assert at[left] + half[left] < at[right] - half[right], (rem, shown)
    assert any(tick.is_one and tick.room == 5 for tick in ticks)
    hidden = {tick.room for tick in ticks} - {5}
    assert all(f"@container (width < {r}rem) {{ .room-{r} {{" in rules for r in hidden)


def test_a_picture_has_its_rivals() -> None:
    version = factories.make_task_version()
    finished(task_version=version, result={"latency_ns": 500.0})
    shown = compared(finished(task_version=version))
    speeds = {row.label: row.value for row in shown.rows}
    assert speeds == {
        "Leader": "3.00×", "Physical limit": "3.00×", "This kernel": "1.50×",
        "Best baseline: PyTorch compiled": "1.00×", "PyTorch eager": "0.750×",
    }  # fmt: skip
    alone = factories.make_workload_result(baselines={}, speedups={})
    result = {"workloads": (alone,), "speedups": {}, "unlisted_speedups": {}}
    quick = finished(mode="quick", task_version=version, result=result)
    shown = compared(quick, Baselines(times_ns={"eager": 3000.0}))  # which are known
    assert ("This kernel", "3.00×") in [(row.label, row.value) for row in shown.rows]


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


def test_the_picture_of_the_workloads_says_how_many_it_leaves_out() -> None:
    known = factories.make_workload_result()
    unknown = factories.make_workload_result(name="n512", baselines={}, speedups={})
    result = finished(result={"workloads": (known, unknown)}).result.data
    picture = workload_plot(workload_rows(result))
    assert picture is not None
    assert len(picture.rows) == 1
    assert "1 isn't here, because no baseline is known yet." in picture.caption


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


def test_a_profile_brings_the_peaks_that_it_has_measured() -> None:
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    result = finished(result={"workloads": (work,)}).result.data
    rows = workload_rows(result)
    nothing = Environment(peaks=Peaks(note="no limit is known"))
    result = replace(result, mode=Mode.PROFILE, environment=nothing)
    assert "couldn't determine" in missing(result, rows, "float32")
    metrics = {"peak_bytes_per_s": 33.3e9, "peak_flop_per_s": 1e11}
    metrics |= dict.fromkeys(THROUGHPUTS, 1.0)
    profile = Profile(tool="portable", reason="", workload="n256", metrics=metrics)
    result = replace(result, profile=profile)
    picture = roofline(result, rows, "float32")
    assert picture is not None
    assert [roof.words for roof in picture.roofs] == ["Measured peak: 33.3 GB/s and 100 GFLOP/s"]
    assert missing(result, rows, "float32") == ""
    slow = replace(PEAK, flop_per_s=None)
    result = replace(result, environment=Environment(peaks=Peaks(measured=slow)))
    assert "in the task's dtype" in missing(result, rows, "float32")


@pytest.mark.parametrize(
    ("dtype", "said"),
    [("float32", "without tensor cores, which"), ("float16", "float16 peak")],
)
def test_faster_than_a_data_sheet_names_the_peak_and_no_measurement(dtype: str, said: str) -> None:
    work = factories.make_workload_result(flops=40_000.0, bytes=1.0)
    result = finished(result={"workloads": (work,), "floor_fraction": 2.0}).result.data
    result = replace(result, environment=Environment(peaks=Peaks(theoretical=PEAK)))
    picture = roofline(result, workload_rows(result), dtype)
    assert picture is not None
    assert said in picture.points[0].words
    assert "measured" not in picture.points[0].words
    assert above_limit_sentence(replace(result, floor_fraction=0.9), dtype) == ""
    assert ("tensor cores" in above_limit_sentence(result, dtype)) == (dtype == "float32")
