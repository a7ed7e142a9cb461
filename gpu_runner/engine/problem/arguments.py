"""A kernel's arguments and outputs: described as JSON values, flattened, and rebuilt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.signature import CParameter, Role
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Abi
from gpu_runner.data.wire import DTYPES
from gpu_runner.engine.problem.problem import Drawn, ProblemError

_TENSOR_KINDS = ("tensor", "inout")
_KINDS = {Role.INPUT: "tensor", Role.INOUT: "inout", Role.OUTPUT: "output", Role.SCALAR: "value"}

Described = dict[str, Any]


def dtype_name(dtype: torch.dtype) -> str:
    """Name of a dtype as the wire and the tasks have it. Raises `ProblemError` on any other."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ProblemError(f"tensors of dtype {name} are not supported; use {', '.join(DTYPES)}")
    return name


def describe_tensor(name: str, kind: str, tensor: Tensor) -> Described:
    """Description of a tensor; its strides are those of contiguous memory, in elements."""
    shape = tuple(tensor.shape)
    return {
        "name": name,
        "kind": kind,
        "dtype": dtype_name(tensor.dtype),
        "shape": list(shape),
        "strides": contiguous_strides(shape),
        "nbytes": math.prod(shape) * tensor.dtype.itemsize,
        "value": None,
    }


def contiguous_strides(shape: tuple[int, ...]) -> list[int]:
    """Strides, in elements, of a contiguous tensor, as PyTorch counts them."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def c_arguments(task: Task, workload: Workload, drawn: Drawn) -> tuple[tuple[CParameter, Any], ...]:
    """The c ABI's parameters in order with their values; None for a pure output.

    Raises `ProblemError` where the reference draws no tensor or number for a parameter.
    """
    values = {**workload.parameters, **drawn.named, **drawn.values}
    return tuple((p, _c_value(p, values)) for p in task.c_signature.parameters)


def _c_value(parameter: CParameter, values: dict[str, object]) -> object:
    if parameter.role is Role.OUTPUT:
        return None
    value = values.get(parameter.name)
    wanted = "a number" if parameter.role is Role.SCALAR else "a tensor"
    fits = isinstance(value, int | float if parameter.role is Role.SCALAR else Tensor)
    if not fits:
        raise ProblemError(
            f"the signature's parameter {parameter.name!r} needs {wanted} of that name from "
            f"make_inputs{' or the workload' if parameter.role is Role.SCALAR else ''}"
        )
    return value


def describe_arguments(
    task: Task, workload: Workload, drawn: Drawn, outputs: tuple[Tensor, ...]
) -> list[Described]:
    """One entry for each argument of the kernel, in order.

    c ABI: every parameter of the signature; `outputs` are the reference's results, in the order of
    the pointers that a kernel writes. torch ABI: the function's arguments, tuples as lists.
    """
    if task.abi is Abi.TORCH:
        pairs = zip(drawn.names, drawn.arguments, strict=True)
        return [_describe(name, value) for name, value in pairs]
    results = iter(outputs)
    entries = []
    for parameter, value in c_arguments(task, workload, drawn):
        kind = _KINDS[parameter.role]
        if kind == "value":
            entries.append(_describe_value(parameter.name, value, parameter.dtype))
            continue
        written = kind != "tensor"
        result = next(results) if written else value
        if kind == "inout" and result.shape != value.shape:
            raise ProblemError(f"the in-out parameter {parameter.name!r} changes its shape")
        entries.append(describe_tensor(parameter.name, kind, result))
    return entries


def describe_outputs(task: Task, outputs: tuple[Tensor, ...]) -> list[Described]:
    """One entry for each output, in the order of the results."""
    return [
        describe_tensor(name, "output", tensor)
        for name, tensor in zip(output_names(task, len(outputs)), outputs, strict=True)
    ]


def output_names(task: Task, count: int) -> list[str]:
    """Names for a person. Raises `ProblemError` if a signature has another number of outputs."""
    if task.abi is Abi.C:
        names = [parameter.name for parameter in task.c_signature.outputs]
        if len(names) != count:
            raise ProblemError(
                f"the reference returns {count} output{'' if count == 1 else 's'}, but the "
                f"signature writes {len(names)}: {', '.join(names)} (inputs point to const)"
            )
        return names
    return ["output"] if count == 1 else [f"output[{index}]" for index in range(count)]


def as_signature_says(task: Task, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The reference's results with the dtypes that a c-ABI kernel writes."""
    if task.abi is Abi.TORCH:
        return outputs
    output_names(task, len(outputs))
    dtypes = [getattr(torch, parameter.dtype) for parameter in task.c_signature.outputs]
    return tuple(tensor.to(dtype) for tensor, dtype in zip(outputs, dtypes, strict=True))


