"""`kbench check` from a script to a verdict, as a user calls it, without a site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """import helper
import torch


def inputs(n=64):
    return torch.randn(16, n)


def ref(x):
    return x.cumsum(-1)


def kernel(x):
    out = torch.empty_like(x)
    total = torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        total = total + x[:, i]
        out[:, i] = total
    return out


def kernel_wrong(x):
    return x.cumsum(-1).roll(1, -1)


def kernel_broken(x):
    return x.no_such_method()


def kernel_helped(x):
    return helper.total(x)
"""
BESIDE = {
    "helper.py": """from pathlib import Path

HEADER = Path(__file__).with_name("sum.h").read_text()


def total(x):
    return x.cumsum(-1) * HEADER.count("inline")
""",
    "mine.cpp": """#include <torch/extension.h>
#include "sum.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &total); }
""",
    "sum.h": "inline torch::Tensor total(torch::Tensor x) { return x.cumsum(-1); }\n",
}


def checked(script: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, the document and the text of a check."""
    out = script.with_suffix(".json")
    program = [sys.executable, "-m", "gpu_runner", "check", str(script), "--json", str(out)]
    program += ["--device", "cpu", "--cache", str(script.parent / "cache"), *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=280)
    assert out.exists(), done.stderr
    return done.returncode, json.loads(out.read_text()), done.stdout


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "mine.py"
    for name, text in {path.name: SCRIPT, **BESIDE}.items():
        path.with_name(name).write_text(text)
    return path


def test_each_kernel_gets_its_verdict(script: Path) -> None:
    status, document, text = checked(script)
    kernels = document["kernels"]
    assert status == 1
    assert document["bound"]["proven"]
    assert {name: found["verdict"] for name, found in kernels.items()} == {
        "kernel": "CORRECT",
        "kernel_wrong": "WRONG_RESULT",
        "kernel_broken": "RUNTIME_ERROR",
        "kernel_helped": "CORRECT",
        "mine.cpp": "CORRECT",
    }
    assert {"eager", "compiled"} <= set(kernels["kernel"]["speedups"])
    assert "no_such_method" in kernels["kernel_broken"]["reason"]
    for words in ("torch.compile", "honest ways", "WRONG_RESULT"):
        assert words in text


@pytest.mark.thorough(reason="takes a minute, and the arithmetic has tests of its own")
def test_a_slower_edit_is_found_by_turns(script: Path) -> None:
    old = script.with_name("old.py")
    old.write_text(SCRIPT)
    slower = script.with_name("mine_slower.py")
    slower.write_text(SCRIPT.replace("total = total +", "total = total * 1.0 * 1.0 * 1.0 +"))
    words = ("--kernel", "kernel", "--compare", str(old), "--rounds", "3")
    status, document, _ = checked(slower, *words)
    ratio = document["ratios"]["kernel"]
    assert ratio["value"] < 1
    assert (status == 1) == (ratio["high"] < 1)
