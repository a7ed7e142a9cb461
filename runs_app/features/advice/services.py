"""Ask a language model what it thinks of a task, and keep what it says, or why it said nothing.

Is a part of it redundant, or its baseline inefficient? After robust-kbench's last filter (arXiv
2509.14279). It is advice that a person weighs: nothing here decides whether a task is published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data import codec
from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import queues
from runs_app.core.text import storable
from runs_app.features.advice.models import TaskJudgement
from runs_app.models import LanguageModelCall
from runs_app.optimiser.evolve import budget
from runs_app.optimiser.evolve.answers import Unusable, fenced
from runs_app.optimiser.evolve.commands import Prompt
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.prompts import (
    MAX_DESCRIPTION_TOKENS,
    MAX_REFERENCE_TOKENS,
    MAX_WORKLOADS_TOKENS,
    fill,
)
from runs_app.optimiser.evolve.sections import clip
from runs_app.optimiser.selectors.runs import callable_model
from runs_app.optimiser.services.calls import answer_call, interrupt_call, spec_of
from tasks_app.disclosure import public_task, sees_hidden
from tasks_app.errors import CurationError
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.pages.task_page import parameters_text, reference_files
from tasks_app.publishing.audit_log import add_entry
from tasks_app.selectors import no_task

CRITERIA = ("redundancy", "inefficiency")
MOST_CHARACTERS = 2000
"""Of a reason; what is more is cut."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a language model says of a task by one criterion."""

    criterion: str
    flagged: bool
    reason: str


def read_judgement(text: str, *, cut: bool = False) -> tuple[Judged, ...] | Unusable:
    """The verdict of each criterion, in the order of `CRITERIA`; nothing is guessed.

    cut: the answer ended before its author did. Of several JSON objects the last counts.
    """
    if cut:
        return Unusable("the answer was cut off")
    document = _last_object(text)
    if isinstance(document, Unusable):
        return document
    unknown = sorted(set(document) - set(CRITERIA))
    if unknown:
        return Unusable(f"the answer contains an unknown criterion {unknown[0][:60]!r}")
    found: list[Judged] = []
    for criterion in CRITERIA:
        judged = _judged(criterion, document.get(criterion))
        if isinstance(judged, Unusable):
            return judged
        found.append(judged)
    return tuple(found)


def _last_object(text: str) -> Mapping[str, object] | Unusable:
    """The last closed JSON block, or the whole answer where it has no block at all."""
    blocks = [block for block in fenced(text) if block.tag in ("json", "")]
    piece = blocks[-1].text if blocks else text
    try:
        document = json.loads(piece)
    except (ValueError, RecursionError):
        return Unusable("the answer doesn't end with a JSON object of verdicts")
    if not isinstance(document, dict):
        return Unusable("the answer's JSON is not an object")
    return document


def _judged(criterion: str, entry: object) -> Judged | Unusable:
    if not isinstance(entry, dict):
        return Unusable(f"the answer has no verdict on {criterion}")
    flagged, reason = entry.get("flagged"), entry.get("reason")
    if not isinstance(flagged, bool):
        return Unusable(f"{criterion}.flagged must be true or false")
    if not isinstance(reason, str) or not reason.strip(" ."):
        return Unusable(f"{criterion}.reason is missing")
    return Judged(criterion=criterion, flagged=flagged, reason=reason.strip()[:MOST_CHARACTERS])


ANSWER_TOKENS = 8192
ROLE = "judge"

_STATUS = LanguageModelCall.Status
_OPEN = (_STATUS.WAITING, _STATUS.SENT)
_OVER = (_STATUS.ANSWERED, _STATUS.FAILED, _STATUS.INTERRUPTED)


@dataclass(frozen=True, kw_only=True)
class JudgeRequest:
    """By whom a task is to be judged, and the most that it may cost."""

    model: str
    max_usd: float = 1.0


def judge_task(
    *, version: TaskVersion, request: JudgeRequest, clock: Callable[[], datetime]
) -> TaskJudgement:
    """Ask once about a version, wait for the answer, and store what came; the audit log says so.

    An answer that cannot be read and a call that failed are stored with the reason. Raises
    `SubmissionError` before anything is stored.
    """
    settle_ended(before=clock())
    judgement = _stored(version, request, clock())
    try:
        answer_call(call_id=judgement.call_id, clock=clock)
    except KeyboardInterrupt:
        interrupt_call(call=judgement.call, now=clock())
        settle(judgement=judgement)
        raise
    return settle(judgement=judgement)


