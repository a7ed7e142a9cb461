"""A script with `ref`, `kernel` and `inputs`, as a task and the solutions to it."""

from __future__ import annotations

import ast
import contextlib
import os.path
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpu_runner.data.codec import DataError
from gpu_runner.data.files import FILES_LIMIT, SUFFIXES, check_modules
from gpu_runner.data.formats.building import build_task
from gpu_runner.data.formats.naming import task_name
from gpu_runner.data.formats.robust_kbench import UNKNOWN_REDUCTION
from gpu_runner.data.formats.source import functions, needs_cuda, parse_module
from gpu_runner.data.formats.text import decoded, read_files
from gpu_runner.data.formulas import evaluate
from gpu_runner.data.python_source import imported_names, imported_nodes, tree_of
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.static import gpu_reason
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Language

SIZE = "kbench_size"
"""Name of the global that a size is given to."""
_REFERENCE, _INPUTS, _KERNEL = "ref", "inputs", "kernel"
_WHOLE = "must be whole numbers of at least 1"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LAUNCHED = {"triton.jit", "gluon.jit", "cuda.jit", "numba.cuda.jit"}
_NARROW = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16"}
_REAL = ("float32", *dict.fromkeys(_NARROW.values()))
_MODEL = """


import torch as _torch

{size}
class Model(_torch.nn.Module):
    def forward({parameters}):
        return ref({given})


def get_inputs():
    _made = inputs({argument})
    if isinstance(_made, dict):
        _made = [_made[_name] for _name in {names} if _name in _made]
    _made = list(_made) if isinstance(_made, (list, tuple)) else [_made]
    for _each in _made:
        if _torch.is_tensor(_each) and _each.dtype in [{others}]:
            raise TypeError(f"inputs() makes {{_each.dtype}} and names {dtype}: use one type")
    return _made


def get_init_inputs():
    return []
"""
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"\n]+)"', re.MULTILINE)
_SUFFIXES = SUFFIXES[Language.PYTHON]


@dataclass(frozen=True)
class Script:
    """A task, and the solutions to it by name; kind is the device that they are for by default."""

    task: Task
    kernels: dict[str, Solution]
    kind: DeviceKind


def read_script(path: Path, sizes: Sequence[int], *, has_gpu: bool) -> Script:
    """Read a file, and the .cu and .cpp of the same name beside it, each with its `files_beside`.

    sizes: given to `inputs`, one a workload; else those of the file's global `sizes`, else the
    default of the parameter. has_gpu: whether to measure on a GPU what runs on both. Raises
    `DataError` naming what is missing or wrong.
    """
    text = _text(path)
    tree = parse_module(text, path.name)
    own = functions(tree)
    for name in (_REFERENCE, _INPUTS):
        if name not in own:
            raise DataError(path.name, f"must define the function {name}()")
    dtype = _dtype(_needed(text, tree, [own[_INPUTS]]), _needed(text, tree, [own[_REFERENCE]]))
    kernels = dict(_kernels(path, text, own, has_gpu=has_gpu))
    if not kernels:
        raise _no_kernel(path, own)
    is_for_gpu = has_gpu or any(gpu_reason(each.code) for each in kernels.values())
    kind = DeviceKind.CUDA if is_for_gpu else DeviceKind.CPU
    found = _sizes(tree, own[_INPUTS], sizes)
    problem = _needed(text, tree, [own[_REFERENCE], own[_INPUTS]])
    if needed := files_beside(path, problem):
        reason = f"needs {', '.join(needed)}, but only kernels can use files beside {path.name}"
        raise DataError(f"{_REFERENCE}() or {_INPUTS}()", reason)
    problem += _model(own[_REFERENCE], found, dtype)
    devices = ["cuda"] if needs_cuda(tree) else ["cpu", "cuda"]
    return Script(_task(path, problem, found, (dtype, devices)), kernels, kind)


def _kernels(
    path: Path, text: str, own: dict[str, ast.FunctionDef], *, has_gpu: bool
) -> Iterator[tuple[str, Solution]]:
    for name, function in own.items():
        is_named = name == _KERNEL or name.startswith(f"{_KERNEL}_")
        if is_named and not _is_launched(function):
            yield name, _solution(path, _alone(text, own, name), Language.PYTHON)
    for language in (Language.CUDA, Language.CPP):
        beside = path.with_suffix(language.suffix)
        if beside.is_file() and (has_gpu or language is Language.CPP):
            yield beside.name, _solution(beside, _text(beside), language)