def input_tensors(task: Task, workload: Workload, drawn: Drawn) -> list[Tensor]:
    """Every tensor that the kernel reads, flattened, in the order of `describe_arguments`."""
    if task.abi is Abi.TORCH:
        return list(leaves(drawn.arguments))
    return [v for _, v in c_arguments(task, workload, drawn) if isinstance(v, Tensor)]


def fixed_part(task: Task, workload: Workload, drawn: Drawn) -> list[tuple[str, object]]:
    """What no seed may change, as it is described once: plain values and the sizes of tensors."""
    pairs: Iterator[tuple[str, object]]
    if task.abi is Abi.TORCH:
        pairs = zip(drawn.names, drawn.arguments, strict=True)
    else:
        pairs = ((p.name, value) for p, value in c_arguments(task, workload, drawn))
    return [(name, _sizes(value)) for name, value in pairs]


def _sizes(value: object) -> object:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    return [_sizes(item) for item in value] if isinstance(value, tuple | list) else value


def tensor_entries(arguments: list[Described]) -> list[Described]:
    """The descriptions of the tensors that the kernel reads, flattened, in order."""
    found = []
    for entry in arguments:
        if entry["kind"] in _TENSOR_KINDS:
            found.append(entry)
        elif entry["kind"] == "list":
            found += tensor_entries(entry["items"])
    return found


def rebuild(arguments: list[Described], tensors: Iterator[Tensor]) -> tuple[object, ...]:
    """The torch ABI's arguments from their descriptions and their tensors, in order."""
    return tuple(_rebuild(entry, tensors) for entry in arguments)


def _rebuild(entry: Described, tensors: Iterator[Tensor]) -> object:
    if entry["kind"] in _TENSOR_KINDS:
        return next(tensors)
    if entry["kind"] == "list":
        return rebuild(entry["items"], tensors)
    return _read_value(entry["value"])


def _read_value(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(_read_value, value))
    return value


def leaves(value: object) -> Iterator[Tensor]:
    """Every tensor in `value`, through tuples and lists, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)


def _describe(name: str, value: Any) -> Described:
    if isinstance(value, Tensor):
        return describe_tensor(name, "tensor", value)
    if any(True for _ in leaves(value)):
        items = [_describe(f"{name}[{index}]", item) for index, item in enumerate(value)]
        return {"name": name, "kind": "list", "items": items}
    return _describe_value(name, value, "")


def _describe_value(name: str, value: object, dtype: str) -> Described:
    return {"name": name, "kind": "value", "dtype": dtype, "value": _plain(name, value)}


def _plain(name: str, value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(name, item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ProblemError(f"the argument {name!r} is {type(value).__name__}: not a tensor or a number")


def check_shape(name: str, actual: Tensor, expected: tuple[Tensor, ...], index: int) -> None:
    """Raise `ProblemError` if the reference gives another shape than it described."""
    shape = tuple(expected[index].shape) if index < len(expected) else None
    if shape != tuple(actual.shape):
        raise ProblemError(
            f"the reference's {name} has the shape {shape} in float64, but had "
            f"{tuple(actual.shape)} before"
        )
