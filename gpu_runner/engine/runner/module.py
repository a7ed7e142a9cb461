"""A submission that is a Python module, as the torch runner calls it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from gpu_runner.data.normal_form import NormalForm
from gpu_runner.data.verdict import Direction
from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.problem.arguments import Described, rebuild, tensor_entries
from gpu_runner.engine.runner.beside import Beside, Given
from gpu_runner.engine.runner.model_weights import Weights, hold_still, plain_of
from gpu_runner.engine.runner.prepared import MODULE
from gpu_runner.engine.runner.returned import CallError
from gpu_runner.engine.runner.subject import Prepared

MODEL = "ModelNew"


def load_module(path: Path, form: NormalForm) -> ModuleType:
    """Run a submission's text as the module of this path.

    Raises `CallError` (SYMBOL) that says what is wrong in which line of the source.
    """
    loader = Given(MODULE, path, form.text)
    inner: list[str] | None = None
    if form.files:
        beside, inner = Beside(MODULE, path.parent, form.files), []
        if name := beside.hidden():
            reason = f"{name} has the name of a module that is installed on this runner; rename it"
            raise CallError(ErrorCode.SYMBOL, reason)
        beside.take_part()
    spec = importlib.util.spec_from_file_location(
        MODULE, path, loader=loader, submodule_search_locations=inner
    )
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # compilers of kernels look it up there
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CallError(ErrorCode.SYMBOL, what_failed(error, path, form)) from error
    return module


def what_failed(error: BaseException, path: Path, form: NormalForm) -> str:
    """Why a module could not be imported, in a sentence that begins with its line."""
    if isinstance(error, SyntaxError) and (place := _place(error, path, form)):
        return f"{place}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    place = next(filter(None, (_place(frame, path, form) for frame in reversed(frames))), "")
    where = f"{place}: " if place else ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{where}imports {error.name!r}, which isn't installed on this runner"
    if isinstance(error, SystemExit):
        return f"{where}asks to exit"
    text = "\n".join(str(error).splitlines()[:5])[:1000]
    return f"{where}{type(error).__name__}: {text}" if text else where + type(error).__name__


def _place(at: traceback.FrameSummary | SyntaxError, path: Path, form: NormalForm) -> str:
    """A line of the entry, or of a file beside it, for their author; empty of anything else."""
    if at.filename == str(path):
        return f"line {form.source_line(at.lineno)}"
    name = (at.filename or "").removeprefix(f"{path.parent}/")
    return f"{name}, line {at.lineno}" if name in form.files else ""


def entry_of(module: ModuleType, direction: Direction) -> Any:
    """What is to be called: the class `ModelNew`, else the direction's function.

    Raises `CallError` (SYMBOL) where there is neither.
    """
    model = getattr(module, MODEL, None)
    if direction is Direction.FORWARD and isinstance(model, type):
        return model
    function = getattr(module, direction.value, None)
    if callable(function):
        return function
    wanted = f"function {direction.value!r}"
    wanted += f" or class {MODEL!r}" if direction is Direction.FORWARD else ""
    raise CallError(ErrorCode.SYMBOL, f"the module exports no {wanted}")


class Module:
    """A Python module that exports a function, or KernelBench's `ModelNew`."""

    def __init__(self, path: Path, form: NormalForm, direction: Direction) -> None:
        """Import it. Raises `CallError` (SYMBOL) if that fails."""
        self._entry = entry_of(load_module(path, form), direction)

    def prepare(self, setup: dict[str, Any], device: str) -> Prepared:
        """See `Subject.prepare`. A model is made for each workload anew."""
        given = [entry for entry in setup["arguments"] if entry["kind"] != "output"]
        function: Callable[..., object] = self._entry

        def arrange(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
            return rebuild(given, iter(tensors))

        if isinstance(self._entry, type):
            model, weights = _made(self._entry, setup.get("model"), given, device)
            put = _prepared(setup, model, lambda tensors: weights.put(arrange(tensors)))
            return replace(put, fill=weights.fill, owned=weights.owned)
        return _prepared(setup, function, arrange)


def _prepared(
    setup: dict[str, Any],
    function: Callable[..., Any],
    arrange: Callable[[Sequence[Tensor]], tuple[Any, ...]],
) -> Prepared:
    return Prepared(
        function=function,
        arrange=arrange,
        inputs=tensor_entries(setup["arguments"]),
        dtypes=[entry["dtype"] for entry in setup["outputs"]],
        warm=[],
        recordable=True,
    )


def _made(
    entry: type, told: dict[str, Any] | None, given: list[Described], device: str
) -> tuple[Callable[..., Any], Weights]:
    """The model, and how a call's arguments become its weights."""
    told = told or {"arguments": [], "keywords": {}, "inputs": len(given)}
    if reason := told.get("reason"):
        raise CallError(ErrorCode.SYMBOL, f"{MODEL} cannot be created: {reason}; export 'forward'")
    arguments = map(plain_of, told["arguments"])
    model = entry(*arguments, **{name: plain_of(v) for name, v in told["keywords"].items()})
    if isinstance(model, nn.Module):
        model = hold_still(model.to(device))
    elif not callable(model):
        raise CallError(ErrorCode.SYMBOL, f"{MODEL} returns an object that cannot be called")
    return model, Weights(model, told, given, device)
