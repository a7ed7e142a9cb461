"""`kbench check`: a verdict on a script's kernels, with no site, by `gpu_runner`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kbench_client.commands.evaluate import require_runner
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.site import Site

MISUSE = 2
"""Status of `gpu_runner` for wrong use, or a broken host."""
_REPEATED = ("size", "kernel")
_SINGLE = ("compare", "rounds", "device", "mode")


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command; `gpu_runner check` says what is wrong with its values."""
    parser = command("check", "judge and time a script's kernels on this machine; needs no site")
    parser.add_argument("file", metavar="FILE", help="with ref(), kernel() and inputs(size)")
    parser.add_argument("--size", action="append", help="size for inputs(); may be repeated")
    parser.add_argument("--kernel", action="append", help="default: all in the file")
    parser.add_argument(
        "--compare", metavar="OLD", help="alternate with the kernels of the same names in that file"
    )
    parser.add_argument("--rounds", help="rounds of --compare (default 5)")
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("--mode", help="quick, ranked or audit")
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace, site: Site, output: Output) -> int:
    require_runner(site)
    document, text, status = checked([options.file, *_words(options)], output)
    output.answer(document, text)
    return int(Exit.UNREACHABLE) if status == MISUSE else status


def checked(words: Sequence[str], output: Output) -> tuple[dict[str, Any], str, int]:
    """What `gpu_runner check` gives: its document, its text and its status. Raises `Stop`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "checked.json")
        done = engine_check([*words, "--json", str(out)], out, output)
        return json.loads(out.read_text()), done.stdout.rstrip(), done.returncode


def engine_check(
    words: Sequence[str], out: Path, output: Output
) -> subprocess.CompletedProcess[str]:
    """Run `gpu_runner check`, which writes `out`. Raises `Stop` if it writes nothing."""
    program = [sys.executable, "-m", "gpu_runner", "check", *words]
    progress = subprocess.PIPE if output.is_quiet else None
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=progress, text=True, check=False)
    if not out.exists():
        reason = (done.stderr or "see above").replace("gpu_runner: ", "").strip()
        raise Stop(Exit.MISUSE, reason)
    return done


def _words(options: argparse.Namespace) -> list[str]:
    words = ["--allow-unjailed"] if options.allow_unjailed else []
    for name in _REPEATED:
        words += [word for value in getattr(options, name) or () for word in (f"--{name}", value)]
    for name in _SINGLE:
        value = getattr(options, name)
        words += [f"--{name}", value] if value else []
    return words
