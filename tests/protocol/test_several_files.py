"""Submissions of several files through the whole protocol on a CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpu_runner.__main__ import main
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import ADD, needs_jail, request

pytestmark = needs_jail

MAIN = """
import helper
from pack.names import NAME
from pathlib import Path

assert Path(__file__).with_name("notes.h").read_text() == "// read\\n"


def forward(input, N, C):
    return helper.softmax(input, N, C)
"""
HELPER = """
import torch


def softmax(input, N, C):
    return torch.softmax(input.view(N, C), -1).view(input.shape)
"""
LOADED = """
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

here = Path(__file__).parent
own = load("own", [str(here / "csrc" / "own.cpp")], extra_include_paths=[str(here)])


def forward(input, N, C):
    assert own.half() == 0.5
    return torch.softmax(input.view(N, C), -1).view(input.shape)
"""
BOUND = '#include "half.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("half", half); }\n'
HALF = "#include <pybind11/pybind11.h>\ninline double half() { return 0.5; }\n"


def run(
    config: SupervisorConfig,
    oracles: Oracles,
    source: str,
    files: dict[str, str],
    *,
    task: str = "softmax",
    mode: Mode = Mode.TEST,
    language: Language = Language.PYTHON,
) -> EvaluationResult:
    solution = Solution(
        source=source, language=language, entry=f"main{language.suffix}", files=files
    )
    return evaluate(replace(request(task, ADD, mode), solution=solution), config, oracles=oracles)


def test_a_kernel_with_headers_is_measured(config: SupervisorConfig, oracles: Oracles) -> None:
    source = '#include "in/sum.h"\n' + ADD.replace("A[i] + B[i]", "sum(A[i], B[i])")
    files = {
        "in/sum.h": '#include "type.h"\ninline Real sum(Real a, Real b) { return a + b; }\n',
        "in/type.h": "using Real = float;\n",
    }
    told = {"task": "vector_add", "language": Language.CPP}
    result = run(config, oracles, source, files, mode=Mode.QUICK, **told)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert {part.part: part.files for part in result.loaded}["source"] == 3
    wrong = {**files, "in/sum.h": files["in/sum.h"].replace("a + b", "a - b")}
    result = run(config, oracles, source, wrong, **told)
    assert result.verdict is Verdict.WRONG_RESULT


def test_a_module_has_helpers_and_reads_its_files(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    files = {"helper.py": HELPER, "pack/names.py": "NAME = 1\n", "notes.h": "// read\n"}
    result = run(config, oracles, MAIN, files)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert Check.LOADED not in {suspicion.check for suspicion in result.suspicions}
    wrong = {**files, "helper.py": HELPER.replace(", -1)", ", 0)")}
    assert run(config, oracles, MAIN, wrong).verdict is Verdict.WRONG_RESULT
    broken = {**files, "helper.py": "def softmax(:\n"}
    result = run(config, oracles, MAIN, broken)
    words = "helper.py:1: error: invalid syntax"
    assert (result.verdict, result.reason) == (Verdict.COMPILE_ERROR, words)


def test_a_module_compiles_a_file_beside_it(config: SupervisorConfig, oracles: Oracles) -> None:
    result = run(config, oracles, LOADED, {"csrc/own.cpp": BOUND, "half.h": HALF})
    assert result.verdict is Verdict.CORRECT, result.reason
    assert {part.part: part.files for part in result.loaded}["extensions"] == 1


def test_the_command_line_takes_files(tmp_path: Path, config: SupervisorConfig) -> None:
    (tmp_path / "in").mkdir()
    for name, text in (
        ("main.cpp", '#include "in/sum.h"\n' + ADD.replace("A[i] + B[i]", "sum(A[i], B[i])")),
        ("in/sum.h", "inline float sum(float a, float b) { return a + b; }\n"),
        ("torch.py", ""),
    ):
        (tmp_path / name).write_text(text)

    def status(kernel: str, *files: Path) -> int:
        words = ["--task", "vector_add", "--mode", "compile", "--device", "cpu"]
        words += ["--cache", str(config.cache_folder), "--kernel", str(tmp_path / kernel)]
        return main(["evaluate", *words, "--files", *map(str, files)])

    assert status("main.cpp", tmp_path / "in/sum.h") == 0
    assert status("main.cpp") == 1
    assert status("main.cpp", Path("/etc/hostname")) == 2
    assert status("main.cpp", tmp_path / "torch.py") == 2
