"""Honest results are believed; what contradicts itself, its task or the clock is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.task import Work, Workload
from gpu_runner.data.verdict import Direction, Mode, Verdict
from runs_app.core.errors import Implausible
from runs_app.core.work.plausible import check_plausible
from runs_app.models import Evaluation
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HONEST = Path(__file__).parents[4] / "data" / "honest_results"
"""By mode; `tests/data/README.md` says how they were made."""
TOOK_S = 40.0  # longer than any of them


def honest(mode: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HONEST / f"{mode}.json").read_text())
    return document


def measured(mode: str) -> tuple[Evaluation, dict[str, Any]]:
    """An evaluation that was handed over at `make.NOW`, and the honest result of it."""
    workloads = tuple(
        Workload(
            name=w["name"], parameters=w["parameters"], hidden=w["hidden"],
            unlisted=bool(w["hidden"] and w["measurement"]),
        )
        for w in honest("ranked")["workloads"]
    )  # fmt: skip
    work = {Direction.FORWARD: Work(flops="N", bytes="12 * N")}
    version = make.make_task_version(workloads=workloads, work=work)
    evaluation = make.make_evaluation(task_version=version)
    Evaluation.objects.filter(pk=evaluation.pk).update(mode=mode)
    make.hand_over(evaluation)
    evaluation.refresh_from_db()
    document = honest(mode) | {
        "evaluation_id": str(evaluation.pk),
        "task_digest": evaluation.task_version.digest,
        "solution_digest": evaluation.submission.digest,
    }
    return evaluation, document


def check(evaluation: Evaluation, document: dict[str, Any], took_s: float = TOOK_S) -> None:
    result = codec.decode(EvaluationResult, document, "result")
    check_plausible(evaluation, result, make.later(took_s))


@pytest.mark.parametrize("mode", list(Mode))
def test_an_honest_result_is_believed(mode: Mode) -> None:
    check(*measured(mode.value))


@pytest.mark.parametrize(
    "verdict", sorted(set(Verdict) - {Verdict.CORRECT, Verdict.COMPILED}, key=str)
)
@pytest.mark.parametrize("mode", ["quick", "compile"])
def test_whoever_failed_needs_no_evidence(mode: str, verdict: Verdict) -> None:
    evaluation, document = measured(mode)
    bare = {"latency_ns": None, "workloads": [], "build": None, "stages": [], "speedups": {}}
    check(evaluation, document | bare | {"verdict": verdict.value, "p_score": None}, took_s=0)


def test_more_processes_than_asked_for_are_fine_and_of_a_wrong_one_parts_may_be_missing() -> None:
    evaluation, document = measured("ranked")
    for workload in document["workloads"]:
        workload["processes"] *= 2
    check(evaluation, document)
    document["workloads"] = document["workloads"][:2]
    document["workloads"][1]["processes"] = []
    check(evaluation, document | {"verdict": "WRONG_RESULT", "latency_ns": None})


Change = Callable[[dict[str, Any]], None]


def maps(field: str, changed: Callable[[Any], Any]) -> Change:
    """A change of one field of the result; dots lead into what is in it."""

    def change(document: dict[str, Any]) -> None:
        at: Any = document
        *path, last = [int(word) if word.isdigit() else word for word in field.split(".")]
        for word in path:
            at = at[word]
        at[last] = changed(at[last] if isinstance(at, list) else at.get(last))

    return change


def sets(field: str, value: Any) -> Change:
    return maps(field, lambda _: value)


def scales(field: str, factor: float) -> Change:
    return maps(field, lambda value: value * factor)


def without(field: str, **named: str) -> Change:
    """Leave out of a list whatever has that name."""
    return maps(field, lambda rows: [row for row in rows if not named.items() <= row.items()])


def one_more(**changes: str) -> Change:
    """The first workload again, with changes."""
    return maps("workloads", lambda rows: [*rows, copy.deepcopy(rows[0]) | changes])


def two_calls(document: dict[str, Any]) -> None:
    run = document["workloads"][0]["processes"][0]
    run["times_ns"], run["seeds"] = run["times_ns"][:2], run["seeds"][:2]


def compiled(document: dict[str, Any]) -> None:
    document |= {"verdict": "COMPILED", "latency_ns": None}


def another_baseline(document: dict[str, Any]) -> None:
    workload = document["workloads"][0]
    workload["baselines"]["slow"] = workload["baselines"]["eager"]


FIRST, FIRST_RUN = "workloads.0", "workloads.0.processes.0"
SAME_INPUTS = maps(f"{FIRST_RUN}.seeds", lambda seeds: [7] * len(seeds))
FEWER_PROCESSES = maps(f"{FIRST}.processes", lambda runs: runs[:2])
FASTER_THAN_ITS_CALLS = maps(
    f"{FIRST}.measurement", lambda told: told | {"time_ns": 1.0, "low_ns": 1.0, "high_ns": 1.0}
)
LIES: dict[str, tuple[Change, str]] = {
    "another evaluation": (sets("evaluation_id", "other"), "evaluation_id is 'other'"),
    "another attempt": (sets("attempt", 2), "attempt is 2"),
    "another mode": (sets("mode", "quick"), "mode is 'quick'"),
    "another device": (sets("device", "nvidia-h200"), "device is 'nvidia-h200'"),
    "another task": (sets("task_digest", "0" * 64), "task_digest is '000"),
    "another source": (sets("solution_digest", "0" * 64), "solution_digest is '000"),
    "compiled alone": (compiled, "verdict is COMPILED, in ranked mode"),
    "a stage of tomorrow": (sets("stages.5.duration_s", 86_400.0), "stages.measure ends after"),
    "a stage before it began": (sets("stages.0.started_s", -60.0), "stages.build ends after"),
    "no build": (sets("build", None), "build is missing"),
    "a failed build": (sets("build.ok", False), "build is missing"),
    "a build of nothing": (sets("build.digest", ""), "build is missing"),
    "nothing built": (without("stages", stage="build"), "stages lacks build"),
    "nothing measured": (without("stages", stage="measure"), "stages lacks measure"),
    "nothing verified": (without("stages", stage="verify"), "stages lacks verify"),
    "a workload left out": (without("workloads", name="cpu_n262144"), "workloads don't match"),
    "a hidden one left out": (without("workloads", name="cpu_n300007_large"), "don't match"),
    "a workload twice": (one_more(), "workloads don't match"),
    "an easy workload more": (one_more(name="easy"), "workloads don't match"),
    "a hidden one made public": (
        sets("workloads.8.hidden", False),
        "large disagrees with the task",
    ),
    "a public one hidden": (sets(f"{FIRST}.hidden", True), "cpu_n1024 disagrees with the task"),
    "smaller sizes": (sets(f"{FIRST}.parameters", {"N": 1}), "cpu_n1024 has different parameters"),
    "no time": (sets(f"{FIRST}.measurement", None), "workloads.cpu_n1024 has no time"),
    "one process fewer": (FEWER_PROCESSES, "workloads.cpu_n1024 ran in 2 processes instead of 3"),
    "a time of a check": (
        sets("workloads.8.measurement", {"time_ns": 1, "low_ns": 1, "high_ns": 1, "calls": 3}),
        "workloads.cpu_n300007_large has a time, but it is a hidden check",
    ),
    "no time of an unlisted one": (sets("workloads.9.measurement", None), "cpu_n1277 has no time"),
    "no process of a hidden one": (
        sets("workloads.8.processes", []),
        "ran in 0 processes instead of 1",
    ),
    "two calls": (two_calls, "workloads.cpu_n1024 has a process with only 2 calls"),
    "calls without inputs": (
        sets(f"{FIRST_RUN}.seeds", [1]),
        "has calls without inputs of their own",
    ),
    "the same inputs again": (SAME_INPUTS, "cpu_n1024 has calls without inputs of their own"),
    "nothing compared": (sets(f"{FIRST_RUN}.verified", []), "without verified outputs"),
    "no calls compared": (sets(f"{FIRST_RUN}.verified", [100_000]), "without verified outputs"),
    "a time of nothing": (sets(f"{FIRST_RUN}.times_ns.1", 0.0), "cpu_n1024 has an invalid time"),
    "a negative time": (sets(f"{FIRST_RUN}.times_ns.1", -1.0), "cpu_n1024 has an invalid time"),
    "hard values in no time": (sets(f"{FIRST_RUN}.hard_ns", [0.0] * 6), "has an invalid time"),
    "more work": (sets(f"{FIRST}.flops", 1e9), "cpu_n1024 has bytes, operations or a weight"),
    "more bytes": (sets(f"{FIRST}.bytes", 1e9), "cpu_n1024 has bytes, operations or a weight"),
    "another weight": (sets(f"{FIRST}.weight", 0.0), "cpu_n1024 has bytes, operations or a weight"),
    "a limit of nothing": (sets(f"{FIRST}.floor_ns", -1.0), "cpu_n1024 has -1.0 as floor_ns"),
    "a limit without end": (sets(f"{FIRST}.floor_ns", "inf"), "cpu_n1024 has inf as floor_ns"),
    "no size": (sets(f"{FIRST}.tensor_bytes", "nan"), "cpu_n1024 has nan as tensor_bytes"),
    "any time": (
        scales(f"{FIRST}.measurement.high_ns", 1000),
        "cpu_n1024 has a time that is only known to within ±",
    ),
    "another baseline": (
        another_baseline,
        "cpu_n1024 has a baseline 'slow', which the task doesn't define",
    ),
    "a baseline of a day": (
        sets(f"{FIRST}.baselines.eager.high_ns", 86_400e9),
        "'eager' with calls that take",
    ),
    "faster than its calls": (FASTER_THAN_ITS_CALLS, "cpu_n1024 has a time shorter than any"),
    "no such speedup": (sets(f"{FIRST}.speedups.best", 99.0), "has speedups that don't match"),
    "calls longer than the job": (sets(f"{FIRST_RUN}.times_ns.1", 46e9), "longer than the job"),
    "a better latency": (scales("latency_ns", 0.9), "latency_ns doesn't match"),
    "a better speedup": (scales("speedups.best", 1.1), "speedups doesn't match"),
    "another baseline's": (sets("speedups", {"best": 9.0}), "speedups doesn't match"),
    "no speedups": (sets("speedups", {}), "speedups doesn't match"),
    "better on hidden ones": (scales("unlisted_speedups.best", 1.1), "unlisted_speedups doesn't"),
    "a limit that nobody knows": (sets("floor_fraction", 0.9), "floor_fraction doesn't match"),
    "a better score": (scales("p_score", 1.1), "p_score doesn't match its workloads"),
    "no score": (sets("p_score", None), "p_score doesn't match its workloads"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_by_its_name(lie: str) -> None:
    evaluation, document = measured("ranked")
    change, words = LIES[lie]
    change(document)
    with pytest.raises(Implausible) as refusal:
        check(evaluation, document)
    assert str(refusal.value).startswith("result.")
    assert words in str(refusal.value)


def test_no_stage_ends_after_the_job_was_reported_but_clocks_may_differ_a_little() -> None:
    evaluation, document = measured("ranked")
    with pytest.raises(Implausible, match=r"result\.stages\.\w+ ends after the job was reported"):
        check(evaluation, document, took_s=1)
    evaluation, document = measured("quick")
    last = document["stages"][-1]
    check(evaluation, document, took_s=last["started_s"] + last["duration_s"] - 4.9)


def test_other_modes_have_their_own_rules() -> None:
    evaluation, document = measured("audit")  # needs as many processes as what it audits
    FEWER_PROCESSES(document)
    with pytest.raises(Implausible, match="ran in 2 processes instead of 3"):
        check(evaluation, document)
    evaluation, document = measured("compile")  # a build alone measures nothing
    with pytest.raises(Implausible, match=r"result\.verdict is CORRECT, in compile mode"):
        check(evaluation, document | {"verdict": "CORRECT", "latency_ns": 1.0})
    hidden = [w for w in honest("ranked")["workloads"] if w["hidden"]]
    for mode in ("test", "quick", "profile"):  # have none that is hidden
        evaluation, document = measured(mode)
        with pytest.raises(Implausible, match="workloads don't match the task's"):
            check(evaluation, document | {"workloads": [*document["workloads"], *hidden]})
