"""Definitions of FlashInfer Trace, whole or as a task's files: what `run()` takes and returns.

Source of the format: flashinfer-bench 0.1.2 (`data/definition.py`, `data/workload.py`). NVIDIA's
SOL-ExecBench adds axes that follow from others, and inputs that the reference itself draws.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.codec import DataError, Open, caught, decode, errors_of
from gpu_runner.data.formats.reading import import_errors
from gpu_runner.data.formats.source import functions, parameter_names, parse_module
from gpu_runner.data.formats.text import object_of
from gpu_runner.data.formulas import evaluate
from gpu_runner.data.task import Task, TaskFormat
from gpu_runner.data.wire import DTYPES

DEFINITION, REFERENCE, TENSORS = "definition.json", "reference.py", "tensors.json"
"""A task's files: the definition without its reference, that, and tensors of workloads."""
INPUTS, UUID = "inputs", "uuid"
"""Keys of a workload's parameters that are no axes; of the inputs, random ones are left out."""
RANDOM, SCALAR, CAPTURED, CUSTOM = "random", "scalar", "safetensors", "custom"
_DRAWS = frozenset(
    {"bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randn", "randn_like"}
    | {"randperm"}
)


@dataclass(frozen=True, kw_only=True)
class Axis(Open):
    """A size: `const` has its value, `expr` its expression, and `var` gets one from a workload."""

    type: str
    value: int | None = None
    expression: str = ""


@dataclass(frozen=True, kw_only=True)
class TensorSpec(Open):
    """A tensor; the shape names axes, and is None for a number."""

    shape: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True, kw_only=True)
