"""Questions about challenges, their entries, and what came of the entries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import Http404

from gpu_runner.data.queue import OF_PEOPLE
from gpu_runner.data.scores import geometric_mean
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.integrity.eligibility import without_doubts, without_replaced
from runs_app.features.challenges.attempts import counted_evaluations
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.models import Evaluation
from runs_app.submitting.identity import beginning_with
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer

Key = tuple[UUID, int]
"""An entry and a version of a task."""


def all_challenges() -> QuerySet[Challenge]:
    """All challenges with what lists show of them, newest first."""
    rows = Challenge.objects.select_related("device", "made_by")
    return rows.order_by("-created_at", "-pk").annotate(
        entered=Count("entries", distinct=True), task_count=Count("versions", distinct=True)
    )


def find_challenge(slug: str) -> Challenge:
    """The challenge of that name in addresses; raises `Http404`."""
    challenge = all_challenges().filter(slug=slug).first()
    if challenge is None:
        raise Http404(f"there is no challenge {slug[:100]!r}")
    return challenge


def find_entry(entry_id: UUID | str) -> Entry:
    """The entry of that id, or of its first eight or more digits; raises `Http404`."""
    found = beginning_with(str(entry_id), Entry.objects.all()) or []
    if len(found) > 1:
        raise Http404(f"several entries have ids that begin with {entry_id!r}: use more of the id")
    entry = entry_rows().filter(pk__in=found).first()
    if entry is None:
        raise Http404(f"there is no entry {str(entry_id)!r}")
    return entry


def entries_of(challenge: Challenge) -> QuerySet[Entry]:
    """Its entries, oldest first, without their transcripts."""
    return entry_rows().filter(challenge=challenge)


def entry_rows() -> QuerySet[Entry]:
    """Entries with what pages show of them."""
    related = ("challenge__device", "agent", "language_model", "user")
    return Entry.objects.select_related(*related).defer("transcript")


def sees_sources(user: Viewer, entry: Entry) -> bool:
    """Whether `user` may see sources of an entry that runs: its owner and admins may."""
    return sees_hidden(user) or entry.user_id == user.pk


def sees_transcript(user: Viewer, entry: Entry) -> bool:
    """Whether `user` may read a transcript: everybody may, once the challenge is closed."""
    return sees_sources(user, entry) or entry.challenge.closed_at is not None


def used_evaluations(entries: Iterable[UUID]) -> dict[Key, int]:
    """By entry and version: how many evaluations count against the budget."""
    rows = counted_evaluations().filter(submission__attempt__entry__in=list(entries)).order_by()
    counted = rows.values_list("submission__attempt__entry", "task_version").annotate(n=Count("pk"))
    return {(entry, version): number for entry, version, number in counted}


def evaluations_of(entry: Entry) -> QuerySet[Evaluation]:
    """All evaluations of one entry in their order, those included that do not count."""
    rows = Evaluation.objects.filter(
        Evaluation.waits_as(*OF_PEOPLE), submission__attempt__entry=entry
    )
    rows = rows.exclude(mode__in=(Mode.RANKED.value, Mode.AUDIT.value))
    light = rows.select_related("submission", "task_version__task")
    return light.defer(
        "submission__source", "submission__files", "task_version__document"
    ).order_by("created_at", "pk")


def best_evaluations(entries: Iterable[UUID]) -> dict[Key, Evaluation]:
    """By entry and version: the fastest correct kernel without doubts, by all its evaluations.

    A kernel's time is the mean of those that it drew, of which the newest stands for it. Times of
    the modes test and profile are rough: one counts only where there is no better timed one.
    """
    rows = without_doubts(counted_evaluations()).filter(
        submission__attempt__entry__in=list(entries), verdict=Verdict.CORRECT.value
    )
    rough = (Mode.TEST.value, Mode.PROFILE.value)
    kernels: defaultdict[tuple[Key, bool, str], list[Evaluation]] = defaultdict(list)
    for row in _with_entry(rows):
        kernels[_key(row), row.mode in rough, row.submission.digest].append(row)
    best: dict[Key, tuple[bool, float, Evaluation]] = {}
    for (key, is_rough, _), drawn in kernels.items():
        mean_ns = geometric_mean(row.latency_ns for row in drawn if row.latency_ns) or math.inf
        held = best.get(key)
        if held is None or (is_rough, mean_ns) < held[:2]:
            best[key] = (is_rough, mean_ns, drawn[-1])
    return {key: row for key, (_, _, row) in best.items()}


def ranked_evaluations(entries: Collection[UUID] | QuerySet[Entry, UUID]) -> QuerySet[Evaluation]:
    """The latest ranked evaluation of each kernel that was ranked at the end of an entry."""
    rows = Evaluation.objects.filter(submission__attempt__entry__in=entries, mode=Mode.RANKED.value)
    return without_replaced(rows.exclude(Q(status="CANCELLED")))


def ranked_results(entries: Iterable[UUID]) -> dict[Key, Evaluation]:
    """By entry and version: the ranked evaluation of its kernel, be it over or not.

    One that ended by our fault, or has not ended, gives way to an earlier one that says something.
    """
    found: dict[Key, Evaluation] = {}
    for row in _with_entry(ranked_evaluations(list(entries))):
        key = _key(row)
        if key not in found or row.verdict not in ("", Verdict.SYSTEM_ERROR):
            found[key] = row
    return found


def undoubted(rows: Iterable[Evaluation]) -> set[UUID]:
    """Those of these evaluations that no suspicion and no audit keeps away."""
    found = without_doubts(Evaluation.objects.filter(pk__in=[row.pk for row in rows]))
    return set(found.values_list("pk", flat=True))


def _key(row: Evaluation) -> Key:
    return row.submission.attempt.entry_id, row.task_version_id


def _with_entry(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    light = rows.select_related("submission__attempt").order_by("created_at", "pk")
    return light.defer("submission__source", "submission__files")
