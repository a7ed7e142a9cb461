"""FlashInfer Trace's definitions and workloads as tasks, in the layout of its data set.

`definitions/OP/NAME.json` with `workloads/OP/NAME.jsonl`, or `definition.json` with
`workload.jsonl` in a folder, as SOL-ExecBench has them.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from gpu_runner.data.codec import DataError, decode, refuse
from gpu_runner.data.formats.naming import NAME_LIMIT, plain_name
from gpu_runner.data.formats.reading import Reading
from gpu_runner.data.formats.robust_kbench import UNKNOWN_REDUCTION
from gpu_runner.data.formats.source import needs_cuda, parse_module
from gpu_runner.data.formats.sweeps import WORKLOADS_LIMIT
from gpu_runner.data.formats.task_errors import usable_task
from gpu_runner.data.formats.text import object_of, read_text
from gpu_runner.data.formats.trace_definition import (
    CAPTURED,
    DEFINITION,
    INPUTS,
    RANDOM,
    REFERENCE,
    TENSORS,
    UUID,
    Definition,
)
from gpu_runner.data.task import Task, TaskFormat, Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction

ELEMENTS_LIMIT = 1 << 16  # chosen: offsets and page numbers of a batch, not its activations
_HEADER_LIMIT = 1 << 22  # chosen: thousands of tensors' entries
_CODES = {
    **{"I64": ("int64", "q"), "I32": ("int32", "i"), "I16": ("int16", "h"), "I8": ("int8", "b")},
    **{"U8": ("uint8", "B"), "BOOL": ("bool", "?"), "F32": ("float32", "f")},
    "F64": ("float64", "d"),
}
"""The file's name of a dtype: torch's name, and that of `struct`."""
CPU_ELEMENTS = 1 << 20  # chosen: what references in float64 and loops of Python take seconds for
_TENSORS_LIMIT = 1 << 20  # characters; chosen: half of what a task's files may have
_NAME_LIMIT = 160  # chosen: below the limit of a workload's name, with room for a uuid
_REAL = ("float64", "float32", "float16", "bfloat16")
_NO_TOLERANCE = "its tolerances are ignored: bounds follow from the reference's own errors"


def read_tensor(path: Path, key: str, field: str) -> tuple[str, list[int], list[int | float]]:
    """A tensor's dtype by torch's name, its shape, and its elements in row-major order.

    Raises `DataError` (`field`) if there is no such tensor, or it is no small one of plain numbers.
    """
    try:
        with path.open("rb") as file:
            dtype, shape, numbers = _read(file, key, field)
    except DataError:
        raise
    except OSError:
        raise DataError(
            field, "is in a missing file; download the data set's blob/ folder"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        raise DataError(field, "isn't in a safetensors file (is it a Git LFS pointer?)") from None
    if not all(map(math.isfinite, numbers)):
        raise DataError(field, "contains numbers that are not finite")
    return dtype, shape, numbers


def _read(file: BinaryIO, key: str, field: str) -> tuple[str, list[int], list[int | float]]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _HEADER_LIMIT:
        raise ValueError
    entry = json.loads(file.read(length)).get(key)
    if entry is None:
        raise DataError(field, f"refers to the tensor {key!r}, which isn't in the file")
    if entry["dtype"] not in _CODES:
        raise DataError(field, f"is {entry['dtype']}; a task can store only {', '.join(_CODES)}")
    dtype, code = _CODES[entry["dtype"]]
    shape = [int(size) for size in entry["shape"]]
    count = math.prod(shape)
    if not 0 <= count <= ELEMENTS_LIMIT:
        raise DataError(field, f"has more than {ELEMENTS_LIMIT} elements, too many for a task")
    file.seek(8 + length + int(entry["data_offsets"][0]))
    layout = f"<{count}{code}"
    return dtype, shape, list(struct.unpack(layout, file.read(struct.calcsize(layout))))


def is_definition(path: Path) -> bool:
    """Whether a JSON file has a definition, to tell it from an encoded task."""
    return _has(path, {"axes", "inputs", "outputs", "reference"})


def is_solution(path: Path) -> bool:
    """Whether a JSON file has a solution: a kernel, and no task."""
    return _has(path, {"definition", "sources", "spec"})


def _has(path: Path, keys: set[str]) -> bool:
    try:
        return keys <= object_of(read_text(path, path.name), path.name).keys()
    except DataError:
        return False


def read_flashinfer_trace(path: Path) -> Reading:
    """Read a definition and its workloads; raises `DataError` naming what is wrong or missing.

    Workloads that can't be taken are left out, each with its reason; if none is left, these are
    raised.
    """
    file = path / DEFINITION if path.is_dir() else path
    document = object_of(read_text(file, file.name), file.name)
    reference = document.pop("reference", None)
    if not isinstance(reference, str):
        raise DataError("reference", "must be Python source with the function run()")
    definition = decode(Definition, _without_nulls(document))
    refuse(itertools.chain(definition.errors(), definition.reference_errors(reference)))
    found = _Workloads(definition, *places(file))
    found.read(cuda_only=needs_cuda(parse_module(reference, REFERENCE)))
    if not found.taken:
        refuse(DataError(*reason) for reason in dict.fromkeys(found.reasons))
    files = {DEFINITION: json.dumps(_without_nulls(document), indent=1) + "\n"}
    files[REFERENCE] = reference
    files |= {TENSORS: json.dumps(found.captured) + "\n"} if found.captured else {}
    real = [s.dtype for s in (*definition.outputs.values(), *definition.inputs.values())]
    task = Task(
        name=plain_name(definition.name).replace(".", "_")[:NAME_LIMIT],
        title=definition.name,
        format=TaskFormat.FLASHINFER_TRACE,
        abi=Abi.TORCH,
        scenario="llm",
        description=_description(definition),
        directions=(Direction.FORWARD,),
        dtype=next((dtype for dtype in real if dtype in _REAL), "float32"),
        workloads=(*found.taken, *_checks(definition, found.taken)),
        files=files,
        tolerance=UNKNOWN_REDUCTION,
    )
    return Reading(
        task=usable_task(task),
        adaptations=tuple(found.adaptations()),
        remarks=("all its workloads are listed; a competition needs unlisted ones",),
    )


def _checks(definition: Definition, public: Sequence[Workload]) -> Iterator[Workload]:
    """Hidden workloads that are checked and not timed: the smallest of each kind of device.

    With small values an epsilon counts that a kernel may have left out.
    """
    by_size = sorted(public, key=lambda workload: definition.elements(workload.parameters))
    firsts = {each.devices: each for each in reversed(by_size)}
    for devices, first in firsts.items():
        name = f"small values, {devices[-1].value}"
        yield replace(first, name=name, hidden=True, values=Values.SMALL)


def _without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """A definition without optional fields that are null; a shape of null is a number's."""
    return {name: value for name, value in document.items() if value is not None}


