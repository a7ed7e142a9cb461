"""KernelBench problem files: one module with Model, get_inputs and get_init_inputs, as it is."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpu_runner.data.codec import DataError, DataErrors, caught, errors_of, refuse
from gpu_runner.data.formats.naming import task_name, task_title
from gpu_runner.data.formats.reading import Reading, check_imports, import_errors
from gpu_runner.data.formats.robust_kbench import UNKNOWN_REDUCTION
from gpu_runner.data.formats.sizes import Globals
from gpu_runner.data.formats.source import (
    classes,
    functions,
    inherited,
    needs_cuda,
    parameter_names,
    parse_module,
    sets_seed,
)
from gpu_runner.data.formats.task_errors import task_errors, usable_task
from gpu_runner.data.formats.text import read_files
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction

_OWN = Workload(name="default", parameters={}, directions=(Direction.FORWARD,))
_NAMES = ("less", "odd", "more", "more_odd")
UNLISTED = (*_NAMES, *(f"small_{name}" for name in _NAMES))
"""Names of the unlisted workloads that a varied file may have."""
_FURTHER = ("half", "small", *UNLISTED)
_CUDA = (DeviceKind.CUDA,)
_NARROW = frozenset({"bfloat16", "float16", "half"})
_LARGEST = 2**63  # the first integer that torch does not hold
_TO_BE_VARIED = (
    "it has only its original sizes; checking it on a runner adds workloads of different sizes"
)


def read_kernelbench(path: Path) -> Reading:
    """Read a KernelBench problem file; raises `DataError` naming what is missing.

    The file has one shape, the task's only workload. What get_init_inputs() gives may be in
    KernelBook's form (`init_calls`).
    """
    if not path.is_file():
        raise DataError("path", f"{str(path)!r} is not a file")
    files = read_files(path.parent, [path.name])
    try:
        tree = parse_module(files[path.name], path.name)
        model, forward = _parts(tree, path.name)
        check_imports(files)
        refuse(complex_errors(tree, forward, path.name))
        own = replace(_OWN, devices=_CUDA) if needs_cuda(tree) else _OWN
        description = _description(model, forward, inherited(tree, model, "__init__"))
    except RecursionError:
        raise DataError(path.name, "is nested too deeply") from None
    task = Task(
        name=task_name(path),
        title=task_title(path),
        format=TaskFormat.KERNELBENCH,
        abi=Abi.TORCH,
        scenario="networks",
        description=description,
        directions=(Direction.FORWARD,),
        workloads=(own,),
        files=files,
        tolerance=UNKNOWN_REDUCTION,
    )
    changed = tuple(_changed(tree, forward))
    return Reading(task=usable_task(task), adaptations=changed, remarks=(_TO_BE_VARIED,))


def has_own_shape_alone(task: Task) -> bool:
    """Whether this is an imported file to which nobody has added a workload."""
    if task.format is not TaskFormat.KERNELBENCH or len(task.workloads) != 1:
        return False
    return replace(task.workloads[0], devices=_OWN.devices) == _OWN


def with_workloads(task: Task, workloads: Sequence[Workload]) -> Task:
    """An imported file with the workloads that a run of it has found, its own first.

    Raises `DataError` where they are none that could have been found.
    """
    if not has_own_shape_alone(task):
        raise DataError("workloads", "come from the author, so kbench adds none")
    names = [workload.name for workload in workloads]
    further = names[1:]
    if names[:1] != [_OWN.name] or sorted(further) != sorted(set(further) & set(_FURTHER)):
        raise DataError(
            "workloads", f"are {', '.join(names)[:200]}, which a varied file can't have"
        )
    for index, found in enumerate(workloads):
        unlisted, parameters = found.name in UNLISTED, found.parameters if index else {}
        made = replace(_OWN, name=found.name, unlisted=unlisted, parameters=parameters)
        if replace(found, devices=_OWN.devices) != made:
            raise DataError(f"workloads[{index}]", "is not a workload that a varied file can have")
    varied = replace(task, workloads=tuple(workloads))
    refuse(itertools.chain(task_errors(varied), size_errors(varied)))
    return varied


def _changed(tree: ast.Module, forward: ast.FunctionDef) -> Iterator[str]:
    """What the engine does in another way than the file says."""
    nodes = list(ast.walk(tree))
    if needs_cuda(tree):
        yield "it is only for CUDA devices, because it refers to CUDA"
    if any(sets_seed(node) for node in nodes if isinstance(node, ast.Call)):
        yield "seeds set in functions are derived from the call's seed, so inputs are always new"
    if any(node.attr in _NARROW for node in nodes if isinstance(node, ast.Attribute)):
        yield "floating-point tensors are converted to float32, including narrower ones"
    if any(isinstance(n, ast.Return) and isinstance(n.value, ast.Dict) for n in ast.walk(forward)):
        yield "forward() returns a dictionary: its values are the outputs, in order"


def size_errors(task: Task) -> Iterator[DataError]:
    """Workloads whose parameters are no sizes that `get_inputs()` alone reads; wrong imports.

    A global that follows from another may be among the parameters, too.
    """
    if len(task.files) != 1:
        yield DataError("files", "must be one Python file, with Model and get_inputs()")
        return
    ((name, text),) = task.files.items()
    try:
        tree = parse_module(text, name)
        _, forward = _parts(tree, name)
    except DataError as error:
        yield from errors_of(error)
        return
    yield from import_errors(task.files)
    yield from complex_errors(tree, forward, name)
    known = Globals.read(tree)
    for index, workload in enumerate(task.workloads):
        for key, value in workload.parameters.items():
            yield from caught(
                _check_size, known, key, value, f"workloads[{index}].parameters.{key}"
            )


def _check_size(known: Globals, name: str, value: object, field: str) -> None:
    items = value if isinstance(value, list | tuple) else [value]
    if not items or not all(type(item) is int and 0 < item < _LARGEST for item in items):
        raise DataError(field, "must be a positive integer, or a list of positive integers")
    if name in known.bound:
        raise DataError(field, "can't vary, because Model uses it, not just get_inputs()")
    if name not in known.names:
        raise DataError(field, "must be removed: the file doesn't assign a global of this name")


def _parts(tree: ast.Module, name: str) -> tuple[ast.ClassDef, ast.FunctionDef]:
    """Model and its forward; raises `DataErrors` naming all that is missing."""
    own, model = functions(tree), classes(tree).get("Model")
    wanted = [each for each in ("get_inputs", "get_init_inputs") if each not in own]
    instead = ", not get_input_groups()" if "get_input_groups" in own else ""
    endings = {"get_inputs": instead}
    errors = [
        DataError(name, f"must define the function {each}(){endings.get(each, '')}")
        for each in wanted
    ]
    forward = inherited(tree, model, "forward") if model is not None else None
    if model is None or forward is None:
        errors.append(DataError(name, "must define the class Model with a method forward()"))
    if errors or model is None or forward is None:
        raise DataErrors(errors)
    return model, forward


def _description(
    model: ast.ClassDef, forward: ast.FunctionDef, init: ast.FunctionDef | None
) -> str:
    inputs = parameter_names(forward)[1:]
    parts = [
        inspect.cleandoc(ast.get_docstring(model) or ""),
        "The extension exports `forward(...)`, called by position with",
        f"1. the values of `get_inputs()`: {_listed(inputs)};\n"
        "2. the parameters and then the floating-point buffers of `Model`, each in the order of "
        f"its `state_dict()`{_layers(init)}, and tensors that it keeps as plain attributes;\n"
        "3. those values of `get_init_inputs()` that are numbers, booleans or tuples of "
        f"them; `Model` takes {_listed(parameter_names(init)[1:] if init else [])}.",
        "`Model` is in training mode, but dropout is off. Arguments must not be changed: only what "
        "the function returns is judged.",
    ]
    return "\n\n".join(part for part in parts if part)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _layers(init: ast.FunctionDef | None) -> str:
    """The members of Model that `__init__` makes from torch.nn, as far as they can be read."""
    found = []
    for node in ast.walk(init) if init is not None else ():
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                value=ast.Call(func=ast.Attribute(attr=kind)),
            ) if kind[:1].isupper():
                found.append(f"`{name}` ({kind})")
    return f" (of {', '.join(found)})" if found else ""


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
            yield _error(name, "get_inputs() returns", made)
    for value in _returned(forward):
        if _is_complex(value):
            yield _error(name, "Model's forward() returns", value)


def _error(name: str, what: str, node: ast.AST) -> DataError:
    line = getattr(node, "lineno", None)
    reason = (
        f"{what} complex numbers, which kbench doesn't support: use torch.view_as_real(),"
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
