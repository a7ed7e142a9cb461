"""What a task's page says about it, drawn from the task as text: nothing of it is executed."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_runner.data.flags import ALLOWED, EXAMPLE, FIXED, HEAD_LINES, STANDARD
from gpu_runner.data.formats.kbench import KERNELS
from gpu_runner.data.signature import Role
from gpu_runner.data.task import NEGLIGIBLE, VERIFIER, Cost, Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language

_EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}
_FUNCTIONS = {
    Direction.FORWARD: ("forward_fn", "forward", "run"),
    Direction.BACKWARD: ("backward_fn", "backward"),
}


@dataclass(frozen=True, kw_only=True)
class WorkloadRow:
    """A listed workload with its work in one direction; `bound` is relative to the scale."""

    name: str
    parameters: str
    devices: tuple[str, ...]
    cost: Cost | None
    bound: float | None

    @property
    def intensity(self) -> float | None:
        """Operations per byte of compulsory traffic."""
        return self.cost.flops / self.cost.bytes if self.cost and self.cost.bytes else None


@dataclass(frozen=True, kw_only=True)
class KernelView:
    """A kernel that comes with the task."""

    path: str
    agent: str
    language: str
    direction: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """What a kernel must export in one direction, as a declaration for people to read."""

    direction: str
    declaration: str


def parameters_text(parameters: Mapping[str, object]) -> str:
    """Parameters as `N=128, C=4096`."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def workload_rows(data: Task, direction: Direction) -> list[WorkloadRow]:
    """The listed workloads of one direction, in the task's order."""
    return [
        _workload_row(data, workload, direction)
        for workload in data.workloads
        if not workload.hidden and direction in workload.directions
    ]


def hidden_counts(data: Task, direction: Direction) -> Counter[tuple[str, ...]]:
    """Numbers of workloads that only ranked evaluations see, by their kinds of device."""
    return Counter(
        tuple(kind.value for kind in workload.devices)
        for workload in data.workloads
        if workload.hidden and direction in workload.directions
    )


def kernel_views(data: Task, files: Mapping[str, str]) -> list[KernelView]:
    """The shipped kernels whose source is among `files`, the ones that may be shown."""
    return [
        KernelView(
            path=kernel.path,
            agent=kernel.agent,
            language=kernel.language.value,
            direction=kernel.direction.value,
            source=files[kernel.path],
        )
        for kernel in data.kernels
        if kernel.path in files
    ]


