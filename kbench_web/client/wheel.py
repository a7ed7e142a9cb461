"""The client as a wheel, built from the site's own files, so that the two always fit.

It holds the client and the engine: no task, no hidden workload, nothing of the site.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from django.conf import settings

PACKAGES = ("kbench_client", "gpu_runner")
_BESIDE = ("pyproject.toml", "README.md", "LICENSE")
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_TIMEOUT_S = 120


class WheelError(RuntimeError):
    """The wheel cannot be built here; says why."""


@functools.cache
def version() -> str:
    """The release, and after `+` what its files are: it changes with any of them."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"{path.relative_to(settings.BASE_DIR)}\0".encode() + path.read_bytes())
    return f"{_release()}+{digest.hexdigest()[:8]}"


def name() -> str:
    """Name of the wheel's file."""
    return f"kbench-{version()}-py3-none-any.whl"


def wheel() -> Path:
    """The wheel in the data folder, built if it is not there yet; raises `WheelError`."""
    folder = Path(settings.DATA_DIR) / "client"
    path = folder / name()
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        _build(Path(draft))
        # Two that build at once write the same file; who comes second replaces it as a whole.
        (Path(draft) / name()).replace(path)
    for other in folder.glob("*.whl"):
        if other != path:
            other.unlink(missing_ok=True)
    return path


def _build(folder: Path) -> None:
    """Build in a copy, because the build tool writes beside its sources."""
    tree = folder / "tree"
    tree.mkdir()
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(settings.BASE_DIR) / package, tree / package, ignore=ignored)
    for other in _BESIDE:
        shutil.copy(Path(settings.BASE_DIR) / other, tree / other)
    project = tree / "pyproject.toml"
    line = f'\nversion = "{_release()}"\n'
    project.write_text(project.read_text().replace(line, f'\nversion = "{version()}"\n', 1))
    command = [sys.executable, "-c", _BUILD, str(folder)]
    try:
        done = subprocess.run(
            command, cwd=tree, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise WheelError(f"building took more than {_TIMEOUT_S} s") from None
    if done.returncode or not (folder / name()).exists():
        raise WheelError((done.stderr or done.stdout)[-500:])


def _release() -> str:
    document = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())
    return str(document["project"]["version"])


def _sources() -> list[Path]:
    base = Path(settings.BASE_DIR)
    found = [path for package in PACKAGES for path in (base / package).rglob("*")]
    kept = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return [*sorted(kept), base / "pyproject.toml"]
