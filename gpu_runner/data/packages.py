"""The packages in which Python kernels are written, and which of them a source imports."""

from __future__ import annotations

from types import MappingProxyType

from gpu_runner.data.python_source import imported_names, is_within, tree_of, unconditional

PACKAGES = MappingProxyType(
    {
        "torch": ("torch",),
        "triton": ("triton",),
        "numba": ("numba",),
        "numpy": ("numpy",),
        "scipy": ("scipy",),
        "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
        "cutlass": ("nvidia-cutlass-dsl",),
        "cuda.tile": ("cuda-tile",),
        "tilelang": ("tilelang",),
    }
)
"""By the name that a kernel imports, the packages that bring it, the usual one first."""

ABSENT = ""
"""What a runner says in place of a package's version where it has none."""


def imported_packages(source: str) -> tuple[str, ...]:
    """Those of `PACKAGES` that each import of a source needs, in the order of that table."""
    tree = tree_of(source)
    names = list(imported_names(unconditional(tree))) if tree else []
    return tuple(name for name in PACKAGES if any(is_within(each, name) for each in names))
