"""What the engine asks of a task's reference, whatever format it is written in."""

from __future__ import annotations

import importlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from gpu_runner.data.signature import EIGHT_BIT_FLOATS
from gpu_runner.data.task import Part, Task, TaskFormat, Values, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.seeding import reseed_all

if TYPE_CHECKING:  # what judges does not stand in the processes of submissions
    from gpu_runner.engine.problem.compare import Comparison

_ADAPTERS = {
    TaskFormat.KBENCH: "gpu_runner.engine.formats.native_problem",
    TaskFormat.ROBUST_KBENCH: "gpu_runner.engine.formats.robust_kbench",
    TaskFormat.KERNELBENCH: "gpu_runner.engine.formats.kernelbench",
    TaskFormat.FLASHINFER_TRACE: "gpu_runner.engine.formats.flashinfer_trace",
}
"""Each module has `make_problem(task: Task, folder: Path) -> Problem`."""


STORED = tuple(getattr(torch, name) for name in EIGHT_BIT_FLOATS)
"""Dtypes of floats that are stored, and not computed with."""


_INDICES = (torch.int32, torch.int64)
"""Dtypes of tensors that may say where something lies, such as the rows of a sparse matrix."""


class ProblemError(Exception):
    """The task's own files do not do what a task must; the text is for the task's author."""


@dataclass(frozen=True)
class Drawn:
    """Positional arguments of the kernel, as it sees them: tensors or plain values.

    Tensors are contiguous, on the device asked for, and floating ones are of the task's dtype.
    Tuples and lists may hold tensors. `values` holds everything that was drawn, by name: the c
    ABI looks up its parameters there.
    """

    names: tuple[str, ...]
    arguments: tuple[object, ...]
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> dict[str, object]:
        return dict(zip(self.names, self.arguments, strict=True))


@runtime_checkable
class TwoStep(Protocol):
    """A function whose caller has done a part before, such as the forward of a backward.

    Only what `prepare` returns is timed.
    """

    def prepare(self, arguments: tuple[object, ...]) -> Callable[[], object]:
        """Do the part that is not timed; the result does the rest, once."""
        ...

    def compiled(self) -> TwoStep:
        """The same under torch.compile."""
        ...

    def __call__(self, *arguments: object) -> object: ...


class Problem(ABC):
    """A task's reference, loaded. `device` is "cpu" or "cuda".

    A format adds `draw_inputs` and `function` at least. The last draw is kept.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._last: tuple[tuple[str, Values, Direction, int, str], Drawn] | None = None

    @abstractmethod
    def draw_inputs(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> Drawn:
        """`draw`, called after seeding and under the default device."""

    @abstractmethod
    def function(self, direction: Direction) -> Callable[..., object]:
        """The reference; takes `Drawn.arguments` by position."""

    def baseline(self, direction: Direction, library: str = "") -> Callable[..., object]:
        """What is timed as a baseline, and never judged by: takes the same arguments.

        The reference itself, but for a task that has another, or one for the `library`.
        """
        del library
        return self.function(direction)

    def has_baseline(self, direction: Direction) -> bool:
        """Whether that is another function than the reference."""
        del direction
        return False

    def draw(self, workload: Workload, direction: Direction, seed: int, device: str) -> Drawn:
        """Inputs of one call; the same bits whenever the arguments are the same.

        Raises `ProblemError` if the task's code raises.
        """
        key = (workload.name, workload.values, direction, seed, device)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None
        with torch.no_grad(), torch.device(device):
            reseed_all(seed)
            drawn = self.draw_inputs(workload, direction, seed, device)
        seen = Drawn(
            drawn.names,
            tuple(map(self.as_seen, drawn.names, drawn.arguments)),
            {name: self.as_seen(name, value) for name, value in drawn.values.items()},
        )
        if isinstance(workload, Part):
            seen = _first_items(seen, self.draw(workload.whole, direction, seed, device))
        self._last = (key, seen)
        return seen

    def as_seen(self, name: str, value: object) -> object:
        """The argument `name` as a kernel sees it: contiguous, floating tensors rounded."""
        return in_dtype(value, self.task.dtype)

    def forget(self) -> None:
        """Let go of the last draw's memory."""
        self._last = None

    def expected(
        self, workload: Workload, direction: Direction, seed: int, device: str
    ) -> tuple[Tensor, ...]:
        """Expected outputs, computed in float64 from the inputs as the kernel sees them."""
        drawn = self.draw(workload, direction, seed, device)
        with exact(device):
            return outputs_of(self.function(direction)(*in_float64(drawn.arguments)))

    def scale(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        expected: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...] | None:
        """Elementwise error scale of each output, or None for the default of `Tolerance`."""
        return None

    def has_verifier(self, direction: Direction) -> bool:
        """Whether `verified` judges, in the place of expected outputs."""
        del direction
        return False

    def verified(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        device: str,
        outputs: Mapping[str, Tensor],
    ) -> list[tuple[str, Comparison]] | None:
        """What the task's own verifier says of a call's outputs; None where it has none."""
        return None


