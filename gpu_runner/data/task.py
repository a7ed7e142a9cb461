"""A task as data: what to compute, on which workloads, how close, and at what cost."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError, caught, refuse
from gpu_runner.data.formulas import Formula, formula_errors
from gpu_runner.data.signature import EIGHT_BIT_FLOATS, SCALAR_TYPES, Signature
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language

_REAL = ("float64", "float32", "float16", "bfloat16")
_ITEMSIZES = dict(SCALAR_TYPES.values())  # bytes, by dtype


class TaskFormat(StrEnum):
    """How a task's reference is written, and so how the oracle calls it."""

    KBENCH = "kbench"
    ROBUST_KBENCH = "robust-kbench"
    KERNELBENCH = "kernelbench"
    FLASHINFER_TRACE = "flashinfer-trace"


class Values(StrEnum):
    """How the floating-point inputs that a task draws are changed before a kernel sees them.

    A task says for each workload which family it gets; its reference must make sense of it.
    """

    DRAWN = "drawn"  # as the task's make_inputs drew them
    SMALL = "small"  # a thousandth of it
    LARGE = "large"  # a thousand times it
    SHIFTED = "shifted"  # the mean moved away from zero, by four standard deviations
    HEAVY = "heavy"  # heavy tails: a few elements are a hundred times the others
    STRUCTURED = "structured"  # equal rows, zeros and repeats: what a shortcut would look for
    INTEGERS = "integers"  # small integers: sums and products are exact in the task's dtype
    HARD = "hard"  # as the task's make_hard_inputs drew them
    NEAR = "near"  # as drawn, but for a few elements: for calls after the one with the same seed


KINDS_OF_VALUES: Mapping[Values, str] = {
    Values.DRAWN: "the task's usual values",
    Values.SMALL: "very small values",
    Values.LARGE: "very large values",
    Values.SHIFTED: "rows whose mean is far from zero",
    Values.HEAVY: "rows with a few very large values",
    Values.STRUCTURED: "repeated rows and rows of zeros",
    Values.INTEGERS: "whole numbers",
    Values.HARD: "the task's own hard values",
    Values.NEAR: "nearly the values of the previous call",
}
"""Families of values in words, for a person who is told that a kernel is wrong on one."""

WAYS_TO_TRY: Mapping[Values, str] = {
    Values.DRAWN: "draw new inputs",
    Values.SMALL: "divide the inputs by 1000",
    Values.LARGE: "multiply the inputs by 1000",
    Values.SHIFTED: "add four times its standard deviation to each row",
    Values.HEAVY: "multiply one input in 64 by 100",
    Values.STRUCTURED: "in every four rows, make one repeat the row before it and set one to zero",
    Values.INTEGERS: "round the inputs to whole numbers, including negative numbers and zeros",
    Values.HARD: "draw the inputs with make_hard_inputs from the task's reference",
    Values.NEAR: "call the kernel twice, and change a few inputs in between",
}
"""How a person can try values of that family. The engine's `values` draws them."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One concrete set of parameters for the input generator; hidden ones are for admins only.

    unlisted: hidden, and timed as the listed ones are: half of a score comes from these. Other
    hidden ones are checks, which are never timed.
    """

    name: str
    parameters: Mapping[str, Any]
    hidden: bool = False
    unlisted: bool = False
    values: Values = Values.DRAWN
    devices: tuple[DeviceKind, ...] = (DeviceKind.CUDA, DeviceKind.CPU)
    directions: tuple[Direction, ...] = (Direction.FORWARD, Direction.BACKWARD)

    def __post_init__(self) -> None:
        """What is unlisted is hidden."""
        if self.unlisted:
            object.__setattr__(self, "hidden", True)

    @property
    def timed(self) -> bool:
        """Whether its times count."""
        return self.unlisted or not self.hidden


@dataclass(frozen=True, kw_only=True)
class Part(Workload):
    """The first items of another workload's batch, with the same values."""

    whole: Workload
    counted: str  # the parameter that counts items

    @classmethod
    def of(cls, whole: Workload, counted: str, items: int) -> Part:
        """The first `items` of them."""
        parameters = {**whole.parameters, counted: items}
        name = f"{whole.name}, {counted} = {items}"
        return cls(
            name=name, parameters=parameters, values=whole.values, whole=whole, counted=counted
        )

    @property
    def items(self) -> int:
        return int(self.parameters[self.counted])


