"""Runs a KernelBench file with other sizes, on torch's `meta` device: shapes without elements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils._pytree import tree_leaves, tree_map_only

from gpu_runner.data.task import Workload
from gpu_runner.engine.formats.kernelbench import KernelBenchProblem
from gpu_runner.engine.formats.module import import_file
from gpu_runner.engine.problem.problem import outputs_of

_MOST_SIZES, _MOST_ITEMS, _LARGEST = 512, 65, 2**63  # chosen: many times what a file has
_LONGEST_FAULT = 300  # characters; chosen: a sentence for a person
_META = torch.device("meta")
_FEW = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.arange, torch.linspace})
"""Functions that make few elements, whose values a model may ask for: they run as usual."""
_RECURRENT = frozenset({"gru", "lstm", "rnn_relu", "rnn_tanh"})

Answer = dict[str, object]


def run(problem: KernelBenchProblem, sizes: Mapping[str, object], *, really: bool) -> Answer:
    """Run get_inputs() and Model with other values for some globals of the file.

    They are those that the workload of these sizes has: get_inputs() sees them, and all that the
    file computes from them; Model sees the file's own. `really` runs it on the CPU instead, with
    all its elements.

    {"values": every global that is a size, "shapes": those of the tensors that get_inputs() gives,
    or None, "integers": whether one of them holds integers, "fault": why Model does not take them,
    or ""}.
    """
    answer: Answer = {"values": {}, "shapes": None, "integers": False, "fault": ""}
    try:
        with _Largest() if really else _OnMeta():
            own = _sizes(problem.module)
            answer["values"] = values = _sizes(_varied(problem.module, sizes)) if sizes else own
            changed = {name: values[name] for name in values if values[name] != own.get(name)}
            inputs = problem.inputs(Workload(name="", parameters=changed))
            tensors = [each for each in tree_leaves(inputs) if isinstance(each, Tensor)]
            answer["shapes"] = [list(each.shape) for each in tensors]
            answer["integers"] = any(_is_integer(each) for each in tensors)
            model = problem.make()[1] if really else _on_meta_once(problem)
            outputs_of(model(*inputs))
    except (Exception, SystemExit) as error:  # its own code's, of any kind
        answer["fault"] = f"{type(error).__name__}: {error}"[:_LONGEST_FAULT]
    return answer


class _OnMeta(TorchFunctionMode):
    """Makes every tensor on `meta`, whatever device is requested, except for `_FEW`."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call `func` with tensors of one device; a move to another device is one to `meta`."""
        named = dict(kwargs or {})
        if func in (Tensor.cuda, Tensor.cpu):
            return args[0]
        if func is Tensor.to:
            args = (args[0], *(_META if _is_device(each) else each for each in args[1:]))
        if func in _FEW:
            named.pop("device", None)
        elif "device" in named or func in _device_constructors():
            named["device"] = _META
        if any(isinstance(each, Tensor) and each.is_meta for each in tree_leaves((args, named))):
            args, named = tree_map_only(Tensor, _on_meta, (args, named))
        if func.__name__ in _RECURRENT and isinstance(args[-1], bool):
            return _in_one_step(func, args)
        return func(*args, **named)


def _in_one_step(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """A recurrent layer: its steps are all alike, and `meta` would take a second for a hundred."""
    sequence, *others, batch_first = args
    dim = 1 if batch_first else 0
    outputs, *states = func(sequence.narrow(dim, 0, 1), *others, batch_first)
    shape = list(outputs.shape)
    shape[dim] = sequence.shape[dim]
    return (outputs.new_empty(shape), *states)


class _Largest(TorchFunctionMode):
    """Makes random integers the largest that they may be: an index out of range always shows."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Call `func`; see the class."""
        named = dict(kwargs or {})
        made = func(*args, **named)
        if func in (torch.randint, torch.randint_like):
            bounds = [each for each in args if isinstance(each, int)]
            return made.fill_(int(named["high"] if "high" in named else bounds[-1]) - 1)
        return made


def _on_meta(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_meta else tensor.to(_META)


def _is_device(value: object) -> bool:
    return isinstance(value, str | int | torch.device) and not isinstance(value, bool)


def _is_integer(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


@functools.lru_cache(maxsize=1)
def _on_meta_once(problem: KernelBenchProblem) -> nn.Module:
    """Its model, which sees the file's own sizes in every run: some take seconds to make."""
    return problem.make()[1]


def _varied(module: ModuleType, sizes: Mapping[str, object]) -> ModuleType:
    path = Path(str(module.__file__))
    return import_file(path, "kernelbench_varied", changes=_Assigns(sizes))


class _Assigns(ast.NodeTransformer):
    """Assigns a global its new value behind each statement of the module that gives it one."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        self._sizes = sizes

    def visit_Module(self, tree: ast.Module) -> ast.Module:
        body: list[ast.stmt] = []
        for statement in tree.body:
            body.append(statement)
            for name in _given(statement) & self._sizes.keys():
                size = self._sizes[name]
                value = ast.parse(repr(size if isinstance(size, int) else tuple(size)), mode="eval")
                body.append(ast.Assign([ast.Name(name, ast.Store())], value.body))
        tree.body = body
        return tree


def _given(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set()
    nodes = ast.walk(statement)
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _sizes(module: ModuleType) -> dict[str, int | list[int]]:
    """The module's globals that are integers above 0, or lists of such."""
    found = {
        name: list(value) if isinstance(value, tuple | list) else value
        for name, value in vars(module).items()
        if _is_size(value)
    }
    return dict(islice(found.items(), _MOST_SIZES))


def _is_size(value: object) -> bool:
    items = value if isinstance(value, tuple | list) else (value,)
    return 0 < len(items) <= _MOST_ITEMS and all(
        type(item) is int and 0 < item < _LARGEST for item in items
    )
