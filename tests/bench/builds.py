"""Times cold builds of the shipped kernels, and says where the time goes.

python -m tests.bench.builds [--device cuda] [--capability 9.0] [--only REGEX] [--abi c]
    [--repeat 3]

Each kernel is built with an empty cache, one after the other; the least of the repeats counts.
Torch extensions are built with the slim headers and with torch's own alone. A GPU is not needed:
--capability says what to build for. Ends with 1 if a kernel does not build, so that this shows
whether all that ship still do.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from gpu_runner.data.verdict import Abi, DeviceKind, Mode
from gpu_runner.supervisor.build.build import Built, Recipe, build, solution_recipes
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import architecture
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.bench.evaluations import Entry, request
from tests.bench.shipped import entries
from tests.bench.tables import table

SMALL = ("vector_add kernels/naive.cu", "vector_add_bf16 kernels/naive_bf16.cu")
"""Kernels whose builds are taken apart."""


def cold(recipe: Recipe, config: SupervisorConfig, repeat: int) -> tuple[float, Built]:
    """The least time of some builds in seconds, and the last of them."""
    times = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            empty = dataclasses.replace(config, cache_folder=Path(folder))
            built = build(recipe, empty)
        times.append(built.report.duration_s)
    return min(times), built


def stages(recipe: Recipe) -> list[tuple[str, float]]:
    """What nvcc says of its steps, in seconds, in order; some come twice."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in recipe.files.items():
            (Path(folder) / name).write_text(text)
        command = [*recipe.command(), "-time", "times.csv"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        rows = list(csv.reader((Path(folder) / "times.csv").open()))
    columns = [column.strip() for column in rows[0]]
    phase, metric = columns.index("phase name"), columns.index("metric")
    return [(row[phase].strip(), float(row[metric]) / 1e3) for row in rows[1:]]


def summary(label: str, times: Sequence[float]) -> list[str]:
    """A line of the table: how many, and how long half, nine of ten and all of them take."""
    ordered = sorted(times)
    places = (len(ordered) // 2, len(ordered) * 9 // 10, len(ordered) - 1)
    return [label, str(len(ordered)), *(f"{ordered[place]:.2f}" for place in places)]


def steps(chosen: Sequence[Entry], config: SupervisorConfig) -> Iterator[str]:
    """Of each small kernel that is among `chosen`, where nvcc's time goes."""
    for entry in chosen:
        if entry.label in SMALL:
            (recipe,) = solution_recipes(request(entry, config, Mode.COMPILE), config)
            parts = [f"{name} {time_s:.2f}" for name, time_s in stages(recipe)]
            yield f"{entry.label}: {', '.join(parts)}"


def measure(
    chosen: Sequence[Entry], config: SupervisorConfig, repeat: int
) -> tuple[list[list[str]], list[str]]:
    """The table's lines, and which kernels do not build."""
    times: list[float] = []
    lines, failed = [], []
    for entry in chosen:
        recipes = solution_recipes(request(entry, config, Mode.COMPILE), config)
        found = [cold(recipe, config, repeat) for recipe in recipes]
        for _, built in found:
            if built.library is None:
                failed.append(f"{entry.label}: {built.why_not(config)}")
        seconds = [time_s for time_s, _ in found]
        print(entry.label, *(f"{time_s:.2f}" for time_s in seconds), flush=True)
        if entry.task.abi is Abi.C:
            times += seconds
        else:
            slim, full = seconds
            lines.append([entry.label, "1", f"{slim:.1f}", f"{full:.1f}", f"{slim / full:.2f}"])
    if times:
        lines.insert(0, summary("c ABI: half, nine of ten, all", times))
    return lines, failed


def main() -> int:
    """Print the table; 1 if a kernel does not build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], default="cpu")
    parser.add_argument("--capability", default="", help="of a GPU that is not here, such as 9.0")
    parser.add_argument("--only", default="", help="regular expression of task and kernel")
    parser.add_argument("--abi", choices=[abi.value for abi in Abi], default="")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    config = SupervisorConfig(kind=DeviceKind(options.device))
    chosen = [
        entry
        for entry in entries(config.kind)
        if re.search(options.only, entry.label) and options.abi in ("", entry.task.abi)
    ]
    if options.capability:
        major, minor = map(int, options.capability.split("."))
        mock.patch.object(nvml, "compute_capability", return_value=(major, minor)).start()
    print(toolchain.described(config.kind), "for", architecture(config.kind, config.index))
    lines, failed = measure(chosen, config, options.repeat)
    columns = ("builds, cold, s", "kernels", "half or slim", "0.9 or full", "all or ratio")
    print(table(columns, lines))
    if config.kind is DeviceKind.CUDA and shutil.which("nvcc"):
        print(*steps(chosen, config), sep="\n")
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
