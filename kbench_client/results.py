"""Results in few words: a verdict, whether it counts, and its workloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kbench_client.exits import Exit, Stop

Document = dict[str, Any]
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def significant(value: float, digits: int = 3) -> str:
    """Three significant digits without an exponent, as the site writes them."""
    if value == 0:
        return "0"
    magnitude = int(f"{value:.{digits - 1}e}".split("e")[1])
    return f"{value:.{max(digits - 1 - magnitude, 0)}f}"


def duration(time_ns: float | None) -> str:
    """A time with three digits and its unit."""
    if time_ns is None:
        return "-"
    scale, unit = next((pair for pair in _UNITS if time_ns >= 0.9995 * pair[0]), _UNITS[-1])
    return f"{significant(time_ns / scale)} {unit}"


def factor(value: float | None) -> str:
    """A speedup: 0.250×, 1.72×, 143×."""
    return "-" if value is None else f"{significant(value)}×"


def money(usd: float | None) -> str:
    """An amount of money: $12.34, or $0.0012 below a cent."""
    if usd is None:
        return "price unknown"
    return f"${usd:,.2f}" if usd >= 0.0995 or usd == 0 else f"${significant(usd, 2)}"


def rated(state: Document) -> str:
    """Its score; without one, the speedup on listed sizes, marked as such.

    While baselines are missing, it names those that it is compared with.
    """
    names = state.get("compared_with") or "best"
    over = "" if names == "best" else f" vs {names}"
    if state.get("score") is not None:
        return f"{factor(state['score'])}{over}"
    listed = state.get("speedup", state.get("speedup_best"))
    return "-" if listed is None else f"{factor(listed)}{over} listed"


def table(rows: Iterable[Sequence[object]]) -> str:
    """Rows as lines of columns; the first row is the heading."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


def telling(rows: Sequence[Sequence[object]]) -> str:
    """A table without the columns that say nothing in any row."""
    heading, *body = rows
    kept = [at for at in range(len(heading)) if any(row[at] != "-" for row in body)]
    return table([row[at] for at in kept] for row in rows)


def count_line(shown: int, total: int, noun: str, hint: str = "") -> str:
    """How many of all rows are shown, and how to see the others."""
    if shown >= total:
        return f"{total} {noun}{'' if total == 1 else 's'}"
    return f"{total - shown} of {total} {noun}s not shown: use --limit {total} to show all{hint}"


def task_and_direction(row: Document) -> str:
    """A task's name; with the direction, unless it is forward."""
    backward = row.get("direction") == "backward"
    return f"{row['task']}, backward" if backward else str(row["task"])


def newest(submission: Document) -> Document:
    """The newest evaluation that is no audit, or that has a result; raises `Stop`."""
    found = [each for each in submission["evaluations"] if each["mode"] != "audit"]
    if not found:
        raise Stop(Exit.MISUSE, f"submission {submission['id']} has no evaluations")
    return dict(found[0])


def standing(submission: Document) -> Document:
    """The evaluation that has its score and place: the latest ranked one that ended, or newest.

    As on the site, one that ended by the site's fault doesn't count.
    """
    ended = (each for each in submission["evaluations"] if each.get("status") == "FINISHED")
    ranked = (each for each in ended if each["mode"] == "ranked")
    found = next((each for each in ranked if each["verdict"] != "SYSTEM_ERROR"), None)
    return newest(submission) if found is None else dict(found)


def ranked_lines(submission: Document, shown: Document) -> str:
    """The score and place of its ranked evaluation, if another one is shown."""
    ranked = standing(submission)
    if ranked["id"] == shown["id"]:
        return ""
    heading = f"ranked on {ranked['device']}: {verdict_line(ranked)}"
    return "\n".join(filter(None, (heading, standing_line(ranked))))


def workloads(evaluation: Document) -> dict[str, Document]:
    """The listed workloads of a result that have a time, by name."""
    result = evaluation.get("result") or {}
    return {
        each["name"]: each
        for each in result.get("workloads", ())
        if each.get("measurement") and not each.get("hidden")
    }


def best_baseline(workload: Document) -> tuple[str, float | None]:
    """The fastest baseline and its time in nanoseconds."""
    times = {
        name: each["time_ns"] for name, each in (workload.get("baselines") or {}).items() if each
    }
    name = min(times, key=lambda each: times[each], default="")
    return name, times.get(name)


def over(state: Document) -> str:
    """Which baseline a speedup or a score is over; empty if it's the best of all.

    Older sites don't say which one it is.
    """
    names = state.get("compared_with") or "best"
    return "" if names == "best" else f" over {names} only"


def verdict_line(state: Document) -> str:
    """A verdict with its time, score and state, or where an evaluation stands."""
    if state["status"] != "FINISHED":
        return f"{state['status']} {state['stage'] or state['waiting_reason']}".strip()
    words = [state["verdict"]]
    if state["latency_ns"] is not None:
        words.append(duration(state["latency_ns"]))
    only = over(state)
    if state["score"] is not None:
        words.append(f"score {factor(state['score'])}{only}")
    elif state["speedup"] is not None:
        words.append(f"{factor(state['speedup'])}{only or ' of the best baseline'} on listed sizes")
    if only and not state["state"]:
        words.append("provisional")
    if state["state"]:
        words.append({"tuned": "tuned to the listed sizes"}.get(state["state"], state["state"]))
    reason = str(state["reason"]).strip()
    return ", ".join(words) + (f"\n{reason}" if reason else "")


def standing_line(evaluation: Document) -> str:
    """A correct ranked result's place or why it has none, and what is suspicious of any result."""
    lines = []
    if (evaluation["verdict"], evaluation["mode"]) == ("CORRECT", "ranked"):
        counts = evaluation["eligibility"]
        begun = "not on a board" if counts == "rejected" else counts
        place = evaluation.get("place") or {}
        lines.append(place.get("words") or f"{begun}: {evaluation['eligibility_reason']}")
        lines += filter(None, [evaluation.get("waiting_reason")])
    if evaluation.get("quarantine", "none") != "none":
        lines.append(f"quarantine: {evaluation['quarantine']}")
    for each in (evaluation.get("result") or {}).get("suspicions", ()):
        file = f"{each['file']}, " if each.get("file") else ""
        line = f" ({file}line {each['line']})" if each.get("line") else ""
        lines.append(f"suspicion: {each['check']}: {each['reason']}{line}")
    return "\n".join(lines)


def missing_lines(evaluation: Document) -> str:
    """Why a correct result has no speedup over a baseline."""
    missing = dict(evaluation.get("missing_baselines") or {})
    return "\n".join(f"no {name} baseline: {why}" for name, why in missing.items())


def workload_table(evaluation: Document) -> str:
    """Each listed workload with its time, interval, best baseline and share of the limit."""
    rows: list[Sequence[object]] = [
        ("workload", "time", "95 % interval", "baseline", "speedup", "limit")
    ]
    for name, each in workloads(evaluation).items():
        found = each["measurement"]
        baseline, time_ns = best_baseline(each)
        floor_ns = each.get("floor_ns")
        limit = f"{100 * floor_ns / found['time_ns']:.0f} %" if floor_ns else "-"
        interval = f"{duration(found['low_ns'])} to {duration(found['high_ns'])}"
        speedup = factor(time_ns / found["time_ns"]) if time_ns else "-"
        rows.append((name, duration(found["time_ns"]), interval, baseline or "-", speedup, limit))
    return table(rows) if len(rows) > 1 else ""
