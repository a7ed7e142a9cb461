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
    before = {"task_version": version, "user": own.submission.author, "now": factories.later(9)}
    faster = finished(**before, result={"latency_ns": 250.0})
    assert any("4.00×" in words and "previous" in words for words in chips(faster))


def test_a_speedup_that_is_missing_says_why() -> None:
    version = factories.make_task_version()
    alone = {"workloads": (factories.make_workload_result(baselines={}, speedups={}),)}
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("quick", {}, "nobody has run one"),
        ("test", {}, "too few calls"),
        ("ranked", {}, "could be measured"),
        ("ranked", {"pending_baselines": ("eager",)}, "have been measured"),
    )
    for mode, changes, words in cases:
        result = {**alone, **NO_BASELINES, **changes}
        shown = said(finished(task_version=version, mode=mode, result=result))
        assert (shown.number, shown.unit) == ("1.00", "µs")
        assert words in shown.sentence
        assert ". " not in shown.sentence


def test_an_interval_that_says_nothing_has_no_digits() -> None:
    evaluation = finished(mode="quick", result=NO_BASELINES)
    evaluation.latency_spread = 24.13
    shown = said(evaluation)
    assert "±" not in shown.sentence
    assert "Noisy host" in chips(evaluation)
    ranked = finished()
    ranked.score_spread = ranked.speedup_spread = 800.0
    assert "too noisy" in said(ranked).sentence
    ranked.score_spread = ranked.speedup_spread = 0.7
    assert "%: 0.745 to 3.02" in said(ranked).sentence


def test_a_doubt_is_in_the_sentence() -> None:
    suspicion = Suspicion(check="clock", reason="too fast")
    evaluation = finished(result={"suspicions": (suspicion,)})
    shown = said(evaluation)
    assert Why.QUARANTINED.label[1:] in shown.sentence
    assert not shown.is_sure
    assert shown.kind == "neutral"


def test_a_failure_names_its_first_element_or_its_line(
    client: Client,
) -> None:
    mismatch = Mismatch(
        workload="n256", output="out", reason="wrong", index=(3, 5), expected=1.0, actual=2.5
    )
    wrong = finished(verdict=Verdict.WRONG_RESULT, result={"mismatch": mismatch})
    shown = said(wrong)
    assert shown.number == ""
    assert shown.sentence == "On n256, out[3, 5] is 2.5, and 1 was expected."
    page = client.get(f"/submissions/{wrong.submission_id}/").content.decode()
    assert "hero-value" not in page
    build = BuildReport(
        ok=False, cached=False, duration_s=1.0, command="g++", compiler="g++", digest="",
        log="kernel.cpp:3:5: error: 'foo' was not declared in this scope",
    )  # fmt: skip
    failed = finished(verdict=Verdict.COMPILE_ERROR, result={"build": build})
    assert said(failed).sentence == "Line 3: 'foo' was not declared in this scope."