@transaction.atomic
def request_judgement(
    *,
    version: TaskVersion,
    request: JudgeRequest,
    user: User,
    now: datetime,
    draft: Draft | None = None,
) -> TaskJudgement:
    """Queue the question about a version for a worker of calls, and record it in the audit log.

    Raises `CurationError` for those who are no admins, because a call costs money, and while the
    same language model is being asked about the same version; `SubmissionError` naming the field.
    """
    if not sees_hidden(user):
        raise CurationError("", "only admins can ask a language model: a call costs money")
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)  # two requests take turns
    asked = TaskJudgement.objects.filter(version=version, call__status__in=_OPEN)
    if asked.filter(call__language_model__name=request.model).exists():
        raise CurationError("model", f"{request.model} has already been asked: wait for its answer")
    judgement = _stored(version, request, now, user, draft)
    transaction.on_commit(lambda: queues.enqueue_call(judgement.call_id))
    return judgement


def settle_call(*, call_id: str) -> None:
    """Read the answer of a call that has ended, if it was asked for a judgement."""
    judgement = TaskJudgement.objects.filter(call__pk=call_id).first()
    if judgement is not None:
        settle(judgement=judgement)


def settle_ended(*, before: datetime) -> None:
    """Read the answers of calls that ended before a moment, and whose command did not."""
    unread = TaskJudgement.objects.filter(
        verdicts=[], problem="", call__status__in=_OVER, call__ended_at__lt=before
    )
    for judgement in unread:
        settle(judgement=judgement)


def settle(*, judgement: TaskJudgement) -> TaskJudgement:
    """Read the answer of a call that has ended; one that is open, or was read, stays as it is."""
    call = LanguageModelCall.objects.get(pk=judgement.call_id)
    if call.status in _OPEN or judgement.verdicts or judgement.problem:
        return judgement
    if call.status != _STATUS.ANSWERED:
        judgement.problem = call.error or "the call failed, and no reason was reported"
    else:
        found = read_judgement(call.response, cut=call.partial)
        if isinstance(found, Unusable):
            judgement.problem = found.reason
        else:
            judgement.verdicts = storable(codec.encode(found))
    with transaction.atomic():
        judgement.problem = storable(judgement.problem)
        judgement.save(update_fields=["verdicts", "problem"])
        if call.status == _STATUS.ANSWERED:
            LanguageModelCall.objects.filter(pk=call.pk).update(problem=judgement.problem)
    judgement.refresh_from_db()
    return judgement


def prompt_for(version: TaskVersion) -> Prompt:
    """What is asked about a version: its public documents alone."""
    public, data = public_task(version.document), version.data
    files = reference_files(public["files"])
    reference = "\n\n".join(f"# {path}\n{text}" for path, text in sorted(files))
    workloads = "\n".join(
        f"- {each.name}: {parameters_text(each.parameters)}"
        for each in data.workloads
        if not each.hidden
    )
    values = {
        "title": data.title,
        "dtype": data.dtype,
        "description": clip(data.description.strip(), MAX_DESCRIPTION_TOKENS),
        "reference": clip(reference.strip(), MAX_REFERENCE_TOKENS),
        "workloads": clip(workloads, MAX_WORKLOADS_TOKENS),
    }
    return fill("judge_task", values)


@transaction.atomic
def _stored(
    version: TaskVersion,
    request: JudgeRequest,
    now: datetime,
    user: User | None = None,
    draft: Draft | None = None,
) -> TaskJudgement:
    """The waiting call with its judgement; raises `SubmissionError` naming what is wrong.

    Without a user it is a command that asks.
    """
    model = callable_model(request.model)
    if not 0 <= request.max_usd < float("inf"):
        raise SubmissionError("max_usd", "must be 0 or more")
    prompt, spec = prompt_for(version), spec_of(model)
    allowance = budget.allow(
        Budget(usd=request.max_usd),
        budget.Spent(0.0, 0, 0),
        spec,
        budget.tokens_bound(prompt.messages),
        min(ANSWER_TOKENS, spec.max_output_tokens),
    )
    if allowance.refusal:
        raise SubmissionError("max_usd", allowance.refusal)
    details = {"language model": request.model}
    add_entry(
        AuditEntry.Kind.JUDGED, version=version, draft=draft, actor=user, details=details, now=now
    )
    call = LanguageModelCall.objects.create(
        role=ROLE,
        language_model=model,
        prompt=prompt.name,
        prompt_version=prompt.version,
        messages=storable(codec.encode(prompt.messages)),
        temperature=0.0,
        max_tokens=allowance.max_tokens,
        worst_usd=allowance.worst_usd,
        worst_tokens=allowance.worst_tokens,
        created_at=now,
    )
    return TaskJudgement.objects.create(version=version, call=call, created_at=now)


def version_of(slug: str, number: int | None = None) -> TaskVersion:
    """That version of a task, its current one without a number; raises `SubmissionError`."""
    task = Task.objects.filter(slug=slug).select_related("current_version").first()
    if task is None:
        raise SubmissionError("task", no_task(slug))
    if number is not None:
        version = task.versions.filter(number=number).first()
        if version is None:
            raise SubmissionError("version", f"{slug!r} has no version {number}")
        return version
    if task.current_version is None:
        raise SubmissionError("version", f"{slug!r} has no current version: specify a number")
    return task.current_version