@contextmanager
def exact(device: str) -> Iterator[None]:
    """No gradients, `device` as the default device and float64 as the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.device(device):
            yield
    finally:
        torch.set_default_dtype(before)


def map_tensors(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """`value` with `change` applied to every tensor in it, through tuples and lists."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(map_tensors(change, item) for item in value)
    return value


def _first_items(part: Drawn, whole: Drawn) -> Drawn:
    """What was drawn for a part, with the tensors that the whole begins with."""
    arguments = tuple(map(_beginning, part.arguments, whole.arguments))
    values = {name: _beginning(part.values[name], value) for name, value in whole.values.items()}
    return Drawn(part.names, arguments, values)


def _beginning(mine: object, whole: object) -> object:
    if isinstance(mine, tuple | list) and isinstance(whole, tuple | list):
        return type(mine)(map(_beginning, mine, whole))
    if not (isinstance(mine, Tensor) and isinstance(whole, Tensor)) or mine.shape == whole.shape:
        return whole if isinstance(mine, Tensor) else mine
    if mine.shape[1:] != whole.shape[1:] or len(mine) > len(whole):
        raise ProblemError(
            f"no part of a tensor of shape {tuple(whole.shape)} has shape {tuple(mine.shape)}"
        )
    if mine.dtype in _INDICES:
        raise ProblemError("some of the indices may point outside the part that is used")
    return whole[: len(mine)]


def in_dtype(value: Any, dtype: str) -> Any:
    """`value` with real tensors cast to the dtype of that name, and all made contiguous.

    Eight-bit floats stay, and so does everything under an integer's or an eight-bit float's name.
    Raises `ProblemError` on sparse and on complex tensors.
    """
    target: torch.dtype = getattr(torch, dtype)
    is_real = target.is_floating_point and target not in STORED

    def change(tensor: Tensor) -> Tensor:
        if tensor.layout is not torch.strided:
            raise ProblemError(f"tensors must be dense; this one's layout is {tensor.layout}")
        if tensor.is_complex():
            raise ProblemError(f"tensors must hold real numbers, not {tensor.dtype}")
        tensor = tensor.detach()
        real = is_real and tensor.is_floating_point() and tensor.dtype not in STORED
        return (tensor.to(target) if real else tensor).contiguous()

    return map_tensors(change, value)


def in_float64(value: Any) -> Any:
    """A deep copy of `value` with floating tensors in float64."""

    def change(tensor: Tensor) -> Tensor:
        dtype = torch.float64 if tensor.is_floating_point() else tensor.dtype
        return tensor.to(dtype, copy=True)

    return map_tensors(change, value)


def outputs_of(result: object) -> tuple[Tensor, ...]:
    """The tensors of a function's result in order, nested ones flattened and None left out.

    Those of a dictionary in its own order. Raises `ProblemError` on anything else, and on no tensor
    at all.
    """
    flat: list[Tensor] = []

    def visit(value: object) -> None:
        if isinstance(value, Tensor):
            flat.append(value.detach())
        elif isinstance(value, tuple | list):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            visit(list(value.values()))
        elif value is not None:
            raise ProblemError(f"returned {type(value).__name__}, not a tensor or tuple of tensors")

    visit(result)
    if not flat:
        raise ProblemError("returned no tensor")
    return tuple(flat)


def load_problem(task: Task, folder: Path) -> Problem:
    """Import the task's files, which lie in `folder`; only ever called inside a jailed process.

    Raises `ProblemError` if they cannot be imported or lack a function.
    """
    module = importlib.import_module(_ADAPTERS[task.format])
    problem: Problem = module.make_problem(task, folder)
    return problem


def write_files(task: Task) -> tempfile.TemporaryDirectory[str]:
    """The task's files in a fresh folder under TMPDIR. Raises `ProblemError` on a path outside."""
    folder = tempfile.TemporaryDirectory(prefix="task-")
    root = Path(folder.name).resolve()
    for name, text in task.files.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ProblemError(f"the file {name!r} lies outside the task")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
