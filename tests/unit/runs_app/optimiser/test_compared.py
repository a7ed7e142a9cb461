"""How candidates compare with baselines and the seed: one answer on every page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.verdict import Mode
from runs_app.features.compare.curve import curve
from runs_app.models import Candidate, Evaluation, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.page import reference_lines
from runs_app.optimiser.selectors.compared import baseline_of, compared
from runs_app.optimiser.selectors.confirmation import confirmation_of
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

_WHOLE = {"eager": 8.0, "compiled": 2.0, "best": 2.0}
_EAGER = {"eager": 8.0, "best": 8.0}


def result(run: Run, mode: str, latency_ns: float, speedups: Any) -> Evaluation:
    """An evaluation of the run's best, or before there is one of its first submission."""
    told = {"latency_ns": latency_ns, "speedups": speedups, "unlisted_speedups": {}}
    row = make.make_finished_evaluation(result=told, task_version=run.task_version)
    row.mode, row.awaits_baselines = mode, "compiled" not in speedups
    row.submission = run.best.submission if run.best and run.best.submission else row.submission
    row.save()
    return row


def searched(speedups: Any = _WHOLE, seed_ns: float = 2000.0) -> Run:
    """A run whose best, number 2, took 1000 ns in the search, and 900 ns when it was last timed."""
    run = make.make_run(status="FINISHED", ended_at=make.NOW)
    fields: dict[str, Any] = {"state": "measured", "verdict": "CORRECT", "spread": 0.03}
    make.make_candidate(run, latency_ns=seed_ns, **fields)
    told = codec.encode(Feedback(verdict="CORRECT", reason="", latency_ns=1000.0, spread=0.03))
    row = result(run, "quick", 1000.0, speedups)
    run.best = make.make_candidate(
        run, edit="rewrite", latency_ns=900.0, speedup=8.9, feedback=told,
        submission=row.submission, **fields,
    )  # fmt: skip
    run.best_latency_ns = 900.0
    run.save()
    return run


def text(path: str) -> str:
    return " ".join(Client().get(path).content.decode().split())


def figures(run: Run) -> str:
    page = text(f"{run.get_absolute_url()}candidates/2/")
    return page.split('<dl class="figures">')[1].split("</dl>")[0]


def test_an_audit_over_eager_alone_is_not_what_a_candidate_is_compared_by() -> None:
    run = searched()
    ranked = result(run, "ranked", 950.0, {**_WHOLE, "compiled": 2.2, "best": 2.2})
    result(run, "audit", 900.0, _EAGER)
    assert compared([run])[run.pk] == ranked
    baseline = baseline_of(run)
    assert baseline is not None
    assert (baseline.ns, baseline.name) == (pytest.approx(2090.0), "best baseline")
    shown = figures(run)
    assert ("2.09×" in shown, "2.20×" in shown, "8." in shown) == (True, True, False)
    table = text(run.get_absolute_url()).split('id="table"')[1]
    for words in ("1.00 <span", "2.09×", "2.20×", "950 ns"):  # of the search, and ranked
        assert words in table, words
    assert "8.90×" not in table
    assert reference_lines(run, baseline)["best baseline"] == baseline.ns


def test_a_figure_over_some_baselines_is_not_over_the_best() -> None:
    run = searched(_EAGER)
    shown = figures(run)
    assert "baselines known so far" in shown
    assert ("best baseline" in shown, "faster than the baseline" in shown) == (False, False)
    assert "the baselines known so far" in text(run.get_absolute_url())
    make.make_run_event(run, "started")
    told = events.Measured(
        candidate=2, mode=Mode.QUICK, verdict="CORRECT", reason="", latency_ns=1000.0, speedup=8.0
    )
    make.make_run_event(run, told)
    assert [(point.latency_ns, point.speedup) for point in curve(run)] == [(1000.0, None)]


def test_a_difference_within_its_interval_is_none() -> None:
    run = searched({"eager": 8.0, "compiled": 1.02, "best": 1.02}, seed_ns=1030.0)
    Evaluation.objects.update(noise=0.06)
    for path in (
        f"{run.get_absolute_url()}candidates/2/",
        "/runs/",
        f"/runs/compare/?run={run.pk}",
    ):
        page = text(path)
        assert "faster than the" not in page, path
    assert text(run.get_absolute_url()).count("so not different") == 2  # baseline and seed


def test_figures_of_two_kinds_have_no_difference() -> None:
    runs = [searched(), searched()]
    result(runs[1], "ranked", 950.0, _WHOLE)
    page = text(f"/runs/compare/?run={runs[0].pk}&run={runs[1].pk}")
    for label in ("Best speedup over the best baseline", "Time of the best kernel"):
        row = page.split(label)[1].split("</tr>")[0]
        assert ("listed sizes only, not ranked" in row, "%" in row) == (True, False)
    assert "Time of the baseline, listed sizes" in page
    assert text("/runs/").count("listed sizes only, not ranked") == 1


def test_an_entry_here_says_whether_its_result_counts() -> None:
    run = searched()
    assert run.best is not None
    entry = make.make_finished_evaluation(mode="ranked").submission
    doubt = {"suspicions": [{"check": "clock", "reason": "twice as long"}]}
    row = result(run, "ranked", 950.0, _WHOLE)
    row.result.document |= doubt
    row.result.save()
    Candidate.objects.filter(submission=row.submission).update(measured=["quick", "ranked"])
    chosen = {"candidate": 2, "is_ranked": True, "is_audited": True, "reason": "alone"}
    make.make_run_event(run, "chosen", chosen)
    assert "twice as long" in confirmation_of(run).words
    entered = {"candidate": 2, "submission": str(row.submission_id)}
    make.make_run_event(run, "entered", entered)
    run.device.imported_from = "elsewhere"
    run.device.save()
    words = "was submitted on the site it came from; its result wasn't imported"
    assert words in confirmation_of(run).words
    assert words in text(f"{run.get_absolute_url()}changes/")
    run.best.entry = entry
    run.best.save()
    assert "twice as long" not in confirmation_of(run).words
    assert words not in confirmation_of(run).words
