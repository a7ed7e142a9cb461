"""`kbench run`: let a strategy look for a faster kernel."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench_client.commands.submitting import add_watch_options
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import read_kernels
from kbench_client.output import Output
from kbench_client.results import duration, factor, money
from kbench_client.site import ID, Site

STEPS = {
    "pause": "pause the run, which then starts nothing new",
    "resume": "resume the run",
    "stop": "end the run for good",
    "extend": "change the given caps, and with --parameter NAME=MORE the strategy's parameters",
    "again": "start the run again with these changes",
}
"""What may be done with a run."""
BUDGET: dict[str, tuple[Callable[[str], object], str]] = {
    "evaluations": (int, "cap on evaluations"),
    "usd": (float, "cap on the cost, in USD"),
    "tokens": (int, "cap on tokens"),
    "wall_time_s": (int, "cap on running time, in seconds"),
}


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("run", "start an optimization run, follow one, or steer it")
    parser.add_argument("task", metavar="TASK_OR_RUN", help="a task's name, or a run's id")
    parser.add_argument(
        "--strategy", default="", help="strategy to use, such as autotune; see the site for a list"
    )
    parser.add_argument("--device", default="")
    parser.add_argument("--direction", default="", choices=("forward", "backward"))
    parser.add_argument(
        "--model", action="append", default=[], help="language model to use; can be repeated"
    )
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE")
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument(
        "--kernel", default="", metavar="FILE", help="the seed kernel's file or folder"
    )
    seeds = ("naive", "best", "none")
    begins.add_argument(
        "--seed-kernel", default="", choices=seeds, help="default: the strategy's default"
    )
    parser.add_argument("--entry", default="", help="with a folder: the file that the run changes")
    parser.add_argument("--name", default="")
    parser.add_argument("--private", action="store_true")
    parser.add_argument(
        "--enter-best", action="store_true", help="submit the best candidate at the end"
    )
    for name, (kind, words) in BUDGET.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, help=words)
    steps = parser.add_mutually_exclusive_group()
    for name, words in STEPS.items():
        steps.add_argument(f"--{name}", dest="step", action="store_const", const=name, help=words)
    parser.add_argument("--watch", action="store_true", help="wait until it ends")
    add_watch_options(parser)
    parser.set_defaults(run=_run)


def body(options: argparse.Namespace) -> dict[str, Any]:
    budget = {name: getattr(options, name) for name in BUDGET if getattr(options, name) is not None}
    wanted: dict[str, object] = {
        **{name: getattr(options, name) for name in ("task", "strategy", "device", "direction")},
        **{"seed_kernel": options.seed_kernel},
        **{"name": options.name, "models": options.model, "budget": budget},
        "parameters": dict(map(_parameter, options.parameter)),
        "private": options.private,
        "enters_best": options.enter_best,
    }
    if options.entry and not options.kernel:
        raise Stop(
            Exit.MISUSE, "is the name of a file in a folder; set the folder with --kernel", "entry"
        )
    if options.kernel:
        kernel = read_kernels([Path(options.kernel)], options.entry)
        beside = {"entry": kernel.entry, "files": dict(kernel.files)}
        wanted |= {"seed_kernel": "own", "source": kernel.source, **beside}
    return {name: value for name, value in wanted.items() if value not in ("", [], {}, False)}


def changes(options: argparse.Namespace) -> dict[str, object]:
    """The body of a step, of what has been given. Raises `Stop` for what no such step takes."""
    given = body(options)
    given.pop("task")
    taken: set[str] = set()
    if options.step == "extend":
        taken = {"budget", "parameters"}
    elif options.step == "again":
        taken = {"budget", "parameters", "models", "name", "private"}
    for name in given.keys() - taken:
        raise Stop(Exit.MISUSE, f"can't be combined with --{options.step}", name)
    return given | given.pop("budget", {}) if options.step == "extend" else given


def _parameter(text: str) -> tuple[str, object]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Stop(Exit.MISUSE, f"{text!r} is not in the form NAME=VALUE", "parameter")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _run(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if options.step and not ID.fullmatch(options.task):
        raise Stop(Exit.MISUSE, f"{options.task!r} is not a run's id", "run")
    if options.strategy or options.step:
        site.need_token()
        if options.step:
            run = site.steer_run(options.task, options.step, changes(options))
        else:
            run = site.start_run(body(options))
    elif ID.fullmatch(options.task):
        run = site.run(options.task)
    else:
        reason = (
            f"required to start a run; to follow a run, pass its id instead of {options.task!r}"
        )
        raise Stop(Exit.MISUSE, reason, "strategy")
    address = site.account.url + run["url"]
    if options.watch:
        output.progress(address)
        run = follow(site, run["id"], output, options.timeout)
    output.answer(run | {"url": address}, f"{_line(run)}\n{run['id']}\n{address}")
    return Exit.GOOD


def follow(site: Site, identity: str, output: Output, timeout_s: float) -> dict[str, object]:
    """Wait until a run has ended, with a line whenever it got better; raises `Stop`."""
    run: dict[str, Any] = {}
    said = ""
    for run in site.watch_run(identity, timeout_s):
        if (now := _line(run)) != said:
            output.progress(f"  {now}")
            said = now
        if run["status"] == "PAUSED":
            raise Stop(Exit.OTHER_VERDICT, f"the run is paused: {run['reason']}")
    if run["ended_at"] is None:
        raise Stop(Exit.TIME_OVER, f"still {run['status']} after {timeout_s:g} s")
    return run


def _line(run: dict[str, Any]) -> str:
    best, over_seed = run["best_latency_ns"], run.get("over_seed")
    gain = f", {factor(over_seed)} the speed of its seed (in the search)" if over_seed else ""
    spent = f"{run['evaluations']} evaluations, {money(run['usd'])}"
    reason = f" ({run['reason']})" if run["reason"] else ""
    return f"{run['status']}{reason}: best {duration(best)}{gain}; {spent}"
