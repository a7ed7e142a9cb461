"""Static rules for Python modules: each finds what it is for, and leaves honest modules alone."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import (
    MODULE_RULES,
    module_suspicions,
    only_calls_libraries,
)

TASK = find_task("softmax")
FREE = dataclasses.replace(TASK, libraries=True)
OWN = "import triton\n@triton.jit\ndef kernel(): pass\n"

HOSTILE = [
    ("python-library", "import torch\ndef forward(x): return x\n", 1),
    ("python-library", f"{OWN}import torch\ny = torch.softmax(1)\n", 5),
    ("python-library", f"{OWN}import torch.nn.functional as F\ny = F.new_thing(1)\n", 5),
    ("python-library", f"{OWN}def forward(x, w):\n    return x @ w\n", 5),
    ("python-library", f"{OWN}import torch\ny = torch.ops.aten.mm(a, b)\n", 5),
    ("python-patches", "import time\ntime.perf_counter_ns = lambda: 0\n", 2),
    ("python-patches", "import torch\nsetattr(torch.Tensor, 'copy_', None)\n", 2),
    ("python-patches", "import torch as t\ndel t.empty\n", 2),
    ("python-patches", "import torch as t\nt.distributed.is_available = print\n", 2),
    ("python-patches", "import torch as t\nt.empty = t.distributed.all_gather\n", 2),
    ("python-patches", "import torch.distributed as d\nd.torch.empty = d.torch.zeros\n", 2),
    ("python-patches", "import os\nos.environ['A'] = 'b'\nos.x['A'] = 1\n", 3),
    ("python-interpreter", "from sys import modules\n", 1),
    ("python-interpreter", "import gpu_runner.engine.runner.runner\n", 1),
    ("python-interpreter", "def f(g): return g.__globals__\n", 1),
    ("python-interpreter", "eval('1')\n", 1),
    ("python-interpreter", "import builtins\nb = builtins\nb.exec('1')\n", 2),
    ("python-interpreter", "import builtins\nbuiltins.exec('1')\n", 2),
    ("python-interpreter", "from builtins import exec as run\n", 1),
    *(
        ("python-interpreter", f"import importlib as i\ndef f(n):{line}\n", 2)
        for line in (
            " p = i.import_module(n); p.mm(p.__version__)",
            " f.p = i.import_module(n)",
            " global p; p = i.import_module(n)",
            " p, q = i.import_module(n)",
            " return i.import_module(n)",
        )
    ),
    ("python-interpreter", "import importlib as i\np = i.import_module(n)\n", 2),
    ("python-interpreter", "import importlib as i\nx = i.import_module(n).__version__\n", 2),
    ("python-state", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n", 2),
    ("python-state", "import torch\nlib = torch.library.Library('aten', 'IMPL')\n", 2),
    ("python-state", "from torch.library import impl as i\n@i('aten::mm', 'CPU')\ndef f(): 1\n", 2),
    ("python-processes", "from concurrent.futures import ProcessPoolExecutor\n", 1),
    ("python-processes", "import os\nos.fork()\n", 2),
    ("python-files", "open('/tmp/x')\n", 1),
    ("python-files", "import torch\ntorch.save(1, 'x')\n", 2),
    ("python-files", "from pathlib import Path\nx = Path(__file__).read_text()\n", 2),
    ("python-files", "x = open(name, mode='rb')\n", 1),
    ("python-network", "import urllib.request\n", 1),
    ("python-sleeps", "from time import sleep\nsleep(1)\n", 1),
]

HONEST = [
    """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 128})], key=["C"])
@triton.jit
def softmax(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * C + tl.arange(0, BLOCK))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * C + tl.arange(0, BLOCK), v / tl.sum(v, 0))

def forward(input, N, C):
    out = torch.empty_like(input)
    softmax[(N,)](out, input.contiguous().view(N, C), C)
    return out
""",
    """
import numpy as np
from numba import njit, prange

@njit(parallel=True, cache=True)
def rows(out, x):
    for r in prange(x.shape[0]):
        out[r] = np.exp(x[r] - x[r].max())
        out[r] /= out[r].sum()

def forward(input, N, C):
    import torch
    out = torch.empty(N, C)
    rows(out.numpy(), input.numpy())
    return out
""",
    '''
import os
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline
os.environ.setdefault("CUDA_HOME", "/usr/local/cuda")

source = """
#include <torch/extension.h>
torch::Tensor softmax(torch::Tensor x) {
  auto out = torch::empty_like(x);
  return out;
}
"""

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = load_inline("own", source, functions=["softmax"])
        self.linear = nn.Linear(2, 3)

    def forward(self, x):
        return self.own.softmax(x)
''',
]

HONEST += [
    """