NEGLIGIBLE = {"float32": 2.0**-100, "bfloat16": 2.0**-100, "float64": 2.0**-996}
"""By dtype, the error that never counts, where the output's largest magnitude is 1 or less; else
that share of it. It is 2^26 times the smallest normal number.

Kernels keep the argument of an exponential above -80 or so, where it is 2^-115, or flush what is
small to zero; the rest is for what it is multiplied by. The small numbers of float16 are not small.
"""


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Bound on the scaled error of an output element.

    With eps the machine epsilon of the output's dtype and L the value of `reduction` (the number
    of terms that an output element sums up), an element passes if
    `|actual - expected| <= eps * (constant + growth * sqrt(L)) * scale`, where `scale` is what
    the reference's `forward_scale` or `backward_scale` returns, else
    `|expected| + rms(expected)`. No error as
    small as `NEGLIGIBLE` counts.
    """

    reduction: str = "1"
    constant: float = 16.0
    growth: float = 4.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a call must do, as expressions over the workload's parameters.

    `itemsize` is the size of an element of the task's dtype in bytes.

    flops: floating-point operations; bytes: compulsory traffic, each input read once and each
    output written once; weight: the weight in MSKernelBench's P score (defaults to `flops`).
    """

    flops: str
    bytes: str
    weight: str = ""


