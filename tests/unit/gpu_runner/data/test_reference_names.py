"""What a reference.py and a signature ask for and nobody gives is found in the text alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gpu_runner.data.formats import Fault, built_in_tasks, read_folder
from gpu_runner.data.formats.reference_names import name_errors
from gpu_runner.data.formats.source import parse_module
from gpu_runner.data.verdict import Abi
from gpu_runner.engine.problem.arguments import c_arguments
from gpu_runner.engine.problem.problem import ProblemError, load_problem

REFERENCE = """\
import torch

def make_inputs(N, alpha=2.0):
    if N > 100:
        return {"x": torch.zeros(N)}
    return {"x": torch.randn(N)}

def forward_fn(x, alpha):
    return x * alpha

def forward_scale(x, alpha, inner_eps):
    return x.abs() * alpha
"""
BACKWARD = """
def backward_fn(x, alpha, grad_output, output):
    return grad_output * alpha

def backward_scale(x, grad_output, inner_eps):
    return grad_output
"""
SIGNATURE = "void scale(float* out, const float* x, float alpha, int N)"
SPECIFICATION = """\
name = "scale"
title = "Scale"
abi = "c"
signature = "{signature}"
[[workloads]]
name = "small"
parameters = {{ N = 4, alpha = 0.5 }}
[[workloads]]
name = "large"
parameters = {large}
"""
LARGE = "{ N = 64, alpha = 1 }"


def folder(
    reference: str = REFERENCE, signature: str = SIGNATURE, large: str = LARGE, **files: str
) -> dict[str, str]:
    text = SPECIFICATION.format(signature=signature, large=large)
    more = {name.replace("__", "."): content for name, content in files.items()}
    return {"task.toml": text, "reference.py": reference, **more}


def torch_folder(reference: str, directions: str = '["forward", "backward"]') -> dict[str, str]:
    files = folder(reference)
    line = f'abi = "torch"\ndirections = {directions}\n'
    return files | {"task.toml": files["task.toml"].replace('abi = "c"\n', line)}


def faults(files: Mapping[str, str]) -> tuple[Fault, ...]:
    return read_folder(files)[1]


def lines(files: Mapping[str, str]) -> list[str]:
    return [str(fault) for fault in faults(files)]


def engine_takes(files: Mapping[str, str], path: Path) -> bool:
    """Whether the engine finds every argument of every workload."""
    changed = {**files, "reference.py": "def make_inputs(**sizes): ...\ndef forward_fn(): ..."}
    changed["reference.py"] += "\ndef backward_fn(): ..."
    task, wrong = read_folder(changed)  # what the signature needs is not looked at
    assert task is not None, wrong
    (path / "reference.py").write_text(files["reference.py"])
    try:
        problem = load_problem(task, path)
        for workload in task.workloads:
            for direction in task.directions:
                drawn = problem.draw(workload, direction, 1, "cpu")
                expected = problem.expected(workload, direction, 1, "cpu")
                problem.scale(workload, direction, 1, "cpu", expected)
                if task.abi is Abi.C:
                    c_arguments(task, workload, drawn)
    except ProblemError:
        return False
    return True


def test_every_built_in_task_passes_and_nearly_all_can_be_read() -> None:
    read = 0
    for task in built_in_tasks()[::4]:
        tree = parse_module(task.files["reference.py"], "reference.py")
        assert list(name_errors(task, tree, "reference.py")) == []
        wrong = task.files["reference.py"].replace("def forward_fn(", "def forward_fn(missing, ", 1)
        changed = parse_module(wrong, "reference.py")
        read += any("'missing'" in e.reason for e in name_errors(task, changed, "reference.py"))
    assert read >= 30


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            folder(signature=SIGNATURE.replace("alpha", "beta")),
            "task.toml, line 4: signature: has the number 'beta', which",
        ),
        (
            folder(signature=SIGNATURE.replace("const float* x", "const float* z")),
            "task.toml, line 4: signature: has the tensor 'z', which",
        ),
        (
            folder(REFERENCE.replace("forward_fn(x,", "forward_fn(x, z,")),
            "reference.py, line 8: has forward_fn(), which takes 'z'",
        ),
        (
            folder(large="{ N = 64 }"),
            "task.toml, line 10: workloads[1].parameters.alpha: is missing",
        ),
        (
            folder(
                REFERENCE.replace("x, alpha):\n    return x * alpha", "x):\n    return x")
                .replace("x, alpha, inner_eps", "x, inner_eps")
                .replace("x.abs() * alpha", "x.abs()"),
                large='{ N = 64, alpha = "a" }',
            ),
            "task.toml, line 10: workloads[1].parameters.alpha: must be a number",
        ),
        (
            torch_folder(REFERENCE + BACKWARD.replace("(x, alpha,", "(x, z,", 1)),
            "reference.py, line 14: has backward_fn(), which takes 'z'",
        ),
    ],
)
def test_what_nobody_gives_is_a_fault(files: dict[str, str], told: str, tmp_path: Path) -> None:
    assert lines(files)[0].startswith(told)
    assert not engine_takes(files, tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        folder(),
        folder(
            REFERENCE.replace('"x": ', '"in": ')
            .replace("x, alpha", "in_, alpha")
            .replace("x", "in_"),
            SIGNATURE.replace("float* x", "float* in"),
        ),
        folder(
            REFERENCE.replace("fn(x, alpha)", "fn(x, alpha, beta=1.5)"),
            SIGNATURE.replace("int N", "float beta"),
        ),
        folder(
            REFERENCE.replace("fn(x, alpha)", "fn(x, alpha, y=torch.zeros(3))"),
            SIGNATURE.replace("int N", "const float* y"),
        ),
        torch_folder(REFERENCE + BACKWARD),
        torch_folder(REFERENCE + BACKWARD, '["backward"]'),
    ],
)
def test_what_the_engine_takes_is_taken(files: dict[str, str], tmp_path: Path) -> None:
    assert lines(files) == []
    assert engine_takes(files, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        ("import torch\n", "import torch\nfrom other import *\n"),
        ("def make_inputs", "def same(f):\n    return f\n@same\ndef make_inputs"),
        (
            "def make_inputs",
            "def same(f):\n    return f\n\n@same\ndef forward_fn(a): ...\ndef make_inputs",
        ),
        ("import torch\n", "import torch\nif torch:\n    from torch import relu as forward_fn\n"),
        ("import torch\n", "import torch\ndef f():\n    global make_inputs\n"),
        ("", ""),  # but of another file
    ],
)
def test_where_nothing_is_certain_nothing_is_said(change: tuple[str, str]) -> None:
    wrong = REFERENCE.replace("forward_fn(x,", "forward_fn(x, z,")
    assert faults(folder(wrong))
    assert change[0] in wrong
    other = "" if change[0] else "import reference\nreference.forward_fn = min\n"
    assert lines(folder(wrong.replace(*change, 1), other__py=other)) == []


def test_a_wrong_signature_is_said_once() -> None:
    assert [fault.field for fault in faults(folder(signature="void scale(int)"))] == ["signature"]
