"""`kbench submit` and `import`: enter kernels, and wait for a verdict."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from kbench_client.details import details, summary
from kbench_client.exits import Exit, Stop, exit_of
from kbench_client.kernels import BESIDE, LANGUAGES, Kernel, is_hidden, payload, read_kernels
from kbench_client.output import Output
from kbench_client.results import newest
from kbench_client.site import Site
from kbench_client.solutions import FORMAT, is_solution, read_solution

MODES = ("compile", "test", "quick", "ranked", "profile")
TIMEOUT_S = 1800.0
MOST_FILES = 1000
FEW = 20  # chosen: a list of this length fits on a screen
SOLUTION_SUFFIX = ".json"
_NAME_LIMIT = 80  # of a task's name on a site


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("submit", "submit a kernel from one file, several files or a folder")
    add_kernel_files(parser)
    add_kernel_options(parser)
    parser.add_argument("--agent", default="", help="the kernel's author (default: you)")
    parser.add_argument("--model", default="", help="the language model that wrote the kernel")
    parser.add_argument("--private", action="store_true", help="visible only to you and admins")
    parser.add_argument("--watch", action="store_true", help="wait for the verdict")
    add_watch_options(parser)
    parser.add_argument(
        "--min-speedup",
        type=float,
        help="with --watch: exit with status 6 if the score (or without one, the speedup) is lower",
    )
    parser.set_defaults(run=_submit)
    parser = command("import", "submit every kernel in a folder that matches a task on the site")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    entry = "treat each subfolder with this file as one kernel, and this file as its entry file"
    parser.add_argument("--entry", default="", metavar="NAME", help=entry)
    parser.add_argument("--device", default="", help="cpu, cuda or a device on the queue page")
    parser.add_argument("--mode", default="", choices=("", *MODES), help="default: quick")
    parser.add_argument("--agent", default="", help="the kernels' author (default: you)")
    parser.add_argument("--model", default="", help="the language model that wrote the kernels")
    parser.add_argument("--private", action="store_true", help="visible only to you and admins")
    parser.add_argument(
        "--dry-run", action="store_true", help="only show which tasks match; submit nothing"
    )
    parser.set_defaults(run=_import)


def add_kernel_files(parser: argparse.ArgumentParser) -> None:
    """The kernel itself: see `read_kernels`."""
    parser.add_argument(
        "files",
        type=Path,
        metavar="FILE",
        nargs="+",
        help="the kernel's files or folder; by default, the first file is the entry file",
    )
    parser.add_argument(
        "--entry", default="", metavar="NAME", help="the entry file, which is built or imported"
    )


def add_kernel_options(parser: argparse.ArgumentParser) -> None:
    """Options that a directive in the source may say as well."""
    parser.add_argument("--task", default="", help="a task's name")
    parser.add_argument("--device", default="", help="cpu, cuda or a device on the queue page")
    parser.add_argument("--mode", default="", choices=MODES, help="default: quick")
    parser.add_argument("--direction", default="", choices=("forward", "backward"))
    languages = sorted(set(LANGUAGES.values()))
    parser.add_argument("--language", default="", choices=languages)


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="how long to wait before exiting with status 5",
    )


def add_limit(parser: argparse.ArgumentParser, default: int | None, words: str = "") -> None:
    help = f"{words}how many rows to show{f' (default: {default})' if default else ''}"
    parser.add_argument("--limit", type=_rows, default=default, metavar="N", help=help)


def _rows(text: str) -> int:
    """A number of rows; raises what `argparse` tells."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def given(options: argparse.Namespace, *names: str) -> dict[str, object]:
    return {name: getattr(options, name) for name in names}


