"""What the page of a submission says: a number, one sentence, chips, limits, and marks at lines."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import BuildReport, EvaluationResult, Mismatch
from gpu_runner.data.integrity import Suspicion
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import DeviceKind, Language, Verdict
from runs_app.core.integrity.eligibility import Why
from runs_app.models import Evaluation
from runs_app.submitting.diagnostics import diagnostics
from runs_app.submitting.live import live_view
from runs_app.submitting.page import (
    environment_rows,
    limit_sentences,
    slow_baseline_sentence,
    threads_sentence,
    workload_rows,
)
from runs_app.submitting.remarks import language_hint
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
    assert (shown.number, shown.unit) == ("1.50×", "score")
    assert "1.50× the speed of the best baseline" in shown.sentence
    assert "%: 1.4" in shown.sentence
    assert shown.link is not None
    assert shown.link.words == "2nd of 2 on the CPU board"
    assert "0.500× the leader" in chips(own)
    before = {"task_version": version, "user": own.submission.author, "now": factories.later(9)}
    faster = finished(**before, result={"latency_ns": 250.0})
    assert any("4.00×" in words and "previous" in words for words in chips(faster))


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


def test_a_wrong_result_leads_to_what_explains_it(client: Client) -> None:
    other = "correct on n256 with the task's usual values, but wrong with whole numbers"
    hidden = Mismatch(workload=factories.HIDDEN_WORKLOAD, output="out", reason="off by 1777")
    for result, section in (
        ({"reason": other}, "other-values"),
        ({"mismatch": hidden}, "hidden-workloads"),
        ({"mismatch": replace(hidden, workload="n256")}, "what-a-wrong-result-looks-like"),
    ):
        evaluation = finished(verdict=Verdict.WRONG_RESULT, result=result)
        shown = said(evaluation)
        assert shown.link is not None
        page = client.get(f"/submissions/{evaluation.submission_id}/").content.decode()
        assert f'href="{shown.link.address}"' in page
        address, anchor = shown.link.address.split("#")
        assert anchor == section
        assert f'id="{section}"' in client.get(address).content.decode()


def test_a_time_is_a_mean_over_sizes() -> None:
    sizes = [
        factories.make_workload_result(
            name=f"n{ns}", measurement=factories.make_measurement(ns), baselines={}, speedups={}
        )
        for ns in (500.0, 2000.0)
    ]
    shown = said(finished(mode="quick", result={"workloads": tuple(sizes), **NO_BASELINES}))
    assert "the geometric mean over 2 sizes (500 ns to 2.00 µs)" in shown.sentence


def test_a_speedup_that_is_missing_says_why() -> None:
    version = factories.make_task_version()
    alone = {"workloads": (factories.make_workload_result(baselines={}, speedups={}),)}
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("quick", {}, "nobody has run one"),
        ("test", {}, "too few calls"),
        ("ranked", {}, "could not be measured"),
        ("ranked", {"pending_baselines": ("eager",)}, "have been measured"),
    )
    for mode, changes, words in cases:
        result = {**alone, **NO_BASELINES, **changes}
        shown = said(finished(task_version=version, mode=mode, result=result))
        assert (shown.number, shown.unit) == ("1.00", "µs")
        assert words in shown.sentence
        assert ". " not in shown.sentence.partition(". Still ranking")[0]
    finished(task_version=version)
    quick = said(finished(task_version=version, mode="quick", result={**alone, **NO_BASELINES}))
    assert "quick mode doesn't measure baselines, so the chart uses those from" in quick.sentence


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
    assert shown.sentence == "On n256, out[3, 5] is 2.5, but 1 was expected."
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


def test_a_source_in_the_wrong_language_is_told_so() -> None:
    cpp = '#include <cmath>\nextern "C" void scale(float* out) { out[0] = 1; }\n'
    cuda = "#include <cuda_runtime.h>\n__global__ void scale(float* out) {}\n"
    python = "import torch\n\ndef forward(x):\n    return x\n"
    hints = {
        (cpp, "python"): "This looks like C++, but Language is set to Python: change it.",
        (cuda, "python"): "This looks like CUDA C++, but Language is set to Python: change it.",
        (cuda, "cpp"): "This looks like CUDA C++, but the device is a CPU: choose a GPU.",
        (python, "cpp"): "This looks like Python, but Language is set to C++: change it.",
        (python, "cuda"): "This looks like Python, but Language is set to CUDA C++: change it.",
    }
    for source in (cpp, cuda, python, "def forward(:\n", "int f( {\n"):
        for language in Language:
            assert language_hint(source, language) == hints.get((source, language.value), "")
    failed = finished(verdict=Verdict.COMPILE_ERROR, source=cuda)
    address = f"/api/v1/submissions/{failed.submission_id}"
    answer, status = Client().get(address).json(), Client().get(f"{address}/status").json()
    for reason in (answer["evaluations"][0]["reason"], status["reason"]):
        assert reason.endswith("looks like CUDA C++, but the device is a CPU: choose a GPU.")
    assert said(failed).sentence.endswith(
        ". This looks like CUDA C++, but the device is a CPU: choose a GPU."
    )


THEORETICAL = {
    "bytes_per_s": 4.8e12, "flop_per_s": 66.9e12, "source": "the maker's data sheet",
    "fraction": 0.4,
}  # fmt: skip
MEASURED = {
    "bytes_per_s": 4e12, "flop_per_s": 6e13, "source": "measured on this host", "fraction": 0.5
}  # fmt: skip


def result(**peaks: Any) -> EvaluationResult:
    timed = {"time_ns": 1e6, "low_ns": 1e6, "high_ns": 1e6, "calls": 9}
    rows = [
        {"name": "moves", "measurement": timed, "bytes": 2e9, "flops": 1e9, "floor_ns": 4e5},
        {"name": "computes", "measurement": timed, "bytes": 1e6, "flops": 3e10},
        {"name": "free", "measurement": timed},
        {"name": "unmeasured", "bytes": 1e6, "flops": 1e6},
    ]
    return told(workloads=rows, environment={"torch": "2.0", "peaks": peaks})


def test_both_limits_are_said_in_words() -> None:
    words = limit_sentences(result(theoretical=THEORETICAL, measured=MEASURED).environment)
    for sentence, parts in zip(
        words[:2], (("4.80 TB/s", "66.9 TFLOP/s", "40.0 %"), ("4.00 TB/s", "50.0 %")), strict=True
    ):
        assert all(part in sentence for part in parts)
    assert limit_sentences(result(note="there is no limit").environment) == ["There is no limit."]
    assert limit_sentences(Environment()) == []
    assert "profile mode" in limit_sentences(Environment(device_kind=DeviceKind.CPU))[0]
    assert environment_rows(result(measured=MEASURED).environment) == [("torch", "2.0")]
    races = "none in 3 of 3 listed workloads"
    said = threads_sentence(Environment(verified_with_threads=4, races=races))
    assert ("4 threads" in said, races in said) == (True, True)
    assert threads_sentence(Environment(torch="2.0")) == ""


def test_each_workload_has_its_share_of_the_measured_peak() -> None:
    rows = {row.name: row for row in workload_rows(result(measured=MEASURED))}
    assert rows["moves"].measured_fraction == pytest.approx(0.5)
    assert rows["moves"].floor_fraction == pytest.approx(0.4)
    assert rows["computes"].measured_fraction == pytest.approx(0.5)
    assert rows["free"].measured_fraction is rows["unmeasured"].measured_fraction is None
    assert all(row.measured_fraction is None for row in workload_rows(result()))


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


def test_a_profile_and_a_result_without_any() -> None:
    note = "the loop at line 6 is not vectorised: complicated access pattern"
    assert found(notes=(note,)) == [(6, None, "info", note)]
    assert diagnostics(None, None, FILES) == []
    assert found("everything is fine: no kernel.cpp here\n") == []


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


def test_nvcc() -> None:
    log = (
        'kernel.cu(12): error: identifier "vec" is undefined\n'
        "kernel.cu(3): warning #177-D: variable was declared but never referenced\n"
    )
    assert found(log) == [
        (12, None, "error", 'identifier "vec" is undefined'),
        (3, None, "warning", "variable was declared but never referenced"),
    ]


def test_there_are_never_too_many() -> None:
    log = "".join(f"kernel.cpp:{n}:1: error: {'x' * 5000}\n" for n in range(1, 500))
    marks = found(log)
    assert len(marks) == 50
    assert all(len(message) <= 300 for *_, message in marks)
