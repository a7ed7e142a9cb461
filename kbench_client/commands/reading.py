"""`kbench show`, `source`, `cancel`, `compare`, `leaderboard` and `quota`: what came of kernels."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from kbench_client.commands.submitting import FEW, add_limit, add_watch_options, watch
from kbench_client.comparison import comparison, comparison_table
from kbench_client.details import SHORT_ID, brief, summary
from kbench_client.exits import Exit, Stop, exit_of
from kbench_client.kernels import texts_of, write_files
from kbench_client.output import Output
from kbench_client.results import (
    count_line,
    duration,
    newest,
    ranked_lines,
    rated,
    task_and_direction,
    telling,
)
from kbench_client.site import Document, Site

BOARD = {
    "by": "what a row stands for: leaders, matrix, submission, agent or model",
    "device": "a device's name (default: the latest result's)",
    "task": "a task's name",
    "scenario": "only tasks of this scenario",
    "dtype": "only tasks of this type, such as float32",
    "direction": "forward or backward",
    "sort": "sort order, such as score, latency or newest",
}
_OWN = (
    "submission", "task", "device", "mode", "verdict", "state", "time", "score", "date (UTC)",
)  # fmt: skip
_ROW = ("rank", "agent", "kind", "task or solved", "time", "score", "state", "submission")


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command(
        "show", "show a submission's verdict and times; without ID, your newest submissions"
    )
    parser.add_argument("submission", metavar="ID", nargs="?", default="")
    parser.add_argument("--wait", action="store_true", help="wait for the verdict")
    add_limit(parser, FEW, "without ID: ")
    _add_raw(parser, "show all stored data and the source")
    add_watch_options(parser)
    parser.set_defaults(run=_show)
    parser = command(
        "source", "print a submission's source; multiple files are written to a folder"
    )
    parser.add_argument("submission", metavar="ID")
    parser.add_argument("--out", type=Path, help="new folder to write the files to")
    parser.set_defaults(run=_source)
    parser = command("cancel", "take a submission's evaluation out of the queue, or stop it")
    parser.add_argument("submission", metavar="ID")
    parser.set_defaults(run=_cancel)
    parser = command(
        "compare", "compare submissions for the same task and device with the first one"
    )
    parser.add_argument("submissions", metavar="ID", nargs="+")
    parser.set_defaults(run=_compare)
    parser = command("leaderboard", "list a board's rows")
    for name, words in BOARD.items():
        parser.add_argument(f"--{name}", default="", help=words)
    add_limit(parser, FEW)
    _add_raw(parser, "show all columns")
    parser.set_defaults(run=_leaderboard)
    command("quota", "show how many submissions you have left").set_defaults(run=_quota)


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
    lines = (heading, summary(evaluation), ranked_lines(submission, evaluation), address)
    output.answer(document, "\n".join(filter(None, lines)))
    if evaluation["status"] == "CANCELLED":
        return Exit.OTHER_VERDICT
    return exit_of(evaluation["verdict"]) if evaluation["verdict"] else Exit.GOOD


def _source(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    submission = site.submission(options.submission)
    texts = texts_of(submission)
    if options.out is None and len(texts) > 1:
        raise Stop(Exit.MISUSE, f"the submission has {len(texts)} files; use --out FOLDER", "out")
    if options.out is None:
        output.answer({"files": texts}, submission["source"])
        return Exit.GOOD
    write_files(options.out, texts)
    output.answer({"folder": str(options.out), "files": list(texts)}, "\n".join(texts))
    return Exit.GOOD


def _cancel(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    state = site.cancel(options.submission)
    what = f"{state['task']} on {state['device']}, {state['mode']}"
    output.answer(state, f"canceled: {what} ({state['submission']})")
    return Exit.GOOD


def _own(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    found = site.submissions(options.limit + 1, fields="all" if options.raw else "")
    shown = found[: options.limit]
    text = telling([_OWN, *map(_own_row, shown)]) if shown else "you haven't submitted anything yet"
    if len(found) > len(shown):
        text += f"\nshowing the newest {len(shown)}; use --limit N to see more"
    output.answer(shown, text)
    return Exit.GOOD


def _own_row(submission: Document) -> Sequence[object]:
    """One of one's own submissions, under the heading `_OWN`."""
    state = submission["latest"] or {}
    return (
        *(submission["id"][:SHORT_ID], task_and_direction(submission)),
        *(state.get("device") or "-", state.get("mode") or "-"),
        *(state.get("verdict") or state.get("status") or "-", state.get("state") or "-"),
        *(duration(state.get("latency_ns")), rated(state)),
        submission["created_at"][:16].replace("T", " "),
    )


def _compare(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if len(options.submissions) < 2:
        raise Stop(Exit.MISUSE, "pass at least two submissions", "ID")
    found = comparison([site.submission(each) for each in options.submissions])
    output.answer(found, comparison_table(found))
    return Exit.GOOD


def _leaderboard(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    given = {name: getattr(options, name) for name in BOARD if getattr(options, name)}
    fields = "all" if options.raw else ""
    board = site.board(**given, limit=str(options.limit), fields=fields)
    rows = [_ROW, *map(_board_row, board["rows"])]
    count = count_line(len(board["rows"]), board["total"], "row")
    text = f"{telling(rows)}\n{count}" if board["rows"] else "there are no results here yet"
    output.answer(board, f"{board['device']}, by {board['by']}\n{text}")
    return Exit.GOOD


def _board_row(row: Document) -> Sequence[object]:
    """A row of a board, under the heading `_ROW`."""
    is_group = "name" in row
    return (
        *(row.get("rank") or "-", row["name"] if is_group else row["agent"]),
        row.get("kind") or "-",
        f"{row['solved']}/{row['problems']}" if is_group else task_and_direction(row),
        *(duration(row.get("latency_ns")), rated(row), row.get("state") or "-"),
        (row.get("submission_id") or "-")[:SHORT_ID],
    )


def quota_of(site: Site) -> Document:
    """How much the token's owner may still submit; raises `Stop` if it isn't a person's token."""
    site.need_token()
    found = site.about()["quota"]
    if found is None:
        raise Stop(
            Exit.NO_TOKEN, "only a person's token has a quota; an entry has a budget", "token"
        )
    return dict(found)


def _quota(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    del options
    found = quota_of(site)
    output.answer(
        found,
        f"{found['left']} of {found['per_day']} submissions and re-runs left; more from "
        f"{found['resets_at'][:16].replace('T', ' ')} UTC\n"
        f"{found['waiting']} evaluations waiting or running (at most {found['waiting_limit']})",
    )
    return Exit.GOOD
