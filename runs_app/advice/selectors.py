"""What language models said of a task's versions, and whether one is still being asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from runs_app.messaging import queues
from runs_app.models import LanguageModelCall, TaskJudgement

_SHOWN = 20
_PATIENCE_S = 10
_STATUS = LanguageModelCall.Status


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """The newest judgements of some versions; `blocked` says why one of them is not being sent."""

    rows: Sequence[TaskJudgement]
    blocked: str = ""

    @property
    def under_way(self) -> bool:
        """Whether something may change without anybody's doing."""
        return any(not (row.verdicts or row.problem) for row in self.rows)


def judgements_of(versions: Iterable[int], now: datetime) -> Judgements:
    """The judgements of versions, given by their keys."""
    found = TaskJudgement.objects.filter(version__in=versions)
    rows = list(found.select_related("call__language_model")[:_SHOWN])
    return Judgements(rows=rows, blocked=_blocked(rows, now))


def _blocked(rows: Iterable[TaskJudgement], now: datetime) -> str:
    waiting = [row.created_at for row in rows if row.call.status == _STATUS.WAITING]
    if not waiting or (now - min(waiting)).total_seconds() < _PATIENCE_S:
        return ""
    if queues.has_worker(queues.CALLS_QUEUE):
        return "all workers of the queue “calls” are busy"
    return "no worker of the queue “calls” is running"
