"""`kbench import`: a folder of published kernels, entered as a batch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from kbench_client.commands.submitting import MODES, given
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import LANGUAGES, Kernel, payload, read_kernel
from kbench_client.output import Output
from kbench_client.site import Site
from kbench_client.solutions import FORMAT, is_solution, read_solution

MOST_FILES = 1000
SOLUTION_SUFFIX = ".json"
_NAME_LIMIT = 80  # of a task's name on a site


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = command("import", "submit every kernel in a folder whose task the site has")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--device", default="", help="cpu, cuda or a device on the queue page")
    parser.add_argument("--mode", default="", choices=("", *MODES), help="default: quick")
    parser.add_argument("--agent", default="", help="who wrote them; you, if left out")
    parser.add_argument("--model", default="", help="the language model that wrote them")
    parser.add_argument("--private", action="store_true", help="visible only to you and admins")
    parser.add_argument(
        "--dry-run", action="store_true", help="only show which tasks match; submit nothing"
    )
    parser.set_defaults(run=_import)


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
    paths = sorted(filter(_may_be_kernel, options.folder.rglob("*")))
    if not 0 < len(paths) <= MOST_FILES:
        raise Stop(
            Exit.MISUSE, f"has {len(paths)} kernels; it must have 1 to {MOST_FILES}", "folder"
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
    """What became of a file, and why it was not entered."""
    row: dict[str, Any] = {"file": path.relative_to(options.folder).as_posix()}
    row |= {"task": "", "id": "", "reason": ""}
    try:
        said = {}
        if path.suffix.lower() == SOLUTION_SUFFIX:
            kernel, row["task"], said["agent"] = _of_solution(path, site, known)
        else:
            kernel = read_kernel(path)
            row["task"] = task_of(path, options.folder, kernel.directives.get("task", ""), known)
        if not options.dry_run:
            row["id"] = site.submit(_body(kernel, options, row["task"], said))["id"]
    except Stop as error:
        row["reason"] = str(error)
        return row, error.status
    return row, None


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
