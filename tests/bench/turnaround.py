"""Measures how long people wait for a verdict, on a site that is started for it.

    python -m tests.bench.turnaround [--device cuda] [--only idle,crowded] [--samples 20]
        [--published FOLDER ...] [--out FILE]

Submits kernels over the API of `manage.py up`, started on a free port with a data folder of its
own, and prints a Markdown table of today's figures beside those to reach. Rows: boards, crowded,
idle, wrong, torch, python, tuned, inline, repeated, mixed, first_ranked, ranked, repeated_ranked.
Every source is made unique, so that no build is cached. --published adds what `python -m
tests.bench.published --out FOLDER` has found. Exit status 1 if a row was not measured, or a kernel
got another verdict than its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.host.config import default_cache_folder
from tests.bench.evaluations import make_config
from tests.bench.site import RefusedError, Site
from tests.bench.spread import workers
from tests.bench.tables import heading, table
from tests.bench.turnaround_rows import ROWS, Measured, Row
from tests.installation import InstallationError

COLUMNS = ("what", "today", "to reach", "of")
_LINES_SHOWN = 40  # of an installation's log, when it fails


class Sites:
    """At most one running site: rows that may share it get the same one."""

    def __init__(self, kind: DeviceKind) -> None:
        """Start nothing yet."""
        self._kind, self._stack = kind, ExitStack()
        self._used: tuple[Site, Row] | None = None

    def site_for(self, row: Row) -> Site:
        """A site for a row, started anew where it may not have been used."""
        if self._used is None or not _can_share(self._used[1], row):
            self.close()
            site = Site(self._kind, *row.options, settings=row.settings)
            self._stack.enter_context(closing(site))
            site.open()
            self._used = site, row
        return self._used[0]

    def close(self) -> None:
        """Stop the site that runs."""
        self._stack.close()
        self._used = None


def _can_share(before: Row, row: Row) -> bool:
    alike = (before.options, before.settings) == (row.options, row.settings)
    return before.shared and row.shared and alike


def measure_all(
    rows: Sequence[Row], kind: DeviceKind, count: int
) -> Generator[tuple[Row, Measured], None, None]:
    """Measure row after row; what fails is a row that says so."""
    with closing(Sites(kind)) as sites:
        for row in rows:
            print(f"{row.name}: {row.what}", flush=True)
            try:
                yield row, row.measure(sites.site_for(row), count)
            except (InstallationError, RefusedError) as error:
                words = str(error).splitlines()
                print(*words[:1], *words[-_LINES_SHOWN:], sep="\n")
                yield row, Measured(today="not measured", detail=words[0], faults=words[:1])
                sites.close()


def published_row(folder: Path) -> list[str]:
    """A line of the table from what `tests.bench.published` has kept."""
    whole = json.loads((folder / "published.json").read_text())
    verdicts = [set(row["verdicts"]) for row in whole["rows"]]
    beside = whole["settings"]["beside"]
    host = f"{beside} builds beside" if beside else "idle host"
    return [
        f"CUDAMaster's published kernels UNSTABLE: {host}",
        f"{sum(Verdict.UNSTABLE in found for found in verdicts)} of {len(verdicts)}",
        "<= 2" if beside else "0",
        f"mode {whole['settings']['mode']}, {whole['settings']['repeat']} evaluations each",
    ]


def cells(row: Row, measured: Measured, kind: DeviceKind) -> list[str]:
    """A line of the table."""
    return [row.what, measured.today, row.to_reach.get(kind, "-"), measured.detail]


def chosen_rows(only: str, kind: DeviceKind) -> list[Row]:
    """The rows of these names, in the order in which they are measured; all without names."""
    names = {name for name in only.split(",") if name}
    if unknown := names - {row.name for row in ROWS}:
        known = ", ".join(row.name for row in ROWS)
        raise SystemExit(f"--only: there is no row {min(unknown)!r}; there are {known}")
    return [row for row in ROWS if kind in row.kinds and (not names or row.name in names)]


def parse_arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", type=DeviceKind, help="cuda or cpu; default: cuda if there is")
    parser.add_argument("--only", default="", help="names of rows, separated by commas")
    parser.add_argument("--samples", type=workers, default=20, help="submissions of a row, about")
    parser.add_argument("--published", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, help="file for all samples, JSON")
    return parser.parse_args()


def main() -> int:
    """Print the table."""
    options = parse_arguments()
    kind = options.device or (DeviceKind.CUDA if cuda_devices() else DeviceKind.CPU)
    rows = chosen_rows(options.only, kind)
    found, lines = [], []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the site is stopped
    with (
        contextlib.suppress(KeyboardInterrupt),  # what was measured is printed
        closing(measure_all(rows, kind, options.samples)) as every,
    ):
        for row, measured in every:
            found.append({"name": row.name, **asdict(measured)})
            lines.append(cells(row, measured, kind))
            print("", *lines[-1][1:], *measured.faults, sep="\n  ", flush=True)
            if options.out:
                options.out.write_text(json.dumps(found, indent=1))
    lines += [published_row(folder) for folder in options.published]
    host = f"{platform.node()}, {os.cpu_count()} processors"
    print(f"{host}; {heading(make_config(kind, default_cache_folder()))}")
    print(table(COLUMNS, lines))
    return int(len(found) < len(rows) or any(row["faults"] for row in found))


if __name__ == "__main__":
    raise SystemExit(main())
