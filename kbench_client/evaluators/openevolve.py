"""OpenEvolve: makes the `evaluate` of an evaluator's file."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench_client.evaluators.judge import Judged, Wanted, fixed_files, missing, shared
from kbench_client.kernels import read_kernel

Evaluate = Callable[[str], Any]


def evaluator(
    task: str, *, limit_s: float = 280.0, folder: str = "", entry: str = "", **wanted: Any
) -> Evaluate:
    """A function from a program's path to OpenEvolve's `EvaluationResult`.

    `wanted` are the other fields of `Wanted`: `device`, `mode`, `agent` and so on. `limit_s` has to
    be below OpenEvolve's own `evaluator.timeout`, which is 300 s. What the site refuses or could
    not judge raises `Stop`, and OpenEvolve tries again. Each program takes the place of `entry` in
    `folder`, if there is one, and gets the folder's other files.
    """
    about, beside = Wanted(task=task, **wanted), fixed_files(folder, entry)

    def evaluate(program_path: str) -> Any:
        result = _result_type()
        kernel = read_kernel(Path(program_path))
        judge = shared(about, limit_s)
        [judged] = judge.judge([kernel.source], kernel.language, **beside)
        metrics = {
            "combined_score": judged.value(),
            "correct": float(judged.verdict == "CORRECT"),
            "seconds": judged.seconds or 0.0,
        }
        return result(metrics=metrics, artifacts=_artifacts(judged, judge.explain(judged)))

    return evaluate


def _artifacts(judged: Judged, found: dict[str, Any]) -> dict[str, str]:
    """What the next prompt tells the language model: short texts."""
    texts = {"reason": judged.reason, **found}
    return {name: str(text) for name, text in texts.items() if text}


def _result_type() -> Any:
    try:
        return importlib.import_module("openevolve.evaluation_result").EvaluationResult
    except ModuleNotFoundError:
        raise missing("openevolve") from None
