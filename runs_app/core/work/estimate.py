"""How long an evaluation will take: what comes before it, and what its like took lately."""

from __future__ import annotations

import statistics
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, QuerySet
from pydantic import TypeAdapter, ValidationError

from gpu_runner.data.queue import OF_PEOPLE
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import BaselineMeasurement, Evaluation, Status

OVERDUE_S = 1.0
"""What is left of something that takes longer than its like did: nobody knows."""
_SAMPLE = 50  # newest evaluations of a mode that are looked at
_WHOLE = (Verdict.CORRECT.value, Verdict.COMPILED.value, Verdict.UNSTABLE.value)
_KEPT_S = 60  # so old may be what the form says: it is of the last 50
_RARE = 0.95
_SAME = 1.25  # a 95th percentile below this many medians is not worth a word


@dataclass(frozen=True)
class Estimate:
    """Seconds from beginning to verdict that evaluations of a mode took on a device lately.

    The median and the 95th percentile.
    """

    median_s: float
    rare_s: float

    def left_s(self, started_at: datetime, now: datetime) -> float:
        """Seconds that one which began then still takes; `OVERDUE_S` once it is overdue."""
        return max(self.median_s - (now - started_at).total_seconds(), OVERDUE_S)

    def __str__(self) -> str:
        usual = f"about {in_words(self.median_s)}"
        if self.rare_s <= _SAME * self.median_s:
            return usual
        return f"{usual}, seldom {in_words(self.rare_s)}"


_KEPT = TypeAdapter(dict[str, Estimate])
"""How the cache, which stores JSON, holds estimates by mode."""


def estimate(device_slug: str, mode: str) -> Estimate | None:
    """From what people submitted, or if nobody did, from what else was evaluated; None if nothing.

    What was measured to its end comes first: who is wrong is sooner done. What our own fault has
    ended does not count.
    """
    rows = Evaluation.objects.filter(
        device_id=device_slug, mode=mode, status=Status.FINISHED, started_at__isnull=False
    ).exclude(verdict=Verdict.SYSTEM_ERROR.value)
    whole = rows.filter(verdict__in=_WHOLE)
    people = whole.filter(Evaluation.waits_as(*OF_PEOPLE))
    return _of(people) or _of(whole) or _of(rows)


def estimate_of_baselines(device_slug: str) -> Estimate | None:
    """From the latest measurements of baselines on a device; None if there are none."""
    rows = BaselineMeasurement.objects.filter(
        device_id=device_slug, status=Status.FINISHED, started_at__isnull=False
    )
    return _of(rows)


def estimates(device_slug: str) -> dict[str, str]:
    """What each mode takes on a device, in words; without those that nobody has tried there."""
    return {mode: str(known) for mode, known in _by_mode(device_slug).items()}


def work_s(device_slug: str, rows: QuerySet[Evaluation, object]) -> float:
    """Seconds that a device needs for these evaluations, one after the other.

    None for those whose mode was never measured there.
    """
    counts = rows.order_by().values_list("mode").annotate(count=Count("pk"))
    known = _by_mode(device_slug)
    return sum((known[mode].median_s * count for mode, count in counts if mode in known), 0.0)


def left_s(device_slug: str, running: QuerySet[Evaluation, object], now: datetime) -> float:
    """Seconds until these evaluations, which run, have ended one after the other."""
    known = _by_mode(device_slug)
    begun = running.order_by().values_list("mode", "started_at")
    return sum((known[mode].left_s(at, now) for mode, at in begun if mode in known and at), 0.0)


def _by_mode(device_slug: str) -> dict[str, Estimate]:
    """Of the modes that somebody tried on the device; kept for a minute."""
    key = _key(device_slug)
    with suppress(ValidationError):  # nothing is kept, or something of another release
        return _KEPT.validate_python(cache.get(key))
    each = ((mode.value, estimate(device_slug, mode.value)) for mode in Mode)
    found = {mode: known for mode, known in each if known is not None}
    if found:  # the first estimate of a device is told at once
        cache.set(key, _KEPT.dump_python(found, mode="json"), timeout=_KEPT_S)
    return found


def learn(device_slug: str, mode: str) -> None:
    """An evaluation has ended: if it's the first of its mode, what is kept is out of date."""
    key = _key(device_slug)
    if mode not in (cache.get(key) or {}):
        cache.delete(key)


def _key(device_slug: str) -> str:
    return f"estimates:{device_slug}"


def in_words(seconds: float) -> str:
    """A length of time for people, no shorter than a second."""
    return f"{max(seconds, 1):.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def when(left_s: float) -> str:
    """When something that takes so much longer will come."""
    if left_s <= OVERDUE_S:
        return "any moment now (it takes longer than usual)"
    return f"in about {in_words(left_s)}"


def _of(rows: QuerySet[Evaluation] | QuerySet[BaselineMeasurement]) -> Estimate | None:
    newest = rows.order_by("-finished_at").values_list("started_at", "finished_at")[:_SAMPLE]
    seconds = sorted((end - start).total_seconds() for start, end in newest if start and end)
    if not seconds:
        return None
    rare_s = seconds[min(int(_RARE * len(seconds)), len(seconds) - 1)]
    return Estimate(statistics.median(seconds), rare_s)
