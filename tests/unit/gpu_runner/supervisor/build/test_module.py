"""Ways to prepare a Python module, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data import archive
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.module import ModuleRecipe, module_recipe
from gpu_runner.supervisor.host.config import SupervisorConfig

PLAIN = "import torch\n\ndef forward(x):\n    return torch.relu(x)\n"
INLINE = """
from torch.utils.cpp_extension import load_inline

own = load_inline("own", "torch::Tensor f(torch::Tensor x) { return x; }", functions=["f"])


def forward(x):
    return own.f(x)
"""


def recipe(source: str, config: SupervisorConfig) -> ModuleRecipe:
    return module_recipe(Solution(source=source, language=Language.PYTHON), config)


def test_comments_and_layout_are_no_part_of_what_is_compiled(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    plain, other = recipe(PLAIN, config), recipe(PLAIN.replace("relu", "exp"), config)
    commented = recipe(f"# A comment\n\n{PLAIN}# another\n", config)
    assert plain.key() == commented.key() != other.key()
    assert plain.form != commented.form  # which lines of the source its lines are


@pytest.mark.thorough(reason="test_python_kernels.py compiles an extension, too")
def test_an_extension_is_compiled_once_and_outside_of_the_module(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    names = ("own", "other")
    built = [build(recipe(INLINE.replace('"own"', f'"{name}"'), config), config) for name in names]
    assert all(each.report.ok for each in built), built[0].report.log
    first, second = (archive.read(each.library.read_bytes()) for each in built if each.library)
    (library,) = (name for name in first if archive.is_built(name))
    assert library in second  # compiled for the first name, and loaded under it
    assert library.endswith("/own.so")
