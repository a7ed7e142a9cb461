"""`kbench gate`: fails a change that makes a script's kernels wrong or slower."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kbench_client.commands.check import MISUSE, checked
from kbench_client.commands.evaluate import require_runner
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.results import duration
from kbench_client.site import Site

_HEAD = "| kernel | verdict | before | now | times as fast | |\n|---|---|---|---|---|---|"
_OLD = ", old"


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = command("gate", "compare scripts with those of another commit; for CI")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as of `kbench check`")
    parser.add_argument("--base", default="HEAD~1", help="the commit (default HEAD~1)")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.95,
        help="fail if a kernel's speed is below this share of its old speed, beyond noise "
        "(default 0.95)",
    )
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("--rounds", default="5", help="default 5")
    parser.set_defaults(run=_gate)


def _gate(options: argparse.Namespace, site: Site, output: Output) -> int:
    require_runner(site)
    status, rows, documents = Exit.GOOD, [_HEAD], {}
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            document = _compared(path, Path(folder), options, output)
            documents[str(path)] = document
            for name, kernel in document["kernels"].items():
                if not name.endswith(_OLD):
                    row, is_good = _row(path.stem, name, document, options.threshold)
                    rows.append(row)
                    status = status if is_good else Exit.OTHER_VERDICT
                    output.progress(f"{path}: {name}: {kernel['verdict']}")
    output.answer({"good": status is Exit.GOOD, "files": documents}, "\n".join(rows))
    return int(status)


def _compared(
    path: Path, folder: Path, options: argparse.Namespace, output: Output
) -> dict[str, Any]:
    """What is said of a script; folder: for what was there before, by the scripts' folders."""
    words = ["--device", options.device] if options.device else []
    if (old := _before(path, options.base, folder)) is not None:
        words += ["--compare", str(old), "--rounds", options.rounds]
    document, _, status = checked([str(path), *words], output)
    if status == MISUSE:
        reasons = [kernel["reason"] for kernel in document["kernels"].values()]
        raise Stop(Exit.UNREACHABLE, f"{path}: {'; '.join(reasons)}")
    return document


def _before(path: Path, commit: str, folder: Path) -> Path | None:
    """The script as it was, with all of its folder; None if it is new. Raises `Stop`."""
    old = _checked_out(path.parent, commit, folder) / path.name
    return old if old.exists() else None


@cache
def _checked_out(here: Path, commit: str, folder: Path) -> Path:
    """A folder as it was, in a new one below the other. Raises `Stop`."""
    place = Path(tempfile.mkdtemp(dir=folder))
    _git(here, place, "read-tree", commit)
    _git(here, place, "checkout-index", "--all", f"--prefix={place}/")
    return place / _git(here, place, "rev-parse", "--show-prefix")


def _git(here: Path, folder: Path, *words: str) -> str:
    """What Git answers in a folder, with an index of its own in the other. Raises `Stop`."""
    index = {"GIT_INDEX_FILE": str(folder / ".kbench-index")}
    done = subprocess.run(
        ["git", "-C", here, *words],
        env=os.environ | index,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Stop(Exit.MISUSE, done.stderr.strip(), "base")
    return done.stdout.strip()


def _row(script: str, name: str, document: Mapping[str, Any], threshold: float) -> tuple[str, bool]:
    """A line of the table, and whether the kernel passes."""
    now, ratio = document["kernels"][name], document["ratios"].get(name)
    before = document["kernels"].get(f"{name}{_OLD}", {}).get("time_ns")
    is_right = now["verdict"] == "CORRECT"
    is_good = is_right and (ratio is None or ratio["high"] >= threshold)
    change = ""
    if ratio:
        change = f"{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"
    verdict = "right" if is_right else f"{now['verdict']}: {now['reason']}"
    cells = (f"{script} `{name}`", verdict, duration(before), duration(now["time_ns"]), change)
    return f"| {' | '.join(cells)} | {'✓' if is_good else '✗'} |", is_good
