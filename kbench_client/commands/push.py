"""`kbench push`: a script's `ref` and `inputs` as a draft of a task, its kernels as submissions."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench_client.commands.check import engine_check
from kbench_client.commands.evaluate import require_runner
from kbench_client.exits import Exit
from kbench_client.output import Output
from kbench_client.site import Site


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = command(
        "push", "make a script a draft of a task, and submit its kernels; needs the extra `runner`"
    )
    parser.add_argument("file", metavar="FILE", help="with ref(), kernel() and inputs(size)")
    parser.add_argument("--size", action="append", default=[], help="size for inputs()")
    parser.add_argument("--kernel", action="append", default=[], help="default: all in the file")
    parser.add_argument("--device", default="", help="where the kernels are tried")
    parser.set_defaults(run=_push)


def _push(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    site.need_token()
    require_runner(site)
    words = [word for size in options.size for word in ("--size", size)]
    words += [word for name in options.kernel for word in ("--kernel", name)]
    created = site.draft(_read(options.file, words, output) | {"device": options.device})
    addresses = [f"{site.account.url}/submissions/{key}/" for key in created["submissions"]]
    told = created | {"url": site.account.url + created["url"], "submission_urls": addresses}
    lines = [f"draft {created['name']}: {told['url']}", *addresses]
    output.answer(told, "\n".join(lines))
    return Exit.GOOD


def _read(file: str, words: list[str], output: Output) -> dict[str, Any]:
    """What the engine makes of the script: a task's document and the kernels to it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "draft.json")
        engine_check([file, *words, "--draft", str(out)], out, output)
        found = json.loads(out.read_text())
    names = ("language", "source", "entry", "files")
    kernels = [{n: each[n] for n in names if n in each} for each in found["kernels"].values()]
    return {"task": found["task"], "kernels": kernels}
