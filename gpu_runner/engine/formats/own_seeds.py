"""Seeds that a task's functions set themselves follow from those of a draw.

A reference that says `torch.manual_seed(0)` would give every call the same inputs, and a kernel
could remember the answer. Its own generators are seeded so, too. PyTorch's functions draw from the
default generator in their place: that one is there for each device.
"""

from __future__ import annotations

import ast
import importlib
from types import ModuleType

from gpu_runner.data.formats.source import sets_seed
from gpu_runner.engine.seeding import drawn_seed, follow

_DRAWN = "_kbench_drawn_seed"


def settle(module: ModuleType) -> None:
    """Give a module that is to be executed what `OwnSeeds` names."""
    vars(module)[_DRAWN] = drawn_seed
    follow(module)
    importlib.import_module("numpy.random")  # numpy loads it late, and it would miss its seed


class OwnSeeds(ast.NodeTransformer):
    """Changes what functions set; what a module sets once stays, as all that it makes does."""

    def __init__(self) -> None:
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if self._depth and sets_seed(node):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            drawn = ast.Call(ast.Name(_DRAWN, ast.Load()), values[:1], [])
            node.args, node.keywords = [ast.copy_location(drawn, node)], []
        elif self._depth and isinstance(node.func, ast.Attribute):
            node.keywords = [each for each in node.keywords if each.arg != "generator"]
        return node