VERIFIER = "verify_fn"
"""Function of a reference.py that judges outputs, in the place of the comparison by `Tolerance`."""
_VERIFIES = re.compile(rf"^def {VERIFIER}\(", re.MULTILINE)
HARD_INPUTS = "make_hard_inputs"
"""Function of a reference.py that draws values on which wrong kernels fail; they are not timed."""
_DRAWS_HARD = re.compile(rf"^def {HARD_INPUTS}\(", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ShippedKernel:
    """A kernel that comes with a task; `agent` is the name under which it stands on the board."""

    path: str
    agent: str
    language: Language
    direction: Direction = Direction.FORWARD


_BEST = re.compile(r"kernels/best\.\w+")
PYTORCH = ("eager", "compiled")
"""Baselines that every task can have. Further ones are libraries that its reference calls."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A kernel problem. `files` maps relative paths to the texts of all its files."""

    name: str
    title: str
    format: TaskFormat
    abi: Abi
    workloads: tuple[Workload, ...]
    files: Mapping[str, str]
    scenario: str = "other"
    description: str = ""
    directions: tuple[Direction, ...] = (Direction.FORWARD,)
    dtype: str = "float32"
    signature: str = ""
    inout: tuple[str, ...] = ()
    tolerance: Tolerance = field(default_factory=Tolerance)
    work: Mapping[Direction, Work] = field(default_factory=dict)
    baselines: tuple[str, ...] = PYTORCH
    libraries: bool = False  # whether kernels may call vendor libraries such as cuBLAS
    kernels: tuple[ShippedKernel, ...] = ()
    schema_version: int = codec.SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Refuse a task that no evaluation could run; raises `DataErrors` naming the fields."""
        refuse(self.errors())

    def errors(self) -> Iterator[DataError]:
        """Why no evaluation could run the task."""
        if self.abi is Abi.C:
            yield from caught(Signature.parse, self.signature, self.inout)
            if self.directions != (Direction.FORWARD,):
                yield DataError("directions", "can only be forward in a task with the c ABI")
        if not self.workloads:
            yield DataError("workloads", "must contain at least one workload")
        names: set[str] = set()
        for index, workload in enumerate(self.workloads):
            if reason := self._wrong_values(workload):
                yield DataError(f"workloads[{index}].values", reason)
            if workload.name in names:
                yield DataError(f"workloads[{index}].name", "is also the name of another workload")
            names.add(workload.name)
        formulas = [self._reduction]
        for direction, work in self.work.items():
            flops, size, weight = self._work_formulas(direction)
            formulas += [flops, size, *([weight] if work.weight else [])]
        yield from formula_errors(formulas, [(w.name, w.parameters) for w in self.workloads])

    def _wrong_values(self, workload: Workload) -> str:
        if workload.unlisted and workload.values is not Values.DRAWN:
            return "must be 'drawn' in an unlisted workload"
        lacks = workload.values is Values.HARD and not self.has_hard_inputs
        return f"needs the function {HARD_INPUTS}()" if lacks else ""

    @property
    def _reduction(self) -> Formula:
        text = self.tolerance.reduction
        return Formula(field="tolerance.reduction", expression=text, constants={})

    def _work_formulas(self, direction: Direction) -> tuple[Formula, Formula, Formula]:
        """Those of flops, bytes and weight."""
        work, constants = self.work[direction], {"itemsize": _ITEMSIZES.get(self.dtype, 4)}
        texts = {"flops": work.flops, "bytes": work.bytes, "weight": work.weight or work.flops}
        flops, size, weight = (
            Formula(field=f"work.{direction.value}.{name}", expression=text, constants=constants)
            for name, text in texts.items()
        )
        return flops, size, weight

    @property
    def library_baselines(self) -> tuple[str, ...]:
        """Baselines that call a library by name, beside PyTorch's own; of the forward direction."""
        return tuple(name for name in self.baselines if name not in PYTORCH)

    def baselines_for(self, direction: Direction) -> tuple[str, ...]:
        libraries = self.library_baselines if direction is not Direction.FORWARD else ()
        return tuple(name for name in self.baselines if name not in libraries)

    @property
    def c_signature(self) -> Signature:
        """The parsed signature of a c-ABI task."""
        return Signature.parse(self.signature, self.inout)

    @property
    def has_verifier(self) -> bool:
        """Whether the task's own verifier judges outputs."""
        text = self.files.get("reference.py", "")
        return self.format is TaskFormat.KBENCH and _VERIFIES.search(text) is not None

    @property
    def has_hard_inputs(self) -> bool:
        """Whether the task draws values of `Values.HARD`."""
        text = self.files.get("reference.py", "")
        return self.format is TaskFormat.KBENCH and _DRAWS_HARD.search(text) is not None

    @property
    def real_dtype(self) -> str:
        """Dtype of the real numbers that kernels hand out; empty where they hand out integers.

        The task's own, if that is of 16 bits or more. The dtype of a task may also be one of what
        it multiplies, such as int8: then that of the first output of real numbers.
        """
        if self.dtype in _REAL:
            return self.dtype
        if self.abi is not Abi.C:
            return "float32"
        real = (*_REAL, *EIGHT_BIT_FLOATS)
        return next((p.dtype for p in self.c_signature.outputs if p.dtype in real), "")

    def digest(self) -> str:
        """SHA-256 over everything that can change a score, as 64 hex digits."""
        document = codec.encode(self)
        for workload in document["workloads"]:
            if not workload["unlisted"]:
                del workload["unlisted"]
        text = json.dumps(document, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def listed_digest(self) -> str:
        """The digest that the task would have without unlisted workloads and its best kernel.

        Results of a version that lacked them alone are comparable on what is listed.
        """
        listed = tuple(workload for workload in self.workloads if not workload.unlisted)
        best = {kernel.path for kernel in self.kernels if _BEST.fullmatch(kernel.path)}
        kernels = tuple(kernel for kernel in self.kernels if kernel.path not in best)
        files = {name: text for name, text in self.files.items() if name not in best}
        return replace(self, workloads=listed, kernels=kernels, files=files).digest()

    def workloads_for(
        self, kind: DeviceKind, direction: Direction, *, hidden: bool
    ) -> tuple[Workload, ...]:
        """The workloads of one kind of device and direction, with the hidden ones if asked."""
        return tuple(
            workload
            for workload in self.workloads
            if kind in workload.devices
            and direction in workload.directions
            and (hidden or not workload.hidden)
        )

    def other_values(
        self, workload: Workload, kind: DeviceKind, direction: Direction
    ) -> tuple[Values, ...]:
        """Families that others of the device's workloads have, and `HARD` where the task draws it.

        Kernels must be right on them, too, on a listed workload's parameters as on any: a source
        could ask for those. Integers are for workloads that were made for them: what they become
        may be few different terms, which all round the same way, and the bound on a long sum is
        that of a random walk.
        """
        families = {other.values for other in self.workloads_for(kind, direction, hidden=True)}
        families |= {Values.HARD} if self.has_hard_inputs else set()
        families -= {workload.values, Values.INTEGERS}
        return tuple(values for values in Values if values in families)

    def reduction_length(self, workload: Workload) -> float:
        """Number of terms that an output element sums up."""
        return self._reduction.value(workload.parameters)

    def cost(self, workload: Workload, direction: Direction) -> Cost | None:
        """The work formula's values for a workload, or None where the task has no formula."""
        if direction not in self.work:
            return None
        flops, size, weight = (
            formula.value(workload.parameters) for formula in self._work_formulas(direction)
        )
        return Cost(flops=flops, bytes=size, weight=weight)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Values of a `Work` for one workload."""

    flops: float
    bytes: float
    weight: float
