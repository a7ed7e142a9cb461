"""`kbench trace`: results as FlashInfer Trace has them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.site import Site
from kbench_client.traces import data_set, solution, traces


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("trace", "print results in the FlashInfer Trace format, one trace per line")
    parser.add_argument("submissions", metavar="ID", nargs="+")
    parser.add_argument(
        "--to", type=Path, help="write the traces and kernels to this folder as a data set"
    )
    parser.set_defaults(run=_trace)


def _trace(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    rows, files = [], dict[str, str]()
    for each in options.submissions:
        submission = site.submission(each, raw=True)
        task = site.task(submission["task"])
        found = traces(submission, task)
        rows += found
        if options.to:
            files |= data_set(solution(submission, task), found, task)
    written = [_written(options.to / name, text) for name, text in files.items()]
    lines = "\n".join(map(json.dumps, rows)) if not options.to else "\n".join(written)
    output.answer(rows, lines)
    return Exit.GOOD


def _written(path: Path, text: str) -> str:
    """Write a file and return its path; a definition that is there already stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if "definitions" not in path.parts or not path.exists():
            path.write_text(text)
    except OSError as error:
        raise Stop(Exit.MISUSE, f"{path}: {error.strerror or error}", "to") from None
    return str(path)
