"""The packages in which Python kernels are written, and which of them a source imports."""

from __future__ import annotations

import re
from types import MappingProxyType

PACKAGES = MappingProxyType(
    {
        "torch": "torch",
        "triton": "triton",
        "numba": "numba",
        "cutlass": "nvidia-cutlass-dsl",
        "cuda.tile": "cuda-tile",
    }
)
"""By the name that a kernel imports, the package that brings it."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)|import[ \t]+([\w., \t]+))", re.MULTILINE)


def imported_packages(source: str) -> tuple[str, ...]:
    """Those of `PACKAGES` that a source imports by name, in the order of that table."""
    names = set()
    for one, several in _IMPORT.findall(source):
        names |= {one} if one else {word.split()[0] for word in several.split(",") if word.split()}
    return tuple(
        package
        for package in PACKAGES
        if any(name == package or name.startswith(f"{package}.") for name in names)
    )