def _submit(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    site.need_token()
    if options.min_speedup is not None and not options.watch:
        raise Stop(
            Exit.MISUSE,
            "requires --watch, because otherwise there is no verdict yet",
            "min-speedup",
        )
    names = ("task", "device", "mode", "direction", "language", "agent", "model", "private")
    body = payload(read_kernels(options.files, options.entry), given(options, *names))
    created = site.submit(body)
    address = site.account.url + created["url"]
    if remark := created.get("remark"):
        output.warn(remark)
    if not options.watch:
        output.answer(created | {"url": address}, f"{created['id']}\n{address}")
        return Exit.GOOD
    output.progress(address)
    state = watch(site, created["id"], output, options.timeout)
    found = newest(site.submission(created["id"]))
    told = state | {"reason": found["reason"], "url": address, **details(found)}
    output.answer(told, f"{summary(found)}\n{address}")
    return _judged(state, options.min_speedup)


def _judged(state: dict[str, Any], min_speedup: float | None) -> Exit:
    status = exit_of(state["verdict"])
    if status or min_speedup is None or state["verdict"] != "CORRECT":
        return status
    reached = state["score"] or state["speedup"] or 0.0
    return Exit.TOO_SLOW if reached < min_speedup else Exit.GOOD


def watch(site: Site, identity: str, output: Output, timeout_s: float) -> dict[str, Any]:
    """Wait until a submission's evaluation is over, with a line for each stage; raises `Stop`."""
    state: dict[str, Any] = {}
    said = ""
    for state in site.watch_submission(identity, timeout_s):
        now = state["stage"] or state["waiting_reason"] or state["status"].lower()
        news = now.partition("; expect")[0]  # the time that is left changes with each answer
        if news != said and not state["over"]:
            output.progress(f"  {now}")
            said = news
    if not state["over"]:
        reason = (
            f"still {state['status']} after {timeout_s:g} s; run `kbench show {identity}` to "
            "check again later"
        )
        raise Stop(Exit.TIME_OVER, reason)
    if state["status"] == "CANCELLED":
        raise Stop(Exit.OTHER_VERDICT, f"canceled: {state['reason'] or 'by a person'}")
    return state


def task_of(path: Path, folder: Path, directive: str, known: Collection[str]) -> str:
    """The task that a file is for: what it says, else what its name or its folders' names fit.

    Raises `Stop` where the site has none of these.
    """
    wanted = [directive] if directive else list(_names(path, folder))
    for name in wanted:
        if name in known:
            return name
    raise Stop(Exit.MISUSE, f"the site has no task {' or '.join(wanted)}", "task")


def _names(path: Path, folder: Path) -> Iterator[str]:
    """As the site names the tasks of a collection, with the level in front if there is one."""
    parts = [*path.relative_to(folder).parts[:-1], path.stem]
    found: dict[str, None] = {}
    for at in range(len(parts) - 1, -1, -1):
        own = _slug(parts[at])
        if at > 0:
            found[f"{_slug(parts[at - 1])}-{own}"] = None
        found[own] = None
    yield from (name for name in found if name)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", name.lower()).strip("_.")


def _import(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if not options.folder.is_dir():
        raise Stop(Exit.MISUSE, f"{options.folder} is not a folder", "folder")
    if not options.dry_run:
        site.need_token()
    paths = _kernels(options.folder, options.entry)
    if not 0 < len(paths) <= MOST_FILES:
        raise Stop(
            Exit.MISUSE,
            f"contains {len(paths)} kernels; it must contain 1 to {MOST_FILES}",
            "folder",
        )
    known = {str(task["name"]) for task in site.tasks()}
    rows, status = [], Exit.GOOD
    for path in paths:
        row, failed = _entered(path, options, site, known)
        rows.append(row)
        output.progress(_line(row))
        if failed is not None:
            status = Exit.OTHER_VERDICT
        if failed in (Exit.NO_TOKEN, Exit.UNREACHABLE):
            break
    entered = sum(bool(row["id"]) for row in rows)
    output.answer(rows, f"{entered} of {len(paths)} entered")
    return status


def _entered(
    path: Path, options: argparse.Namespace, site: Site, known: Collection[str]
) -> tuple[dict[str, object], Exit | None]:
    """The row for a file or folder, and the exit status if it wasn't submitted."""
    row: dict[str, Any] = {"file": path.relative_to(options.folder).as_posix()}
    row |= {"task": "", "id": "", "reason": ""}
    try:
        said = {}
        if path.suffix.lower() == SOLUTION_SUFFIX:
            kernel, row["task"], said["agent"] = _of_solution(path, site, known)
        else:
            kernel = read_kernels([path], options.entry if (path / options.entry).is_file() else "")
            directive = kernel.directives.get("task", "")
            row["task"] = task_of(path / kernel.entry, options.folder, directive, known)
        if not options.dry_run:
            row["id"] = site.submit(_body(kernel, options, row["task"], said))["id"]
    except Stop as error:
        row["reason"] = str(error)
        return row, error.status
    return row, None


def _kernels(folder: Path, entry: str) -> list[Path]:
    """Files that are a kernel of their own, and subfolders that are one kernel of several files.

    Such a subfolder has the entry, or a single source and headers. Raises `Stop` if an entry is
    given and no subfolder has it.
    """
    found = [path for path in folder.rglob("*") if not is_hidden(path, folder)]
    if entry and entry not in {path.name for path in found if path.parent != folder}:
        reason = f"no subfolder of {folder} contains a file named {entry!r}"
        raise Stop(Exit.MISUSE, f"{reason}; check the name, or leave it out", "entry")
    files = Counter(up for path in found if path.suffix in BESIDE for up in path.parents)
    sources = Counter(up for path in found if path.suffix in LANGUAGES for up in path.parents)

    def whole(path: Path) -> Path:
        above = [folder / up for up in path.relative_to(folder).parents][:-1]
        named = [top for top in above if entry and (top / entry).is_file()]
        is_only = sources[path.parent] == 1 < files[path.parent]
        if named:
            return named[0]
        return path.parent if above and is_only else path

    kernels = filter(_may_be_kernel, found)
    return sorted({whole(path) if path.suffix in LANGUAGES else path for path in kernels})


def _may_be_kernel(path: Path) -> bool:
    suffix = path.suffix.lower()
    return suffix in LANGUAGES or (suffix == SOLUTION_SUFFIX and is_solution(path))


def _of_solution(path: Path, site: Site, known: Collection[str]) -> tuple[Kernel, str, str]:
    """The kernel of a solution, its task, and who wrote it."""
    solution = read_solution(path)
    name = _slug(solution.definition).replace(".", "_")[:_NAME_LIMIT]
    names = (f"{FORMAT}-{name}"[:_NAME_LIMIT], name)  # the first, if another task has the name
    task = next((each for each in names if each in known), None)
    if task is None:
        raise Stop(Exit.MISUSE, f"the site has no task {name}", "definition")
    return solution.kernel(site.task(task)), task, solution.author


def _body(
    kernel: Kernel, options: argparse.Namespace, task: str, said: dict[str, str]
) -> dict[str, object]:
    asked = given(options, "device", "mode", "agent", "model", "private")
    asked = {name: value for name, value in asked.items() if value not in (None, "")}
    return payload(kernel, said | asked | {"task": task})


def _line(row: dict[str, object]) -> str:
    return f"{row['file']}: {row['reason'] or row['task']} {row['id']}".rstrip()
