"""`kbench challenge`: enter a challenge with an agent, report what it spent, and finish."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench_client.commands.submitting import add_watch_options
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.results import duration, factor, money, over, significant
from kbench_client.site import ID, Site

_PREFIX = "kbe_"  # how an entry's token begins
_ENTERING = ("agent", "setting", "model")
_REPORTED = ("usd", "tokens", "transcript")


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("challenge", "challenges for whole agents: list, show, enter, report, finish")
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME_OR_ENTRY",
        help="a challenge's name or an entry's id (default with an entry's token: that entry)",
    )
    parser.add_argument("--enter", action="store_true", help="begin an entry and print its token")
    parser.add_argument("--agent", default="", help="with --enter: the kernels' author")
    parser.add_argument(
        "--setting", default="", help="with --enter: a label for how the agent is set up"
    )
    parser.add_argument("--model", default="", help="with --enter: the agent's language model")
    parser.add_argument("--usd", type=float, help="for an entry: US dollars spent in total")
    parser.add_argument("--tokens", type=int, help="for an entry: tokens spent in total")
    parser.add_argument(
        "--transcript", metavar="FILE", help="for an entry: a record of what the agent did"
    )
    parser.add_argument(
        "--finish", action="store_true", help="for an entry: end it, and rank its best kernels"
    )
    parser.add_argument("--wait", action="store_true", help="for an entry: wait until it is ranked")
    add_watch_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    reported = {name: getattr(options, name) for name in _REPORTED if _given(options, name)}
    if not options.name and not options.enter and site.account.token.startswith(_PREFIX):
        options.name = site.about()["entry"]
    if ID.fullmatch(options.name):
        if options.enter:
            raise Stop(
                Exit.MISUSE, "must be a challenge's name with --enter, not an entry's id", "name"
            )
        entry = _of_entry(options, site, reported)
        if options.wait:
            entry = _ranked(options, site, output)
        output.answer(entry, _entry(entry))
        return Exit.GOOD
    if reported or options.finish or options.wait:
        raise Stop(Exit.MISUSE, "must be an entry's id to report, finish or wait", "name")
    if options.enter:
        return _enter(options, site, output)
    if not options.name:
        found = site.challenges()
        output.answer(found, "\n".join(map(_listed, found)) or "there are no challenges")
        return Exit.GOOD
    challenge = site.challenge(options.name)
    rows = [_listed(challenge), *_budget(challenge), *map(_contender, challenge["contenders"])]
    output.answer(challenge, "\n".join(rows))
    return Exit.GOOD


def _enter(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if not options.name:
        raise Stop(Exit.MISUSE, "must be the challenge to enter", "name")
    site.need_token()
    entry = site.enter(options.name, {name: getattr(options, name) for name in _ENTERING})
    output.progress("the entry's token is shown only here: set KBENCH_TOKEN to it for the agent")
    output.answer(entry, f"{entry['id']}\n{entry['token']}")
    return Exit.GOOD


def _of_entry(
    options: argparse.Namespace, site: Site, reported: dict[str, object]
) -> dict[str, object]:
    if "transcript" in reported:
        reported = reported | {"transcript": _text(Path(options.transcript))}
    if reported:
        site.report(options.name, reported)
    if options.finish and options.wait:  # perhaps it has ended, and only the wait was cut short
        entry = site.entry(options.name)
        return site.finish(options.name) if entry["state"] == "running" else entry
    return site.finish(options.name) if options.finish else site.entry(options.name)


def _ranked(options: argparse.Namespace, site: Site, output: Output) -> dict[str, Any]:
    """The entry once it has been ranked; raises `Stop` if the time is over before."""
    entry: dict[str, Any] = {}
    said = ""
    for entry in site.watch_entry(options.name, options.timeout):
        now = entry["ranking"] or entry["state"]
        if now != said and not entry["over"]:
            output.progress(f"  {now}")
            said = now
    if not entry["over"]:
        raise Stop(Exit.TIME_OVER, f"still {entry['state']} after {options.timeout:g} s")
    return entry


def _given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name) is not None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(Exit.MISUSE, f"{path} cannot be read: {error}", "transcript") from None


def _listed(challenge: dict[str, Any]) -> str:
    state = "open" if challenge["open"] else "not open"
    tasks = f"{len(challenge['tasks'])} tasks on {challenge['device']}"
    return f"{challenge['name']}: {tasks}, {state}, until {challenge['ends_at']}"


def _budget(challenge: dict[str, Any]) -> list[str]:
    """Its tasks, and what an entry may use."""
    usd = challenge["usd"]
    cap = "" if usd is None else f", {money(usd)}"
    minutes = f"{challenge['wall_time_s'] / 60:g} minutes"
    return [
        f"  tasks: {', '.join(challenge['tasks'])} ({challenge['direction']})",
        f"  each entry: {challenge['evaluations']} evaluations on each task, {minutes}{cap};"
        " compile checks are free",
    ]


def _contender(contender: dict[str, Any]) -> str:
    name = ", ".join(filter(None, (contender["agent"], contender["setting"])))
    known = {key: each["median"] for key, each in contender["measures"].items() if each}
    figures = ", ".join(f"{key} {significant(value)}" for key, value in known.items())
    repeats = f"{contender['repeats']} repeat{'' if contender['repeats'] == 1 else 's'}"
    return f"  {name} ({repeats}): {figures}"


def _left(entry: dict[str, Any]) -> str:
    """Time and money that are left."""
    left = "" if entry["left_usd"] is None else f", {money(entry['left_usd'])}"
    return f"until {entry['deadline_at']}; {entry['left_s'] / 60:.0f} minutes{left} left"


def _standing(entry: dict[str, Any]) -> str:
    """How far the entry is, in a line."""
    if entry["state"] == "running":
        return f"running, {_left(entry)}"
    if entry["ranking"]:
        return f"ranking ({entry['reason']}): {entry['ranking']}"
    nothing = entry["over"] and not any(task["verdict"] for task in entry["tasks"])
    return f"{entry['state']}: {entry['reason']}{'; no kernel was ranked' * nothing}"


def _entry(entry: dict[str, Any]) -> str:
    rows = [_standing(entry)]
    for task in entry["tasks"]:
        is_over = entry["state"] != "running"
        count = f"{task['used']} used" if is_over else f"{task['left']} left"
        ranked = f", ranked {task['verdict']}" if task["verdict"] else ""
        if task["speedup"]:
            ranked += f", {factor(task['speedup'])}{over(task) or ' of the best baseline'}"
        if task["unlisted_speedup"]:
            ranked += f", {factor(task['unlisted_speedup'])} on unlisted sizes"
        is_ranked = task["latency_ns"] and not task["doubted"]
        time_ns = task["latency_ns"] if is_ranked else task["best_latency_ns"]
        rows.append(f"  {task['task']}: {count}, best {duration(time_ns)}{ranked}")
    return "\n".join(rows)
