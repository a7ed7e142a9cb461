"""The kernel as an operator of PyTorch, which `torch.compile` knows: `torch.ops.kbench.NAME`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import dispatch, task

_TYPES = {bool: "bool", int: "SymInt", float: "float", str: "str", type(None): "Tensor?"}


def call(*arguments: Any) -> Any:
    """The operator; where gradients are wanted, PyTorch's own functions."""
    tensors = task.tensors_in(arguments)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        outputs = task.fallback(arguments)
        return outputs[0] if len(outputs) == 1 else outputs
    return OPERATOR(*arguments)


def _type(value: Any) -> str:
    """A value's type in a schema."""
    if isinstance(value, tuple | list):
        return f"{_type(value[0])}[]" if value else "SymInt[]"
    return "Tensor" if isinstance(value, Tensor) else _TYPES[type(value)]


def _schema() -> str:
    """As a measured call has it. Raises `RuntimeError` where outputs' sizes aren't known."""
    drawn = task.example(task.WINNER["workloads"][0])
    try:
        count = len(task.outputs_like(drawn))
    except RuntimeError as error:
        reason = (
            f"no fake function: the reference depends on values ({error}); export with --to script"
        )
        raise RuntimeError(reason) from error
    names = task.WINNER["arguments"]
    taken = (f"{_type(value)} {name}" for name, value in zip(names, drawn, strict=True))
    given = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    return f"({', '.join(taken)}) -> {given}"


def _run(*arguments: Any) -> Any:
    """Contiguous outputs that share no memory with an argument or with each other."""
    used = {tensor.untyped_storage().data_ptr() for tensor in task.tensors_in(arguments)}
    outputs = []
    for output in dispatch.run(arguments):
        shared = output.untyped_storage().data_ptr() in used
        own = output.clone(memory_format=torch.contiguous_format) if shared else output
        outputs.append(own.contiguous())
        used.add(outputs[-1].untyped_storage().data_ptr())
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _fake(*arguments: Any) -> Any:
    """Outputs' shapes and dtypes, as the reference has them."""
    device = next(task.tensors_in(arguments)).device
    found = [torch.empty(s, dtype=d, device=device) for s, d in task.outputs_like(arguments)]
    return found[0] if len(found) == 1 else tuple(found)


OPERATOR = torch.library.custom_op(
    f"kbench::{task.WINNER['name']}", _run, mutates_args=(), schema=_schema()
)
OPERATOR.register_fake(_fake)
