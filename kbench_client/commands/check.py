"""`kbench check`: a verdict on a script's kernels, with no site, by `gpu_runner`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kbench_client.commands.evaluate import require_runner
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.site import Site

_MISUSE = 2
_REPEATED = ("size", "kernel")
_SINGLE = ("compare", "rounds", "device", "mode")


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command; `gpu_runner check` says what is wrong with its values."""
    parser = command("check", "judge and time a script's kernels on this machine; needs no site")
    parser.add_argument("file", metavar="FILE", help="with ref(), kernel() and inputs(size)")
    parser.add_argument("--size", action="append", help="of inputs(); may be repeated")
    parser.add_argument("--kernel", action="append", help="default: all of the file")
    parser.add_argument("--compare", metavar="OLD", help="by turns with the kernel of that file")
    parser.add_argument("--rounds", help="of --compare; 5 if left out")
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("--mode", help="quick, ranked or audit")
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace, site: Site, output: Output) -> int:
    require_runner(site)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "checked.json")
        program = [sys.executable, "-m", "gpu_runner", "check", options.file, "--json", str(out)]
        progress = subprocess.PIPE if output.is_quiet else None
        done = subprocess.run(
            [*program, *_words(options)],
            stdout=subprocess.PIPE,
            stderr=progress,
            text=True,
            check=False,
        )
        if not out.exists():
            reason = (done.stderr or "see above").replace("gpu_runner: ", "").strip()
            raise Stop(Exit.MISUSE, reason)
        output.answer(json.loads(out.read_text()), done.stdout.rstrip())
    return int(Exit.UNREACHABLE) if done.returncode == _MISUSE else done.returncode


def _words(options: argparse.Namespace) -> list[str]:
    words = ["--allow-unjailed"] if options.allow_unjailed else []
    for name in _REPEATED:
        words += [word for value in getattr(options, name) or () for word in (f"--{name}", value)]
    for name in _SINGLE:
        value = getattr(options, name)
        words += [f"--{name}", value] if value else []
    return words
