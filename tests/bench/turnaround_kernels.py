"""Kernels that people submit: good ones, wrong ones, slow ones, and some that never end."""

from __future__ import annotations

import secrets

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Verdict
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
    "crashing": "*(volatile float*)8 = A[i] + B[i] + C[i];",
    "slow": _SLOW,
    # Of memory that it was given: nvcc leaves out a loop over a volatile variable of its own.
    "hanging": "volatile const float* a = A; while (*a == *a) {} C[i] = A[i] + B[i];",
}
_PLAIN = """import torch

SEEN = NUMBER

def forward(A, B, N):
    return torch.add(A, B, out=torch.empty_like(A))
"""
_TRITON = """import torch
import triton
import triton.language as tl

TUNED
@triton.jit
def add_NUMBER(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n)
    tl.store(out + at, total, mask=at < n)

def forward(A, B, N):
    out = torch.empty_like(A)
    add_NUMBER[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](A, B, out, GIVEN)
    return out
"""
_TUNED = """@triton.autotune(
    [triton.Config({"BLOCK": b}) for b in (128, 256, 512, 1024)], key=["n"]
)"""
_INLINE = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
BODY
// NUMBER
"""
own = load_inline("own_add", WORDS, functions=["run"])

def forward(A, B, N):
    return own.run(A, B)
'''
_INLINE_BODIES = {
    DeviceKind.CPU: """torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  auto x = a.data_ptr<float>(), y = b.data_ptr<float>(), z = c.data_ptr<float>();
  for (long i = 0; i < a.numel(); ++i) z[i] = x[i] + y[i];
  return c;
}""",
    DeviceKind.CUDA: """__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  int n = a.numel();
  add<<<(n + 255) / 256, 256>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}""",
}
_DECLARED = '"torch::Tensor run(torch::Tensor a, torch::Tensor b);", SOURCE'
EXPECTED = {
    "good": Verdict.CORRECT,
    "python": Verdict.CORRECT,
    "tuned": Verdict.CORRECT,
    "inline": Verdict.CORRECT,
    "wrong": Verdict.WRONG_RESULT,
    "broken": Verdict.COMPILE_ERROR,
    "crashing": Verdict.RUNTIME_ERROR,
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
    """A kernel for vector_add that is wrong or slow, crashes, does not compile, or never ends."""
    frame = _CUDA if kind is DeviceKind.CUDA else _CPP
    source = frame.replace("BODY", _BODIES[sort]).replace("TIMES", _TIMES[kind])
    return Kernel(sort, "vector_add", source.replace("BLOCKS", _ONE if sort == "slow" else _MANY))


def python_kernel(kind: DeviceKind) -> Kernel:
    """A module that nobody has seen: of PyTorch's operators on a CPU, of Triton's on a GPU."""
    source = _PLAIN
    if kind is DeviceKind.CUDA:
        source = _TRITON.replace("TUNED\n", "").replace("GIVEN", "N, BLOCK=1024")
    return _python("python", source)


def tuned_kernel(kind: DeviceKind) -> Kernel:
    """The same for a GPU, with four tiles to choose from."""
    assert kind is DeviceKind.CUDA
    return _python("tuned", _TRITON.replace("TUNED", _TUNED).replace("GIVEN", "N"))


def inline_kernel(kind: DeviceKind) -> Kernel:
    """A module whose extension nobody has compiled."""
    source = _INLINE.replace("BODY", _INLINE_BODIES[kind])
    words = "SOURCE" if kind is DeviceKind.CPU else _DECLARED
    return _python("inline", source.replace("WORDS", words))


def _python(name: str, source: str) -> Kernel:
    number = str(secrets.randbelow(10**9))
    return Kernel(name, "vector_add", source.replace("NUMBER", number), Language.PYTHON)


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
