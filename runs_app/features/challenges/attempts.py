"""Submissions of an entry to a challenge, which count against its budget."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from gpu_runner.data.queue import OF_PEOPLE
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import SubmissionError, WrongState
from runs_app.features.challenges.models import Attempt, Entry
from runs_app.models import Agent, Evaluation, Submission
from runs_app.submitting.quota import EMPTIED
from runs_app.submitting.services import submit
from tasks_app.errors import Faults
from tasks_app.models import TaskVersion


@transaction.atomic
def submit_for_entry(  # noqa: PLR0913 - keywords only: one for each field of a submission
    *,
    entry: Entry,
    task: str,
    source: str,
    language: str,
    direction: str,
    device: str,
    mode: str,
    agent: str,
    language_model: str,
    now: datetime,
    files: Mapping[str, str] | None = None,
    entry_file: str = "",
) -> Submission:
    """Enter a kernel for `entry`; it is private until the challenge is closed.

    Submissions of one entry take turns, so that two cannot both be the last. Raises `WrongState`
    when the budget or the time is used up, `SubmissionError` for what is not of the challenge.
    """
    locked, faults = lock_entry(entry), Faults()
    version = faults.of(_version, locked, task)
    _check_fit(faults, locked, direction, device, mode)
    _check_author(faults, locked, agent, language_model)
    if not faults.found:
        check_open(locked, now)
    if version and mode != Mode.COMPILE and not faults.found:
        check_budget(locked, version)
    submission = submit(
        user=locked.user,
        task_version=version,
        source=source,
        files=files,
        entry=entry_file,
        language=language,
        direction=locked.challenge.direction,
        device=locked.challenge.device_id,
        mode=mode,
        agent="" if locked.agent.kind == Agent.Kind.PERSON else locked.agent.name,
        language_model=locked.language_model.name if locked.language_model else language_model,
        private=True,
        origin=Submission.Origin.API,
        now=now,
        faults=faults,
        kept=True,
    )
    submission.budgeted = True
    submission.save(update_fields=["budgeted"])
    Attempt.objects.create(submission=submission, entry=locked)
    return submission


def lock_entry(entry: Entry) -> Entry:
    """The entry's row, locked until the transaction ends."""
    rows = Entry.objects.select_for_update(of=("self",), no_key=True)
    related = ("challenge", "agent", "language_model", "user")
    return rows.select_related(*related).defer("transcript").get(pk=entry.pk)


def counted_evaluations() -> QuerySet[Evaluation]:
    """Evaluations that count against budgets.

    Those of the site, those where it failed, and compile checks don't.
    """
    people = Evaluation.waits_as(*OF_PEOPLE)
    counted = Evaluation.objects.filter(people, submission__attempt__isnull=False)
    counted = counted.exclude(mode__in=(Mode.RANKED.value, Mode.AUDIT.value, Mode.COMPILE.value))
    counted = counted.exclude(reason__startswith=EMPTIED)
    return counted.exclude(verdict=Verdict.SYSTEM_ERROR.value)


def check_open(entry: Entry, now: datetime) -> None:
    """Raise `WrongState` if `entry` takes nothing more: it has ended, or spent its money."""
    if entry.state != Entry.State.RUNNING:
        raise WrongState("", f"this entry has ended: {entry.reason}")
    if now >= entry.deadline_at:
        raise WrongState("", f"this entry's time ran out at {entry.deadline_at:%Y-%m-%d %H:%M} UTC")
    challenge = entry.challenge
    if challenge.usd is not None and (entry.usd or 0) >= challenge.usd:
        raise WrongState(
            "",
            f"this entry's money is used up: it spent {entry.usd:g} of {challenge.usd:g} USD",
        )


def check_budget(entry: Entry, version: TaskVersion) -> None:
    """Raise `WrongState` if `entry` has used all evaluations of this task."""
    most = entry.challenge.evaluations
    used = (
        counted_evaluations().filter(submission__attempt__entry=entry, task_version=version).count()
    )
    if used >= most:
        reason = f"this entry has used all {most} evaluations for {version.task.slug}"
        raise WrongState("task", reason)


def _version(entry: Entry, task: str) -> TaskVersion:
    versions = entry.challenge.versions.select_related("task").order_by("task__slug")
    found = {version.task.slug: version for version in versions}
    if task not in found:
        names = ", ".join(found)
        raise SubmissionError(
            "task", f"{task[:100]!r} isn't part of this challenge; its tasks are: {names}"
        )
    return found[task]


def _check_fit(faults: Faults, entry: Entry, direction: str, device: str, mode: str) -> None:
    challenge = entry.challenge
    if direction != challenge.direction:
        faults.add("direction", f"this challenge accepts only {challenge.direction} kernels")
    is_it = device in ("", challenge.device_id) or device == challenge.device.kind == "cuda"
    if not is_it:
        faults.add("device", f"this challenge runs on {challenge.device}")
    if mode == Mode.RANKED:
        reason = "each task's best kernel is ranked when the entry ends; use quick until then"
        faults.add("mode", reason)


def _check_author(faults: Faults, entry: Entry, agent: str, language_model: str) -> None:
    if agent.strip() not in ("", entry.agent.name):
        faults.add("agent", f"this entry belongs to {entry.agent.name!r}")
    own = entry.language_model.name if entry.language_model else ""
    if own and language_model.strip() not in ("", own):
        faults.add("language_model", f"this entry uses {own!r}")
