"""Import a task's file from its path; only ever done inside a jailed process."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from gpu_runner.data.formats.source import sets_seed
from gpu_runner.engine.problem.problem import ProblemError
from gpu_runner.engine.problem.seeding import drawn_seed, follow

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


_FUNCTIONAL = "torch.nn.functional"
_DROPOUTS = "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout"
_SETTLED: dict[str, tuple[int, str, float | bool]] = {
    **dict.fromkeys(("batch_norm", "instance_norm"), (6, "momentum", 0.0)),
    **dict.fromkeys(_DROPOUTS.split(), (2, "training", False)),
    "scaled_dot_product_attention": (4, "dropout_p", 0.0),
}
"""Of functions of torch.nn.functional: an argument's position and name, and the value it gets."""


@contextmanager
def task_code(what: str) -> Iterator[None]:
    """Turn whatever a task's own code raises into a `ProblemError` that says where."""
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(f"{what}: {type(error).__name__}: {error}") from error


def import_file(
    path: Path, name: str, *, still: bool = True, changes: ast.NodeTransformer | None = None
) -> ModuleType:
    """Import `path` as the module `name`.

    With `still`, functions called by name do no dropout, and calls of batch_norm and instance_norm
    get a momentum of 0: they do the same work, and leave the running statistics that they are given
    as they were, because inputs must not change. Seeds that functions set follow from the draw's
    (`OwnSeeds`). `changes` are made beside these.
    """
    if not path.is_file():
        raise ProblemError(f"the task has no {path.name}")
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and torch.compile look modules up there
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    with task_code(path.name):
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for each in (
            OwnSeeds(),
            *([_Still(tree)] if still else []),
            *([changes] if changes else []),
        ):
            each.visit(tree)
        settle(module)
        code = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  this process is the jail for it
    return module


def member(module: ModuleType, name: str) -> object:
    """A module's member; raises `ProblemError` where it is missing."""
    found = getattr(module, name, None)
    if found is None:
        raise ProblemError(f"{Path(str(module.__file__)).name} does not define {name}")
    return found


class _Still(ast.NodeTransformer):
    """Sets arguments of torch.nn.functional's functions as `_SETTLED` says.

    Layers, and functions of the file itself, may be called the same: they stay as they are.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._modules, self._functions = {"F", "functional"}, dict[str, str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._read(node)

    def _read(self, node: ast.Import | ast.ImportFrom) -> None:
        of = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            name = of + alias.name
            if name == _FUNCTIONAL and alias.asname:
                self._modules.add(alias.asname)
            elif name.startswith(f"{_FUNCTIONAL}."):
                self._functions[alias.asname or alias.name] = alias.name

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        function = self._name(node.func)
        if function not in _SETTLED or any(isinstance(a, ast.Starred) for a in node.args):
            return node
        position, name, value = _SETTLED[function]
        settled = ast.copy_location(ast.Constant(value), node)
        if len(node.args) > position:
            node.args[position] = settled
        elif all(keyword.arg is not None for keyword in node.keywords):
            others = [keyword for keyword in node.keywords if keyword.arg != name]
            node.keywords = [*others, ast.keyword(name, settled)]
        return node

    def _name(self, called: ast.expr) -> str:
        """What it is called in torch.nn.functional; empty for everything else."""
        match called:
            case ast.Name(id=name):
                return self._functions.get(name, "")
            case ast.Attribute(value=ast.Name(id=of), attr=name) if of in self._modules:
                return name
            case ast.Attribute(value=ast.Attribute(attr="functional"), attr=name):
                return name
        return ""
