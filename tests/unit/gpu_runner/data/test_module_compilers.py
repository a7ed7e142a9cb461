"""Which Python modules need a rehearsal of their calls, because they compile in them."""

from __future__ import annotations

import pytest

from gpu_runner.data.static import compiles_at_calls

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


@pytest.mark.parametrize("source", AT_IMPORT.values(), ids=AT_IMPORT)
def test_what_compiles_when_it_is_imported_needs_no_rehearsal(source: str) -> None:
    assert not compiles_at_calls(source)


@pytest.mark.parametrize("source", AT_CALLS.values(), ids=AT_CALLS)
def test_what_may_compile_in_a_call_is_rehearsed(source: str) -> None:
    assert compiles_at_calls(source)
