"""Imports point one way, and a process imports no more than its role allows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FORBIDDEN = {
    "gpu_runner.data": {"torch", "numpy", "django", "redis", "rq"},
    "gpu_runner.supervisor": {"torch", "numpy", "django", "redis", "rq"},
    "gpu_runner.daemon": {"torch", "numpy", "django", "channels"},
    "gpu_runner.__main__": {"torch", "numpy", "django"},
    "runs_app.optimiser.evolve": {"torch", "numpy", "django", "redis", "rq", "openai"},
    "kbench_client.main": {"torch", "numpy", "django", "redis", "rq", "gpu_runner", "mcp"},
    "runs_app.optimiser.llm": {"torch", "django", "redis", "rq"},
}


def modules_of(package: str) -> list[str]:
    """Dotted names of a package's modules, or the name itself for a module."""
    folder = ROOT / package.replace(".", "/")
    if not folder.is_dir():
        return [package]
    paths = [path.relative_to(ROOT).with_suffix("") for path in sorted(folder.rglob("*.py"))]
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


@pytest.mark.parametrize("package", list(FORBIDDEN))
def test_a_layer_imports_only_what_it_may(package: str) -> None:
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules_of(package)!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) & FORBIDDEN[package] == set()


_ORACLE = """
import json, sys
from gpu_runner.engine.oracle import oracle
from gpu_runner.engine.device import torch_settings
torch_settings.settle()
torch_settings.settle_reproducibly()
print(json.dumps([oracle.torch.get_deterministic_debug_mode(), sorted(sys.modules)]))
"""


def test_an_oracle_starts_without_the_compiler_of_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    warns, modules = json.loads(done.stdout)
    assert warns == 1
    assert not {"torch._dynamo", "torch._inductor.config", "django", "redis", "rq"} & set(modules)


def test_ninja_is_django_ninja() -> None:
    from ninja import NinjaAPI

    assert NinjaAPI.__module__.startswith("ninja")
