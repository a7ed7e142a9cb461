"""The pictures of a result: what they say, and where their marks lie."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from PIL import ImageFont

from gpu_runner.data.verdict import Verdict
from runs_app.baselines.selectors import Baselines
from runs_app.models import Evaluation
from runs_app.submissions import card
from runs_app.submissions.page import workload_rows
from runs_app.submissions.pictures.headline import Headline, headline
from runs_app.submissions.pictures.plot import axis_of, times
from runs_app.submissions.pictures.roofline import missing, roofline
from runs_app.submissions.pictures.workloads import hidden_sentence, workload_plot
from runs_app.submissions.selectors import rivals
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

PEAK = {"bytes_per_s": 1e9, "flop_per_s": 1e10, "fraction": 0.5, "source": "measured"}


def finished(**overrides: Any) -> Evaluation:
    return factories.make_finished_evaluation(**({"mode": "ranked"} | overrides))


def head(evaluation: Evaluation, known: Baselines | None = None) -> Headline:
    document = evaluation.result.document
    found = headline(
        evaluation,
        document,
        workload_rows(document),
        rivals(evaluation, evaluation.submission.author),
        known or Baselines(),
    )
    assert found is not None
    return found


def test_an_axis_goes_by_powers_of_two_and_holds_one() -> None:
    axis = axis_of([3.0, 5.0])
    assert (axis.low, axis.high) == (0, 3)
    assert axis.at(1.0) < axis.at(2.0) < axis.at(4.0)
    assert math.isclose(axis.at(4.0) - axis.at(2.0), axis.at(2.0) - axis.at(1.0), abs_tol=0.02)
    assert [tick.label for tick in axis.ticks()] == ["1×", "2×", "4×", "8×"]
    assert axis_of([]).ticks()[1].is_one
    assert len(axis_of([1e-9, 1e9]).ticks()) <= 17
    assert times(0.25) == "0.25×"


@pytest.mark.parametrize("ends", list(itertools.product((-40, -12, -6, -4, -1, 0), (1, 3, 6, 11))))
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


def test_an_axis_with_room_has_all_its_labels() -> None:
    ticks = axis_of([2.0**-4, 1.0]).ticks()
    assert [tick.label for tick in ticks if tick.room <= 5] == ["0.0625×", "1×"]
    assert [tick.label for tick in ticks if tick.room <= 16] == [
        "0.0625×", "0.125×", "0.25×", "0.5×", "1×",
    ]  # fmt: skip


def test_the_number_is_the_speedup_and_the_picture_has_its_rivals() -> None:
    version = factories.make_task_version()
    best = finished(task_version=version, result={"latency_ns": 500.0})
    own = finished(task_version=version)
    shown = head(own)
    assert (shown.number, shown.unit, shown.kind) == ("1.50", "×", "faster")
    assert shown.interval.startswith("1.4")
    assert shown.picture is not None
    speeds = {row.label: row.value for row in shown.picture.rows}
    assert speeds == {
        "Leader": "3×", "Physical limit": "3×", "This kernel": "1.5×", "Best baseline": "1×",
        "PyTorch compiled": "1×", "PyTorch eager": "0.75×",
    }  # fmt: skip
    assert any("50.0 % of the speed of the leader" in note for note in shown.notes)
    assert "It leads its board." in head(best).notes


def test_the_author_s_last_is_told_apart() -> None:
    version = factories.make_task_version()
    user = factories.make_user()
    finished(task_version=version, user=user, result={"latency_ns": 4000.0})
    finished(task_version=version, result={"latency_ns": 100.0})
    own = finished(task_version=version, user=user, now=factories.later(9))
    assert any("4× as fast as your last before it" in note for note in head(own).notes)


@pytest.mark.parametrize(
    ("mode", "changes", "words"),
    [
        ("quick", {}, "nobody has measured them on this device yet"),
        ("test", {}, "too few calls"),
        ("ranked", {}, "could be measured"),
        ("ranked", {"pending_baselines": ("eager",)}, "still being measured"),
    ],
)
def test_a_speedup_that_is_missing_says_why(
    client: Client, mode: str, changes: dict[str, Any], words: str
) -> None:
    alone = factories.make_workload_result(baselines={}, speedups={})
    result = {"workloads": (alone,), "speedups": {}, "hidden_speedups": {}, **changes}
    evaluation = finished(mode=mode, result=result)
    shown = head(evaluation)
    assert words in shown.missing
    assert (shown.number, shown.unit) == ("1.00", "µs")
    page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert words in page


def test_known_baselines_stand_in_and_are_called_so() -> None:
    alone = factories.make_workload_result(baselines={}, speedups={})
    result = {"workloads": (alone,), "speedups": {}, "hidden_speedups": {}}
    shown = head(finished(mode="quick", result=result), Baselines(times_ns={"eager": 3000.0}))
    assert "from an earlier evaluation" in shown.missing
    assert shown.picture is not None
    assert ("This kernel", "3×") in [(row.label, row.value) for row in shown.picture.rows]


def test_a_wrong_result_has_no_headline(client: Client) -> None:
    wrong = finished(verdict=Verdict.WRONG_RESULT)
    document = wrong.result.document
    assert headline(wrong, document, [], [], Baselines()) is None
    page = client.get(f"/submissions/{wrong.submission_id}/").content.decode()
    assert "hero-value" not in page


def test_a_noisy_time_says_what_it_means() -> None:
    noisy = factories.make_workload_result(measurement=factories.make_measurement(1000.0, 0.45))
    shown = head(finished(result={"workloads": (noisy,)}))
    assert any("±45 % only" in note for note in shown.notes)


def test_each_workload_has_its_interval_and_hidden_ones_stay_hidden(client: Client) -> None:
    evaluation = finished()
    document = evaluation.result.document
    picture = workload_plot([row for row in workload_rows(document) if not row.hidden])
    assert picture is not None
    [row] = picture.rows
    assert (row.label, row.value) == ("N=256", "1.5×")
    own = next(mark for mark in row.marks if mark.kind == "own")
    assert own.low is not None
    assert own.high is not None
    assert own.low < own.at < own.high
    page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert "N=256" in page
    assert "1777" not in page


@pytest.mark.parametrize(
    ("public", "hidden", "words"),
    [(2.0, 1.0, "expect the latter"), (1.0, 2.0, "nothing speaks of tuning"), (2.0, 2.0, "alike")],
)
def test_hidden_against_public_in_words(public: float, hidden: float, words: str) -> None:
    evaluation = Evaluation(speedup_eager=public, hidden_speedup=hidden)
    assert words in hidden_sentence(evaluation)
    assert hidden_sentence(Evaluation(speedup_eager=1.0)) == ""


def test_a_roofline_lies_below_its_roof() -> None:
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    document = finished(result={"workloads": (work,)}).result.document
    document["environment"] = {"peaks": {"measured": PEAK}}
    picture = roofline(document, workload_rows(document))
    assert picture is not None
    [roof], [point] = picture.roofs, picture.points
    slope, flat = roof.segments
    assert slope.y1 > slope.y2 == flat.y1 == flat.y2
    assert (slope.x2, slope.y2) == (flat.x1, flat.y1)
    assert "4.00 FLOP a byte, 4.00 GFLOP/s: 100 % of what" in point.words
    assert roofline({**document, "environment": {}}, workload_rows(document)) is None


def test_a_roofline_that_is_missing_says_what_brings_one() -> None:
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    first = finished(result={"workloads": (work,)})
    document = first.result.document
    assert "profile mode" in missing(document, workload_rows(document))
    copies = factories.make_workload_result(flops=0.0, bytes=1000.0)
    other = finished(task_version=first.task_version, result={"workloads": (copies,)})
    document = other.result.document
    assert "no arithmetic" in missing(document, workload_rows(document))
    document["environment"] = {"peaks": {"measured": PEAK}}
    assert missing({**document, "workloads": []}, []) == ""


def test_a_profile_brings_the_peaks_that_it_has_measured() -> None:
    work = factories.make_workload_result(flops=4000.0, bytes=1000.0)
    document = finished(result={"workloads": (work,)}).result.document
    rows = workload_rows(document)
    document |= {"mode": "profile", "environment": {"peaks": {"note": "no limit is known"}}}
    assert "did not find out" in missing(document, rows)
    document["profile"] = {"metrics": {"peak_bytes_per_s": 33.3e9, "peak_flop_per_s": 1e11}}
    picture = roofline(document, rows)
    assert picture is not None
    assert [roof.words for roof in picture.roofs] == ["Measured peak: 33.3 GB/s and 100 GFLOP/s"]
    assert missing(document, rows) == ""
    document["environment"]["peaks"]["measured"] = {**PEAK, "flop_per_s": None}
    assert "in the task's dtype" in missing(document, rows)


def test_faster_than_memory_means_caches() -> None:
    work = factories.make_workload_result(flops=40_000.0, bytes=10_000.0)
    document = finished(result={"workloads": (work,)}).result.document
    document["environment"] = {"peaks": {"measured": PEAK}}
    picture = roofline(document, workload_rows(document))
    assert picture is not None
    assert "10.0 times what memory gives" in picture.points[0].words
