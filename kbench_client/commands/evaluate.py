"""`kbench evaluate`: the same protocol on this machine, by `gpu_runner`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kbench_client.commands.submitting import add_kernel_files, add_kernel_options, given
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import files_of, payload, read_kernels
from kbench_client.output import Output
from kbench_client.site import Site

NEEDED = ("gpu_runner", "torch", "redis", "rq")
_KINDS = {"cpp": "cpu", "cuda": "cuda"}  # gpu_runner looks at what is written in Python
_MISUSE = 2


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = command("evaluate", "measure a kernel's file on this machine; the site ranks nothing")
    add_kernel_files(parser)
    add_kernel_options(parser)
    parser.add_argument("--folder", type=Path, help="the task as `kbench get` wrote it; no site")
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=_evaluate)


def missing() -> list[str]:
    """Packages that the protocol needs and this installation lacks."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def require_runner(site: Site) -> None:
    """Raise `Stop` where the protocol's packages are missing, with what installs them."""
    if lacking := missing():
        raise Stop(
            Exit.MISUSE,
            f"needs {', '.join(lacking)} on this machine: pip install 'kbench[runner] @ URL',"
            f" with the URL of {site.account.url}/agents.md",
        )


def _evaluate(options: argparse.Namespace, site: Site, output: Output) -> int:
    kernel = read_kernels(options.files, options.entry)
    names = ("task", "device", "mode", "direction", "language")
    wanted = payload(kernel, given(options, *names) | ({"task": "-"} if options.folder else {}))
    require_runner(site)
    with tempfile.TemporaryDirectory() as folder:
        out, task = Path(folder, "result.json"), Path(folder, "task.json")
        if options.folder:
            task = options.folder / "task.json"
        else:
            task.write_text(json.dumps(site.task(wanted["task"])["document"]))
        words = _words(wanted, options, task, out)
        done = subprocess.run(
            [sys.executable, "-m", "gpu_runner", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if not out.exists():
            reason = done.stderr.replace("gpu_runner: ", "").strip() or "gives no result"
            raise Stop(Exit.MISUSE, reason)
        output.answer(json.loads(out.read_text()), done.stdout.rstrip())
    return int(Exit.UNREACHABLE) if done.returncode == _MISUSE else done.returncode


def _words(wanted: dict[str, str], options: argparse.Namespace, task: Path, out: Path) -> list[str]:
    device = wanted.get("device", "") or _KINDS.get(wanted["language"], "")
    path, beside = options.files[0], []
    if wanted.get("files"):
        top, found = files_of(options.files)
        path = top / wanted["entry"]
        beside = [str(each) for each in found if each != path]
    words = ["evaluate", "--task", str(task), "--kernel", str(path)]
    words += ["--files", *beside] if beside else []
    words += ["--device", "cpu" if device == "cpu" else "cuda"] if device else []
    words += ["--mode", wanted.get("mode", "quick"), "--json", str(out)]
    words += ["--direction", wanted.get("direction", "forward")]
    return [*words, *(["--allow-unjailed"] if options.allow_unjailed else [])]
