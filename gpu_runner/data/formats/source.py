"""Facts about Python source that can be read without executing it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gpu_runner.data.codec import DataError

_SETTERS = frozenset({"RandomState", "default_rng", "manual_seed", "manual_seed_all"})
MODULE_LIMIT = 128 * 1024
"""Characters of a module: a syntax tree takes some 700 bytes of memory for each."""


def parse_module(text: str, name: str) -> ast.Module:
    """Syntax tree of a module; raises `DataError` (field `name`) where it is not Python."""
    if len(text) > MODULE_LIMIT:
        raise DataError(name, f"has more than {MODULE_LIMIT} characters, too many for a module")
    try:
        return ast.parse(text, filename=name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        said = error.msg if isinstance(error, SyntaxError) else error  # its text repeats the line
        raise DataError(name, f"is not valid Python{where}: {said}", line) from None


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The module's own functions by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """The module's own classes by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def parameter_names(function: ast.FunctionDef) -> list[str]:
    """Names of a function's parameters in order, without *args and **kwargs."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in every]


def keyword_errors(
    function: ast.FunctionDef, given: Collection[str], field: str
) -> Iterator[DataError]:
    """Arguments that the function does not have, and parameters without a default that get none.

    Their fields lie in `field`.
    """
    arguments = function.args
    names = parameter_names(function)
    unknown = sorted(set(given) - set(names)) if arguments.kwarg is None else []
    for name in unknown:
        yield DataError(f"{field}.{name}", f"is not a parameter of {function.name}()")
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    required = positional[: len(positional) - len(arguments.defaults)]
    optional = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    required += [argument.arg for argument, default in optional if default is None]
    for name in required:
        if name not in given:
            yield DataError(f"{field}.{name}", f"is missing: {function.name}() needs it")


def method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """A class's own method of that name, or None."""
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


def inherited(tree: ast.Module, owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """A class's method of that name, its own or that of a class of the module it inherits from."""
    own, waiting, seen = classes(tree), [owner], set[str]()
    while waiting:
        each = waiting.pop(0)
        if (found := method(each, name)) is not None:
            return found
        seen.add(each.name)
        bases = [base.id for base in each.bases if isinstance(base, ast.Name)]
        waiting += [own[base] for base in bases if base in own and base not in seen]
    return None


def literal_defaults(function: ast.FunctionDef) -> dict[str, object]:
    """The defaults of a function's parameters, those left out that are no plain constants."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        )
    )
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found: dict[str, object] = {}
    for argument, default in pairs:
        try:
            found[argument.arg] = ast.literal_eval(default) if default is not None else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return found


def sets_seed(call: ast.Call) -> bool:
    """Whether this seeds a generator of torch, numpy or Python, or makes one that is seeded."""
    match call.func:
        case ast.Name(id=name):
            return name in _SETTERS
        case ast.Attribute(value=ast.Name(id=of) | ast.Attribute(attr=of), attr=name):
            return name in _SETTERS or (of == "random" and name in ("Random", "seed"))
        case ast.Attribute(attr=name):
            return name in _SETTERS
    return False


def needs_cuda(tree: ast.AST) -> bool:
    """Whether this asks for CUDA by name, and not only where there is one."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if "is_available" in names:
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="cuda")):
                return True
            case ast.Constant(value=str(text)) if re.fullmatch(r"cuda(:\d+)?", text):
                return True
    return False
