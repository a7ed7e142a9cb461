"""The short cases of test_bad_kernels.py as kernels of the red team, for its table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Abi, DeviceKind, Mode, Verdict
from tests.adversarial.catalogue import ROWS
from tests.adversarial.kernels import Kernel, Stop
from tests.adversarial.test_bad_kernels import (
    ADD,
    BAD_BODIES,
    BAD_SOURCES,
    HARMLESS_BODIES,
    in_function,
)

_FOLDER = Path(__file__).parent / "test_bad_kernels"


def load_cases() -> Iterator[Kernel]:
    """One kernel for each case that the catalogue names; they run on a CPU."""
    task = dataclasses.replace(find_task("vector_add"), baselines=())
    for row in ROWS:
        for name in row.cases:
            source, stop = _case(name)
            yield Kernel(
                path=_FOLDER / f"{name}.cpp",
                summary=name,
                source=source,
                task=task,
                abi=Abi.C,
                mode=Mode.TEST,
                kind=DeviceKind.CPU,
                rows=(row.number,),
                stops=(stop,),
            )


def _case(name: str) -> tuple[str, Stop]:
    if name in HARMLESS_BODIES:  # the kernel is right, and what it tried beside that has failed
        return in_function(HARMLESS_BODIES[name] + ADD), Stop()
    if name in BAD_SOURCES:
        source, verdict, words = BAD_SOURCES[name]
        return source, Stop(verdict=verdict, words=words)
    body, verdict, words = BAD_BODIES[name]
    return in_function(body), Stop(verdict=Verdict(verdict), words=words)
