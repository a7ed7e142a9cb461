"""`kbench show`, `source`, `cancel`, `compare`, `leaderboard` and `quota`: what came of kernels."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from kbench_client.commands.submitting import add_watch_options, watch
from kbench_client.comparison import comparison, comparison_table
from kbench_client.details import SHORT_ID, brief, summary
from kbench_client.exits import Exit, Stop, exit_of
from kbench_client.kernels import texts_of, write_files
from kbench_client.output import Output
from kbench_client.results import duration, newest, rated, table
from kbench_client.site import Site

BOARD = ("by", "device", "task", "scenario", "dtype", "direction", "sort")
_EVERY_ROW = 1 << 30  # chosen: more than any board has


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command(
        "show", "a submission's verdict and times; without ID, your newest submissions"
    )
    parser.add_argument("submission", metavar="ID", nargs="?", default="")
    parser.add_argument("--wait", action="store_true", help="wait for the verdict")
    _add_raw(parser, "everything that is stored, and the source")
    add_watch_options(parser)
    parser.set_defaults(run=_show)
    parser = command("source", "a submission's source; several files go into a folder")
    parser.add_argument("submission", metavar="ID")
    parser.add_argument("--out", type=Path, help="a new folder for the files")
    parser.set_defaults(run=_source)
    parser = command("cancel", "take a submission's evaluation out of the queue, or stop it")
    parser.add_argument("submission", metavar="ID")
    parser.set_defaults(run=_cancel)
    parser = command("compare", "compare submissions for one task and device against the first")
    parser.add_argument("submissions", metavar="ID", nargs="+")
    parser.set_defaults(run=_compare)
    parser = command("leaderboard", "a board's rows")
    for name in BOARD:
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--limit", type=int, default=20)
    _add_raw(parser, "all columns")
    parser.set_defaults(run=_leaderboard)
    command("quota", "how much you may still submit").set_defaults(run=_quota)


def _add_raw(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--raw", action="store_true", help=f"with --json: {words}")


def _show(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if not options.submission:
        return _own(options, site, output)
    if options.wait:
        watch(site, options.submission, output, options.timeout)
    submission = site.submission(options.submission, raw=options.raw)
    evaluation = newest(submission)
    heading = f"{submission['task']} on {evaluation['device']}, {evaluation['mode']}"
    address = site.account.url + submission["url"]
    document = submission if options.raw else brief(submission, evaluation)
    output.answer(document, "\n".join((heading, summary(evaluation), address)))
    return exit_of(evaluation["verdict"]) if evaluation["verdict"] else Exit.GOOD


def _source(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    submission = site.submission(options.submission)
    texts = texts_of(submission)
    if options.out is None and len(texts) > 1:
        raise Stop(Exit.MISUSE, f"has {len(texts)} files; give --out FOLDER", "out")
    if options.out is None:
        output.answer({"files": texts}, submission["source"])
        return Exit.GOOD
    write_files(options.out, texts)
    output.answer({"folder": str(options.out), "files": list(texts)}, "\n".join(texts))
    return Exit.GOOD


def _cancel(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    state = site.cancel(options.submission)
    output.answer(state, f"{state['status']}: {state['submission']}")
    return Exit.GOOD


def _own(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    found = site.submissions(20, fields="all" if options.raw else "")
    rows = []
    for each in found:
        state = each["latest"] or {}
        words = state.get("verdict") or state.get("status", "")
        shown = (words, state.get("state") or "-", rated(state))
        rows.append((each["id"], each["task"], state.get("device", ""), *shown))
    heading = ("submission", "task", "device", "verdict", "state", "score")
    output.answer(found, table([heading, *rows]) if rows else "you have submitted nothing yet")
    return Exit.GOOD


def _compare(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if len(options.submissions) < 2:
        raise Stop(Exit.MISUSE, "give two or more submissions", "ID")
    found = comparison([site.submission(each) for each in options.submissions])
    output.answer(found, comparison_table(found))
    return Exit.GOOD


def _leaderboard(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    given = {name: getattr(options, name) for name in BOARD if getattr(options, name)}
    limit = options.limit if options.limit > 0 else _EVERY_ROW
    fields = "all" if options.raw else ""
    board = site.board(**given, limit=str(limit), fields=fields)
    rows: list[tuple[object, ...]] = []
    for row in board["rows"]:
        who = row["name"] if "name" in row else row["agent"]
        what = f"{row['solved']}/{row['problems']}" if "name" in row else row["task"]
        shown = (duration(row.get("latency_ns")), rated(row), row.get("state") or "-")
        identity = (row.get("submission_id") or "-")[:SHORT_ID]
        rows.append((row.get("rank") or "-", who, row.get("kind") or "-", what, *shown, identity))
    heading = ("rank", "agent", "kind", "task or solved", "time", "score", "state", "submission")
    text = table([heading, *rows]) if rows else "there are no results here yet"
    output.answer(board, f"{board['device']}, by {board['by']}\n{text}")
    return Exit.GOOD


def _quota(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    del options
    site.need_token()
    found = site.about()["quota"]
    if found is None:
        raise Stop(
            Exit.NO_TOKEN, "only a person's token has a quota; an entry has a budget", "token"
        )
    output.answer(
        found,
        f"{found['left']} of {found['per_day']} submissions and re-runs left; more from "
        f"{found['resets_at'][:16].replace('T', ' ')} UTC\n"
        f"{found['waiting']} of at most {found['waiting_limit']} evaluations waiting or running",
    )
    return Exit.GOOD
