"""What the torch runner measures: a submission's extension, or the task's own function."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import itertools
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_runner.data import codec
from gpu_runner.data.task import PYTORCH, Task
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.problem.arguments import Described, leaves, rebuild, tensor_entries
from gpu_runner.engine.problem.problem import (
    Drawn,
    ProblemError,
    TwoStep,
    load_problem,
    map_tensors,
    outputs_of,
    write_files,
)
from gpu_runner.engine.runner.clock import HeadStart
from gpu_runner.engine.runner.returned import CallError

_WARM_SEED = 0  # of inputs that no call gets
_NULL_SETS, _NULL_BYTES = 4, 1 << 30  # chosen: more than a cache holds, far less than a device
Arrange = Callable[[Sequence[Tensor]], tuple[object, ...]]


@dataclass(frozen=True)
class Prepared:
    """A function and one workload of it.

    arrange: the arguments from the input tensors in the order of the CALL; looks at none of their
    values. owned: numbers of those that the function may write to, because they are its own
    buffers. fill: copies these on a device. inputs: their descriptions. dtypes: of the outputs.
    warm: inputs to warm up with, none for a submission. before: of a baseline, does what is not
    timed, and returns what is to be called without arguments instead. recordable: a device's bursts
    of it may be recorded (see `Recorder`).
    """

    function: Callable[..., object]
    arrange: Arrange
    inputs: list[Described]
    dtypes: list[str]
    warm: list[Tensor]
    before: Callable[[tuple[object, ...]], Callable[[], object]] | None = None
    fill: Callable[[], None] = lambda: None
    owned: frozenset[int] = frozenset()
    recordable: bool = False
    head_start: HeadStart = field(default_factory=HeadStart)


class Subject(Protocol):
    """Makes a function ready for a workload, from the SETUP's JSON."""

    def prepare(self, setup: dict[str, object], device: str) -> Prepared:
        """Raises `CallError` or `ProblemError` if there is no such function."""
        ...


class Extension:
    """A compiled PyTorch extension."""

    def __init__(self, path: Path, name: str) -> None:
        """Load it. Raises `CallError` (SYMBOL) if that fails."""
        try:
            self._module = load_extension(path, name)
        except ImportError as error:
            raise CallError(ErrorCode.SYMBOL, f"the extension does not load: {error}") from None

    def prepare(self, setup: dict[str, Any], device: str) -> Prepared:
        """See `Subject.prepare`."""
        direction = setup["direction"]
        function = getattr(self._module, direction, None)
        if not callable(function):
            raise CallError(ErrorCode.SYMBOL, f"the extension exports no function {direction!r}")
        described = setup["arguments"]
        return Prepared(
            function=function,
            arrange=lambda tensors: rebuild(described, iter(tensors)),
            inputs=tensor_entries(described),
            dtypes=[entry["dtype"] for entry in setup["outputs"]],
            warm=[],
        )


