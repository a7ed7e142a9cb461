"""Ways to prepare a Python module, in their order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.module import ModuleRecipe, module_recipes, ninja
from gpu_runner.supervisor.device.toolchain import TORCH_HEADERS
from gpu_runner.supervisor.host.config import SupervisorConfig

PLAIN = "import torch\n\ndef forward(x):\n    return torch.relu(x)\n"
INLINE = """
from torch.utils.cpp_extension import load_inline

own = load_inline("own", "torch::Tensor f(torch::Tensor x) { return x; }", functions=["f"])


def forward(x):
    return own.f(x)
"""


def recipes(source: str, config: SupervisorConfig) -> tuple[ModuleRecipe, ...]:
    return module_recipes(Solution(source=source, language=Language.PYTHON), config)


def test_only_what_compiles_extensions_has_two_ways(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    (plain,) = recipes(PLAIN, config)
    slim, full = recipes(INLINE, config)
    assert "CPATH" not in plain.environment
    assert "CPATH" not in full.environment
    assert slim.environment["CPATH"] == str(TORCH_HEADERS)
    assert slim.key() != full.key()


@pytest.mark.slow
@pytest.mark.skipif("CI" not in os.environ and not ninja(), reason="this host has no ninja")
def test_few_headers_do_for_load_inline(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    built = build(recipes(INLINE, config)[0], config)
    assert built.report.ok, built.report.log
