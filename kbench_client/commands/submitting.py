"""`kbench submit`: enter a kernel, and wait for its verdict."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench_client.details import details, summary
from kbench_client.exits import Exit, Stop, exit_of
from kbench_client.kernels import LANGUAGES, payload, read_kernels
from kbench_client.output import Output
from kbench_client.results import newest
from kbench_client.site import Site

MODES = ("compile", "test", "quick", "ranked", "profile")
TIMEOUT_S = 1800.0


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = command("submit", "submit a kernel: a file, several, or a folder")
    add_kernel_files(parser)
    add_kernel_options(parser)
    parser.add_argument("--agent", default="", help="who wrote it; you, if left out")
    parser.add_argument("--model", default="", help="the language model that wrote it")
    parser.add_argument("--private", action="store_true", help="visible only to you and admins")
    parser.add_argument("--watch", action="store_true", help="wait for the verdict")
    add_watch_options(parser)
    parser.add_argument(
        "--min-speedup",
        type=float,
        help="with --watch: exit with 6 if the score (without one, the speedup) is lower",
    )
    parser.set_defaults(run=_submit)


def add_kernel_files(parser: argparse.ArgumentParser) -> None:
    """The kernel itself: see `read_kernels`."""
    parser.add_argument(
        "files", type=Path, metavar="FILE", nargs="+", help="several: the first is the entry"
    )
    parser.add_argument("--entry", default="", metavar="NAME", help="what is built or imported")


def add_kernel_options(parser: argparse.ArgumentParser) -> None:
    """Options that a directive in the source may say as well."""
    parser.add_argument("--task", default="", help="a task's name")
    parser.add_argument("--device", default="", help="cpu, cuda or a device on the queue page")
    parser.add_argument("--mode", default="", choices=MODES, help="default: quick")
    parser.add_argument("--direction", default="", choices=("forward", "backward"))
    languages = sorted(set(LANGUAGES.values()))
    parser.add_argument("--language", default="", choices=languages)


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """How long to wait."""
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="how long to wait before exiting with 5",
    )


def given(options: argparse.Namespace, *names: str) -> dict[str, object]:
    """Options of these names."""
    return {name: getattr(options, name) for name in names}


def _submit(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    site.need_token()
    if options.min_speedup is not None and not options.watch:
        raise Stop(
            Exit.MISUSE, "needs --watch, because the verdict isn't known any earlier", "min-speedup"
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
            f"still {state['status']} after {timeout_s:g} s; `kbench show {identity}` shows it "
            "later"
        )
        raise Stop(Exit.TIME_OVER, reason)
    if state["status"] == "CANCELLED":
        raise Stop(Exit.OTHER_VERDICT, f"canceled: {state['reason'] or 'by a person'}")
    return state
