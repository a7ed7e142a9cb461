"""For which kind of device a source is, where its author names none."""

from __future__ import annotations

import pytest

from gpu_runner.data.static import gpu_reason, usual_kind
from gpu_runner.data.verdict import DeviceKind, Language


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import triton\nimport triton.language as tl\n", "imports triton"),
        ("from triton import jit\n", "imports triton"),
        ("def forward(x):\n    import triton\n", "imports triton"),
        ("import cupy as cp\n", "imports cupy"),
        ("import cutlass.cute as cute\n", "imports cutlass"),
        ("from cuda import tile\n", "imports cuda.tile"),
        ("import tilelang\n", "imports tilelang"),
        ("from numba import cuda\n@cuda.jit\ndef f(): ...\n", "imports numba.cuda"),
        ("import numba\n@numba.cuda.jit\ndef f(): ...\n", "uses numba.cuda"),
        ("a = load_inline('a', cpp_sources=c, cuda_sources=[k])\n", "compiles cuda_sources"),
        ("import torch\nx = torch.zeros(3, device='cuda')\n", "names the device 'cuda'"),
        ("import torch\nx = torch.device('cuda:0')\n", "names the device 'cuda'"),
        ("def forward(x):\n    return x.to('cuda')\n", "names the device 'cuda'"),
        ("def forward(x):\n    return x.cuda()\n", "calls .cuda()"),
        ("import torch\ns = torch.cuda.Stream()\n", "uses torch.cuda"),
    ],
)
def test_a_module_that_needs_a_gpu_says_why(source: str, reason: str) -> None:
    assert gpu_reason(source) == reason
    assert usual_kind(Language.PYTHON, source) is DeviceKind.CUDA


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef forward(A, B, N):\n    return A + B\n",
        "import numba\n@numba.njit\ndef f(x): ...\n",
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n",
        "import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'\ntorch.zeros(3).to(d)\n",
        "import torch\nif torch.cuda.is_available():\n    x = torch.zeros(3).cuda()\n",
        "a = load_inline('a', cpp_sources=c, cuda_sources=[])\n",
        "a = load_inline('a', cpp_sources=c, cuda_sources='')\n",
        "# import triton\n'''import cupy'''\n",
        "def forward(x):\n    if x.is_cuda:\n        return x.cuda()\n    return x\n",
        "no Python at all: import triton\n",
    ],
)
def test_a_module_that_can_do_without_is_for_a_cpu(source: str) -> None:
    assert gpu_reason(source) == ""
    assert usual_kind(Language.PYTHON, source) is DeviceKind.CPU


def test_what_is_compiled_is_for_the_device_of_its_language() -> None:
    assert usual_kind(Language.CUDA, "") is DeviceKind.CUDA
    assert usual_kind(Language.CPP, "import triton") is DeviceKind.CPU