def _is_launched(function: ast.FunctionDef) -> bool:
    """Whether only a launch on a grid can call it, as with what `triton.jit` decorates."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(ast.unparse(each) in _LAUNCHED for each in calls)


def _no_kernel(path: Path, own: dict[str, ast.FunctionDef]) -> DataError:
    """Why a script has no kernel that can be measured here."""
    for name, function in own.items():
        if name.startswith(_KERNEL) and _is_launched(function):
            reason = f"must define a kernel() that launches {name}() and takes ref()'s arguments"
            return DataError(path.name, reason)
    beside = path.with_suffix(Language.CUDA.suffix)
    if beside.is_file():
        reason = f"{beside.name} runs only on a GPU, and {path.name} has no kernel() for the CPU"
        return DataError("device", reason)
    reason = "must define kernel() or kernel_NAME(), or be next to a .cu or .cpp file of that name"
    return DataError(path.name, reason)


def _solution(path: Path, source: str, language: Language) -> Solution:
    files = files_beside(path, source)
    return Solution(source=source, language=language, entry=path.name, files=files)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError("file", f"{path}: {error.strerror or error}") from None
    if len(raw) > SOURCE_LIMIT_BYTES:
        raise DataError("file", f"{path.name} is larger than {SOURCE_LIMIT_BYTES} bytes")
    return decoded(raw, path.name)


def _dtype(inputs: str, ref: str) -> str:
    """What a script computes in: the narrow type that its inputs name, else float32.

    Raises `DataError` where its text does not say which that is.
    """
    made, used = _narrow(inputs), _narrow(ref)
    if len(set(made.values())) > 1:
        reason = f"uses {' and '.join(sorted(set(made.values())))}: choose one type"
        raise DataError(_INPUTS, reason)
    for name, dtype in used.items():
        if dtype not in made.values():
            reason = (
                f"uses {name}, but {_INPUTS}() doesn't: inputs and outputs must have the same type"
            )
            raise DataError(_REFERENCE, reason)
    return next(iter(made.values()), _REAL[0])


def _narrow(text: str) -> dict[str, str]:
    """The 16-bit types that a text names, by the word that it uses."""
    words = (node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
    return {word: _NARROW[word] for word in words if word in _NARROW}


def _alone(text: str, own: dict[str, ast.FunctionDef], name: str) -> str:
    """The module of one kernel: without the reference and the inputs, lines keeping their numbers.

    Other kernels stay, for it may call them.
    """
    return f"{_without(text, [own[_REFERENCE], own[_INPUTS]])}\n\nforward = {name}\n"


def _without(text: str, parts: Collection[ast.FunctionDef]) -> str:
    lines = text.splitlines()
    for part in parts:
        first = min([part.lineno, *(each.lineno for each in part.decorator_list)])
        last = part.end_lineno or first
        lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(lines)


def _needed(text: str, tree: ast.Module, roots: Sequence[ast.stmt]) -> str:
    """The statements of a module that these need, so that no edit of a kernel changes a task."""
    kept = {id(root): root for root in roots}
    names = _names(roots)
    while True:
        more = [node for node in tree.body if id(node) not in kept and names & _bound(node)]
        if not more:
            break
        kept |= {id(node): node for node in more}
        names |= _names(more)
    parts = [node for node in tree.body if id(node) in kept or _is_future(node)]
    return "\n\n".join(_segment(text, node) for node in parts)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement at the top of a module defines."""
    found: set[str] = set()
    for each in ast.walk(node) if not isinstance(node, _DEFINITIONS) else [node]:
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, _DEFINITIONS):
            found.add(each.name)
        elif isinstance(each, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in each.names}
    return found


def _segment(text: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _sizes(tree: ast.Module, inputs: ast.FunctionDef, given: Sequence[int]) -> list[int]:
    """The sizes of the workloads; none where `inputs` takes no argument."""
    takes = [*inputs.args.posonlyargs, *inputs.args.args]
    if not takes:
        if given:
            raise DataError("size", "can't be set, because inputs() takes no argument")
        return []
    found = list(given) or _listed(tree) or _default(tree, inputs)
    if not found:
        reason = f"is not set: pass --size, assign `sizes`, or give `{takes[0].arg}` a default"
        raise DataError("size", reason)
    if any(type(size) is not int or size < 1 for size in found):
        raise DataError("size", _WHOLE)
    return list(dict.fromkeys(found))


def _listed(tree: ast.Module) -> list[int]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "sizes" for target in node.targets
        ):
            return _numbers(tree, node.value)
    return []


def _default(tree: ast.Module, inputs: ast.FunctionDef) -> list[int]:
    arguments = inputs.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    if len(arguments.defaults) < positional:
        return []
    return _numbers(tree, arguments.defaults[0])


