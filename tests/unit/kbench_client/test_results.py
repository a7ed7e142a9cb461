"""What `kbench show` and `kbench compare` tell of results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.evaluation import Mismatch
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, Profile
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.data.verdict import Mode, Verdict
from kbench_client.commands.challenge import _entry
from kbench_client.comparison import comparison
from runs_app.core.work import lifecycle
from runs_app.submitting.services import cancel
from tests import factories as make
from tests.evidence import BUILD
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


def test_results_are_shown_and_compared(kbench: Command, ada: Any) -> None:
    first = make.make_finished_evaluation(user=ada)
    second = make.make_finished_evaluation(user=ada, source=make.SOURCE + "\n// faster")
    shown = kbench("show", str(first.submission_id))
    assert shown.status == 0
    assert "CORRECT, 1.00 µs, score 1.50×" in shown.out
    assert "n256" in shown.out
    assert make.HIDDEN_WORKLOAD not in shown.out
    ids = (str(first.submission_id), str(second.submission_id))
    assert kbench("compare", *ids).status == 0
    found = kbench("compare", *ids, "--json").document
    assert (found["faster"], found["differs"]) == ([1.0, 1.0], [False, False])
    assert [each["name"] for each in found["workloads"]] == ["n256"]
    listed = kbench("show", "--json").document
    assert {each["id"] for each in listed} == set(ids)
    assert kbench("compare", ids[0]).status == 2
    assert kbench("show", "nonsense").status == 2
    wrong = make.make_finished_evaluation(Verdict.WRONG_RESULT, user=ada)
    assert kbench("show", str(wrong.submission_id)).status == 1
    untimed = kbench("compare", ids[0], str(wrong.submission_id)).out
    assert ("nothing to compare" in untimed, "=" in untimed) == (True, False)


def test_the_ranked_score_stays_beside_a_newer_profile(kbench: Command, ada: Any) -> None:
    ranked = make.make_finished_evaluation(user=ada, mode="ranked")
    make.pass_audits()
    of = {"submission": ranked.submission, "device": ranked.device}
    make.finish(lifecycle.evaluate(**of, mode=Mode.PROFILE, now=make.later(9)))
    key = str(ranked.submission_id)
    shown = kbench("show", key).out
    assert "scale on cpu, profile" in shown
    assert "ranked on cpu: CORRECT, 1.00 µs, score 1.50×" in shown
    assert "1st of 1" in shown
    compared = kbench("compare", key, key, "--json").document["submissions"]
    assert compared[0]["state"] != ""
    newer = lifecycle.evaluate(**of, mode=Mode.QUICK, now=make.later(10))
    cancel(evaluation=newer, user=ada, now=make.later(11))
    assert kbench("show", key).status == 1
    status = Client().get(f"/api/v1/submissions/{key}/status").json()
    assert (status["mode"], status["ranked"]["place"]["rank"]) == ("quick", 1)


def test_a_long_profile_and_a_correct_kernels_log_are_cut(kbench: Command, ada: Any) -> None:
    kernels = tuple(
        KernelMetrics(
            name=f"kernel_{n}" + "x" * 250, duration_ns=1e5,
            metrics={f"metric_{m}_of_{n}": 1.23456 for m in range(40)},
        )
        for n in range(9)
    )  # fmt: skip
    profile = Profile(
        tool="ncu", reason="", workload="n256", notes=("a note " * 40,) * 20, causes=("denormals",),
        metrics=dict.fromkeys(THROUGHPUTS, 1.0), kernels=kernels,
    )  # fmt: skip
    log = "kernel.cpp:1:2: note: not vectorized\n" * 200
    build = replace(BUILD, log=log)
    found = make.make_finished_evaluation(
        Verdict.CORRECT, {"profile": profile, "build": build}, user=ada, mode="profile"
    )
    answer = kbench("show", str(found.submission_id), "--json")
    assert len(answer.out.encode()) < 8192
    assert "profile.kernels" in answer.document["left_out"]
    assert answer.document["evaluations"][0]["result"]["profile"]["causes"] == ["denormals"]
    shown = kbench("show", str(found.submission_id)).out
    assert ("not vectorized" in shown, "cause: denormals" in shown) == (False, True)


def test_a_speedup_over_some_baselines_is_not_called_one_over_the_best() -> None:
    task = {"task": "relu", "used": 1, "doubted": False, "latency_ns": 9.0, "best_latency_ns": 9.0}
    told = {**task, "verdict": "CORRECT", "speedup": 3.76, "unlisted_speedup": None}
    entry = {"state": "ranked", "ranking": "", "over": True, "reason": "waits"}
    for names, words in (
        ("best", "3.76× of the best baseline"),
        ("eager", "3.76× over eager only"),
    ):
        assert words in _entry({**entry, "tasks": [{**told, "compared_with": names}]})


def test_what_was_built_from_the_same_source_never_differs() -> None:
    def evaluated(digest: str, time_ns: float) -> dict[str, Any]:
        times = {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns}
        workload = {"name": "n", "hidden": False, "measurement": times}
        result = {"build": {"digest": digest}, "workloads": [workload]}
        known = dict.fromkeys(("verdict", "state", "score", "speedup"))
        evaluation = {"mode": "quick", "device": "cpu", "result": result, **known}
        fields = {"id": digest, "agent": "ada", "task": "scale", "direction": "forward"}
        return {**fields, "evaluations": [evaluation]}

    for other, differs in (("a", False), ("b", True)):
        found = comparison([evaluated("a", 1.0), evaluated(other, 9.0)])
        assert found["differs"] == [False, differs]
        assert [each["differs"] for each in found["workloads"][0]["times"]] == [False, differs]


def test_repeating_a_source_is_no_difference(kbench: Command, ada: Any) -> None:
    rows = [make.make_finished_evaluation(user=ada)]
    for times in (1.1, 1.5):
        measurement = make.make_measurement(1000.0 * times)
        workloads = (make.make_workload_result(measurement=measurement),)
        result = {"latency_ns": 1000.0 * times, "workloads": workloads}
        source = f"{make.SOURCE}// {times}"
        rows.append(make.make_finished_evaluation(user=ada, source=source, result=result))
    ids = [str(each.submission_id) for each in rows]
    found = kbench("compare", *ids, "--json").document
    assert found["differs"] == [False, False, True]
    (workload,) = found["workloads"]
    assert [time["differs"] for time in workload["times"]] == [False, False, True]
    words = kbench("compare", *ids).out
    assert "(0.909× =)" in words
    assert "up to 22 %" in words


def test_a_result_tells_what_its_author_needs(kbench: Command, ada: Any) -> None:
    mismatch = Mismatch(
        workload="n256", output="out", reason="off", index=(3, 1), expected=2.0, actual=1.5,
        bound=1e-6, wrong_elements=7, elements=256,
        findings=(Finding(symptom=Symptom.TAIL, text="only the last 7 elements"),),
    )  # fmt: skip
    profile = Profile(
        tool="portable", reason="ncu is for CUDA devices", workload="n256",
        metrics=dict.fromkeys(THROUGHPUTS, 1.23456), notes=("times grow",), causes=("denormals",),
    )  # fmt: skip
    nothing = Mismatch(workload="n256", output="out", reason="NaN", index=(0,), expected=1.0,
                       actual=float("nan"))  # fmt: skip
    doubt = Suspicion(check=Check.SOURCE, reason="holds U+202E", line=3)
    version = make.make_task_version()
    told: tuple[tuple[Verdict, str, dict[str, Any], tuple[str, ...]], ...] = (
        (Verdict.WRONG_RESULT, "quick", {"mismatch": mismatch},
         ("first wrong: out[3, 1] of n256: expected 2, got 1.5",
          "wrong elements: 7 of 256\nit looks like: only the last 7 elements")),
        (Verdict.WRONG_RESULT, "quick", {"mismatch": nothing},
         ("first wrong: out[0] of n256: expected 1, got nan",)),
        (Verdict.CORRECT, "profile", {"profile": profile},
         ("profile of n256: far from both limits", "  cause: denormals\n", "  times grow")),
        (Verdict.CORRECT, "quick", {"suspicions": (doubt,)},
         ("quarantine: open", "suspicion: source: holds U+202E (line 3)")),
    )  # fmt: skip
    brief = []
    for verdict, mode, result, words in told:
        found = make.make_finished_evaluation(
            verdict, result, user=ada, mode=mode, task_version=version
        )
        shown = kbench("show", str(found.submission_id)).out
        assert all(each in shown for each in words), shown
        document = kbench("show", str(found.submission_id), "--json").document
        brief.append(document["evaluations"][0]["result"])
    assert (brief[0]["mismatch"]["elements"], "profile" in brief[0]) == (256, False)
    assert brief[2]["profile"]["causes"] == ["denormals"]
