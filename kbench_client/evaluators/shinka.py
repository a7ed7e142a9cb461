"""ShinkaEvolve: the program that it runs for each candidate.

`LocalJobConfig` takes this file's path as `eval_program_path`, and the task as `extra_cmd_args`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbench_client.evaluators.judge import Judged, Wanted, fixed_files, shared
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import read_kernel


def main(words: Sequence[str] | None = None) -> int:
    """Judge one program; writes `metrics.json` and `correct.json`, also if it can't be judged."""
    options = _parser().parse_args(words)
    names = ("task", "device", "mode", "direction", "agent", "model")
    wanted = Wanted(**{name: getattr(options, name) for name in names})
    judged, found, status = Judged(), {}, Exit.GOOD
    try:
        kernel = read_kernel(Path(options.program_path))
        judge = shared(wanted, options.limit_s)
        beside = fixed_files(options.folder, options.entry)
        [judged] = judge.judge([kernel.source], kernel.language, **beside)
        judged.value()
        found = judge.explain(judged)
    except Stop as stop:
        judged, status = Judged(reason=str(stop)), stop.status
        sys.stderr.write(f"{stop}\n")
    _write(Path(options.results_dir), judged, found)
    return status


def _write(folder: Path, judged: Judged, found: dict[str, Any]) -> None:
    """What Shinka reads: numbers, words for the next prompt, and whether the program is right."""
    score = judged.reward or 0.0
    feedback = [judged.reason, *(f"{name}: {text}" for name, text in found.items())]
    metrics = {
        "combined_score": score,
        "public": {"speedup": score, "verdict": judged.verdict},
        "private": {"seconds": judged.seconds, "url": judged.url},
        "text_feedback": "\n".join(feedback),
    }
    correct = {"correct": score > 0, "error": None if score > 0 else judged.reason}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=1))
    (folder / "correct.json").write_text(json.dumps(correct, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kbench_client.evaluators.shinka", description=__doc__)
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    parser.add_argument("--task", required=True, help="the task's name on the site")
    parser.add_argument("--device", default="", help="a device on the site")
    parser.add_argument("--mode", default="quick", help="quick, profile or ranked")
    parser.add_argument("--direction", default="forward", help="forward or backward")
    parser.add_argument("--agent", default="", help="the kernels' author (default: you)")
    parser.add_argument("--model", default="", help="the language model that writes the kernels")
    parser.add_argument("--folder", default="", help="folder to submit with each program")
    parser.add_argument("--entry", default="", help="file in --folder that each program replaces")
    parser.add_argument(
        "--limit_s", type=float, default=600.0, help="seconds to wait before giving up"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
