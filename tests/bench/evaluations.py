"""Evaluates many kernels: builds side by side, measures one after the other."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_runner.data.codec import encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode
from gpu_runner.supervisor.device.device import device_slug, first_gpu
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel to evaluate."""

    label: str
    task: Task
    source: str
    direction: Direction = Direction.FORWARD
    language: Language | None = None
    """None: C++, or CUDA C++ on a CUDA device."""


def make_config(kind: DeviceKind, cache: Path) -> SupervisorConfig:
    """Configuration of this host's first device of a kind, of those that may be used."""
    index = first_gpu() if kind is DeviceKind.CUDA else 0
    slug = device_slug(kind, index)
    return SupervisorConfig(kind=kind, index=index, device=slug, cache_folder=cache)


def request(entry: Entry, config: SupervisorConfig, mode: Mode) -> EvaluationRequest:
    """The request that evaluates an entry."""
    language = entry.language or config.kind.language
    solution = Solution(source=entry.source, language=language, direction=entry.direction)
    return EvaluationRequest(
        evaluation_id=entry.label,
        task=entry.task,
        solution=solution,
        mode=mode,
        device=config.device,
    )


def build_all(entries: Sequence[Entry], config: SupervisorConfig) -> None:
    """Fill the build cache, as many compilers at once as there are cores."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(lambda e: evaluate(request(e, config, Mode.COMPILE), config), entries))


def run_one(
    entry: Entry, config: SupervisorConfig, mode: Mode, folder: Path | None
) -> tuple[EvaluationResult, float]:
    """Evaluate; returns the result and the wall time in seconds. Keeps the result's JSON."""
    began = time.monotonic()
    result = evaluate(request(entry, config, mode), config)
    took_s = time.monotonic() - began
    if folder is not None:
        path = folder / f"{entry.label}.json"
        path.write_text(json.dumps(encode(result)))
    return result, took_s
