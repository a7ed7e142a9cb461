"""Complex tensors of a KernelBench file: inputs that it makes, and outputs that Model returns.

Kernels get and give real numbers alone, so such a file is refused when it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.source import functions

_DTYPES = frozenset({"complex32", "complex64", "complex128", "cfloat", "cdouble", "chalf"})
_MAKERS = frozenset({"complex", "polar", "view_as_complex"})
_REAL = frozenset({"abs", "absolute", "angle", "imag", "real", "view_as_real"})
_TRANSFORMS = frozenset({"fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2", "rfftn"})


def complex_errors(tree: ast.Module, forward: ast.FunctionDef, name: str) -> Iterator[DataError]:
    """Why the file `name` cannot serve, if its text says so; what cannot be told is not refused."""
    inputs = functions(tree).get("get_inputs")
    if inputs is not None:
        nodes = list(ast.walk(inputs))
        made = next((n for n in nodes if _attribute(n) in _DTYPES | _MAKERS), None)
        if made is not None and not any(_attribute(node) in _REAL for node in nodes):
            yield _error(name, "get_inputs() gives", made)
    for value in _returned(forward):
        if _is_complex(value):
            yield _error(name, "Model's forward() returns", value)


def _error(name: str, what: str, node: ast.AST) -> DataError:
    line = getattr(node, "lineno", None)
    reason = (
        f"{what} complex numbers, which no kernel has here: give torch.view_as_real() of them,"
        f" or real and imaginary parts (line {line})"
    )
    return DataError(name, reason, line)


def _attribute(node: ast.AST) -> str:
    """The last part of an attribute's name, such as `complex64` of `torch.complex64`."""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_complex(value: ast.expr) -> bool:
    """Whether this is the call of a function that gives complex tensors, whatever it takes."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="fft"), attr=attr)):
            return attr in _TRANSFORMS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=attr)):
            return attr in _MAKERS
    return False


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function returns, each item of a tuple; a variable that is set once as its value."""
    nodes = list(ast.walk(function))
    given: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    given.setdefault(target.id, []).append(node.value)
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            for value in _items(node.value):
                known = given.get(value.id, []) if isinstance(value, ast.Name) else []
                yield known[0] if len(known) == 1 else value


def _items(value: ast.expr) -> Iterable[ast.expr]:
    if isinstance(value, ast.Tuple | ast.List):
        return value.elts
    return value.values if isinstance(value, ast.Dict) else [value]