def load_extension(path: Path, name: str) -> ModuleType:
    """Import a PyTorch extension from its file. Raises `ImportError`."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"not an extension: {path.name}")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Null:
    """A function that does nothing: its outputs are there before it is called.

    On a device there are several sets of them by turns: what is copied from one place again and
    again stays in the cache, as a kernel's outputs do not.
    """

    def prepare(self, setup: dict[str, Any], device: str) -> Prepared:
        """See `Subject.prepare`."""
        nbytes = sum(entry["nbytes"] for entry in setup["outputs"])
        sets = 1 if device == "cpu" else min(_NULL_SETS, 1 + _NULL_BYTES // max(nbytes, 1))
        outputs = itertools.cycle([_zeros(setup["outputs"], device) for _ in range(sets)])
        return Prepared(
            function=lambda *_: next(outputs),
            arrange=tuple,
            inputs=tensor_entries(setup["arguments"]),
            dtypes=[entry["dtype"] for entry in setup["outputs"]],
            warm=[],
            recordable=True,
        )


def _zeros(entries: Sequence[Described], device: str) -> tuple[Tensor, ...]:
    return tuple(
        torch.zeros(entry["shape"], dtype=getattr(torch, entry["dtype"]), device=device)
        for entry in entries
    )


class Baseline:
    """The task's own function, or the one that it has for this: eager, compiled, or a library's."""

    def __init__(self, kind: str, direction: Direction) -> None:
        self._library = "" if kind in PYTORCH else kind
        self._compiled = kind == "compiled"
        self._direction = direction
        self._folders: list[tempfile.TemporaryDirectory[str]] = []
        if self._compiled:
            _settle_compiler()

    def prepare(self, setup: dict[str, Any], device: str) -> Prepared:
        """See `Subject.prepare`.

        Every workload gets its own copy of the code: `torch.compile` counts the specialisations
        of a function and would silently stop compiling after some.
        """
        task = codec.decode(Task, setup["task"], "task")
        workload = next(w for w in task.workloads if w.name == setup["workload"])
        folder = write_files(task)
        self._folders.append(folder)
        problem = load_problem(task, Path(folder.name))
        drawn = problem.draw(workload, self._direction, _WARM_SEED, device)
        function = problem.baseline(self._direction, self._library)
        dtypes = [entry["dtype"] for entry in setup["outputs"]]
        if task.abi is Abi.C:
            function = _stored(function, dtypes)
        before = None
        if isinstance(function, TwoStep):
            steps = function.compiled() if self._compiled else function
            before = _under_device(steps.prepare, device)
        elif self._compiled:
            function = torch.compile(self._with_device(function, drawn, device), dynamic=False)
        else:
            function = self._with_device(function, drawn, device)
        problem.forget()
        inputs = tensor_entries(setup["arguments"])
        by_name = task.abi is Abi.C
        return Prepared(
            function=function,
            arrange=_arrangement(drawn, [e["name"] for e in inputs] if by_name else None),
            inputs=inputs,
            dtypes=dtypes,
            warm=_warm_inputs(drawn, inputs, by_name=by_name),
            before=before,
        )

    @staticmethod
    def _with_device(
        function: Callable[..., object], drawn: Drawn, device: str
    ) -> Callable[..., object]:
        """`function` itself where it works without a default device, which slows every call."""
        if device == "cpu":
            return function
        arguments = map_tensors(torch.clone, drawn.arguments)
        try:
            with OnTheHost() as host:
                outputs = outputs_of(function(*arguments))
        except (RuntimeError, ValueError):
            return _under_device(function, device)
        stays = all(output.device.type == device for output in outputs)
        return function if stays and not host.made else _under_device(function, device)


class OnTheHost(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices tensors that are made on the host: an index there is copied at every call.

    Single numbers there are none: torch passes them along with a kernel.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made = False

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Do the operation, and look at what it gives."""
        result = func(*args, **(kwargs or {}))
        found = result if isinstance(result, list | tuple) else [result]
        self.made = self.made or any(
            isinstance(t, Tensor) and t.dim() > 0 and t.device.type == "cpu" for t in found
        )
        return result


def _stored(function: Callable[..., object], dtypes: Sequence[str]) -> Callable[..., object]:
    """`function` with its outputs as the C signature has them: dense, and in its dtypes.

    References compute in wider ones, or return a transposed view; a kernel has to store them, too.
    """

    def stored(*arguments: object) -> tuple[Tensor, ...]:
        outputs = outputs_of(function(*arguments))
        if len(outputs) != len(dtypes):
            return tuple(outputs)
        pairs = zip(outputs, dtypes, strict=True)
        return tuple(output.to(getattr(torch, dtype)).contiguous() for output, dtype in pairs)

    return stored


def _under_device(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """`function` with `device` as the default of every tensor that it makes."""

    def under_device(*arguments: object) -> object:
        with torch.device(device):
            return function(*arguments)

    return under_device


def _settle_compiler() -> None:
    """Caches under TMPDIR, and no pool of compiling processes that could disturb the times.

    Headers are not precompiled: in a fresh TMPDIR that takes longer than it saves. A jail has no
    user database to ask for the name that is part of some paths.
    """
    root = Path(tempfile.gettempdir())
    os.environ.setdefault("LOGNAME", "kbench")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(root / "inductor"))
    os.environ.setdefault("TRITON_CACHE_DIR", str(root / "triton"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")


def _arrangement(drawn: Drawn, names: list[str] | None) -> Arrange:
    """Put the call's tensors where `drawn` has its own: by name, or one after the other."""
    names_drawn = drawn.names
    template = map_tensors(lambda tensor: tensor.to("meta"), drawn.arguments)  # holds no memory

    def by_name(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        found = dict(zip(names or (), tensors, strict=True))
        return tuple(
            found[name] if isinstance(value, Tensor) else value
            for name, value in zip(names_drawn, template, strict=True)
        )

    def in_order(tensors: Sequence[Tensor]) -> tuple[object, ...]:
        left = iter(tensors)
        return tuple(map_tensors(lambda _: next(left), template))

    if names is None:
        return in_order
    for name, value in zip(drawn.names, drawn.arguments, strict=True):
        if isinstance(value, Tensor) and name not in names:
            reason = (
                f"forward_fn takes the tensor {name!r}, but the signature has no pointer for it"
            )
            raise ProblemError(reason)
    return by_name


def _warm_inputs(drawn: Drawn, inputs: list[Described], *, by_name: bool) -> list[Tensor]:
    if by_name:
        found = {**drawn.values, **drawn.named}
        return [found[entry["name"]] for entry in inputs]
    return list(leaves(drawn.arguments))
