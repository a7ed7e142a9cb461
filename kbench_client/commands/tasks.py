"""`kbench tasks` and `kbench get`: what there is to write kernels for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from kbench_client.commands.submitting import FEW, add_limit
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.results import count_line, table
from kbench_client.site import Site

FILTERS = {
    "q": "words in the name, title or description",
    "scenario": "only tasks of this scenario",
    "difficulty": "easy, medium or hard",
    "tag": "only tasks with this tag; for an unknown tag, the error lists all tags",
    "abi": "c or torch",
    "direction": "forward or backward",
    "dtype": "only tasks of this type, such as float32",
}
DOCUMENT = "task.json"
_NAIVE = "kbench-naive"
_KERNELS = "kernels/"
_VERIFIER = "def verify_fn("


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("tasks", "list the tasks")
    for name, words in FILTERS.items():
        parser.add_argument(f"--{name}", default="", help=words)
    add_limit(parser, None, f"default: {FEW}, or with --json all; ")
    parser.add_argument(
        "--raw", action="store_true", help="with --json: show all fields of each task"
    )
    parser.set_defaults(run=_tasks)
    parser = command(
        "get", "download a task's signature, reference, workloads and kernels as a folder"
    )
    parser.add_argument("task", metavar="TASK")
    parser.add_argument("--to", type=Path, help="folder to write to (default: the task's name)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.set_defaults(run=_get)


def _tasks(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    given = {name: getattr(options, name) for name in FILTERS if getattr(options, name)}
    fitting = site.tasks(**given)
    found = fitting[: options.limit or (len(fitting) if output.as_json else FEW)]
    rows = [
        (t["name"], t["abi"], t["dtype"], "+".join(t["directions"]), t["difficulty"], t["title"])
        for t in found
    ]
    heading = ("task", "abi", "dtype", "direction", "difficulty", "title")
    short = {
        "tasks": [task_line(each) for each in found],
        "left_out": "titles, scenarios, tags, versions and addresses; --raw shows all",
    }
    count = count_line(len(found), len(fitting), "task", ", --q WORD to search")
    text = f"{table([heading, *rows])}\n{count}" if rows else "no task matches"
    output.answer(found if options.raw else short, text)
    return Exit.GOOD


def task_line(task: dict[str, Any]) -> str:
    """A task in a line: its name, ABI, dtype, directions, difficulty."""
    directions = "+".join(task["directions"])
    return (
        f"{task['name']}: {task['abi']} {task['dtype']} {directions} {task['difficulty']}".rstrip()
    )


def _get(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    task = site.task(options.task)
    folder: Path = options.to or Path(task["name"])
    files = folder_of(task)
    taken = [name for name in files if (folder / name).exists()]
    if taken and not options.force:
        raise Stop(
            Exit.MISUSE, f"{folder} already contains {', '.join(taken)}; use --force to overwrite"
        )
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError as error:
            raise Stop(Exit.MISUSE, f"{path}: {error.strerror or error}", "to") from None
    listing = "\n".join(f"  {folder / name}" for name in files)
    shown = {"task": task["name"], "folder": str(folder), "files": list(files)}
    output.answer(shown, f"{task['title']}, version {task['version']}:\n{listing}")
    return Exit.GOOD


def folder_of(task: dict[str, Any]) -> dict[str, str]:
    """The files of a task's folder: what the site shows, words about it, and kernels to begin with.

    Tuned kernels are left out: an agent that reads the folder is to write its own. Raises `Stop`
    where a site names a file outside the folder.
    """
    document = _with_starters_alone(task["document"])
    files = {"README.md": about(task), DOCUMENT: json.dumps(document, indent=1) + "\n"}
    for name, text in document.get("files", {}).items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise Stop(
                Exit.UNREACHABLE, f"the site sent the file {name!r}, which is outside the folder"
            )
        files[name] = text
    for kernel in document.get("kernels", ()):
        naive = kernel["agent"] == _NAIVE and kernel["direction"] == "forward"
        if naive and kernel["path"] in files:
            suffix = PurePosixPath(kernel["path"]).suffix
            directive = f"// kbench: task={task['name']} mode=quick\n"
            files[f"kernel{suffix}"] = directive + files[kernel["path"]]
    return files


def _with_starters_alone(document: dict[str, Any]) -> dict[str, Any]:
    """A task's document without the shipped kernels that aren't naive."""
    naive = [kernel for kernel in document.get("kernels", ()) if kernel["agent"] == _NAIVE]
    kept = {kernel["path"] for kernel in naive}
    files = {
        path: text
        for path, text in document.get("files", {}).items()
        if path in kept or not path.startswith(_KERNELS)
    }
    return {**document, "kernels": naive, "files": files}


def _tolerance(document: dict[str, Any]) -> str:
    """What an element may be off by, in words."""
    if any(_VERIFIER in text for text in document.get("files", {}).values()):
        return "the task's own verifier decides: `verify_fn` in reference.py"
    if document.get("format") == "flashinfer-trace":
        return "each element's bound follows from the errors of the reference in its own types"
    given = document.get("tolerance", {})
    constant, growth = float(given.get("constant", 16)), float(given.get("growth", 4))
    terms = given.get("reduction", "1")
    return (
        f"an element may be off by eps × ({constant:g} + {growth:g} √L) × its scale. eps is that "
        f"of {document.get('dtype', 'the output')}; L = `{terms}` is the number of terms summed "
        f"for it; the scale is its expected size plus the output's root mean square, or what "
        "reference.py says"
    )


def about(task: dict[str, Any]) -> str:
    """A task in words: what to write, and on which shapes it is measured."""
    document = task["document"]
    lines = [f"# {task['title']}", "", document.get("description", ""), ""]
    if document.get("signature"):
        lines += ["```c++", f'extern "C" {document["signature"]};', "```", ""]
    lines += [
        f"- ABI {task['abi']}, {task['dtype']}, {', '.join(task['directions'])}",
        f"- tolerance: {_tolerance(document)}",
        "",
        "| workload | devices | parameters |",
        "|---|---|---|",
    ]
    for each in document["workloads"]:
        devices = ", ".join(each.get("devices", ())) or "all"
        lines.append(f"| {each['name']} | {devices} | {json.dumps(each['parameters'])} |")
    return "\n".join([*lines, "", "Hidden workloads have different sizes and are not shown.", ""])