def _numbers(tree: ast.Module, value: ast.expr) -> list[int]:
    """The whole numbers of a list, or the only one; formulas may use the script's own constants."""
    constants: dict[str, float] = {}
    try:
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=given) if given is not value:
                    with contextlib.suppress(DataError):
                        constants[name] = evaluate(ast.unparse(given), constants)
        each = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        found = [evaluate(ast.unparse(one), constants) for one in each]
    except (DataError, RecursionError):
        reason = f"must be numbers, or formulas such as 1 << 20 or 4 * N (line {value.lineno})"
        raise DataError("size", reason) from None
    if any(number != int(number) for number in found):
        raise DataError("size", _WHOLE)
    return list(map(int, found))


def _model(ref: ast.FunctionDef, sizes: Sequence[int], dtype: str) -> str:
    names = [each.arg for each in (*ref.args.posonlyargs, *ref.args.args)]
    if not names or ref.args.vararg or ref.args.kwonlyargs or ref.args.kwarg:
        raise DataError(_REFERENCE, "must have named arguments, without * and **")
    takes = ast.arguments(
        posonlyargs=[],
        args=[ast.arg("self"), *(ast.arg(name) for name in names)],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=ref.args.defaults,
    )
    return _MODEL.format(
        size=f"{SIZE} = {sizes[0]}\n" if sizes else "",
        parameters=ast.unparse(takes),
        given=", ".join(names),
        argument=SIZE if sizes else "",
        names=names,
        dtype=dtype,
        others=", ".join(f"_torch.{other}" for other in _REAL if other != dtype),
    )


def _task(path: Path, problem: str, sizes: Sequence[int], place: tuple[str, Sequence[str]]) -> Task:
    """place: the type that it computes in, and the kinds of devices that it runs on."""
    dtype, devices = place
    workloads = [
        {"name": f"{size:,}".replace(",", "_"), "parameters": {SIZE: size}} for size in sizes
    ] or [{"name": "default", "parameters": {}}]
    document = {
        "name": task_name(path),
        "title": path.stem,
        "format": "kernelbench",
        "abi": "torch",
        "dtype": dtype,
        "files": {path.name: problem},
        "workloads": [
            {**workload, "devices": devices, "directions": ["forward"]} for workload in workloads
        ],
        "tolerance": {
            "reduction": UNKNOWN_REDUCTION.reduction,
            "constant": UNKNOWN_REDUCTION.constant,
            "growth": UNKNOWN_REDUCTION.growth,
        },
        "libraries": True,
    }
    return build_task(document)


def files_beside(path: Path, source: str) -> dict[str, str]:
    """The texts of the files below a source's folder that it needs, and that those need, by name.

    Raises `DataError` naming a file that lies elsewhere, or that no solution may have.
    """
    found = {path.name: source}
    waiting = list(_names_in(path.parent, path.name, source))
    while waiting and len(found) <= FILES_LIMIT:  # `Solution` refuses more
        if (name := waiting.pop()) not in found:
            found |= read_files(path.parent, [name])
            waiting += _names_in(path.parent, name, found[name])
    del found[path.name]
    check_modules(found)
    return found


def _names_in(folder: Path, name: str, text: str) -> Iterator[str]:
    """The files that exist and that a file's text refers to."""
    nodes: list[ast.AST] = []
    if name.endswith(".py") and (tree := tree_of(text)):
        nodes = list(imported_nodes(tree))
    for each in (*_INCLUDE.findall(text), *_strings(nodes)):
        beside = posixpath.join(posixpath.dirname(name), each)
        places = map(posixpath.normpath, (beside, each))  # where a compiler looks for a header
        yield from [place for place in places if os.path.isfile(folder / place)][:1]
    for module in _modules(nodes, PurePosixPath(name)):
        files = (f"{module}.py", f"{module}/__init__.py")
        yield from (file for file in files if os.path.isfile(folder / file))


def _strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Strings that may be names of sources, such as `load` compiles."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if PurePosixPath(text).suffix in _SUFFIXES:
                yield text


def _modules(nodes: list[ast.AST], place: PurePosixPath) -> Iterator[PurePosixPath]:
    """What may be modules or packages that a file imports, with the packages that they are in."""
    imported = [PurePosixPath(name.replace(".", "/")) for name in imported_names(nodes)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(place.parents):
            base = place.parents[node.level - 1] / (node.module or "").replace(".", "/")
            imported += [base, *(base / alias.name for alias in node.names)]
    for each in imported:
        yield from (module for module in (each, *each.parents) if module.name)
