"""Which packages for Python kernels a source imports in any case."""

from __future__ import annotations

import pytest

from gpu_runner.data.packages import imported_packages


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
    ],
)
def test_imports_are_seen_by_name(source: str, packages: tuple[str, ...]) -> None:
    assert imported_packages(source) == packages


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import numba\nexcept ImportError:\n    numba = None\n",
        "import sys\nif sys.platform == 'x':\n    import numba\n",
        "def forward(x):\n    import numba\n    return x\n",
        "class A:\n    def f(self):\n        import numba\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numba\n",
    ],
)
def test_an_import_that_may_not_happen_is_not_needed(source: str) -> None:
    assert imported_packages(source) == ()
