"""`kbench export`: a winner leaves with the condition under which it is proven."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from kbench_client.exits import Exit
from kbench_client.kernels import write_files
from kbench_client.output import Output
from kbench_client.site import Site
from kbench_client.traces import data_set, solution, traces
from kbench_client.winner import Winner, files, proven, ranked


def _trace_set(winner: Winner) -> dict[str, str]:
    judged = {**winner.submission, "evaluations": [winner.evaluation]}
    rows = traces(judged, winner.task)
    return data_set(solution(judged, winner.task), rows, winner.task)


TARGETS: Mapping[str, Callable[[Winner], dict[str, str]]] = {
    "torch": functools.partial(files, operator=True),
    "flashinfer": _trace_set,
    "script": functools.partial(files, operator=False),
}
"""By name: the files of a folder, by their paths in it. A target raises `Stop`."""
_README = "README.md says how to use it"


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command(
        "export", "export a ranked kernel as a package that uses it when it's measurably faster"
    )
    parser.add_argument("submission", metavar="ID")
    parser.add_argument(
        "--to", choices=TARGETS, default="script", help="what to export to (default: script)"
    )
    parser.add_argument("--device", default="", help="device of the result (default: the newest's)")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the package")
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    submission = site.submission(options.submission, raw=True)
    winner = Winner(
        submission=submission,
        evaluation=ranked(submission, options.device),
        task=site.task_version(submission["task"], submission["task_version"]),
        site=site.account.url,
    )
    known = proven(winner.evaluation)
    made = TARGETS[options.to](winner)
    folder: Path = options.out / winner.name
    write_files(folder, made)
    faster = [each["name"] for each in known if each["faster"]]
    document = {"folder": str(folder), "files": list(made), "faster": faster}
    text = f"{folder}: measurably faster on {len(faster)} of {len(known)} workloads"
    uses = "TraceSet.from_path() loads it" if options.to == "flashinfer" else _README
    output.answer(document, f"{text}; {uses}")
    return Exit.GOOD
