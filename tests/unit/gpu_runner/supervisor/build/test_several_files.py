"""Submissions of several files: what compilers find, say and keep of each."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.build.binary import static_suspicions
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.build.recipe import Built
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.protocol.evaluating import ADD, needs_jail, request

pytestmark = needs_jail

ENTRY = '#include "in/sum.h"\n' + ADD.replace("A[i] + B[i]", "sum(A[i], B[i])")
FILES = {
    "in/sum.h": '#pragma once\n#include "in/type.h"\ninline Real sum(Real a, Real b) '
    "{ return a + b; }\n",
    "in/type.h": "#pragma once\nusing Real = float;\n",
}
KERNEL = """#include "add.cuh"
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add<<<(N + 255) / 256, 256>>>(A, B, C, N);
}
"""
CUDA_FILES = {
    "add.cuh": '#include "in/sum.h"\n__global__ void add(const float* A, const float* B, float* C, '
    "int N) {\n  int i = blockIdx.x * 256 + threadIdx.x;\n  if (i < N) C[i] = sum(A[i], B[i]);\n}",
    "in/sum.h": "__device__ inline float sum(float a, float b) { return a + b; }\n",
}


@pytest.fixture(params=[Language.CPP, Language.CUDA])
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Language:
    if request.param is Language.CUDA:
        if shutil.which("nvcc") is None:
            pytest.skip("needs nvcc")
        monkeypatch.setattr(nvml, "compute_capability", lambda index: (9, 0))
    chosen: Language = request.param
    return chosen


def built(
    folder: Path, language: Language, source: str, files: dict[str, str]
) -> tuple[Built, list[tuple[str, int | None, str]]]:
    """The build, and the places and rules of what is suspicious in it."""
    entry = f"main{language.suffix}"
    solution = Solution(source=source, language=language, entry=entry, files=files)
    asked = replace(request("vector_add", ADD, Mode.COMPILE), solution=solution)
    config = SupervisorConfig(kind=language.device_kinds[0], cache_folder=folder)
    done = build_solution(asked, config)
    found = static_suspicions(asked, done.library) if done.library else []
    return done, [(each.file, each.line, each.reason.split(":")[0]) for each in found]


def given(language: Language) -> tuple[str, dict[str, str]]:
    return (ENTRY, FILES) if language is Language.CPP else (KERNEL, CUDA_FILES)


def test_headers_are_found_beside_the_entry(tmp_path: Path, language: Language) -> None:
    source, files = given(language)
    done, found = built(tmp_path, language, source, files)
    assert done.library is not None, done.report.log
    assert found == []
    again, _ = built(tmp_path, language, source, files)
    assert again.report.cached
    changed = {**files, "in/sum.h": files["in/sum.h"].replace("a + b", "b + a")}
    other, _ = built(tmp_path, language, source, changed)
    assert not other.report.cached


def test_what_a_header_may_not_have_is_found_in_it(tmp_path: Path, language: Language) -> None:
    source, files = given(language)
    hostile = '\n#include <dlfcn.h>\ninline void* load() { return dlopen("x.so", 2); }\n'
    text = files["in/sum.h"]
    _, found = built(tmp_path, language, source, {**files, "in/sum.h": text + hostile})
    assert ("in/sum.h", text.count("\n") + 3, "dynamic-loading") in found


def test_files_of_ours_and_of_the_host_are_out_of_reach(tmp_path: Path, language: Language) -> None:
    source, files = given(language)
    for name in ("../in/sum.h", "/etc/passwd", "kbench_other.h"):
        done, _ = built(tmp_path, language, f'#include "{name}"\n{source}', files)
        assert done.library is None
