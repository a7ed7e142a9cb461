"""KernelBench problem files: one module with Model, get_inputs and get_init_inputs, as it is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import DataError, DataErrors, caught, refuse
from gpu_runner.data.formats.complex_numbers import complex_errors
from gpu_runner.data.formats.follow import Followed, Tensor, Unfollowed, Unknown
from gpu_runner.data.formats.further import further_workloads, own_workload
from gpu_runner.data.formats.init_inputs import InitCall, init_calls, is_number
from gpu_runner.data.formats.naming import task_name, task_title
from gpu_runner.data.formats.reading import Reading, check_imports, import_errors
from gpu_runner.data.formats.robust_kbench import UNKNOWN_REDUCTION
from gpu_runner.data.formats.sizes import Size, Sizes
from gpu_runner.data.formats.source import (
    classes,
    functions,
    inherited,
    needs_cuda,
    parameter_names,
    parse_module,
    sets_seed,
)
from gpu_runner.data.formats.task_errors import usable_task
from gpu_runner.data.formats.text import read_files
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction

_NARROW = frozenset({"bfloat16", "float16", "half"})
_SHOWN = 200  # characters of values
_KERNELBOOK = "get_init_inputs() is read as [[arguments], {arguments by name}]"


def read_kernelbench(path: Path, *, further: bool = True) -> Reading:
    """Read a KernelBench problem file; raises `DataError` naming what is missing.

    The file has one shape. With `further`, the task gets `further_workloads`, whose parameters are
    the module's globals that `get_inputs()` then sees. What get_init_inputs() gives may be in
    KernelBook's form (`init_inputs`).
    """
    if not path.is_file():
        raise DataError("path", f"{str(path)!r} is not a file")
    files = read_files(path.parent, [path.name])
    try:
        tree = parse_module(files[path.name], path.name)
        model, forward = _parts(tree, path.name)
        check_imports(files)
        refuse([*_call_errors(tree, path.name), *complex_errors(tree, forward, path.name)])
        call = _init_call(Followed(tree))
        sizes = Sizes.read(tree)
        workloads = further_workloads(sizes) if further else (own_workload(sizes),)
        init = inherited(tree, model, "__init__")
        description = _description(model, forward, init, call)
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
        workloads=workloads,
        files=files,
        tolerance=UNKNOWN_REDUCTION,
    )
    adaptations = [_KERNELBOOK] if call is not None and call.keywords else []
    adaptations += [*_added(workloads), *_restricted(sizes, workloads[0]), *_changed(tree, forward)]
    remarks = (_alone(sizes),) if further and len(workloads) == 1 else ()
    return Reading(task=usable_task(task), adaptations=tuple(adaptations), remarks=remarks)


def _alone(sizes: Sizes) -> str:
    """Why nothing is added."""
    reason = "get_inputs() has no size to itself that may change"
    if unfit := sizes.unfit({}):
        reason = f"what Model takes cannot be told from the text ({unfit})"
    return f"no further workload: {reason}"


def _restricted(sizes: Sizes, default: Workload) -> Iterator[str]:
    """That the file's own sizes are not for CPUs, and why."""
    if DeviceKind.CPU not in default.devices:
        why = ""
        if needs_cuda(sizes.tree):
            why = ": it asks for CUDA by name"
        elif sizes.shapes({}) is None:
            why = ": how many elements its inputs have cannot be read"
        yield f"the file's own sizes are for CUDA devices only{why}"


def _changed(tree: ast.Module, forward: ast.FunctionDef) -> Iterator[str]:
    """What the engine does in another way than the file says."""
    nodes = list(ast.walk(tree))
    if any(sets_seed(node) for node in nodes if isinstance(node, ast.Call)):
        yield "a seed that a function sets follows from each call's own: inputs are always new"
    if any(node.attr in _NARROW for node in nodes if isinstance(node, ast.Attribute)):
        yield "floating tensors come as float32, narrower ones too"
    if any(isinstance(n, ast.Return) and isinstance(n.value, ast.Dict) for n in ast.walk(forward)):
        yield "forward() gives a dictionary: its values are the outputs, in their order"


def _call_errors(tree: ast.Module, name: str) -> Iterator[DataError]:
    """Why neither Model nor its forward() can be called with what the file gives, if it tells."""
    followed = Followed(tree)
    try:
        given = followed.init_inputs()
        if not isinstance(given, tuple | list | dict | Unknown):
            yield DataError(name, f"get_init_inputs() must return a list, not {_what(given)}")
        elif not isinstance(given, Unknown) and not init_calls(given, followed.fits):
            yield DataError(
                name, f"get_init_inputs() gives what Model does not take: {_some(given)}"
            )
    except Unfollowed:
        pass  # the oracle will see
    try:
        inputs = followed.inputs({})
    except Unfollowed:
        return
    line = functions(tree)["get_inputs"].lineno
    if not isinstance(inputs, tuple | list | Unknown):
        words = f"get_inputs() must return a list, not {_what(inputs)} (line {line})"
        yield DataError(name, words, line)
    elif not isinstance(inputs, Unknown) and any(isinstance(each, dict) for each in inputs):
        words = "get_inputs() gives a dictionary, which no kernel takes: give its values one by one"
        yield DataError(name, f"{words} (line {line})", line)
    elif not isinstance(inputs, Unknown) and not followed.takes(tuple(inputs)):
        words = f"get_inputs() gives {len(inputs)}, which Model's forward() does not take"
        yield DataError(name, words)