def reference_files(files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Paths and texts of the Python files that define what is correct; kernels don't."""
    return [
        (path, text)
        for path, text in files.items()
        if path.endswith(".py") and not path.startswith(KERNELS)
    ]


def entrances(data: Task) -> list[Entrance]:
    """What a kernel must export, one entry a direction."""
    if data.abi is Abi.C:
        return [Entrance(direction="forward", declaration=f'extern "C" {data.c_signature.text};')]
    return [
        Entrance(direction=direction.value, declaration=_torch_declaration(data, direction))
        for direction in data.directions
    ]


def starter(data: Task, direction: Direction) -> str:
    """The beginning of a kernel's source: the right entry point around nothing."""
    if data.abi is Abi.C:
        notes = "".join(f"    // {note}\n" for note in _type_notes(data))
        return f'extern "C" {data.c_signature.text} {{\n{notes}    // your kernel\n}}\n'
    arguments = _arguments(data, direction) or ["x"]
    listed = ", ".join(f"torch::Tensor {name}" for name in arguments)
    return (
        "#include <torch/extension.h>\n\n"
        f"torch::Tensor {direction}({listed}) {{\n    // your kernel\n}}\n\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
        f'    m.def("{direction}", &{direction});\n}}\n'
    )


_NOTES = {
    "__nv_bfloat16": "__bfloat162float(value) reads a BF16, __float2bfloat16(number) rounds to one",
    "__nv_fp8_e4m3": "float(value) reads an FP8, __nv_fp8_e4m3(number) rounds to one",
    "__nv_fp8_e5m2": "float(value) reads an FP8, __nv_fp8_e5m2(number) rounds to one",
}


def _type_notes(data: Task) -> list[str]:
    """How to read and write the types of a signature that C++ does not have by itself."""
    types = dict.fromkeys(parameter.ctype for parameter in data.c_signature.parameters)
    return [_NOTES[ctype] for ctype in types if ctype in _NOTES]


def python_starter(data: Task, direction: Direction) -> str:
    """The beginning of a Python module: the right function, or KernelBench's class."""
    if data.format is TaskFormat.KERNELBENCH:
        made, called = (_method_parameters(data, name) for name in ("__init__", "forward"))
        return (
            "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
            f"    def __init__({', '.join(['self', *made])}):\n        super().__init__()\n"
            "        # parameters named as in Model: each call brings new weights\n\n"
            f"    def forward({', '.join(['self', *called])}):\n        ...  # your kernel\n"
        )
    listed = ", ".join(python_arguments(data, direction) or ["x"])
    returned = ""
    if data.abi is Abi.C:
        names = ", ".join(parameter.name for parameter in data.c_signature.outputs)
        returned = f"    # returns {names}\n"
    return f"import torch\n\n\ndef {direction}({listed}):\n{returned}    ...  # your kernel\n"


def python_arguments(data: Task, direction: Direction) -> list[str]:
    """What a Python function gets: the signature's parameters without outputs, if there is one."""
    if data.abi is Abi.C:
        return [p.name for p in data.c_signature.parameters if p.role is not Role.OUTPUT]
    return _arguments(data, direction)


def tolerance_text(data: Task) -> str:
    """The tolerance as a sentence in Markdown."""
    if data.has_verifier:
        return (
            f"The task uses its own verifier, `{VERIFIER}` in `reference.py`. It gets the "
            "inputs as the kernel saw them and what the kernel wrote, in float64, and returns "
            "scaled residuals. Each must be at most 1."
        )
    if data.format is TaskFormat.FLASHINFER_TRACE:
        return (
            "The reference runs in float64 on the inputs as the kernel saw them, and its errors in "
            "its own types give each element's bound. Outputs narrower than float32 may be off by "
            "another 1.5 units in the last place. NaN and infinity must be where the "
            "reference has them; integers must be equal."
        )
    tolerance = data.tolerance
    dtype = data.real_dtype or data.dtype
    epsilon = _EPSILON.get(dtype)
    shown = f"ε = {epsilon:.3g} for {dtype}" if epsilon else f"ε of {dtype}"
    return (
        "The reference runs in float64 on the inputs as the kernel saw them. An element passes if "
        f"it is off by at most ε × ({tolerance.constant:g} + {tolerance.growth:g} √L) × its scale, "
        f"with {shown} and L = `{tolerance.reduction}`, the number of terms summed for an "
        f"element. {_scale_text(data)} {_least_text(data)}NaN and infinity must be where the "
        "reference has them; integers must be equal."
    )


def _least_text(data: Task) -> str:
    least = NEGLIGIBLE.get(data.real_dtype)
    if least is None:
        return ""
    return (
        f"Errors below {least:.2g} don't count, because an exponential may underflow. If the "
        "output's largest value is above 1, this limit is multiplied by that value. "
    )


def _scale_text(data: Task) -> str:
    names = [f"{direction.value}_scale" for direction in data.directions]
    texts = [text for _, text in reference_files(data.files)]
    own = [name for name in names if any(_parameters_of(text, name) for text in texts)]
    if own:
        return f"The reference defines the scale: `{'`, `'.join(own)}`."
    return (
        "The scale is the expected value's magnitude plus the root mean square of the output. "
        "The output as a whole may be off by at most the same share of its norm."
    )


def _workload_row(data: Task, workload: Workload, direction: Direction) -> WorkloadRow:
    is_told = not data.has_verifier and data.format is not TaskFormat.FLASHINFER_TRACE
    epsilon = _EPSILON.get(data.real_dtype) if is_told else None
    length = data.reduction_length(workload)
    factor = data.tolerance.constant + data.tolerance.growth * length**0.5
    return WorkloadRow(
        name=workload.name,
        parameters=parameters_text(workload.parameters),
        devices=tuple(kind.value for kind in workload.devices),
        cost=data.cost(workload, direction),
        bound=epsilon * factor if epsilon else None,
    )


def _torch_declaration(data: Task, direction: Direction) -> str:
    arguments = _arguments(data, direction)
    listed = ", ".join(arguments) if arguments else "the reference's arguments, in order"
    return f"{direction.value}({listed})"


def _arguments(data: Task, direction: Direction) -> list[str]:
    """Parameter names of the reference function, or none where its text does not show them."""
    for _, text in reference_files(data.files):
        for name in _FUNCTIONS[direction]:
            found = _parameters_of(text, name)
            if found:
                return found
    return []


def _parameters_of(text: str, function: str) -> list[str]:
    return _parameters_in(_body(text), function)


def _method_parameters(data: Task, method: str) -> list[str]:
    """Parameters of a method of KernelBench's Model, without self."""
    for _, text in reference_files(data.files):
        for node in _body(text):
            if isinstance(node, ast.ClassDef) and node.name == "Model":
                return _parameters_in(node.body, method)[1:]
    return []


def _body(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _parameters_in(body: list[ast.stmt], function: str) -> list[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in node.args.args]
    return []


_OWN_HEADERS = {
    Language.CUDA: "CUDA's own, including CUB, Thrust and libcu++, and the C++ standard library",
    Language.CPP: "the C++ standard library, OpenMP, and the intrinsics of the processor",
}
_TORCH_HEADERS = (
    "PyTorch's with pybind11, next to {own}; torch's libraries are linked. A build first tries a "
    "small set of torch's headers: tensors and their methods, the functions that make tensors, "
    "dispatch over dtypes, checks and bindings. If that isn't enough, it builds again with all "
    "headers, which takes longer"
)


@dataclass(frozen=True, kw_only=True)
class Building:
    """How sources in one language are built.

    command: the compiler with its fixed flags. allowed: what a source may ask for, as flags and
    what they do. example: a comment that asks.
    """

    language: str
    suffix: str
    kind: str
    command: str
    standard: str
    allowed: tuple[tuple[tuple[str, ...], str], ...]
    example: str
    head_lines: int
    headers: str


def buildings(data: Task) -> list[Building]:
    """One for each kind of device that the task has workloads for."""
    kinds = {kind for workload in data.workloads for kind in workload.devices}
    return [_building(data, kind) for kind in DeviceKind if kind in kinds]


def command_text(kind: DeviceKind) -> str:
    """The compiler and its fixed flags, as people may read them; no paths."""
    if kind is DeviceKind.CPU:
        return " ".join(("g++", *FIXED[kind.language]))
    own = ("-gencode=arch=<the device's own>", "-cudart=shared")
    return " ".join(("nvcc", *FIXED[kind.language], *own))


def _building(data: Task, kind: DeviceKind) -> Building:
    language = kind.language
    own = _OWN_HEADERS[language]
    grouped = itertools.groupby(ALLOWED[language], key=lambda allowed: allowed.meaning)
    return Building(
        language=language.label,
        suffix=language.suffix,
        kind=kind.value,
        command=command_text(kind),
        standard=STANDARD,
        allowed=tuple((tuple(each.form for each in group), why) for why, group in grouped),
        example=EXAMPLE[language],
        head_lines=HEAD_LINES,
        headers=_TORCH_HEADERS.format(own=own) if data.abi is Abi.TORCH else own,
    )
