"""What the page of a submission says first: a number, one sentence, and chips."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.evaluation import BuildReport, Mismatch
from gpu_runner.data.integrity import Suspicion
from gpu_runner.data.verdict import Verdict
from runs_app.core.integrity.eligibility import Why
from runs_app.models import Evaluation
from runs_app.submitting.live import live_view
from runs_app.submitting.summary import Summary
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

NO_BASELINES = {"speedups": {}, "unlisted_speedups": {}}


def finished(**overrides: Any) -> Evaluation:
    return factories.make_finished_evaluation(**({"mode": "ranked"} | overrides))


def said(evaluation: Evaluation) -> Summary:
    return live_view(evaluation, AnonymousUser(), factories.later(60)).summary


def chips(evaluation: Evaluation) -> list[str]:
    return [chip.words for chip in said(evaluation).chips]


def test_a_correct_result_has_its_score_what_it_compares_with_and_its_place() -> None:
    version = factories.make_task_version()
    leader = finished(task_version=version, result={"latency_ns": 500.0})
    own = finished(task_version=version)
    shown = said(own)
    assert (shown.number, shown.unit) == ("1.50", "×")
    assert "1.50× the speed of the best baseline" in shown.sentence
    assert "%: 1.4" in shown.sentence
    assert shown.sentence.endswith("; it counts on its board.")
    assert "0.500× the leader" in chips(own)
    assert "leads its board" in said(leader).sentence


def test_every_summary_is_one_sentence() -> None:
    every = [
        finished(),
        finished(mode="quick", result=NO_BASELINES),
        finished(verdict=Verdict.WRONG_RESULT),
        finished(verdict=Verdict.UNSTABLE),
        finished(verdict=Verdict.SYSTEM_ERROR),
        factories.make_evaluation(),
    ]
    for evaluation in every:
        sentence = said(evaluation).sentence
        assert sentence.endswith(".")
        assert ". " not in sentence


def test_the_author_s_last_is_a_chip() -> None:
    version, user = factories.make_task_version(), factories.make_user()
    finished(task_version=version, user=user, result={"latency_ns": 4000.0})
    finished(task_version=version, result={"latency_ns": 100.0})
    own = finished(task_version=version, user=user, now=factories.later(9))
    assert any("4.00×" in words and "previous" in words for words in chips(own))


def test_rivals_are_of_the_same_mode_and_one_source_is_no_rival() -> None:
    version, user = factories.make_task_version(), factories.make_user()
    finished(task_version=version, user=user, source="// a", result={"latency_ns": 500.0})
    quick = {"task_version": version, "user": user, "mode": "quick"}
    first = finished(**quick, source="// a", now=factories.later(1))
    assert "Same source as the leader" in chips(first)
    own = finished(**quick, source="// b", result={"latency_ns": 1010.0}, now=factories.later(2))
    [last] = [chip for chip in said(own).chips if "previous" in chip.words]
    assert (last.words[:4], last.sign) == ("0.99", "≈")
    assert not any("leader" in words for words in chips(own))


def test_a_time_is_a_mean_over_sizes() -> None:
    sizes = [
        factories.make_workload_result(
            name=f"n{ns}", measurement=factories.make_measurement(ns), baselines={}, speedups={}
        )
        for ns in (500.0, 2000.0)
    ]
    shown = said(finished(mode="quick", result={"workloads": tuple(sizes), **NO_BASELINES}))
    assert "on average over 2 sizes (500 ns to 2.00 µs)" in shown.sentence


@pytest.mark.parametrize(
    ("mode", "changes", "words"),
    [
        ("quick", {}, "nobody has run one on this device yet"),
        ("test", {}, "too few calls"),
        ("ranked", {}, "could be measured"),
        ("ranked", {"pending_baselines": ("eager",)}, "have been measured"),
    ],
)
def test_a_speedup_that_is_missing_says_why(
    client: Client, mode: str, changes: dict[str, Any], words: str
) -> None:
    alone = factories.make_workload_result(baselines={}, speedups={})
    evaluation = finished(mode=mode, result={"workloads": (alone,), **NO_BASELINES, **changes})
    shown = said(evaluation)
    assert (shown.number, shown.unit) == ("1.00", "µs")
    assert words in shown.sentence
    page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert words in page


def test_an_interval_that_says_nothing_has_no_digits() -> None:
    evaluation = finished(mode="quick", result=NO_BASELINES)
    evaluation.latency_spread = 24.13
    shown = said(evaluation)
    assert "too noisy for an interval" in shown.sentence
    assert "±" not in shown.sentence
    assert "Noisy host" in chips(evaluation)
    ranked = finished()
    ranked.score_spread = ranked.speedup_spread = 800.0
    assert "too noisy to tell it from the baseline" in said(ranked).sentence


def test_no_difference_shows_the_interval_behind_it() -> None:
    evaluation = finished()
    evaluation.score_spread = evaluation.speedup_spread = 0.7
    assert "%: 0.745 to 3.02, so not different from the baseline" in said(evaluation).sentence


def test_a_doubt_is_in_the_sentence() -> None:
    suspicion = Suspicion(check="clock", reason="too fast")
    evaluation = finished(result={"suspicions": (suspicion,)})
    shown = said(evaluation)
    assert Why.QUARANTINED.label[1:] in shown.sentence
    assert not shown.is_sure
    assert shown.kind == "neutral"


def test_a_wrong_result_names_its_first_element(client: Client) -> None:
    mismatch = Mismatch(
        workload="n256", output="out", reason="wrong", index=(3, 5), expected=1.0, actual=2.5
    )
    wrong = finished(verdict=Verdict.WRONG_RESULT, result={"mismatch": mismatch})
    shown = said(wrong)
    assert shown.number == ""
    assert shown.sentence == "On n256, out[3, 5] is 2.5, and 1 was expected."
    page = client.get(f"/submissions/{wrong.submission_id}/").content.decode()
    assert "hero-value" not in page


def test_a_compile_error_names_its_line() -> None:
    log = "kernel.cpp:3:5: error: 'foo' was not declared in this scope"
    build = BuildReport(
        ok=False, cached=False, duration_s=1.0, log=log, command="g++", compiler="g++", digest=""
    )
    failed = finished(verdict=Verdict.COMPILE_ERROR, result={"build": build})
    assert said(failed).sentence == "Line 3: 'foo' was not declared in this scope."
