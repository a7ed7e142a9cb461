"""What each language model was asked, what came of it, and what it cost."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum

from gpu_runner.data.verdict import Verdict
from runs_app.models import Candidate, LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve.commands import Role
from runs_app.optimiser.llm.endpoint import COMMAND
from runs_app.optimiser.selectors.runs import visible_runs
from runs_app.optimiser.selectors.spending import known_sum
from tasks_app.people import Viewer

CODE_ROLES = tuple(role.value for role in Role if role.writes_code)
MOST_CANDIDATES = 20_000
"""Candidates that the mean improvement looks at, newest first."""

_STATUS = LanguageModelCall.Status
_COUNTS = Q(run__isnull=True) | Q(run__task_version__task__contaminated="")


@dataclass(kw_only=True)
class Usage:
    """One language model's calls in runs that the viewer may see, in tunings, tests and judgements.

    improvement: geometric mean of the parent's time over the candidate's, of correct candidates
    with a correct parent; above 1 they became faster. latency_s: mean of answered calls.
    Proposals, valid ones and the improvement leave contaminated tasks out. A kernel that was never
    measured, for want of budget for instance, is neither valid nor invalid.
    """

    calls: int = 0
    answered: int = 0
    failed: int = 0  # calls without a whole answer
    tokens: int = 0  # of prompts and answers
    usd: float | None = 0.0  # None: a price is unknown
    latency_s: float | None = None
    proposals: int = 0  # kernels that hardware or the compiler judged
    valid: int = 0  # of these, those whose kernel was correct
    unmeasured: int = 0  # kernels that nothing judged
    improvement: float | None = None
    improvements: int = 0  # candidates behind `improvement`
    roles: dict[str, int] = field(default_factory=dict)  # calls by role

    @property
    def valid_share(self) -> float | None:
        """Share of proposals that hardware found correct."""
        return self.valid / self.proposals if self.proposals else None


def host_of(model: LanguageModel) -> str:
    """Host and port of the endpoint, nothing that could hold a secret."""
    if not model.base_url:
        return ""
    if model.base_url.startswith(COMMAND):
        return f"the command {model.base_url.removeprefix(COMMAND)}"
    parts = urlsplit(model.base_url)
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""


def key_is_set(model: LanguageModel) -> bool | None:
    """Whether this host's environment holds the model's key; None where it needs none."""
    if not model.key_variable:
        return None
    return bool(os.environ.get(model.key_variable, "").strip())


def is_used(model: LanguageModel) -> bool:
    """Whether calls or runs hold on to its name."""
    if model.calls.exists():
        return True
    chosen = Run.objects.values_list("config__models", flat=True)
    return any(spec["name"] == model.name for specs in chosen.iterator() for spec in specs or ())


def is_named(model: LanguageModel) -> bool:
    """Whether anything names it, so that it cannot be removed."""
    relations = [each.get_accessor_name() for each in model._meta.related_objects]
    return any(getattr(model, name).exists() for name in relations if name) or is_used(model)


def usages(user: Viewer, models: Iterable[LanguageModel]) -> dict[int, Usage]:
    """Usage of each of `models` by its primary key, as far as `user` may see the runs."""
    found = {model.pk: Usage() for model in models}
    _count_calls(found, visible_calls(user))
    _count_proposals(found, user)
    return found


def visible_calls(user: Viewer) -> QuerySet[LanguageModelCall]:
    """Calls of runs that `user` may see, imported ones included, and those of no run."""
    runs = visible_runs(user).order_by().values("pk")
    return LanguageModelCall.objects.filter(Q(run__isnull=True) | Q(run__in=runs)).order_by()


def last_test(model: LanguageModel) -> LanguageModelCall | None:
    """The newest test of the language model."""
    return model.calls.filter(role="test").order_by("-created_at").first()


def tests_since(moment: datetime) -> int:
    """How many tests of any language model were begun after a moment."""
    return LanguageModelCall.objects.filter(role="test", created_at__gt=moment).count()


def _count_calls(found: dict[int, Usage], calls: QuerySet[LanguageModelCall]) -> None:
    took = ExpressionWrapper(F("ended_at") - F("sent_at"), output_field=DurationField())
    answered = Q(status=_STATUS.ANSWERED)
    failed = Q(status__in=(_STATUS.FAILED, _STATUS.INTERRUPTED))
    rows = calls.filter(language_model__in=found).values_list("language_model_id", "role")
    counted = rows.annotate(
        calls=Count("pk"),
        answered=Count("pk", filter=answered),
        failed=Count("pk", filter=failed),
        tokens=Sum(F("tokens_in") + F("tokens_out")),
        usd=known_sum("cost_usd"),
        took=Avg(took, filter=answered),
    )
    waits: dict[int, list[tuple[float, int]]] = defaultdict(list)  # mean, of so many answers
    for pk, role, count, good, bad, tokens, usd, mean in counted:
        usage = found[pk]
        usage.calls += count
        usage.answered += good
        usage.failed += bad
        usage.tokens += tokens
        usage.usd = None if usage.usd is None or usd is None else usage.usd + usd
        usage.roles[role] = count
        if mean is not None:
            waits[pk].append((mean.total_seconds(), good))
    for pk, parts in waits.items():
        total = sum(seconds * count for seconds, count in parts)
        found[pk].latency_s = total / sum(count for _, count in parts)


def _count_proposals(found: dict[int, Usage], user: Viewer) -> None:
    runs = visible_runs(user).order_by().values("pk")
    every = Candidate.objects.filter(_COUNTS, run__in=runs).order_by("-pk")
    by_model = every.filter(call__isnull=False, call__language_model__in=found)
    counted = by_model.order_by().values_list("call__language_model_id", "verdict")
    for pk, verdict, count in counted.annotate(count=Count("pk")):
        is_judged = verdict not in ("", Verdict.SYSTEM_ERROR)
        found[pk].proposals += count if is_judged else 0
        found[pk].unmeasured += 0 if is_judged else count
        found[pk].valid += count if verdict == Verdict.CORRECT else 0
    rows, written = (each.filter(verdict=Verdict.CORRECT) for each in (every, by_model))
    newest = written.values_list("call__language_model_id", "run_id", "parents", "latency_ns")
    chosen = [row for row in newest[:MOST_CANDIDATES] if row[2] and row[3]]
    parents = rows.filter(run_id__in={row[1] for row in chosen})
    times = {
        (run_id, number): latency
        for run_id, number, latency in parents.values_list("run_id", "number", "latency_ns")
    }
    gains: dict[int, list[float]] = defaultdict(list)
    for pk, run_id, numbers, latency in chosen:
        before = times.get((run_id, numbers[0]))
        if before and latency:
            gains[pk].append(before / latency)
    for pk, values in gains.items():
        found[pk].improvement = statistics.geometric_mean(values)
        found[pk].improvements = len(values)
