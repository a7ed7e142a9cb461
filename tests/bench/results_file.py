"""Measures the shipped kernels on a site that is started for it, and writes a file of results.

    python -m tests.bench.results_file --data FOLDER --out FILE --site NAME [--device cuda]
        [--minutes 9] [--note TEXT] [--agent kbench-best] [--task softmax ...]

Such files are what `runs_app/features/transfer/shipped_results/` holds. The site's data stay in
FOLDER: a later call with it goes on where this one stopped, and its file holds the results of
all calls.
"""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from tests.bench.site import ALONE, Site

_PAUSE_S = 2.0


def main() -> int:
    """Measure, and print what was written; 1 while kernels are left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the site's folder")
    parser.add_argument("--out", type=Path, required=True, help="such as nvidia-h100.json.gz")
    parser.add_argument("--site", required=True, help="what other sites call this one")
    parser.add_argument("--note", default="", help="a line about the results, for people")
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--minutes", type=float, default=1e6, help="from now until it stops")
    parser.add_argument("--agent", default="", help="whose kernels alone")
    parser.add_argument("--task", nargs="*", default=[], metavar="NAME", help="whose kernels alone")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    folder = options.data.resolve()
    with closing(Site(options.device, "--no-demo", settings=ALONE, folder=folder)) as site:
        site.open()
        chosen = ["--device", site.device, "--agent", options.agent, "--task", *options.task]
        print(site.installation.manage("submit_shipped_kernels", *chosen).strip())
        left = wait(site, until)
        words = ["--device", site.device, "--site", options.site, "--note", options.note]
        print(
            site.installation.manage("export_results", str(options.out.resolve()), *words).strip()
        )
    print(f"{left} jobs were left")
    return int(left > 0)


def wait(site: Site, until: float) -> int:
    """Wait until nothing is queued, or for so long; how many jobs are left."""
    shown = -1
    while True:
        queue = site.queue()
        left = queue["depth"] + len(queue["running"])
        if left != shown:
            print(f"{site.age_s:.0f} s: {left} jobs left", flush=True)
        shown = left
        if not left or time.monotonic() > until:
            return int(left)
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    raise SystemExit(main())