def places(file: Path) -> tuple[Path, Path]:
    """The file with the workloads of a definition, and the folder that tensors' paths start at."""
    if file.name == DEFINITION:
        return file.with_name("workload.jsonl"), file.parent
    for folder in file.absolute().parents:
        if folder.name == "definitions":
            relative = file.absolute().relative_to(folder).with_suffix(".jsonl")
            return folder.parent / "workloads" / relative, folder.parent
    return file.with_suffix(".jsonl"), file.parent


def _description(definition: Definition) -> str:
    def listed(name: str) -> str:
        spec = (definition.inputs | definition.outputs)[name]  # type: ignore[operator]
        shape = "a number" if spec.shape is None else f"[{', '.join(spec.shape)}]"
        said = spec.others.get("description")
        return f"- `{name}`: {shape}, {spec.dtype}{f'. {said}' if said else ''}"

    parts = [
        definition.description or "",
        "The kernel's function `forward` takes, by position:",
        "\n".join(map(listed, definition.inputs)),
        "It returns:",
        "\n".join(map(listed, definition.outputs)),
        *(f"Always: `{constraint}`." for constraint in definition.constraints),
    ]
    return "\n\n".join(part for part in parts if part)


@dataclass
class _Workloads:
    """The workloads of a definition, as far as they can be taken.

    captured: their tensors, by uuid and name; reasons: field and reason of each that was left out.
    """

    definition: Definition
    file: Path
    root: Path
    taken: list[Workload] = field(default_factory=list)
    captured: dict[str, dict[str, list[int | float]]] = field(default_factory=dict)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    has_tolerance: bool = False
    cuda_only: bool = False
    _size: int = 0  # characters of the tensors

    def read(self, *, cuda_only: bool) -> None:
        """Read every line of the file; raises `DataError` if there is none."""
        self.cuda_only = cuda_only
        if not self.file.is_file():
            reason = "is missing; it sets the values of variable axes"
            raise DataError(f"workloads/{self.file.name}", reason)
        for number, line in enumerate(read_text(self.file, self.file.name).splitlines(), 1):
            if line.strip():
                try:
                    self._add(object_of(line, f"{self.file.name}, line {number}"))
                except DataError as error:
                    self.reasons.append((error.field, error.reason))

    def adaptations(self) -> Iterator[str]:
        """What the task has otherwise than the files say."""
        every = len(self.taken) + len(self.reasons)
        for (name, reason), count in Counter(self.reasons).items():
            yield f"skips {count} of {every} workloads: {name} {reason}"
        if self.has_tolerance:
            yield _NO_TOLERANCE
        if self.cuda_only:
            yield "it is only for CUDA devices, because it refers to CUDA"

    def _add(self, line: Mapping[str, Any]) -> None:
        trace = line.get("workload", line)  # a trace's, or as it is
        if line.get("definition", self.definition.name) != self.definition.name:
            raise DataError("definition", f"is not {self.definition.name}")
        axes, inputs, uuid = (trace.get(name) for name in ("axes", INPUTS, UUID))
        if not isinstance(axes, dict) or not isinstance(inputs, dict) or not isinstance(uuid, str):
            raise DataError("workload", "must have axes, inputs and uuid")
        if any(workload.parameters[UUID] == uuid for workload in self.taken):
            return
        if len(self.taken) >= WORKLOADS_LIMIT:
            raise DataError("workloads", f"are more than {WORKLOADS_LIMIT}")
        own = {name: axes[name] for name in axes if self._is_variable(name)}
        special = {name: each for name, each in inputs.items() if each != {"type": RANDOM}}
        parameters = {**own, INPUTS: special, UUID: uuid}
        tensors = self._tensors(special, own)
        refuse(self.definition.workload_errors(parameters, tensors, "workload"))
        if tensors:
            self._keep(uuid, tensors)
        self.has_tolerance |= "tolerance" in trace
        few = self.definition.elements(own) <= CPU_ELEMENTS and not self.cuda_only
        devices = (DeviceKind.CUDA, DeviceKind.CPU) if few else (DeviceKind.CUDA,)
        forward = (Direction.FORWARD,)
        name = self._name(own, uuid)
        self.taken.append(
            Workload(name=name, parameters=parameters, devices=devices, directions=forward)
        )

    def _is_variable(self, name: str) -> bool:
        """Whether a workload's axis is to be kept; some repeat constants."""
        axis = self.definition.axes.get(name)
        return axis is None or axis.type == "var"

    def _name(self, axes: Mapping[str, object], uuid: str) -> str:
        name = ", ".join(f"{axis}={value}" for axis, value in axes.items())[:_NAME_LIMIT]
        taken = {workload.name for workload in self.taken}
        return name if name and name not in taken else f"{name} {uuid[:36]}".strip()

    def _tensors(
        self, inputs: Mapping[str, Any], axes: Mapping[str, Any]
    ) -> dict[str, list[int | float]]:
        found = {}
        for name, entry in inputs.items():
            spec = self.definition.inputs.get(name)
            if not isinstance(entry, dict) or entry.get("type") != CAPTURED or spec is None:
                continue
            place = f"inputs.{name}"
            path = (self.root / str(entry.get("path"))).resolve()
            if not path.is_relative_to(self.root.resolve()):
                raise DataError(place, "is in a file outside the data set")
            dtype, shape, numbers = read_tensor(path, str(entry.get("tensor_key")), place)
            extents = self.definition.extents(axes)
            wanted = [extents[axis] for axis in spec.shape or ()]
            if (dtype, shape) != (spec.dtype, wanted):
                told = f"is {dtype} with shape {shape}"
                raise DataError(place, f"{told}, but the definition has {spec.dtype}, {wanted}")
            found[name] = numbers
        return found

    def _keep(self, uuid: str, tensors: dict[str, list[int | float]]) -> None:
        self._size += len(json.dumps(tensors))
        if self._size > _TENSORS_LIMIT:
            reason = f"are more than {_TENSORS_LIMIT} characters in total, too many for a task"
            raise DataError("tensors", reason)
        self.captured[uuid] = tensors
