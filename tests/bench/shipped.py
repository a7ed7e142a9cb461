"""Evaluates every shipped kernel of the built-in tasks on one device.

python -m tests.bench.shipped [--device cuda] [--mode quick] [--only REGEX]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.config import default_cache_folder
from gpu_runner.supervisor.report import duration
from tests.bench.evaluations import Entry, build_all, make_config, run_one
from tests.bench.tables import heading, table

COLUMNS = ("task", "kernel", "verdict", "time", "of the limit", "wall (s)")


def entries(kind: DeviceKind) -> list[Entry]:
    """The kernels in the language of this kind of device."""
    tasks = [load_task(path.parent) for path in sorted(catalog_folder().glob("*/task.toml"))]
    return [
        Entry(f"{t.name}-{Path(k.path).stem}", t, t.files[k.path], k.direction)
        for t in tasks
        for k in t.kernels
        if k.language is kind.language
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--mode", type=Mode, default=Mode.QUICK)
    parser.add_argument("--only", default="", help="regular expression over labels")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    config = make_config(options.device, options.cache)
    chosen = [entry for entry in entries(options.device) if re.search(options.only, entry.label)]
    build_all(chosen, config)
    rows = []
    for entry in [] if options.build_only else chosen:
        result, took_s = run_one(entry, config, options.mode, None)
        task, _, kernel = entry.label.partition("-")
        time = duration(result.latency_ns) if result.latency_ns else "-"
        limit = f"{result.floor_fraction:.0%}" if result.floor_fraction else "-"
        rows.append([task, kernel, str(result.verdict), time, limit, f"{took_s:.1f}"])
        print(rows[-1], "" if result.latency_ns else f"{result.reason} {result.log}", flush=True)
    print(heading(config))
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
