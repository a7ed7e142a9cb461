"""Kernels that people submit: good ones, wrong ones, slow ones, and some that never end."""

from __future__ import annotations

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import DeviceKind, Direction, Verdict
from tests.bench.site import Kernel

GOOD = ("vector_add", "dot_product", "softmax", "rms_norm", "spmv_csr", "matrix_mul")
"""Tasks of the c ABI whose tuned kernels are submitted in turn."""
TORCH = "layernorm"
REPEATED = ("vector_add", "softmax")
"""Together they have workloads of 20 us and more, and shorter ones, on every device."""
MIXED = {"good": 30, "wrong": 12, "broken": 10, "slow": 5, "hanging": 3}
"""What 60 people submit at once."""

_CUDA = """__global__ void add(const float* A, const float* B, float* C, int N) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < N; i += (long long)gridDim.x * blockDim.x) { BODY }
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    add<<<BLOCKS, 256>>>(A, B, C, N);
}
"""
_CPP = """extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
    for (int i = 0; i < N; ++i) { BODY }
}
"""
_MANY, _ONE = "(unsigned)((N + 255LL) / 256)", "1"
_SLOW = "volatile float sum; for (int k = 0; k < TIMES; ++k) sum = A[i] + B[i]; C[i] = sum;"
_TIMES = {DeviceKind.CUDA: "8", DeviceKind.CPU: "500"}  # some 0.1 s for the largest workload
_BODIES = {
    "wrong": "C[i] = A[i] - B[i];",
    "broken": "C[i] = A[i] + ;",
    "slow": _SLOW,
    # Of memory that it was given: nvcc leaves out a loop over a volatile variable of its own.
    "hanging": "volatile const float* a = A; while (*a == *a) {} C[i] = A[i] + B[i];",
}
EXPECTED = {
    "good": Verdict.CORRECT,
    "wrong": Verdict.WRONG_RESULT,
    "broken": Verdict.COMPILE_ERROR,
    "slow": Verdict.CORRECT,
    "hanging": Verdict.TIME_LIMIT,
}
"""The verdict that each sort of kernel must get."""


def good_kernel(task: str, kind: DeviceKind) -> Kernel:
    """The tuned kernel that comes with a task."""
    found = find_task(task)
    [path] = [
        kernel.path
        for kernel in found.kernels
        if kernel.language is kind.language
        and kernel.agent.endswith("-good")
        and kernel.direction is Direction.FORWARD
    ]
    return Kernel("good", task, found.files[path])


def odd_kernel(sort: str, kind: DeviceKind) -> Kernel:
    """A kernel for vector_add that is wrong, does not compile, is slow, or never ends."""
    frame = _CUDA if kind is DeviceKind.CUDA else _CPP
    source = frame.replace("BODY", _BODIES[sort]).replace("TIMES", _TIMES[kind])
    return Kernel(sort, "vector_add", source.replace("BLOCKS", _ONE if sort == "slow" else _MANY))


def mixed_kernels(kind: DeviceKind) -> list[Kernel]:
    """All of `MIXED`, the sorts spread evenly among each other."""
    places: list[tuple[float, Kernel]] = []
    for sort, count in MIXED.items():
        for number in range(count):
            kernel = (
                good_kernel(GOOD[number % len(GOOD)], kind)
                if sort == "good"
                else odd_kernel(sort, kind)
            )
            places.append(((number + 0.5) / count, kernel))
    return [kernel for _, kernel in sorted(places, key=lambda pair: pair[0])]