import torch
import torch.distributed as dist
import triton
triton.knobs.autotuning.verbose if hasattr(triton, "knobs") else None

@triton.jit
def rows(x, y, n):
    pass

def forward(input, N, C):
    torch.cuda.set_device(0)
    if torch.compiler.is_compiling() or isinstance(input, dist.tensor.DTensor):
        return input
    lowest = torch.finfo(input.dtype).min
    padded = torch.nn.functional.pad(input, (0, 1), value=lowest)
    rows[(N,)](padded, input, C)
    return padded[:, :-1]

def test():
    torch.manual_seed(0)

if __name__ == "__main__":
    import subprocess
    subprocess.run(["nvidia-smi"])
    with open("times.csv") as file:
        print(file.read(), torch.softmax(torch.randn(2, 3), -1))
""",
    """
import os
import tempfile
import torch
from torch.utils.cpp_extension import load
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "a.cpp"), "w") as file:
    file.write("int x;")
own = load(name="own", sources=[os.path.join(folder, "a.cpp")])

def forward(input, N, C):
    return own.rows(torch.cat([input, input]))
""",
    """
import torch
import triton

@triton.jit
def kernel(): pass

@torch.library.custom_op("_own::rows", mutates_args=())
def rows(x: torch.Tensor) -> torch.Tensor:
    kernel[(1,)]()
    return x

@rows.register_fake
def _(x):
    return torch.empty_like(x)

own = torch.library.Library("own", "FRAGMENT")
own.define("scale(Tensor x) -> Tensor")

def forward(input, N, C):
    return torch.ops._own.rows(input)
""",
    """
import cupy as cp
import torch
add = cp.RawKernel("extern \\"C\\" __global__ void add() {}", "add")

def forward(A, B, N):
    C = torch.empty_like(A)
    add((1,), (1,), (cp.asarray(A), cp.asarray(C)))
    return C
""",
    """
import torch
from torch.utils.cpp_extension import load_inline
load_inline("own", "TORCH_LIBRARY(own, m) { m.def(name, &add); }", is_python_module=False)

def forward(A, B, N):
    return torch.ops.own.add(A, B)
""",
]


@pytest.mark.parametrize(("rule", "source", "line"), HOSTILE)
def test_each_rule_finds_what_it_is_for(rule: str, source: str, line: int) -> None:
    found = [s.line for s in module_suspicions(source, TASK) if s.reason.startswith(f"{rule}: ")]
    assert line in found


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in MODULE_RULES} == {rule for rule, _, _ in HOSTILE}
    assert all(rule.looks_for and "\n" not in rule.looks_for for rule in MODULE_RULES)


def test_a_program_that_an_import_would_run_is_read() -> None:
    guard = 'if __name__ == "__main__":\n    eval("1")\n'
    for bound in (
        "__name__ = '__main__'\n",
        "import os as __name__\n",
        "for __name__ in 'ab': 0\n",
    ):
        assert module_suspicions(bound + guard, FREE)
    assert module_suspicions(f"{guard}else:\n    exec('1')\n", FREE)
    assert not module_suspicions(guard, FREE)


@pytest.mark.parametrize("source", HONEST)
def test_honest_modules_are_left_alone(source: str) -> None:
    assert module_suspicions(source, TASK) == ()
    assert only_calls_libraries(source, TASK, {}) == ""


def test_plain_torch_is_fine_where_the_task_allows_libraries() -> None:
    source = "import torch\ndef forward(input, N, C):\n    return torch.softmax(input, -1)\n"
    assert module_suspicions(source, FREE) == ()
    assert only_calls_libraries(source, FREE, {}) == ""
    assert "only calls libraries" in only_calls_libraries(source, TASK, {})


def test_cpp_in_a_string_is_read_as_an_extension_is() -> None:
    text = '"""\n#include <torch/extension.h>\nvoid f() { popen("x", mode); }\n"""'
    source = f"from torch.utils.cpp_extension import load_inline\nown = load_inline('o', {text})\n"
    found = [(s.line, s.reason.split(":")[0]) for s in module_suspicions(source, TASK)]
    assert found == [(4, "processes")]


def test_what_is_no_python_is_said_and_not_executed() -> None:
    assert [s.line for s in module_suspicions("def (", TASK)] == [None]
    assert only_calls_libraries("(" * 10_000, TASK, {}) == ""
