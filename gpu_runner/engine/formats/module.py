"""Import a task's file from its path; only ever done inside a jailed process."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from gpu_runner.engine.problem import ProblemError

_NORMALISATIONS = ("batch_norm", "instance_norm")
_MOMENTUM_POSITION = 6  # of F.batch_norm and F.instance_norm


@contextmanager
def task_code(what: str) -> Iterator[None]:
    """Turn whatever a task's own code raises into a `ProblemError` that says where."""
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(f"{what}: {type(error).__name__}: {error}") from error


def import_file(path: Path, name: str) -> ModuleType:
    """Import `path` as the module `name`.

    Calls of batch_norm and instance_norm get a momentum of 0: they do the same work, and leave the
    running statistics that they are given as they were, because inputs must not change.
    """
    if not path.is_file():
        raise ProblemError(f"the task has no {path.name}")
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and torch.compile look modules up there
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    with task_code(path.name):
        tree = _Still().visit(ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))
        code = compile(ast.fix_missing_locations(tree), str(path), "exec")
        exec(code, module.__dict__)  # noqa: S102  this process is the jail for it
    return module


def member(module: ModuleType, name: str) -> Any:
    """A module's member; raises `ProblemError` where it is missing."""
    found = getattr(module, name, None)
    if found is None:
        raise ProblemError(f"{Path(str(module.__file__)).name} does not define {name}")
    return found


class _Still(ast.NodeTransformer):
    """Sets the momentum of normalisations to 0."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not _normalises(node.func) or any(isinstance(a, ast.Starred) for a in node.args):
            return node
        zero = ast.copy_location(ast.Constant(0.0), node)
        if len(node.args) > _MOMENTUM_POSITION:
            node.args[_MOMENTUM_POSITION] = zero
        elif all(keyword.arg is not None for keyword in node.keywords):
            others = [keyword for keyword in node.keywords if keyword.arg != "momentum"]
            node.keywords = [*others, ast.keyword("momentum", zero)]
        return node


def _normalises(function: ast.expr) -> bool:
    """Whether this names torch.nn.functional's function, not a layer of the same name."""
    match function:
        case ast.Name(id=name):
            return name in _NORMALISATIONS
        case ast.Attribute(value=ast.Name(id="F" | "functional"), attr=name):
            return name in _NORMALISATIONS
        case ast.Attribute(value=ast.Attribute(attr="functional"), attr=name):
            return name in _NORMALISATIONS
    return False
