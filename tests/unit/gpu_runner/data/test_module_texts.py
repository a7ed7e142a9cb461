"""What the text of a Python module tells: what it compiles, imports, and which device it is for."""

from __future__ import annotations

import pytest

from gpu_runner.data.packages import imported_packages
from gpu_runner.data.static import compiles_at_calls, gpu_reason, usual_kind
from gpu_runner.data.verdict import DeviceKind, Language

IMPORT = "from torch.utils.cpp_extension import load_inline\n"
OWN = "own = load_inline('own', 'int f();', functions=['f'])\n"
CALL = "def forward(x):\n    return own.f(x)\n"

AT_IMPORT = {
    "nothing": "import torch\ndef forward(input, N, C):\n    return torch.softmax(input, -1)\n",
    "by name": IMPORT + OWN + CALL,
    "in a class": IMPORT + f"class Own:\n    {OWN}",
    "in the module": f"import torch.utils.cpp_extension\ntorch.utils.cpp_extension.{OWN[6:]}",
}
AT_CALLS = {
    "triton": "import triton\n",
    "compiled": "import torch\nf = torch.compile(lambda x: x)\n",
    "in a function": f"{IMPORT}def forward(x):\n    {OWN}    return own.f(x)\n",
    "in a method": f"{IMPORT}class ModelNew:\n    def __init__(self):\n        {OWN}",
    "in a lambda": f"{IMPORT}forward = lambda x: {OWN[6:]}",
    "in a condition": f"{IMPORT}import torch\nif torch.cuda.device_count():\n    {OWN}{CALL}",
    "in another condition": f"{IMPORT}import os\nif os.cpu_count():\n    {OWN}{CALL}",
    "in a choice": f"{IMPORT}import sys\nown = {OWN[6:-1]} if sys.flags.debug else None\n",
    "in an attempt": f"{IMPORT}try:\n    {OWN}except RuntimeError:\n    own = None\n",
    "of another text": f"{IMPORT}A = 'a' if torch.cuda.is_available() else 'b'\n{OWN}{CALL}",
    "another name": f"{IMPORT.strip()} as made\n{OWN.replace('load_inline', 'made')}",
    "handed on": f"{IMPORT}make = load_inline\n",
    "another module": "from torch.utils import cpp_extension as e\nown = e.load_inline('o', '')\n",
    "another loader": "from torch.utils import cpp_extension\nown = cpp_extension.load('o', [])\n",
    "no Python": "def load_inline(:\n",
}


@pytest.mark.parametrize("name", [*AT_IMPORT, *AT_CALLS])
def test_what_may_compile_in_a_call_is_rehearsed(name: str) -> None:
    assert compiles_at_calls((AT_IMPORT | AT_CALLS)[name]) is (name in AT_CALLS)


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("import torch\nimport triton\nimport triton.language as tl\n", ("torch", "triton")),
        ("from numba import njit\n", ("numba",)),
        ("import cutlass.cute as cute\n", ("cutlass",)),
        ("import cuda.tile as ct\n", ("cuda.tile",)),
        ("from cuda import tile\n", ("cuda.tile",)),
        ("from scipy.linalg import blas; import numpy as np\n", ("numpy", "scipy")),
        ("with open('x'):\n    import cupy\n", ("cupy",)),
        ("import tritonx\n# import numba\nx = 'import torch'\n", ()),
        ("import cuda\n", ()),
        ("import torch, numba as nb, math\n", ("torch", "numba")),
        ("import math, \\\n    os\nfrom math import triton\n", ()),
        ("from .triton import x\n", ()),
        ("this is no Python: import triton\n", ()),
        ("x = " + "(" * 5000 + "1" + ")" * 5000 + "\nimport numba\n", ()),
        # what may not happen
        ("try:\n    import numba\nexcept ImportError:\n    numba = None\n", ()),
        ("import sys\nif sys.platform == 'x':\n    import numba\n", ()),
        ("def forward(x):\n    import numba\n    return x\n", ()),
        ("class A:\n    def f(self):\n        import numba\n", ()),
    ],
)
def test_imports_are_seen_by_name(source: str, packages: tuple[str, ...]) -> None:
    assert imported_packages(source) == packages


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