def _what(value: Any) -> str:
    kinds = {Tensor: "one tensor", dict: "a dictionary", type(None): "nothing"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _some(given: Any) -> str:
    """What was given, in a few words."""
    words = ", ".join(_what(value) if isinstance(value, Tensor) else repr(value) for value in given)
    return f"[{words}]"[:_SHOWN]


def _init_call(followed: Followed) -> InitCall | None:
    """How Model is made; None where the file does not tell."""
    try:
        return next(iter(init_calls(followed.init_inputs(), followed.fits)), None)
    except Unfollowed:
        return None


def size_errors(task: Task) -> Iterator[DataError]:
    """Workloads whose parameters are no sizes that `get_inputs()` alone reads; wrong imports.

    A global that follows from another is among the parameters too. Also what nothing can be called
    with.
    """
    if len(task.files) != 1:
        yield DataError("files", "must be one Python file, with Model and get_inputs()")
        return
    ((name, text),) = task.files.items()
    try:
        tree = parse_module(text, name)
        _, forward = _parts(tree, name)
    except DataErrors as error:
        yield from error.errors
        return
    except DataError as error:
        yield error
        return
    yield from import_errors(task.files)
    yield from _call_errors(tree, name)
    yield from complex_errors(tree, forward, name)
    sizes = Sizes.read(tree)
    for index, workload in enumerate(task.workloads):
        yield from _workload_errors(sizes, workload, f"workloads[{index}].parameters")


def _workload_errors(sizes: Sizes, workload: Workload, field: str) -> Iterator[DataError]:
    wrong = [e for k, v in workload.parameters.items() for e in caught(_as_size, v, f"{field}.{k}")]
    if wrong:
        yield from wrong
        return
    given = {key: _as_size(value, field) for key, value in workload.parameters.items()}
    roots = {key: size for key, size in given.items() if key in sizes.roots}
    for key in sorted(roots.keys() - set(sizes.free)):
        yield DataError(f"{field}.{key}", "is read by more than get_inputs(): Model needs it")
    wanted = sizes.changed(roots)
    for key in sorted(given.keys() | wanted.keys()):
        if given.get(key, sizes.values.get(key)) != wanted.get(key, sizes.values.get(key)):
            yield DataError(f"{field}.{key}", f"must be {wanted.get(key, 'left out')}")


def _as_size(value: Any, field: str) -> Size:
    items = value if isinstance(value, list | tuple) else [value]
    if not items or not all(type(item) is int and item > 0 for item in items):
        raise DataError(field, "must be an integer above 0, or a list of such")
    return value if isinstance(value, int) else tuple(value)


def _parts(tree: ast.Module, name: str) -> tuple[ast.ClassDef, ast.FunctionDef]:
    """Model and its forward; raises `DataErrors` naming all that is missing."""
    own, model = functions(tree), classes(tree).get("Model")
    wanted = [each for each in ("get_inputs", "get_init_inputs") if each not in own]
    instead = ", not groups of inputs" if "get_input_groups" in own else ""
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


def _added(workloads: tuple[Workload, ...]) -> Iterator[str]:
    for workload in workloads[1:]:
        sizes = ", ".join(f"{name}={value}" for name, value in workload.parameters.items())
        hidden = "hidden, " if workload.hidden else ""
        yield f"adds {workload.name} ({hidden}{'+'.join(workload.devices)}): {sizes}"


def _description(
    model: ast.ClassDef,
    forward: ast.FunctionDef,
    init: ast.FunctionDef | None,
    call: InitCall | None,
) -> str:
    inputs = parameter_names(forward)[1:]
    parts = [
        inspect.cleandoc(ast.get_docstring(model) or ""),
        "The extension exports `forward(...)`, called by position with",
        f"1. the values of `get_inputs()`: {_listed(inputs)};\n"
        "2. the parameters and then the floating-point buffers of `Model`, each in the order of "
        f"its `state_dict()`{_layers(init)}, and tensors that it keeps as plain attributes;\n"
        "3. those values of `get_init_inputs()` that are numbers, truth values or tuples of "
        f"them: {_listed(_init_names(init, call))}.",
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


def _init_names(init: ast.FunctionDef | None, call: InitCall | None) -> list[str]:
    """Names of Model's arguments that are numbers; of all its parameters where it is not known."""
    names = parameter_names(init)[1:] if init is not None else []
    if call is None:
        return names
    pairs = zip(call.names(names), call.values(), strict=True)
    return [name for name, value in pairs if is_number(value)]
