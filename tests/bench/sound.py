"""Asks of the built-in tasks whether they are sound on a device: filters and wrong kernels.

python -m tests.bench.sound [--device cuda] [--only REGEX] [--folder REPORTS] [--workers 2]
    [--minutes 9] [--indices 0,2]

All GPUs of the host, or those named, take part. With --folder, reports are kept there and a later
call goes on where this one stopped. Exit status 1 if a task is not sound, or if one of its honest
kernels needs more than 0.7 of its bound. The filter `baseline`, which is about speedups, not about
right and wrong, is listed apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import device_slug
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.soundness.soundness import describe_soundness, survey
from tests.bench.spread import devices_of, spread, workers
from tests.bench.tables import heading

MARGIN = 0.7
"""Share of its bound that an honest kernel may need: vendor libraries choose their algorithms."""


@dataclasses.dataclass(frozen=True)
class Work:
    """Makes a task's report; one of these goes to every worker."""

    config: SupervisorConfig

    def __call__(self, task: Task, index: int) -> dict[str, Any]:
        """The report, from the device of this index, and how long it took."""
        began = time.monotonic()
        try:
            report = survey(task, dataclasses.replace(self.config, index=index))
        except OracleError as error:
            report = {"task": task.name, "passed": False, "honest": [], "error": str(error)}
        return {**report, "took_s": time.monotonic() - began}


def needed(report: dict[str, Any]) -> float:
    """The largest share of its bound that an honest kernel needed."""
    return float(max((entry["scaled"] for entry in report["honest"]), default=math.inf))


def good(report: dict[str, Any]) -> bool:
    """Whether the task is sound but for its baseline, and honest kernels keep off its bounds."""
    if "error" in report:
        return False
    flagged = [f for f in report["filters"] if f["passed"] is False and f["name"] != "baseline"]
    sound = report["mutants"] and not report["survivors"] and not flagged
    return bool(sound) and needed(report) <= MARGIN


def slow_baselines(report: dict[str, Any]) -> list[str]:
    """What eager takes of the floor where that is more than the filter lets pass."""
    found = [f for f in report.get("filters", ()) if f["name"] == "baseline"]
    return [f"{f['direction']} {f['value']:.0f}" for f in found if f["passed"] is False]


def known(folder: Path | None, tasks: Sequence[Task]) -> dict[str, dict[str, Any]]:
    """The reports of an earlier call, of the present versions of these tasks."""
    found = {}
    for task in tasks if folder is not None else ():
        path = Path(folder or "", f"{task.name}.json")
        report = json.loads(path.read_text()) if path.exists() else {}
        if report.get("digest") == task.digest():
            found[task.name] = report
    return found


def main() -> int:
    """Print a line a task; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--indices", default="", help="of devices, such as 0,2; default: all")
    parser.add_argument("--only", default="", help="regular expression over names")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=workers, default=1, help="processes a device")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing new after it")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    config = SupervisorConfig(
        kind=options.device,
        device=device_slug(options.device, 0),
        cache_folder=default_cache_folder(),
        oracle_timeout_s=600,
    )
    tasks = [task for task in built_in_tasks() if re.search(options.only, task.name)]
    reports = known(options.folder, tasks)
    left = [task for task in tasks if task.name not in reports]
    print(heading(config))
    devices = devices_of(options.device, options.indices)
    for report in spread(Work(config), left, devices=devices, each=options.workers, until=until):
        reports[report["task"]] = report
        words = "sound" if good(report) else report.get("error", "NOT SOUND")
        needs, took_s = needed(report), report["took_s"]
        print(f"{report['task']}: {words}, {needs:.2f} of the bound, {took_s:.0f} s", flush=True)
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
            path = options.folder / f"{report['task']}.json"
            path.write_text(json.dumps(report, indent=1) + "\n")
    bad = [report for report in reports.values() if not good(report)]
    for report in bad:
        error = report.get("error")
        print(f"{report['task']}: {error}" if error else describe_soundness(report))
    for report in reports.values():
        if slow := slow_baselines(report):
            print(f"{report['task']}: eager takes {', '.join(slow)} times the floor")
    print(f"sound {len(reports) - len(bad)}, not {len(bad)}, not tried {len(tasks) - len(reports)}")
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
