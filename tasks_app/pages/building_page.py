"""What a task's page says of how kernels are built: command, flags and headers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gpu_runner.data.flags import ALLOWED, EXAMPLE, FIXED, HEAD_LINES, STANDARD
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, DeviceKind, Language

_OWN_HEADERS = {
    Language.CUDA: "CUDA's own, including CUB, Thrust and libcu++, and the C++ standard library",
    Language.CPP: "the C++ standard library, OpenMP, and the intrinsics of the processor",
}
_TORCH_HEADERS = (
    "PyTorch's with pybind11, next to {own}; torch's libraries are linked. A build first tries a "
    "small set of torch's headers: tensors and their"
    " methods, the functions that make tensors, dispatch over dtypes, checks, and bindings. If "
    "that isn't enough, it builds again with all of them, which only takes longer"
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
