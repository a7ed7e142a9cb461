"""Workloads in short: every combination of lists of parameters, and unlisted ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpu_runner.data.codec import DataError

SWEEPS, UNLISTED = "sweeps", "unlisted"
WORKLOADS_LIMIT = 2048
"""Workloads of a task."""
_LARGEST = 256  # workloads of a sweep
_MOST_PARAMETERS = 64  # chosen: many times what a task has
_NAME_LIMIT = 1000  # longer than a workload's name may be
_OWN = ("prefix", "parameters")


def expand(document: Mapping[str, object]) -> dict[str, object]:
    """The specification of a task with its `sweeps` and `unlisted` workloads written out.

    A sweep is a workload without a name, of which each parameter may be a list of values:
    `parameters = { N = [16, 32], C = [256] }` stands for the workloads `n16_c256` and `n32_c256`,
    with the sweep's `prefix` before their names. Sweeps come before the other workloads, and those
    in the list `unlisted`, each an inline table, behind them. Raises `DataError` naming the field.
    """
    rest = {name: value for name, value in document.items() if name not in (SWEEPS, UNLISTED)}
    if len(rest) == len(document):
        return rest
    sweeps, workloads = document.get(SWEEPS, []), document.get("workloads", [])
    if not isinstance(sweeps, list) or not isinstance(workloads, list):
        raise DataError(SWEEPS, "must be a list of tables ([[sweeps]]), and so must workloads")
    unlisted = _unlisted(document.get(UNLISTED, []))
    found = [workload for workload, _ in itertools.islice(_swept(sweeps), WORKLOADS_LIMIT + 1)]
    if len(found) > WORKLOADS_LIMIT:
        raise DataError(SWEEPS, f"produce more than {WORKLOADS_LIMIT} workloads")
    return {**rest, "workloads": [*found, *workloads, *unlisted]}


def origins(document: Mapping[str, Any]) -> list[str]:
    """Where each workload of an expanded document stands in it: `sweeps[0]`, or `workloads[3]`."""
    found = [origin for _, origin in _swept(document.get(SWEEPS, []))]
    lists = ("workloads", UNLISTED)
    return [*found, *(f"{name}[{i}]" for name in lists for i in range(len(document.get(name, []))))]


def _unlisted(workloads: Any) -> list[dict[str, Any]]:
    if not isinstance(workloads, list) or not all(isinstance(each, dict) for each in workloads):
        raise DataError(UNLISTED, "must be a list of workloads, each a table")
    return [{**workload, "hidden": True, "unlisted": True} for workload in workloads]


def _swept(sweeps: Iterable[object]) -> Iterator[tuple[dict[str, object], str]]:
    """The sweeps' workloads, and where each comes from."""
    for index, sweep in enumerate(sweeps):
        origin = f"sweeps[{index}]"
        for workload in _sweep(sweep, origin):
            yield workload, origin


def _sweep(sweep: object, field: str) -> Iterator[dict[str, object]]:
    if not isinstance(sweep, dict) or not isinstance(sweep.get("parameters"), dict):
        raise DataError(f"{field}.parameters", "must be a table of values, or of lists of values")
    if "name" in sweep:
        raise DataError(
            f"{field}.name",
            "must be removed: a sweep's workloads are named after their parameters",
        )
    prefix = sweep.get("prefix", "")
    if not isinstance(prefix, str):
        raise DataError(f"{field}.prefix", "must be a string")
    names = list(sweep["parameters"])
    if len(names) > _MOST_PARAMETERS:
        raise DataError(f"{field}.parameters", f"has more than {_MOST_PARAMETERS} entries")
    values = [v if isinstance(v, list) else [v] for v in sweep["parameters"].values()]
    common = {name: value for name, value in sweep.items() if name not in _OWN}
    combinations = list(itertools.islice(itertools.product(*values), _LARGEST + 1))
    if not 0 < len(combinations) <= _LARGEST:
        raise DataError(f"{field}.parameters", f"must produce 1 to {_LARGEST} combinations")
    for combination in combinations:
        parameters = dict(zip(names, combination, strict=True))
        name = prefix + "_".join(f"{key.lower()}{value}" for key, value in parameters.items())
        yield {**common, "name": name[:_NAME_LIMIT], "parameters": parameters}
