"""The packages in which Python kernels are written, as they are installed on this host."""

from __future__ import annotations

import functools
import importlib.metadata

from gpu_runner.data.packages import PACKAGES


@functools.cache
def python_packages() -> dict[str, str]:
    """Versions of those that are installed, by the name that a kernel imports."""
    found = {}
    for name, package in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
