"""What the page of a submission says: a number, one sentence, chips, limits, and marks at lines."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.evaluation import BuildReport, Mismatch
from gpu_runner.data.integrity import Suspicion
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import Verdict
from runs_app.core.integrity.eligibility import Why
from runs_app.models import Evaluation
from runs_app.submitting.diagnostics import diagnostics
from runs_app.submitting.live import live_view
from runs_app.submitting.page import slow_baseline_sentence, workload_rows
from runs_app.submitting.summary import Summary
from tasks_app.templatetags.source import ShownFile
from tests import factories
from tests.results import told

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
    finished(task_version=version, result={"latency_ns": 500.0})
    own = finished(task_version=version)
    factories.pass_audits()
    own.refresh_from_db()
    shown = said(own)
    assert (shown.number, shown.unit) == ("1.50", "×")
    assert "1.50× the speed of the best baseline" in shown.sentence
    assert "%: 1.4" in shown.sentence
    assert shown.link is not None
    assert shown.link.words == "2nd of 2 on the CPU board"
    assert "0.500× the leader" in chips(own)
    before = {"task_version": version, "user": own.submission.author, "now": factories.later(9)}
    faster = finished(**before, result={"latency_ns": 250.0})
    assert any("4.00×" in words and "previous" in words for words in chips(faster))


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


def test_a_failure_names_its_first_element_or_its_line(client: Client) -> None:
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
    version = wrong.task_version
    for verdict in (Verdict.UNSTABLE, Verdict.SYSTEM_ERROR, Verdict.TIME_LIMIT):
        sentence = said(finished(verdict=verdict, task_version=version)).sentence
        assert (sentence[-1], ". " in sentence) == (".", False)
    assert said(factories.make_evaluation(task_version=version)).sentence.endswith(".")


def timed(time_ns: float) -> dict[str, Any]:
    return {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns, "calls": 9}


def timed_entry(
    name: str, floor_ns: float, *baselines_ns: float, hidden: bool = False
) -> dict[str, Any]:
    baselines = {str(index): timed(time_ns) for index, time_ns in enumerate(baselines_ns)}
    own = {"measurement": timed(1e6), "baselines": baselines, "hidden": hidden}
    return {"name": name, "floor_ns": floor_ns, **own}


def test_a_speedup_over_a_baseline_far_from_the_limit_says_so() -> None:
    entries = [
        timed_entry("fast", 1e5, 9e5, 90e5),
        timed_entry("slow", 1e5, 136e5, 140e5),
        timed_entry("short", 1e4, 9e5),
        timed_entry("secret", 1e5, 500e5, hidden=True),
    ]
    rows = workload_rows(told(workloads=entries))
    words = slow_baseline_sentence(rows)
    assert words.startswith("On 1 of 2 workloads")
    assert "(136 times on slow)" in words
    assert "secret" not in words
    assert slow_baseline_sentence(row for row in rows if row.name != "slow") == ""


FILES = [
    ShownFile(name=name, text="", language="cpp", anchor=f"F{index}-L" if index else "L")
    for index, name in enumerate(("kernel.cpp", "kernel.cu", "kernel.py", "in/sum.h"))
]


def found(log: str = "", notes: tuple[str, ...] = ()) -> list[tuple[int, int | None, str, str]]:
    build = BuildReport(
        ok=False, cached=False, duration_s=1.0, log=log, command="", compiler="", digest=""
    )
    metrics = dict.fromkeys(THROUGHPUTS, 1.0)
    profile = Profile(tool="portable", reason="", workload="", metrics=metrics, notes=tuple(notes))
    return [(d.line, d.column, d.severity, d.message) for d in diagnostics(build, profile, FILES)]


def test_a_long_line_of_a_log_is_read_quickly() -> None:
    before = time.monotonic()
    assert found(f"{'a/' * 16_000}x:1:1 error") == []
    assert time.monotonic() - before < 1
    assert found("/tmp/in/sum.h:2:3: error: no sum\n") == [(2, 3, "error", "no sum")]


def test_gcc() -> None:
    log = (
        "In file included from signature.h:1:\n"
        "kernel.cpp:7:5: warning: unused variable 'x' [-Wunused]\n"
        "kernel.cpp:3:14: error: 'vec' was not declared in this scope\n"
        "    3 |     float x = vec[i];\n"
        "kernel.cpp:9: fatal error: nothing.h: No such file\n"
    )
    assert found(log) == [
        (3, 14, "error", "'vec' was not declared in this scope"),
        (9, None, "error", "nothing.h: No such file"),
        (7, 5, "warning", "unused variable 'x' [-Wunused]"),
    ]


def test_there_are_never_too_many() -> None:
    log = "".join(f"kernel.cpp:{n}:1: error: {'x' * 5000}\n" for n in range(1, 500))
    marks = found(log)
    assert len(marks) == 50
    assert all(len(message) <= 300 for *_, message in marks)
