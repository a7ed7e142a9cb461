"""What language models say of a task, and the form with which an admin asks one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import queues
from runs_app.features.advice.models import TaskJudgement
from runs_app.features.advice.services import JudgeRequest
from runs_app.models import LanguageModel, LanguageModelCall
from runs_app.optimiser.selectors.runs import callable_models
from tasks_app import selectors
from tasks_app.disclosure import sees_hidden
from tasks_app.errors import CurationError
from tasks_app.models import Draft, TaskVersion
from tasks_app.people import Viewer

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


@dataclass(frozen=True, kw_only=True)
class JudgementsPart:
    """What was said of the version with the key `present`; below `address`, the form's fields."""

    judgements: Judgements
    present: int | None
    is_draft: bool
    address: str
    may_ask: bool = False
    models: Sequence[LanguageModel] = ()
    model: str = ""
    max_usd: str = ""
    refusal: CurationError | SubmissionError | None = None


def judgements_part(
    about: TaskVersion | Draft, user: Viewer, asked: Mapping[str, str] | None = None
) -> JudgementsPart:
    """All of that part; `asked` is what a form held that was refused, or is repeated."""
    fields = asked or {}
    may = sees_hidden(user) and (isinstance(about, TaskVersion) or about.may_be_tried_by(user))
    return replace(
        rows_part(about),
        may_ask=may,
        models=list(callable_models()) if may else [],
        model=fields.get("model", ""),
        max_usd=fields.get("max_usd", f"{JudgeRequest(model='').max_usd:g}"),
    )


def rows_part(about: TaskVersion | Draft) -> JudgementsPart:
    """The part of it that changes while a language model is being asked."""
    if isinstance(about, Draft):
        address = reverse("draft-judgements", args=[about.pk])
        versions, present = selectors.versions_made_in(about), about.version_id
    else:
        address = reverse("version-judgements", args=[about.task.slug, about.number])
        versions, present = [about.pk], about.pk
    return JudgementsPart(
        judgements=judgements_of(versions, timezone.now()),
        present=present,
        is_draft=isinstance(about, Draft),
        address=address,
    )


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
        return "all workers for the “calls” queue are busy"
    return "no worker for the “calls” queue is running"
