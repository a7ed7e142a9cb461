"""Which packages for Python kernels a source imports."""

from __future__ import annotations

import pytest

from gpu_runner.data.packages import imported_packages


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("import torch\nimport triton\nimport triton.language as tl\n", ("torch", "triton")),
        ("from numba import njit\n", ("numba",)),
        ("    import cutlass.cute as cute\n", ("cutlass",)),
        ("import cuda.tile as ct\n", ("cuda.tile",)),
        ("import tritonx\n# import numba\nx = 'import torch'\n", ()),
        ("import cuda\n", ()),
        ("import torch, numba as nb, math\n", ("torch", "numba")),
        ("import math, \\\n    os\nfrom math import triton\n", ()),
    ],
)
def test_imports_are_seen_by_name(source: str, packages: tuple[str, ...]) -> None:
    assert imported_packages(source) == packages
