"""KernelBench problem files: one module with Model, get_inputs and get_init_inputs, as it is."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.check import check_task
from gpu_runner.data.formats.naming import task_name, task_title
from gpu_runner.data.formats.robust_kbench import UNKNOWN_REDUCTION
from gpu_runner.data.formats.source import classes, functions, method, parameter_names, parse_module
from gpu_runner.data.formats.text import read_files
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, Direction


def load_kernelbench(path: Path) -> Task:
    """Read a KernelBench problem file; raises `DataError` naming what is missing."""
    if not path.is_file():
        raise DataError("path", f"{str(path)!r} is not a file")
    files = read_files(path.parent, [path.name])
    tree = parse_module(files[path.name], path.name)
    own, models = functions(tree), classes(tree)
    for wanted in ("get_inputs", "get_init_inputs"):
        if wanted not in own:
            raise DataError(path.name, f"must define the function {wanted}()")
    model = models.get("Model")
    forward = method(model, "forward") if model is not None else None
    if model is None or forward is None:
        raise DataError(path.name, "must define the class Model with a method forward()")
    return check_task(
        Task(
            name=task_name(path),
            title=task_title(path),
            format=TaskFormat.KERNELBENCH,
            abi=Abi.TORCH,
            scenario="networks",
            description=_description(model, forward, own["get_init_inputs"]),
            directions=(Direction.FORWARD,),
            workloads=(Workload(name="default", parameters={}, directions=(Direction.FORWARD,)),),
            files=files,
            tolerance=UNKNOWN_REDUCTION,
        )
    )


def _description(
    model: ast.ClassDef, forward: ast.FunctionDef, get_init_inputs: ast.FunctionDef
) -> str:
    inputs = parameter_names(forward)[1:]
    parts = [
        inspect.cleandoc(ast.get_docstring(model) or ""),
        "The extension exports `forward(...)`, called by position with",
        f"1. the values of `get_inputs()`: {_listed(inputs)};\n"
        "2. the parameters and then the floating-point buffers of `Model`, each in the order of "
        f"its `state_dict()`{_layers(model)}, and tensors that it keeps as plain attributes;\n"
        "3. those values of `get_init_inputs()` that are numbers, truth values or tuples of "
        f"them: {_listed(_init_values(model, get_init_inputs))}.",
        "`Model` is in training mode, but dropout is off. Arguments must not be changed: only what "
        "the function returns is judged.",
    ]
    return "\n\n".join(part for part in parts if part)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _layers(model: ast.ClassDef) -> str:
    """The members of Model that `__init__` makes from torch.nn, as far as they can be read."""
    init = method(model, "__init__")
    found = []
    for node in ast.walk(init) if init is not None else ():
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                value=ast.Call(func=ast.Attribute(attr=kind)),
            ) if kind[:1].isupper():
                found.append(f"`{name}` ({kind})")
    return f" (of {', '.join(found)})" if found else ""


def _init_values(model: ast.ClassDef, get_init_inputs: ast.FunctionDef) -> list[str]:
    """Names for what get_init_inputs() returns: those of Model's parameters."""
    init = method(model, "__init__")
    names = parameter_names(init)[1:] if init is not None else []
    for node in ast.walk(get_init_inputs):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.List | ast.Tuple):
            values = [ast.unparse(item) for item in node.value.elts]
            return (names + values[len(names) :])[: len(values)]
    return names
