"""Static rules for Python modules: each finds what it is for, and leaves honest modules alone."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import module_suspicions, only_calls_libraries

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
    ("python-patches", "import os\nos.environ['A'] = 'b'\nos.x['A'] = 1\n", 3),
    ("python-interpreter", "from sys import modules\n", 1),
    ("python-interpreter", "import gpu_runner.engine.runner.runner\n", 1),
    ("python-interpreter", "def f(g): return g.__globals__\n", 1),
    ("python-interpreter", "eval('1')\n", 1),
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
import os
from pathlib import Path
import tempfile
from torch.utils.cpp_extension import load_inline
folder = Path(tempfile.gettempdir()) / "build"
os.makedirs(folder, exist_ok=True)
(folder / "rows.h").write_text("#pragma once")
own = load_inline("own", "int x;", functions=["rows"], build_directory=folder)

def forward(input, N, C):
    return own.rows(input)
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


@pytest.mark.parametrize("source", HONEST)
def test_honest_modules_are_left_alone(source: str) -> None:
    assert module_suspicions(source, TASK) == ()
    assert only_calls_libraries(source, TASK) == ""


def test_plain_torch_is_fine_where_the_task_allows_libraries() -> None:
    source = "import torch\ndef forward(input, N, C):\n    return torch.softmax(input, -1)\n"
    assert module_suspicions(source, FREE) == ()
    assert only_calls_libraries(source, FREE) == ""
    assert "only calls libraries" in only_calls_libraries(source, TASK)


def test_cpp_in_a_string_is_read_as_an_extension_is() -> None:
    text = '"""\n#include <torch/extension.h>\nvoid f() { popen("x", mode); }\n"""'
    source = f"from torch.utils.cpp_extension import load_inline\nown = load_inline('o', {text})\n"
    found = [(s.line, s.reason.split(":")[0]) for s in module_suspicions(source, TASK)]
    assert found == [(4, "processes")]


def test_what_is_no_python_is_said_and_not_executed() -> None:
    assert [s.line for s in module_suspicions("def (", TASK)] == [None]
    assert only_calls_libraries("(" * 10_000, TASK) == ""
