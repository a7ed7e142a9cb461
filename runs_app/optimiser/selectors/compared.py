"""How a run's candidates compare with the task's baselines: all pages take it from here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.result_state import baseline_words, is_whole
from runs_app.models import Candidate, Evaluation, Run, Submission
from runs_app.optimiser.evolve.evaluations import LAST_MODES
from runs_app.optimiser.selectors.over_seed import search_time

_TIMES = ("latency_ns", "spread", "feedback__latency_ns", "feedback__spread")


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The task's baseline on a run's device, over listed workloads, as far as it is known."""

    ns: float
    name: str
    is_whole: bool  # no baseline of the task is missing
    evaluation: UUID  # that tells it


@dataclass(frozen=True, kw_only=True)
class SearchSpeed:
    """A candidate in the search: its time, and the baseline's time over it on listed sizes."""

    ns: float
    spread: float | None
    over_baseline: float | None
    over_spread: float | None


def compared(runs: Iterable[Run]) -> dict[UUID, Evaluation]:
    """The evaluation that says how each run's best compares with baselines; one query."""
    runs = list(runs)
    bests = [run.best for run in runs if run.best]
    found = compared_candidates(bests, runs)
    return {best.run_id: found[best.pk] for best in bests if best.pk in found}


def compared_candidates(
    candidates: Iterable[Candidate], runs: Iterable[Run]
) -> dict[int, Evaluation]:
    """The same by candidate of these runs: ranked if possible, over all baselines, the newest.

    An audit measures no compiled baseline, and what it says of a result is in its state. What ran
    on another device than its run's says nothing of the run.
    """
    devices = {run.pk: run.device_id for run in runs}
    candidates = list(candidates)
    keys = [pk for each in candidates for pk in (each.submission_id, each.entry_id) if pk]
    rows = _compared_rows(Q(submission__in=keys)).exclude(mode=Mode.AUDIT.value)
    found: dict[UUID | None, list[Evaluation]] = defaultdict(list)
    for row in rows:
        found[row.submission_id].append(row)
    each = {
        one.pk: [
            row
            for row in found[one.submission_id] + found[one.entry_id]
            if row.device_id == devices[one.run_id]
        ]
        for one in candidates
    }
    return {pk: max(rows, key=_standing) for pk, rows in each.items() if rows}


def baseline_of(run: Run) -> Baseline | None:
    """The baseline of the best's evaluation, or of one that knows more of them; one query."""
    own = (run.best.submission_id, run.best.entry_id) if run.best else ()
    rows = _compared_rows(Q(submission__run=run) | Q(submission__in=[pk for pk in own if pk]))
    rows = rows.filter(device=run.device_id)

    def order(row: Evaluation) -> tuple[bool | datetime | float, ...]:
        return is_whole(row), row.submission_id in own, *_standing(row)

    row = max(rows, key=order, default=None)
    if row is None or row.latency_ns is None or row.speedup_best is None:
        return None
    name = baseline_words(row).removeprefix("the ")
    return Baseline(
        ns=row.latency_ns * row.speedup_best,
        name=name,
        is_whole=is_whole(row),
        evaluation=row.pk,
    )


def search_speeds(
    run: Run, candidates: Iterable[Candidate], baseline: Baseline | None
) -> dict[int, SearchSpeed]:
    """By number, of correct candidates; two queries."""
    rows = Candidate.objects.filter(pk__in=[each.pk for each in candidates])
    told = list(rows.values_list("number", "submission_id", *_TIMES))
    searched = Evaluation.objects.filter(
        submission__in=[each[1] for each in told if each[1]],
        verdict=Verdict.CORRECT.value,
        device=run.device_id,
    ).exclude(mode__in=[mode.value for mode in LAST_MODES])
    measured = {row.submission_id: row for row in searched.order_by("created_at")}
    found = {}
    for number, submission, latency_ns, *rest in told:
        time = search_time(latency_ns, *rest) if latency_ns else None
        if time is None:
            continue
        row = measured.get(submission)
        spread = (row.spread("speedup") or row.spread("latency")) if row else time.spread
        found[number] = SearchSpeed(
            ns=time.ns,
            spread=time.spread,
            over_baseline=baseline.ns / time.ns if baseline else None,
            over_spread=spread,
        )
    return found


def _compared_rows(of: Q) -> QuerySet[Evaluation]:
    rows = Evaluation.objects.filter(of, verdict=Verdict.CORRECT.value, speedup_best__isnull=False)
    return rows.select_related("submission", "device")


def _standing(evaluation: Evaluation) -> tuple[bool, bool, bool, datetime, float]:
    """Boards go by what was submitted, so that comes before a ranking in the run."""
    was_submitted = evaluation.submission.origin != Submission.Origin.RUN
    is_ranked = evaluation.mode == Mode.RANKED
    newest = evaluation.created_at, evaluation.latency_ns or 0.0  # the longer one of a moment
    return is_ranked, is_whole(evaluation), was_submitted, *newest
