"""What the red team makes of a result, of a row that nobody tries, and of a header."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationResult, WorkloadResult
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from tests.adversarial import redteam
from tests.adversarial.catalogue import ROWS, Row
from tests.adversarial.judging import Outcome, judge
from tests.adversarial.kernels import HeaderError, Kernel, Stop, load_kernel, load_kernels

KERNELS = load_kernels(DeviceKind.CPU)


def test_a_row_that_nobody_tries_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = ["--device", "cpu", "--only", "no such kernel"]
    assert redteam.main(nothing) == 0
    monkeypatch.setattr(redteam, "ROWS", (*ROWS, Row(99, "is new")))
    assert redteam.main(nothing) == 1
    assert "nobody tries row 99" in capsys.readouterr().out


def _kernel(*stops: str) -> Kernel:
    return dataclasses.replace(KERNELS[0], stops=tuple(map(Stop.parse, stops)))


def _result(verdict: Verdict, **facts: object) -> EvaluationResult:
    latency_ns = 50.0 if verdict is Verdict.CORRECT else None
    known = EvaluationResult(
        evaluation_id="", attempt=1, verdict=verdict, reason="'C' is wrong", mode=Mode.TEST,
        device="cpu", task="", task_digest="", solution_digest="", latency_ns=latency_ns,
    )  # fmt: skip
    return dataclasses.replace(known, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stop", "result", "outcome"),
    [
        ("verdict WRONG_RESULT: wrong", _result(Verdict.WRONG_RESULT), Outcome.STOPPED),
        ("verdict WRONG_RESULT: other", _result(Verdict.WRONG_RESULT), Outcome.MISSED),
        ("verdict VIOLATION", _result(Verdict.WRONG_RESULT), Outcome.MISSED),
        ("verdict VIOLATION", _result(Verdict.CORRECT), Outcome.MISSED),
        ("construction", _result(Verdict.CORRECT), Outcome.STOPPED),
        ("construction", _result(Verdict.SYSTEM_ERROR), Outcome.MISSED),
        ("construction", _result(Verdict.CORRECT, output="so: GOT it"), Outcome.MISSED),
        ("construction", _result(Verdict.CORRECT, latency_ns=9.0), Outcome.MISSED),
        ("quarantine source", _result(Verdict.CORRECT), Outcome.MISSED),
        (
            "quarantine source",
            _result(Verdict.CORRECT, suspicions=(Suspicion(check=Check.SOURCE, reason=""),)),
            Outcome.STOPPED,
        ),
    ],
)
def test_judgement_of_hostile_kernel(stop: str, result: EvaluationResult, outcome: Outcome) -> None:
    kernel = dataclasses.replace(_kernel(stop), must_not_print=("GOT",), at_least_ns=10.0)
    assert judge(kernel, result).outcome is outcome


@pytest.mark.parametrize(
    ("speedups", "outcome"),
    [
        ({"eager": 1.1, "best": 1.1}, Outcome.STOPPED),
        ({"eager": 2.6, "best": 2.6}, Outcome.MISSED),
        ({}, Outcome.MISSED),
    ],
)
def test_judgement_of_a_speedup(speedups: dict[str, float], outcome: Outcome) -> None:
    [kernel] = [k for k in KERNELS if k.name == "cpu/row31_slows_the_anchor"]
    assert kernel.task.baselines == ("eager",)
    workload = WorkloadResult(name="", parameters={}, hidden=False, speedups=speedups)
    result = _result(Verdict.CORRECT, workloads=(workload,))
    assert judge(kernel, result).outcome is outcome


def test_honest_kernel_must_be_correct_and_beyond_suspicion() -> None:
    honest = next(kernel for kernel in KERNELS if kernel.honest)
    suspicion = Suspicion(check=Check.LIBRARY, reason="needs a library")
    assert judge(honest, _result(Verdict.CORRECT)).outcome is Outcome.FINE
    assert judge(honest, _result(Verdict.UNSTABLE)).outcome is Outcome.ACCUSED
    suspected = _result(Verdict.CORRECT, suspicions=(suspicion,))
    assert judge(honest, suspected).outcome is Outcome.ACCUSED


@pytest.mark.parametrize(
    "header",
    [
        "// row: 1\n// tries: x\n",
        "// row: 1\n// stopped by: verdict GUILTY\n// tries: x\n",
        "// row: 1\n// stopped by: luck\n// tries: x\n",
        "// row: 1\n// stopped by: construction\n",
        "// row: 1\n// stopped by: construction\n// tries: x\n// workloads: none\n",
        "// row: 1\n// stopped by: construction\n// tries: x\n// baselines: eager\n",
        "// row: 1\n// stopped by: construction\n// tries: x\n// at most: 2 x\n",
        "// row: 1\n// abi: torch\n// stopped by: construction\n// tries: x\n",
        "// stopped by: construction\n// tries: x\n",
        "// row: 1\n// device: cuda\n// stopped by: construction\n// tries: x\n",
        "// row: 1\n// stopped by: construction\n// tries: x\n// workloads: n1024\n",
    ],
)
def test_header_that_nobody_can_check_is_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(header)
    with pytest.raises(HeaderError, match=r"kernel\.cpp"):
        load_kernel(path)
