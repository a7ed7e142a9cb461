"""Every prompt renders, briefs its reader like an expert, and holds no hidden workload."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.codec import decode
from gpu_runner.data.environment import Environment
from gpu_runner.data.formats import catalog_specifications, load_task
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from runs_app.core.profile.hardware import compiler_of, hardware_lines, processors_of
from runs_app.optimiser.evolve.brief import Figures, briefing, values_text
from runs_app.optimiser.evolve.commands import Ask, Prompt, Role
from runs_app.optimiser.evolve.config import BY_TENSORS, KnownTimes, Problem
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.evolve.prompts import MOST_TOKENS, PromptError, common, load, names, render
from runs_app.optimiser.evolve.reference import reference_for
from runs_app.optimiser.evolve.sections import CHARACTERS_PER_TOKEN
from runs_app.optimiser.evolve.strategies.cudamaster import MAX_PLAN_TOKENS
from runs_app.optimiser.evolve.verifiers import instructions
from tests.unit.runs_app.optimiser.evolve.driving import a_problem, fenced, kernel
from tests.unit.runs_app.optimiser.evolve.papers import a_run, prompts_of

KINDS = {
    Language.CUDA: {"language": Language.CUDA, "device_kind": DeviceKind.CUDA},
    Language.CPP: {"language": Language.CPP, "device_kind": DeviceKind.CPU},
}
PROBLEMS = [
    a_problem(abi=Abi.C, **KINDS[Language.CUDA]),
    a_problem(abi=Abi.C, **KINDS[Language.CPP]),
    a_problem(abi=Abi.TORCH, signature="forward(x)", **KINDS[Language.CUDA]),
    a_problem(abi=Abi.TORCH, signature="forward(x)", **KINDS[Language.CPP]),
]
FORMS = {"form_kernel": "in one fenced block tagged", "form_edits": "<<<<<<< SEARCH"}
WRITE_CODE = [name for name in names() if load(name).placeholders & FORMS.keys()]


def rendered(name: str, problem: Problem) -> Prompt:
    asked = load(name).placeholders - common(problem).keys()
    return render(name, problem, **{key: f"[{key}]" for key in asked})


def text(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


@pytest.mark.parametrize(("name", "problem"), list(itertools.product(names(), PROBLEMS)))
def test_every_prompt_renders(name: str, problem: Problem) -> None:
    prompt = rendered(name, problem)
    assert (prompt.name, prompt.version >= 1) == (name, True)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert "{{" not in text(prompt)
    assert "}}" not in text(prompt)
    for key in load(name).placeholders - common(problem).keys():
        assert f"[{key}]" in text(prompt)


@pytest.mark.parametrize(("name", "problem"), list(itertools.product(WRITE_CODE, PROBLEMS)))
def test_prompts_for_code_state_contract_command_and_limits(name: str, problem: Problem) -> None:
    said = text(rendered(name, problem))
    assert problem.signature in said
    assert f"`{problem.toolchain}`" in said
    assert "no other flags" in said
    assert ("PYBIND11_MODULE" in said) is (problem.abi is Abi.TORCH)
    assert ('extern "C"' in said) is (problem.abi is Abi.C)
    assert ("device memory" in said or "on the GPU" in said) is (
        problem.device_kind is DeviceKind.CUDA
    )
    assert ("OpenMP" in said) is (problem.device_kind is DeviceKind.CPU)
    (form,) = load(name).placeholders & FORMS.keys()
    assert FORMS[form] in said


def test_shapes_come_from_the_public_workloads_alone() -> None:
    """`Problem` has no field for hidden ones, and no prompt has a placeholder for them."""
    said = text(rendered("evolve", a_problem()))
    assert "- n1024: n=1024" in said
    fields = {field.name for field in dataclasses.fields(Problem)}
    assert not {name for name in fields if "hidden" in name}
    assert not {p for name in names() for p in load(name).placeholders if "hidden" in p}


def test_values_are_all_given_and_stay_as_they_are() -> None:
    given = {"strategy": "{{code}}", "times": "t"}
    for more, words in (({}, "needs a value for 'code'"), ({"code": "y", "more": "z"}, "'more'")):
        with pytest.raises(PromptError, match=words):
            render("code", PROBLEMS[0], **given, **more)
    with pytest.raises(PromptError, match="there is no prompt 'nonsense'"):
        render("nonsense", PROBLEMS[0])
    shown = text(render("code", PROBLEMS[1], code="int a[1] = {{0}}; {{task}}", **given))
    assert "{{code}}" in shown
    assert "int a[1] = {{0}}; {{task}}" in shown


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
        "compute_capability": "9.0", "sms": 132, "shared_bytes_per_sm": 228 * 1024,
        "shared_bytes_per_block": 227 * 1024, "registers_per_sm": 65536, "threads_per_sm": 2048,
        "l2_bytes": 50e6, "memory_bytes": 80 * 2**30, "bytes_per_s": 3350e9,
        "flop_per_s": {"float32": 66.9e12, "bfloat16": 989.5e12},
        "rates_are": "the maker's data sheet",
    },
}  # fmt: skip
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


@pytest.mark.parametrize("name", JUDGED_OR_WRITTEN)
def test_a_prompt_tells_the_machine_and_the_task_in_numbers(name: str) -> None:
    text = said(name, briefed())
    for fact in ("one processor", "avx2, fma", "L2 cache: 512 KiB", "2.45 GHz", "33.2 GB/s"):
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
    ("name", "abi"), list(itertools.product([*JUDGED_OR_WRITTEN, *VERIFIERS], [Abi.C, Abi.TORCH]))
)
def test_nothing_of_cuda_is_said_on_a_cpu(name: str, abi: Abi) -> None:
    signature = "forward(x)" if abi is Abi.TORCH else a_problem().signature
    problem = briefed(abi=abi, signature=signature)
    text = instructions(name, problem) if name in VERIFIERS else said(name, problem)
    assert [word for word in CUDA_WORDS if word in text] == []
    assert "\n@" not in text
    if name in VERIFIERS:
        gpu = replace(problem, language=Language.CUDA, device_kind=DeviceKind.CUDA)
        assert any(word in instructions(name, gpu) for word in CUDA_WORDS)


WITHOUT_FILES = {  # they go on from a prompt that shows them, or see no whole kernel
    *("fsr_faster", "fsr_repair", "islands_notes", "judge_task"),
    *("recommend", "summarise", "tune_improve"),
}


@pytest.mark.parametrize("name", sorted({*names()} - WITHOUT_FILES))
def test_files_that_stay_are_shown_to_writers_and_judges(name: str) -> None:
    files = {"in/sum.h": "int {{task}};\n"}
    text = said(name, a_problem(seed_entry="main.cpp", seed_files=files))
    assert "source file is main.cpp" in text
    assert "in/sum.h:\n```cpp\nint {{task}};\n```" in text
    assert "# Files beside it" not in said(name, a_problem())


@pytest.mark.parametrize("name", names())
def test_no_prompt_is_longer_than_stated(name: str) -> None:
    long = "x" * 400_000
    problem = briefed(reference=long, description=long, workloads=(long,), hardware=("h" * 900,))
    problem = replace(problem, seed_entry="main.cpp", seed_files={"a.h": long, "b.h": long})
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


def task(name: str) -> Task:
    return load_task(catalog_specifications()[name])


def test_what_binds_is_told_by_tensors_where_a_task_has_no_formula_of_its_work() -> None:
    plain = replace(task("rms_norm"), work={})
    sizes = {"n65536": 3350.0 * 80}
    figures = Figures(environment=GPU, tensor_bytes=sizes)
    told = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, figures)
    limits = {each.workload: (each.limit_ns, each.limit_by) for each in told.known}
    assert limits["n65536"] == (pytest.approx(80.0), BY_TENSORS)
    assert limits["n64"] == (None, "")
    assert told.limit_source
    unknown = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, Figures(tensor_bytes=sizes))
    assert unknown.limit_source == ""
    floors = Figures(environment=GPU, floors_ns={"m64_n2048_k4096": 16_050.0})
    told = briefing(task("matrix_mul"), DeviceKind.CUDA, Direction.FORWARD, floors)
    assert {each.workload: each.limit_by for each in told.known}["m64_n2048_k4096"] == "arithmetic"
    text = values_text(task("rms_norm"), DeviceKind.CUDA, Direction.FORWARD)
    assert text.startswith(" Other values are: ")


CUDA = {"language": Language.CUDA, "device_kind": DeviceKind.CUDA}


def test_a_limit_by_arithmetic_may_be_beaten_in_parts_alone_and_is_not_called_physical() -> None:
    limits = {"a": "arithmetic", "m": "memory", "t": BY_TENSORS}
    known = tuple(KnownTimes(workload=n, limit_by=by, limit_ns=1.0) for n, by in limits.items())
    problem = a_problem(known=known, floor_ns=1000.0, **CUDA)
    assert [problem.may_beat(each) for each in "amt?"] == [True, False, True, False]
    assert not replace(problem, dtype="bfloat16").may_beat("a")
    assert not replace(problem, device_kind=DeviceKind.CPU).may_beat("a")
    assert "physical" not in common(replace(problem, known=known[:1]))["goal"]
    bound = replace(problem, known=known[1:2])
    assert "- physical limit of the device: 1.00 us" in common(bound)["goal"]
