"""What a table says of a published kernel: verdict, time, interval, cost and the reason."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpu_runner.data.evaluation import EvaluationResult, WorkloadResult
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.verdict import Verdict
from tests.bench.differences import differences
from tests.bench.kept import Line
from tests.bench.published_sources import Published, Refused
from tests.bench.tables import percentile

COLUMNS = ("kernel", "verdict", "time", "interval", "repeats", "seconds", "stages", "reason")
TIMED = (Verdict.CORRECT, Verdict.UNSTABLE)
_LOG_LIMIT = 300
Run = tuple[EvaluationResult, float]
"""A result, and the seconds that its evaluation took."""


def digest(kernel: Published, settings: Mapping[str, object]) -> str:
    """Of everything that a row depends on: what is known by it is not measured again."""
    known = [kernel.label, kernel.source, kernel.task.digest()]
    known += [f"{name} {value}" for name, value in sorted(settings.items())]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def row_of(kernel: Published, runs: Sequence[Run], key: str) -> Line:
    """The row of a kernel, from one or more fresh evaluations; the first one gives the reason.

    time_ns: geometric mean over the listed workloads; interval: the widest of them, relative half
    width. Both are there for UNSTABLE, too. long, short: largest difference of the evaluations from
    their median, over all workloads that take `LONG_NS` or more, and less.
    """
    results = [result for result, _ in runs]
    first = next((r for r in results if r.verdict is not Verdict.CORRECT), results[0])
    timed = _timed(first)
    widest = max(timed, key=_width, default=None)
    return {
        "label": kernel.label,
        "digest": key,
        "verdicts": Counter(str(r.verdict) for r in results),
        "reason": sentence(first),
        "notes": list(kernel.notes),
        "suspicions": [f"{s.check}: {s.reason}" for s in first.suspicions],
        "time_ns": _mean_ns(timed),
        "interval": _width(widest) if widest else None,
        "widest": widest.name if widest else None,
        **differences([_times(r) for r in results]),
        "seconds": [seconds for _, seconds in runs],
        "stages": stage_seconds(first),
    }


def refused_row(kernel: Refused) -> Line:
    """The row of a file that is no kernel of a task."""
    return {"label": kernel.label, "verdicts": {"NOT WRAPPED": 1}, "reason": kernel.reason}


def sentence(result: EvaluationResult) -> str:
    """Why the verdict is what it is."""
    words = [result.reason]
    found = result.mismatch
    if found is not None and found.reason not in result.reason:
        words.append(f"{found.output} of {found.workload}: {found.reason}")
    if found is not None and found.elements:
        words.append(f"{found.wrong_elements} of {found.elements} elements are wrong")
    if result.verdict is Verdict.SYSTEM_ERROR and result.log:
        words.append(result.log.strip()[-_LOG_LIMIT:])
    return " ".join("; ".join(words).split())


def stage_seconds(result: EvaluationResult) -> dict[str, float]:
    """Seconds of each stage, those that were entered more than once summed up."""
    found: dict[str, float] = {}
    for stage in result.stages:
        found[str(stage.stage)] = found.get(str(stage.stage), 0.0) + stage.duration_s
    return found


def _timed(result: EvaluationResult) -> list[WorkloadResult]:
    """The listed workloads of a kernel that is right, if all of them have times."""
    public = [w for w in result.workloads if not w.hidden]
    if result.verdict not in TIMED or any(w.measurement is None for w in public):
        return []
    return public


def _times(result: EvaluationResult) -> dict[str, float]:
    return {w.name: w.measurement.time_ns for w in _timed(result) if w.measurement is not None}


def _width(workload: WorkloadResult) -> float:
    return workload.measurement.relative_half_width if workload.measurement else math.inf


def _mean_ns(workloads: Sequence[WorkloadResult]) -> float | None:
    times = [w.measurement.time_ns for w in workloads if w.measurement is not None]
    return statistics.geometric_mean(times) if times else None


def cells(row: Line) -> list[str]:
    """A line of the table; a bar in a reason would begin a new column."""
    counts = row["verdicts"]
    verdict = next(iter(counts))
    if len(counts) > 1:
        verdict = ", ".join(f"{name} {count}" for name, count in counts.items())
    words = [row["reason"]] if set(counts) != {str(Verdict.CORRECT)} else []
    words += row.get("notes", []) + [f"for a person: {s}" for s in row.get("suspicions", [])]
    seconds = row.get("seconds")
    return [
        row["label"],
        verdict,
        duration_text(row["time_ns"]) if row.get("time_ns") else "-",
        f"+-{row['interval']:.1%}" if row.get("interval") is not None else "-",
        " / ".join(_share(row.get(name)) for name in ("long", "short")),
        f"{statistics.median(seconds):.1f}" if seconds else "-",
        ", ".join(f"{name} {took:.1f}" for name, took in row.get("stages", {}).items()),
        "; ".join(words).replace("|", "\\|"),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def summary(rows: Sequence[Line]) -> Iterator[str]:
    """How many of each verdict, what an evaluation took, and how well times repeat."""
    verdicts: Counter[str] = Counter()
    for row in rows:
        verdicts.update(row["verdicts"])
    yield f"{len(rows)} kernels: " + ", ".join(f"{n} {name}" for name, n in verdicts.most_common())
    seconds = [taken for row in rows for taken in row.get("seconds", [])]
    if seconds:
        low, high = percentile(seconds, 0.5), percentile(seconds, 0.95)
        yield f"seconds of an evaluation: p50 {low:.1f}, p95 {high:.1f}, sum {sum(seconds):.0f}"
    for name, words in (("long", "20 us or more"), ("short", "less")):
        found = [(row[name], row["label"]) for row in rows if row.get(name) is not None]
        if found:
            worst, label = max(found)
            middle = statistics.median(share for share, _ in found)
            yield (
                f"largest difference of fresh evaluations, workloads of {words}:"
                f" {worst:.1%} ({label}), {middle:.1%} at the median of {len(found)} kernels"
            )
