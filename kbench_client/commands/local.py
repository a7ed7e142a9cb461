"""`kbench check`, `evaluate`, `push` and `gate`: what `gpu_runner` does on this machine."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kbench_client.commands.submitting import add_kernel_files, add_kernel_options, given
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import files_of, payload, read_kernels
from kbench_client.output import Output
from kbench_client.results import duration
from kbench_client.site import Site

NEEDED = ("gpu_runner", "torch", "redis", "rq")
_KINDS = {"cpp": "cpu", "cuda": "cuda"}  # gpu_runner looks at what is written in Python
_MISUSE = 2
"""Status of `gpu_runner` for wrong use, or a broken host."""
_SINGLE = ("compare", "rounds", "device", "mode")
_HEAD = "| kernel | verdict | before | now | speedup | |\n|---|---|---|---|---|---|"
_OLD = ", old"


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the commands; `gpu_runner check` says what is wrong with its values."""
    parser = command("evaluate", "measure a kernel on this machine; it isn't ranked on the site")
    add_kernel_files(parser)
    add_kernel_options(parser)
    parser.add_argument(
        "--folder",
        type=Path,
        help="a task's folder, as written by `kbench get`; works without a site",
    )
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=_evaluate)
    parser = command("check", "judge and time a script's kernels on this machine, without a site")
    _add_script(parser, "cpu or cuda")
    parser.add_argument(
        "--compare", metavar="OLD", help="alternate with the same-named kernels in that file"
    )
    parser.add_argument("--rounds", help="number of rounds for --compare (default 5)")
    parser.add_argument("--mode", help="quick, ranked or audit")
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=_check)
    _add_gate(command("gate", "for CI: compare scripts with their versions at an earlier commit"))
    parser = command(
        "push",
        "turn a script into a draft task and submit its kernels; requires the `runner` extra",
    )
    _add_script(parser, "device to run the kernels on")
    parser.set_defaults(run=_push)


def _add_script(parser: argparse.ArgumentParser, device: str) -> None:
    parser.add_argument("file", metavar="FILE", help="with ref(), kernel() and inputs(size)")
    parser.add_argument(
        "--size", action="append", default=[], help="size to pass to inputs(); can be repeated"
    )
    parser.add_argument(
        "--kernel",
        action="append",
        default=[],
        help="kernel to run; can be repeated (default: all kernels in the file)",
    )
    parser.add_argument("--device", default="", help=device)


def _add_gate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as for `kbench check`")
    parser.add_argument("--base", default="HEAD~1", help="commit to compare with (default HEAD~1)")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.95,
        help="fail if a kernel runs below this share of its old speed, beyond noise (default 0.95)",
    )
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("--rounds", default="5", help="number of rounds (default 5)")
    parser.set_defaults(run=_gate)


def missing() -> list[str]:
    """Packages that the protocol needs and this installation lacks."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def require_runner(site: Site) -> None:
    """Raise `Stop` where the protocol's packages are missing, with what installs them."""
    if lacking := missing():
        raise Stop(
            Exit.MISUSE,
            f"needs {', '.join(lacking)} on this machine: pip install 'kbench[runner] @ URL',"
            f" with the URL from {site.account.url}/agents.md",
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
        words = _evaluation(wanted, options, task, out)
        done = _engine(words, out, is_quiet=True)
        output.answer(json.loads(out.read_text()), done.stdout.rstrip())
    return int(Exit.UNREACHABLE) if done.returncode == _MISUSE else done.returncode


def _evaluation(
    wanted: dict[str, str], options: argparse.Namespace, task: Path, out: Path
) -> list[str]:
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


def _check(options: argparse.Namespace, site: Site, output: Output) -> int:
    require_runner(site)
    more = ["--allow-unjailed"] if options.allow_unjailed else []
    for name in _SINGLE:
        value = getattr(options, name)
        more += [f"--{name}", value] if value else []
    document, text, status = checked([*_words(options), *more], output)
    output.answer(document, text)
    return int(Exit.UNREACHABLE) if status == _MISUSE else status


def checked(words: Sequence[str], output: Output) -> tuple[dict[str, Any], str, int]:
    """What `gpu_runner check` gives: its document, its text and its status. Raises `Stop`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "checked.json")
        is_quiet = output.is_quiet or output.as_json  # the document says what was wrong
        done = _engine(["check", *words, "--json", str(out)], out, is_quiet=is_quiet)
        return json.loads(out.read_text()), done.stdout.rstrip(), done.returncode


def _words(options: argparse.Namespace) -> list[str]:
    """The script, its sizes and its kernels."""
    sizes = [word for size in options.size for word in ("--size", size)]
    return [options.file, *sizes, *(w for name in options.kernel for w in ("--kernel", name))]


def _engine(words: Sequence[str], out: Path, *, is_quiet: bool) -> subprocess.CompletedProcess[str]:
    """Run `gpu_runner`, which writes `out`. Raises `Stop` if it writes nothing."""
    program = [sys.executable, "-m", "gpu_runner", *words]
    progress = subprocess.PIPE if is_quiet else None
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=progress, text=True, check=False)
    if not out.exists():
        reason = (done.stderr or "").replace("gpu_runner: ", "").strip()
        usual = "the runner returned no result" if is_quiet else "see above"
        raise Stop(Exit.MISUSE, reason or usual)
    return done


def _push(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    site.need_token()
    require_runner(site)
    created = site.draft(_read(_words(options), output) | {"device": options.device})
    addresses = [f"{site.account.url}/submissions/{key}/" for key in created["submissions"]]
    told = created | {"url": site.account.url + created["url"], "submission_urls": addresses}
    lines = [f"draft {created['name']}: {told['url']}", *addresses]
    output.answer(told, "\n".join(lines))
    return Exit.GOOD


def _read(words: list[str], output: Output) -> dict[str, Any]:
    """What the engine makes of the script: a task's document and the kernels to it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "draft.json")
        _engine(["check", *words, "--draft", str(out)], out, is_quiet=output.is_quiet)
        found = json.loads(out.read_text())
    names = ("language", "source", "entry", "files")
    kernels = [{n: each[n] for n in names if n in each} for each in found["kernels"].values()]
    return {"task": found["task"], "kernels": kernels}


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
    if status == _MISUSE:
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
    before, after = document["kernels"].get(f"{name}{_OLD}", {}).get("time_ns"), now["time_ns"]
    is_right = now["verdict"] == "CORRECT"
    is_good = is_right and (ratio is None or ratio["high"] >= threshold)
    change = ""
    if ratio:
        before, after = ratio["old_ns"], ratio["new_ns"]
        change = f"{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"
    verdict = "correct" if is_right else f"{now['verdict']}: {now['reason']}"
    cells = (f"{script} `{name}`", verdict, duration(before), duration(after), change)
    return f"| {' | '.join(cells)} | {'✓' if is_good else '✗'} |", is_good
