"""Published kernels become sources for tasks, on a small made-up repository."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.signature import Signature
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi
from tests.bench.published import build_only
from tests.bench.published_sources import (
    Published,
    Refused,
    arguments,
    between_the_marks,
    definition,
    missing_kernels,
    published,
)

SCALE = """#include <cuda_runtime.h>
// extern "C" void scale_old(float* out) {
__global__ void scale_kernel(float* out, const float* in, float alpha, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = alpha * in[i];
}
extern "C" void scale_optimized(float* out, float* in, float alpha, int N) {
    scale_kernel<<<(N + 255) / 256, 256>>>(out, in, alpha, N);
}
"""
FIXED = """
extern "C" void clip_optimized(const float* in, float* out, int N) {}
"""
HARNESS = """#include <cuda_bf16.h>
  #include <cstdio>
int checker() { return 1; }
// ==== OPTIMIZED KERNEL START ====
extern "C" __global__ void shift_kernel(__nv_bfloat16* out, const __nv_bfloat16* in, int N);
extern "C" void shift_bf16_optimized(__nv_bfloat16* out, const __nv_bfloat16* in, int N) {
    shift_kernel<<<1, 256>>>(out, in, N);
}
// ==== OPTIMIZED KERNEL END ====
// __global__ void shift_kernel(int commented_out) { }
__global__ void shift_kernel(__nv_bfloat16* out, const __nv_bfloat16* in, int N) {
    for (int i = threadIdx.x; i < N; i += blockDim.x) {
        if (i > 0) { out[i] = in[i - 1]; /* } */ }
        else out[i] = in[N - 1];
    }
}
int main() { return checker(); }
"""


def task(symbol: str, parameters: str, dtype: str = "float32", inout: Sequence[str] = ()) -> Task:
    return Task(
        name=symbol,
        title=symbol,
        format=TaskFormat.KBENCH,
        abi=Abi.C,
        signature=f"void {symbol}({parameters})",
        inout=tuple(inout),
        dtype=dtype,
        workloads=(Workload(name="n1", parameters={"N": 1}),),
        files={},
    )


BF16 = "__nv_bfloat16* out, const __nv_bfloat16* in, int N"
TASKS = [
    task("scale", "float* out, const float* in, float alpha, int N"),
    task("clip", "float* out, const float* in, int N, float limit"),
    task("copy", "float* out, const float* in, int N"),
    task("shift_bf16", BF16, "bfloat16"),
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    texts = {
        "optimized/fp32/scale.cu": SCALE,
        "optimized/fp32/clip.cu": FIXED,
        "optimized/fp32/copy.cu": 'extern "C" void copy_optimized(float* out, int N) {}',
        "optimized/fp32/unknown.cu": SCALE,
        "optimized/bf16/test_shift_bf16.cu": HARNESS,
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def found(repository: Path) -> dict[str, Published | Refused]:
    return {kernel.label: kernel for kernel in published(repository, TASKS)}


def test_every_file_is_a_kernel_or_is_refused_with_a_reason(repository: Path) -> None:
    every = found(repository)
    assert list(every) == ["fp32-clip", "fp32-copy", "fp32-scale", "fp32-unknown", "bf16-shift"]
    reasons = {name: k.reason for name, k in every.items() if isinstance(k, Refused)}
    assert reasons["fp32-unknown"] == "no task of fp32 asks for it"
    assert "cannot be called from `void copy(" in reasons["fp32-copy"]
    assert len(reasons) == 2


def test_a_wrapper_has_the_tasks_declaration_and_casts_const_away(repository: Path) -> None:
    kernel = found(repository)["fp32-scale"]
    assert isinstance(kernel, Published)
    added = kernel.source.removeprefix(SCALE)
    assert 'extern "C" void scale(float* out, const float* in, float alpha, int N) {' in added
    assert "scale_optimized(out, const_cast<float*>(in), alpha, N);" in added
    assert kernel.notes == ()


def test_arguments_go_by_name_and_one_that_is_not_taken_is_said(repository: Path) -> None:
    kernel = found(repository)["fp32-clip"]
    assert isinstance(kernel, Published)
    assert "clip_optimized(in, out, N);" in kernel.source  # in another order than the task's
    assert kernel.notes == ("takes no limit: the value is fixed in its source",)


def test_without_a_file_the_harness_gives_the_kernel_and_what_it_launches(
    repository: Path,
) -> None:
    kernel = found(repository)["bf16-shift"]
    assert isinstance(kernel, Published)
    assert kernel.source.startswith("#include <cuda_bf16.h>\n#include <cstdio>\n")
    assert "checker" not in kernel.source
    assert "in[N - 1];" in kernel.source
    assert kernel.notes == (
        "was taken out of test_shift_bf16.cu",
        "launches shift_kernel, which it does not define: the baseline's was added",
    )
    plain = repository / "optimized/bf16/shift_bf16.cu"
    plain.write_text(between_the_marks(HARNESS, "harness"))
    again = found(repository)["bf16-shift"]
    assert isinstance(again, Published)
    assert again.source == kernel.source
    assert len(again.notes) == 1


def test_names_of_ones_own_are_mapped_by_position() -> None:
    wanted = TASKS[0].c_signature
    theirs = Signature.parse("void f(float* d_out, const float* d_in, float a, int32_t n)")
    assert arguments(theirs, wanted) == wanted.parameters


@pytest.mark.parametrize(
    "parameters",
    [
        "float* out, const float* in, int alpha, int N",
        "float* out, const double* in, float alpha, int N",
        "const float* out, float* in, float alpha, int N",
        "float* in, float alpha, int N",  # without the output
        "float* o, const float* i, float a, int n, int m",
    ],
)
def test_what_cannot_be_called_is_refused(parameters: str) -> None:
    with pytest.raises(DataError, match="cannot be called"):
        arguments(Signature.parse(f"void f({parameters})"), TASKS[0].c_signature)


def test_a_harness_without_marks_and_a_repository_without_kernels_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(DataError, match="has no kernel between"):
        between_the_marks(HARNESS.replace("KERNEL END", "END"), "test_shift.cu")
    with pytest.raises(DataError, match=r"holds no \.cu file"):
        list(published(tmp_path, TASKS))


def test_kernels_that_are_only_declared_are_found_with_their_definitions() -> None:
    assert missing_kernels(HARNESS.partition("KERNEL END")[0]) == ["shift_kernel"]
    assert missing_kernels(SCALE) == []
    body = definition(HARNESS, "shift_kernel")
    assert body is not None
    assert body.count("{") == body.count("}") == 3
    assert definition(SCALE, "other") is None
    assert definition(SCALE[: SCALE.index("alpha * in")], "scale_kernel") is None


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this host")
def test_wrappers_of_both_precisions_compile(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = [k for k in published(repository, TASKS) if isinstance(k, Published)]
    cache = tmp_path / "cache"
    assert build_only(kernels, cache, "sm_90") == 0
    broken = Published(label="broken", task=TASKS[0], source=SCALE, notes=())  # has no `scale`
    assert build_only([*kernels, broken], cache, "sm_90") == 1
    printed = capsys.readouterr().out
    assert "3 of 3 compile" in printed
    assert "broken does not compile" in printed
