"""Enter a run's candidate for the leaderboard."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import NotAllowed, Stopped, SubmissionError
from runs_app.core.work.lifecycle import evaluate
from runs_app.core.work.limits import check_open
from runs_app.models import Announcement, Candidate, LanguageModel, Run, Submission
from runs_app.optimiser.selectors.runs import may_control
from runs_app.optimiser.services import log as run_log
from runs_app.submitting.quota import check_quota


@transaction.atomic
def enter_candidate(*, candidate: Candidate, user: User, now: datetime) -> Submission:
    """Submit a correct candidate in the name of its run's agent, to be ranked; once only.

    Raises `NotAllowed` for strangers and for a candidate that cannot be entered, and
    `QuotaExceeded`.
    """
    run = run_log.lock(candidate.run_id)
    if not may_control(user, run):
        raise NotAllowed("", "only the run's owner and admins can enter its candidates")
    refusal = _refusal(run, run.candidates.get(pk=candidate.pk))
    if refusal:
        raise NotAllowed("", refusal)
    check_quota(run.user, now)
    entered = _enter(run, run.candidates.get(pk=candidate.pk), now)
    run.save(update_fields=["events_stored"])
    return entered


def enter_best(run: Run, number: int, *, now: datetime) -> Submission | None:
    """Submit the best candidate of a locked run that ended; None if it is the seed or was.

    While submissions are stopped a note says that it was not.
    """
    candidate = run.candidates.get(number=number)
    if _refusal(run, candidate):
        return None
    try:
        check_open(Announcement.Kind.SUBMISSIONS, now)
    except Stopped as stop:
        text = f"Candidate {number} was not submitted: {stop.reason}. Submit it by hand later"
        run_log.write(run, "note", {"text": text}, now=now)
        return None
    return _enter(run, candidate, now)


def _refusal(run: Run, candidate: Candidate) -> str:
    if candidate.is_seed:
        return (
            f"candidate {candidate.number} is the run's seed kernel, and a run only submits "
            "kernels that it wrote. To have the seed ranked, submit it yourself"
        )
    if candidate.entry_id is not None:
        return f"candidate {candidate.number} has already been entered"
    if candidate.verdict != Verdict.CORRECT or candidate.submission is None:
        return f"candidate {candidate.number} is not correct, so it cannot be ranked"
    task = run.task_version.task
    if task.state != task.State.PUBLISHED:
        return f"the task {task.slug} no longer accepts submissions"
    return ""


def _enter(run: Run, candidate: Candidate, now: datetime) -> Submission:
    submission = candidate.submission
    if submission is None:
        raise SubmissionError("candidate", "was never measured")
    candidate.entry = Submission.objects.create(
        author=run.user,
        task_version=run.task_version,
        **submission.same_kernel,
        agent=run.agent,
        language_model=LanguageModel.objects.filter(name=candidate.model).first(),
        private=run.private,
        origin=Submission.Origin.ENTERED,
        created_at=now,
    )
    candidate.save(update_fields=["entry"])
    evaluate(submission=candidate.entry, device=run.device, mode=Mode.RANKED, now=now)
    payload = {"candidate": candidate.number, "submission": str(candidate.entry.pk)}
    run_log.write(run, "entered", payload, now=now)
    return candidate.entry
