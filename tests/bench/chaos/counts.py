"""What came of the evaluations of a site whose processes were killed, and how soon it went on."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_runner.data.verdict import Mode, Verdict
from tests.bench.chaos.load import Plan
from tests.bench.chaos.victims import KINDS, Kill
from tests.bench.tables import percentile


@dataclass
class Counts:
    """Each list names what should not be; `numbers` are for information."""

    numbers: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    blamed: list[str] = field(default_factory=list)
    system_errors: list[str] = field(default_factory=list)

    @property
    def faults(self) -> dict[str, list[str]]:
        """All that should not be, by what it is."""
        return {
            "lost": self.lost,
            "not ended in time": self.unfinished,
            "doubled": self.doubled,
            "author blamed": self.blamed,
            "SYSTEM_ERROR": self.system_errors,
        }


def count(acknowledged: Mapping[str, Plan], facts: Mapping[str, Any]) -> Counts:
    """Compare what was acknowledged with the site's rows."""
    rows: Sequence[Mapping[str, Any]] = facts["evaluations"]
    asked = [row for row in rows if row["mode"] != Mode.AUDIT.value]
    counts = Counts(numbers=_numbers(acknowledged, facts, len(asked)))
    stored = Counter(row["submission"] for row in asked)
    for submission in acknowledged:
        if not stored[submission]:
            counts.lost.append(f"submission {submission} was acknowledged and has no evaluation")
        elif stored[submission] > 1:
            counts.doubled.append(f"submission {submission} has {stored[submission]} evaluations")
    for submission in set(facts["submissions"]) - acknowledged.keys():
        counts.doubled.append(f"submission {submission} was stored and never acknowledged")
    for row in rows:
        _judge(row, acknowledged.get(row["submission"]), counts)
    return counts


def _judge(row: Mapping[str, Any], plan: Plan | None, counts: Counts) -> None:
    name = f"{row['mode']} of {row['task']} {row['id']}, attempt {row['attempt']}"
    if row["status"] != "FINISHED":
        counts.unfinished.append(f"{name}: {row['status']} {row['lost']}")
        return
    if row["finished"] != 1 or row["results"] > 1:
        counts.doubled.append(f"{name}: {row['finished']} ends, {row['results']} results")
    if row["verdict"] == Verdict.SYSTEM_ERROR:
        counts.system_errors.append(f"{name}: {row['reason']} {row['lost']}")
    elif plan is not None and row["verdict"] not in (plan.verdict, Verdict.UNSTABLE):
        counts.blamed.append(f"{name}: {row['verdict']}, not {plan.verdict}: {row['reason']}")


def _numbers(
    acknowledged: Mapping[str, Plan], facts: Mapping[str, Any], asked: int
) -> dict[str, int]:
    rows: Sequence[Mapping[str, Any]] = facts["evaluations"]
    runners = Counter(row["runner"].partition(".")[0] for row in rows if row["runner"])
    return {
        "submissions acknowledged": len(acknowledged),
        "submissions stored": len(facts["submissions"]),
        "evaluations asked for": asked,
        "evaluations, audits included": len(rows),
        "results": sum(row["results"] for row in rows),
        "ends": sum(row["finished"] for row in rows),
        **{f"ended by {name}": number for name, number in sorted(runners.items())},
        "needed a second attempt": sum(row["attempt"] == 2 for row in rows),
        "needed more": sum(row["attempt"] > 2 for row in rows),
        "UNSTABLE": sum(row["verdict"] == Verdict.UNSTABLE for row in rows),
        "dead letters": len(facts["dead_letters"]),
    }


def next_verdicts(kills: Sequence[Kill], facts: Mapping[str, Any]) -> list[list[str]]:
    """Lines of a table: for each kind of process how often it was hit, and how soon it went on."""
    ends = sorted(row["finished_at"] for row in facts["evaluations"] if row["finished_at"])
    waits: dict[str, list[float]] = {}
    for kill in kills:
        place = bisect_right(ends, kill.at)
        waits.setdefault(kill.kind, []).extend(end - kill.at for end in ends[place : place + 1])
    return [
        [
            kind,
            " ".join(f"{n} {name}" for name, n in sorted(_signals(kills, kind).items())),
            *(f"{percentile(found, share):.1f}" if found else "-" for share in (0.5, 1.0)),
        ]
        for kind in KINDS
        if (found := waits.get(kind)) is not None
    ]


def _signals(kills: Sequence[Kill], kind: str) -> Counter[str]:
    return Counter(kill.signal.removeprefix("SIG") for kill in kills if kill.kind == kind)
