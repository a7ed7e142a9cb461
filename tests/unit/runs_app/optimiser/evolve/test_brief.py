"""Every prompt that asks for, judges or explains a kernel holds an expert's brief."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.codec import decode
from gpu_runner.data.environment import Environment
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from runs_app.core.profile.hardware import compiler_of, hardware_lines, processors_of
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import KnownTimes, Problem
from runs_app.optimiser.evolve.prompts import MOST_TOKENS, common, load, names, render
from runs_app.optimiser.evolve.reference import reference_for
from runs_app.optimiser.evolve.sections import CHARACTERS_PER_TOKEN
from runs_app.optimiser.evolve.strategies.cudamaster import MAX_PLAN_TOKENS
from runs_app.optimiser.evolve.verifiers import NAMES, instructions
from tests.unit.runs_app.optimiser.evolve.driving import a_problem, fenced, kernel
from tests.unit.runs_app.optimiser.evolve.papers import a_run, broken, fast, prompts_of

CPU_SHEET: dict[str, Any] = {
    "device_kind": "cpu",
    "measured_cpus": 1,
    "compiler": "g++ 12.2.0",
    "hardware": {
        "features": ["avx2", "fma"],
        "clock_hz": 2.45e9,
        "clock_is": "highest",
        "caches": [{"level": 2, "bytes": 524288, "line": 64, "shared_by": 1}],
        "call_timeout_s": 10.0,
    },
    "peaks": {"measured": {"bytes_per_s": 33.2e9, "flop_per_s": 70e9}},
}
GPU_SHEET: dict[str, Any] = {
    "device_kind": "cuda",
    "architecture": "sm_90a",
    "driver": "580.1",
    "hardware": {
        "compute_capability": "9.0",
        "sms": 132,
        "shared_bytes_per_sm": 228 * 1024,
        "shared_bytes_per_block": 227 * 1024,
        "registers_per_sm": 65536,
        "threads_per_sm": 2048,
        "l2_bytes": 50e6,
        "memory_bytes": 80 * 2**30,
        "bytes_per_s": 3350e9,
        "flop_per_s": {"float32": 66.9e12, "bfloat16": 989.5e12},
        "rates_are": "the maker's data sheet",
    },
}
CPU, GPU = decode(Environment, CPU_SHEET), decode(Environment, GPU_SHEET)
CUDA_WORDS = ("__shared__", "warp", "CUDA", "shared memory", "cudaMalloc", "SMs", "launch")
JUDGED_OR_WRITTEN = sorted(
    set(names()) - {"judge_task", "tune_improve", "fsr_faster", "fsr_repair"}
)


def briefed(**changes: Any) -> Problem:
    """A problem of which everything is known, on a CPU with one processor."""
    fields: dict[str, Any] = {
        "hardware": hardware_lines(CPU),
        "processors": processors_of(CPU),
        "compiler": compiler_of(CPU),
        "tolerance": "An output element passes if |actual - expected| <= 1.19e-07 * 8 * scale.",
        "call_limit_s": 10.0,
        "answer_tokens": 8192,
        "known": (KnownTimes(workload="n1024", baselines_ns={"eager": 4000.0}, limit_ns=100.0),),
        "limit_source": "estimates",
    }
    return a_problem(**{**fields, **changes})


def said(name: str, problem: Problem, value: str = "") -> str:
    """The text of a prompt; its own values are their names, or `value`."""
    asked = load(name).placeholders - common(problem).keys()
    prompt = render(name, problem, **{key: value or f"[{key}]" for key in asked})
    return "\n".join(message.content for message in prompt.messages)


def test_the_sheet_of_a_machine() -> None:
    text = "\n".join(hardware_lines(GPU))
    for fact in ("132 SMs, each with 228 KiB", "227 KiB", "65536 registers", "L2 cache: 50 MB",
                 "memory of 80 GiB: 3350 GB/s", "989.5 bfloat16"):  # fmt: skip
        assert fact in text, fact
    assert processors_of(GPU) is None
    assert hardware_lines(Environment()) == ()
    assert CPU.hardware is not None
    moment = replace(CPU.hardware, clock_is="now", identity="AuthenticAMD family 25 model 17")
    lines = "\n".join(hardware_lines(replace(CPU, hardware=moment)))
    assert ("GHz" in lines, "AuthenticAMD family 25 model 17" in lines) == (False, True)


@pytest.mark.parametrize("name", JUDGED_OR_WRITTEN)
def test_a_prompt_tells_the_machine_and_the_task_in_numbers(name: str) -> None:
    text = said(name, briefed())
    for fact in ("ONE processor", "avx2, fma", "L2 cache: 512 KiB", "2.45 GHz", "33.2 GB/s"):
        assert fact in text, fact
    if name != "compile":
        for fact in ("1.19e-07", "more than 10 s", "eager 4.00 us, limit 0.10 us", "return 2 * x"):
            assert fact in text, fact
    if name in ("evolve", "recommend", "islands_diff", "islands_rewrite"):
        assert "\n\n[tried]" in text


@pytest.mark.parametrize("name", [n for n in names() if "form_kernel" in load(n).placeholders])
def test_who_writes_code_hears_the_compiler_and_the_cap(name: str) -> None:
    text = said(name, briefed())
    assert ("g++ 12.2.0" in text, "within 8,192 tokens" in text) == (True, True)
    assert "within 8,192 tokens" not in said(name, briefed(answer_tokens=0))


@pytest.mark.parametrize(
    ("name", "abi"), list(itertools.product([*JUDGED_OR_WRITTEN, *NAMES], [Abi.C, Abi.TORCH]))
)
def test_nothing_of_cuda_is_said_on_a_cpu(name: str, abi: Abi) -> None:
    signature = "forward(x)" if abi is Abi.TORCH else a_problem().signature
    problem = briefed(abi=abi, signature=signature)
    text = instructions(name, problem) if name in NAMES else said(name, problem)
    assert [word for word in CUDA_WORDS if word in text] == []
    assert "\n@" not in text
    if name in NAMES:
        gpu = replace(problem, language=Language.CUDA, device_kind=DeviceKind.CUDA)
        assert any(word in instructions(name, gpu) for word in CUDA_WORDS)


@pytest.mark.parametrize("name", names())
def test_no_prompt_is_longer_than_stated(name: str) -> None:
    long = "x" * 400_000
    problem = briefed(reference=long, description=long, workloads=(long,), hardware=("h" * 900,))
    asked = load(name).placeholders - common(problem).keys()
    values = dict.fromkeys(
        asked - {"sample", "samples", "strategy", "tried", "recommendations", "history"}, long
    )
    values |= dict.fromkeys(asked - values.keys(), "y" * MAX_PLAN_TOKENS * 4)
    prompt = render(name, problem, **values) if name != "tune_improve" else None
    length = sum(len(message.content) for message in prompt.messages) if prompt else 0
    assert length <= MOST_TOKENS * CHARACTERS_PER_TOKEN


def test_a_plan_is_never_cut() -> None:
    plan = "Do this. " * 600 + "And in the end that."

    def speak(ask: Ask) -> str:
        return plan if ask.role is Role.PLAN else fenced(kernel(), "k")

    run = a_run("cudamaster", speak, parameters={"r": 1, "d": 0, "compiler": False})
    [coder] = prompts_of(run, Role.CODE)
    assert plan in coder
    asked = next(command for command, _ in run.world.asks.values() if command.role is Role.PLAN)
    assert asked.max_tokens == MAX_PLAN_TOKENS


def test_failures_reach_the_next_generation_with_their_reason() -> None:
    def speak(ask: Ask) -> str:
        if not ask.role.writes_code:
            return "advice"
        slot = ask.place.slot
        return fenced(broken(slot) if slot == 1 else fast(1000 + slot), f"kernel {slot}")

    run = a_run("evolve", speak, parameters={"generations": 2, "proposals": 2})
    *_, last = prompts_of(run, Role.PROPOSE)
    assert "COMPILE_ERROR, as scripted" in last
    assert "n1024 (n=1024): 1.00 us ± 1.0%" in last


REFERENCE = """import torch

SCALE = 2.0
BACK = 3.0
\"\"\"Of the gradient.\"\"\"


def make_inputs(n):
    return {"x": torch.randn(n)}


def forward_fn(x):
    return x * SCALE


def _helper(x):
    return x * BACK


def backward_fn(grad, x):
    return _helper(grad)


def baseline_fn(x):
    return torch.compile(forward_fn)(x)
"""


def test_a_forward_prompt_shows_no_backward_code_and_no_baseline() -> None:
    forward = reference_for(REFERENCE, Direction.FORWARD)
    for gone in ("backward", "baseline", "_helper", "BACK", "Of the gradient"):
        assert gone not in forward
    assert "SCALE = 2.0" in forward
    assert "def make_inputs" in forward
    backward = reference_for(REFERENCE, Direction.BACKWARD)
    assert "def backward_fn" in backward
    assert "BACK = 3.0" in backward
    assert "baseline" not in backward


@pytest.mark.parametrize("source", ["def (", "class Model:\n    pass\n", ""])
def test_what_is_no_such_module_stays_whole(source: str) -> None:
    assert reference_for(source, Direction.FORWARD) == source