class Definition(Open):
    """What a kernel takes and returns, in this order; the reference stands apart."""

    name: str
    axes: Mapping[str, Axis]
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    description: str | None = None
    constraints: tuple[str, ...] = ()
    custom_inputs_entrypoint: str | None = None

    def extents(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The value of every axis, given those of `var` ones; raises `DataError` (`axes.NAME`)."""
        found: dict[str, int] = {}
        for name, axis in self.axes.items():
            value = given.get(name) if axis.type == "var" else axis.value
            if axis.type != "expr":
                if type(value) is not int or value < 0:
                    raise DataError(f"axes.{name}", "must be a whole number, 0 or more")
                found[name] = value
        for name, axis in self.axes.items():
            if axis.type == "expr":
                found[name] = int(evaluate(axis.expression, found, f"axes.{name}.expression"))
        return found

    def elements(self, given: Mapping[str, Any]) -> int:
        """Elements of all inputs and outputs together."""
        extents = self.extents(given)
        specs = [*self.inputs.values(), *self.outputs.values()]
        return sum(math.prod(extents[name] for name in spec.shape or ()) for spec in specs)

    def errors(self) -> Iterator[DataError]:
        """Why no task can be made of it."""
        for name, axis in self.axes.items():
            if name in (INPUTS, UUID):
                yield DataError(f"axes.{name}", "is a name that kbench reserves")
            if axis.type not in ("const", "var", "expr"):
                yield DataError(f"axes.{name}.type", f"{axis.type!r} is not const, var or expr")
        if not self.outputs:
            yield DataError("outputs", "is empty")
        for name in self.inputs.keys() & self.outputs.keys():
            yield DataError(f"outputs.{name}", "is also the name of an input")
        for group, specs in (("inputs", self.inputs), ("outputs", self.outputs)):
            for name, spec in specs.items():
                yield from self._spec_errors(spec, f"{group}.{name}")

    def _spec_errors(self, spec: TensorSpec, field: str) -> Iterator[DataError]:
        if spec.dtype not in DTYPES:
            yield DataError(f"{field}.dtype", f"{spec.dtype!r} is not one of {', '.join(DTYPES)}")
        if spec.shape is None and field.startswith("outputs."):
            yield DataError(f"{field}.shape", "is null: kernels return tensors, not numbers")
        for axis in spec.shape or ():
            if axis not in self.axes:
                yield DataError(f"{field}.shape", f"uses {axis!r}, which is not one of the axes")

    def reference_errors(self, text: str) -> Iterator[DataError]:
        """Why the engine could not call the reference."""
        try:
            tree = parse_module(text, REFERENCE)
        except DataError as error:
            yield error
            return
        yield from import_errors({REFERENCE: text})
        own, draws = functions(tree), self.custom_inputs_entrypoint
        if draws and draws not in own:
            yield DataError(
                "custom_inputs_entrypoint", f"{draws!r} is not a function in the reference"
            )
        if "run" not in own:
            yield DataError(REFERENCE, "must define the function run()")
            return
        run = own["run"]
        if run.args.vararg is None and len(parameter_names(run)) != len(self.inputs):
            takes = f"has a run() with {len(parameter_names(run))} parameters"
            yield DataError(
                REFERENCE, f"{takes}, but there are {len(self.inputs)} inputs", run.lineno
            )
        for name, function in own.items():
            for call in ast.walk(function) if name != draws else ():
                if isinstance(call, ast.Attribute) and call.attr in _DRAWS:
                    reason = f"is random: it calls {call.attr}(), so nothing can match it"
                    yield DataError(REFERENCE, f"{reason} (line {call.lineno})", call.lineno)

    def workload_errors(
        self, parameters: Mapping[str, Any], captured: Mapping[str, Any], field: str
    ) -> Iterator[DataError]:
        """Why a workload's parameters give no inputs; `captured` has its tensors' elements."""
        yield from caught(self.extents, parameters)
        wanted = {name for name, axis in self.axes.items() if axis.type == "var"}
        for name in parameters.keys() - wanted - {INPUTS, UUID}:
            yield DataError(f"{field}.{name}", "is not a variable axis of the definition")
        try:
            given = decode(
                dict[str, dict[str, Any]], parameters.get(INPUTS, {}), f"{field}.{INPUTS}"
            )
        except DataError as error:
            yield error
            return
        for name in given.keys() - self.inputs.keys():
            yield DataError(f"{field}.{INPUTS}.{name}", "is not an input of the definition")
        for name, spec in self.inputs.items():
            reason = self._input_reason(given.get(name, {"type": RANDOM}), spec, name in captured)
            if reason:
                yield DataError(f"{field}.{INPUTS}.{name}", reason)

    def _input_reason(self, entry: Mapping[str, Any], spec: TensorSpec, is_captured: bool) -> str:  # noqa: FBT001
        match entry.get("type"):
            case "random" if spec.shape is None:
                return "is a random number, but numbers must stay the same in all calls"
            case "scalar" if not isinstance(entry.get("value"), int | float):
                return "must have a number as its value"
            case "safetensors" if not is_captured:
                return f"has no elements in {TENSORS}"
            case "custom" if not self.custom_inputs_entrypoint:
                return "is custom, but the definition has no custom_inputs_entrypoint"
            case "random" | "scalar" | "safetensors" | "custom":
                return ""
        return f"has the type {entry.get('type')!r}, not random, scalar, safetensors or custom"


def definition_of(files: Mapping[str, str]) -> Definition:
    """The definition among a task's files; raises `DataError` naming the file or the field."""
    return decode(Definition, object_of(files.get(DEFINITION, ""), DEFINITION))


def captured_of(files: Mapping[str, str]) -> dict[str, Any]:
    """The tensors of workloads, as lists of their elements: by the workload's uuid, by name."""
    return object_of(files.get(TENSORS, "{}"), TENSORS)


def public_files(document: Mapping[str, Any]) -> dict[str, str]:
    """Files of an encoded task of this format that tell nothing of workloads that it doesn't have.

    The definition, and the tensors of its workloads; none of other formats.
    """
    files = document["files"]
    if document["format"] != TaskFormat.FLASHINFER_TRACE or DEFINITION not in files:
        return {}
    uuids = {workload["parameters"].get(UUID) for workload in document["workloads"]}
    kept = {uuid: each for uuid, each in captured_of(files).items() if uuid in uuids}
    own = {DEFINITION: files[DEFINITION]}
    return {**own, TENSORS: json.dumps(kept) + "\n"} if kept else own


def trace_errors(task: Task) -> Iterator[DataError]:
    """Where a task's definition, its reference and its workloads don't fit together."""
    try:
        definition, captured = definition_of(task.files), captured_of(task.files)
    except DataError as error:
        yield from errors_of(error)
        return
    found = list(definition.errors())
    yield from found
    yield from definition.reference_errors(task.files.get(REFERENCE, ""))
    for index, workload in enumerate(task.workloads if not found else ()):
        tensors = captured.get(str(workload.parameters.get(UUID)), {})
        field = f"workloads[{index}].parameters"
        yield from definition.workload_errors(workload.parameters, tensors, field)
