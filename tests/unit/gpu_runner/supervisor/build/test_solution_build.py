"""Submissions are built for the device's own features, in C++20, with flags they ask for."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from gpu_runner.data import archive
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.flags import FIXED
from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.verdict import DeviceKind, Language, Mode
from gpu_runner.supervisor.build.build import build_solution, solution_recipes
from gpu_runner.supervisor.build.passes import own_code
from gpu_runner.supervisor.build.recipe import Built
from gpu_runner.supervisor.device import device, toolchain
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.adversarial.kernels import FOLDER
from tests.protocol.evaluating import ADD as PLAIN
from tests.protocol.evaluating import needs_jail
from tests.protocol.evaluating import request as plain_request

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")

ADD = """
__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) C[i] = A[i] / B[i];
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add<<<(N + 255) / 256, 256>>>(A, B, C, N);
}
"""
WGMMA = """
// A product of 64 by 8 by 16 in BF16, as an H100's tensor cores take it from shared memory.
__global__ void product(unsigned long long a, unsigned long long b, float* out) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
      " {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
"""


def request(source: str, language: Language, task: str = "vector_add") -> EvaluationRequest:
    return plain_request(task, source, Mode.COMPILE, language)


def built(folder: Path, source: str, language: Language, task: str = "vector_add") -> Built:
    config = SupervisorConfig(kind=language.device_kinds[0], cache_folder=folder)
    return build_solution(request(source, language, task), config)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of compute capability 9.0, as far as the compiler can tell."""
    monkeypatch.setattr(nvml, "compute_capability", lambda index: (9, 0))


TARGETS = "sm_75 sm_89 sm_90a sm_100a sm_103a sm_120a sm_121a sm_990"


@needs_nvcc
@pytest.mark.parametrize("target", TARGETS.split())
def test_a_device_is_built_for_itself(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sm_990 no compiler knows with a letter."""
    major, minor = divmod(int(target.strip("sm_a")), 10)
    if major in (10, 12) and not toolchain._is_known("sm_121a"):
        pytest.skip("this nvcc is older than the device")
    monkeypatch.setattr(nvml, "compute_capability", lambda index: (major, minor))
    assert device.cuda_architecture(0) == target


@needs_jail
@needs_nvcc
@pytest.mark.usefixtures("hopper")
def test_tensor_core_instructions_of_the_device_assemble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = built(tmp_path, ADD + WGMMA, Language.CUDA)
    assert done.library is not None, done.report.log
    assert "-gencode=arch=compute_90a,code=sm_90a" in done.report.command
    assert {kernel.name.split("(")[0] for kernel in done.report.resources} == {"add", "product"}
    where = "gpu_runner.supervisor.build.build.cuda_architecture"
    monkeypatch.setattr(where, lambda index: "sm_90")  # without the letter they do not
    done = built(tmp_path, ADD + WGMMA, Language.CUDA)
    assert done.library is None
    assert "wgmma" in done.report.log


@needs_jail
@needs_nvcc
@pytest.mark.usefixtures("hopper")
def test_a_source_that_is_built_again_gives_the_same_bytes(tmp_path: Path) -> None:
    """On another runner, or once the first build is evicted: an audit compares them."""
    digests = set()
    for name in ("first", "second"):
        library = built(tmp_path / name, ADD, Language.CUDA).library
        assert library is not None
        digests.add(archive.digest(library.read_bytes()))
        time.sleep(1)  # a line table counts seconds
    assert len(digests) == 1


@needs_jail
@needs_nvcc
@pytest.mark.usefixtures("hopper")
def test_flags_of_a_cuda_source_change_what_is_built(tmp_path: Path) -> None:
    plain = built(tmp_path, ADD, Language.CUDA)
    source = f"// flags: --use_fast_math -maxrregcount=32 -O2\r\n{ADD}"
    fast = built(tmp_path, source, Language.CUDA)
    assert fast.library is not None, fast.report.log
    assert plain.library is not None
    assert fast.report.flags == ("--use_fast_math", "-maxrregcount=32", "-O2")
    assert plain.report.flags == ()
    assert "redefinition" not in fast.report.log  # -O2 in place of -O3, not beside it
    (before,), (after,) = plain.report.resources, fast.report.resources
    assert (before.registers, before.stack_bytes) != (after.registers, after.stack_bytes)


@needs_jail
@needs_nvcc
@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize("path", sorted((FOLDER / "honest").glob("hopper*.cu")), ids=str)
def test_the_honest_control_for_a_gpu_builds(path: Path, tmp_path: Path) -> None:
    done = built(tmp_path, path.read_text(), Language.CUDA)
    assert done.library is not None, done.report.log


@pytest.mark.parametrize("language", FIXED)
@pytest.mark.usefixtures("hopper")
def test_flags_are_part_of_the_address(language: Language, tmp_path: Path) -> None:
    if language is Language.CUDA and shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    config = SupervisorConfig(kind=language.device_kinds[0], cache_folder=tmp_path)
    keys = {
        recipe.key()
        for head in ("", "// flags: -O2\n", "// flags: -O1\n", "// flags: -std=c++17\n")
        for recipe in solution_recipes(request(f"{head}{ADD}", language), config)
    }
    assert len(keys) == 4


@needs_jail
@pytest.mark.parametrize("line", ["", "// flags: -std=c++17\n"])
def test_sources_are_cxx20_unless_they_ask_for_less(line: str, tmp_path: Path) -> None:
    source = f"{line}{(FOLDER / 'honest' / 'cxx20.cpp').read_text()}"
    done = built(tmp_path, source, Language.CPP, "gelu")
    assert (done.library is None) is bool(line)


MACROS = """
#include <sys/cdefs.h>
#define JOINED(a, b) __CONCAT(a, b)
#ifdef __CUDA_ARCH__
#define SIDE gpu
#else
#define SIDE host
#endif
int JOINED(of_, SIDE);
"""


@needs_jail
@pytest.mark.parametrize("language", FIXED)
@pytest.mark.usefixtures("hopper")
def test_what_a_compiler_makes_of_macros_is_kept(language: Language, tmp_path: Path) -> None:
    if language is Language.CUDA and shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    name = "gelu/kernels/naive" + language.suffix
    source = (catalog_folder() / name).read_text() + MACROS
    done = built(tmp_path, source, language, "gelu")
    assert done.library is not None, done.report.log
    sides = ["host", "gpu"] if language is Language.CUDA else ["host"]
    line = source.count("\n") - 1
    for code, side in zip(own_code(done.library), sides, strict=True):
        assert code.text.split("\n")[line] == f"int of_{side};"
        assert "__builtin_" not in code.text  # of headers, nothing
    assert own_code(tmp_path / "nowhere.so") == ()


@needs_jail
@pytest.mark.parametrize("change", [("int N", "long N"), ("_add", "")])
def test_another_signature_is_told_the_expected_one(
    change: tuple[str, str], tmp_path: Path
) -> None:
    source = PLAIN.replace(*change)
    config = SupervisorConfig(kind=DeviceKind.CPU, cache_folder=tmp_path)
    reason = built(tmp_path, source, Language.CPP).why_not(config)
    expected = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
    assert reason.endswith(f"; the task expects: {expected}")
    other = PLAIN.replace("C[i]", "D[i]")
    assert "the task expects" not in built(tmp_path, other, Language.CPP).why_not(config)
