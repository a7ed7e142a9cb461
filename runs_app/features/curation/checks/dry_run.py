"""Try the kernels that come with a version of a task before anybody competes on it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.codec import DataError
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Mode
from runs_app.core.checks.selectors import may_check
from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.work.lifecycle import evaluate
from runs_app.features.curation.checks.selectors import dry_runs
from runs_app.models import Agent, Device, Evaluation, Status, Submission
from runs_app.models.submission import columns_of
from runs_app.submitting.authors import agent_of
from runs_app.submitting.quota import check_quota
from runs_app.submitting.shipped import shipped_solution
from tasks_app.disclosure import sees_hidden
from tasks_app.models import AuditEntry, TaskVersion
from tasks_app.publishing.audit_log import add_entry

DRY_MODES = (Mode.QUICK, Mode.TEST, Mode.RANKED)
"""Modes in which kernels can be tried; the first is the usual one."""


@transaction.atomic
def dry_run(
    *, version: TaskVersion, device: Device, user: User, now: datetime, mode: str = ""
) -> list[Evaluation]:
    """Queue the version's own kernels for `device` as private submissions of `user`.

    Those stand on no board, not even a ranked one. What `user` may see of an earlier dry run in
    the same mode and waits or runs still is not queued again, so that the list may be empty.
    Raises `SubmissionError` naming the field, `NotAllowed` for versions of drafts that are not
    open to `user`, and `QuotaExceeded` where not all of it fits the quota, from which admins are
    free; nothing is stored then.
    """
    if not may_check(version, user):  # the same people, for the same reasons
        raise NotAllowed("", "only admins and the draft's author can try a version")
    chosen = _mode(mode)
    solutions = _solutions(version, device)
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)  # two requests take turns
    under_way = dry_runs(version, user).filter(
        device=device, mode=chosen.value, status__in=(Status.QUEUED, Status.RUNNING)
    )
    known = set(under_way.values_list("submission__digest", flat=True))
    missing = [solution for digest, solution in solutions.items() if digest not in known]
    entered = try_solutions(missing, version, device, user, now, chosen)
    if entered:
        draft = next((each for each in version.drafts.all() if each.open_to(user)), None)
        details = {"device": device.name, "mode": chosen.value, "kernels": len(entered)}
        add_entry(
            AuditEntry.Kind.TRIED,
            now=now,
            actor=user,
            version=version,
            draft=draft,
            details=details,
        )
    return entered


def _mode(mode: str) -> Mode:
    allowed = {each.value: each for each in DRY_MODES}
    if (mode or DRY_MODES[0].value) not in allowed:
        raise SubmissionError("mode", f"{mode!r} is not one of {', '.join(allowed)}")
    return allowed[mode or DRY_MODES[0].value]


def _solutions(version: TaskVersion, device: Device) -> dict[str, Solution]:
    """The version's kernels for a device by their digests, without those that nothing measures."""
    kind, data = DeviceKind(device.kind), version.data
    fitting = [kernel for kernel in data.kernels if kernel.language in device.languages]
    if not fitting:
        reason = f"the task has no {device.language.label} kernel to try"
        raise SubmissionError("device", f"{reason} on {device}")
    measured = [
        kernel for kernel in fitting if data.workloads_for(kind, kernel.direction, hidden=False)
    ]
    if not measured:
        reason = f"the task has no listed workload for its kernels on a {kind} device"
        raise SubmissionError("device", reason)
    solutions = {}
    for kernel in measured:
        try:
            solution = shipped_solution(version, kernel)
        except DataError as error:
            raise SubmissionError("kernels", f"{kernel.path}: its {error}") from None
        solutions[solution.digest()] = solution
    return solutions


def try_solutions(
    solutions: Iterable[Solution],
    version: TaskVersion,
    device: Device,
    user: User,
    now: datetime,
    mode: Mode = DRY_MODES[0],
) -> list[Evaluation]:
    """Queue them as private submissions of `user`, who may try the version.

    Raises `QuotaExceeded`; call it in a transaction.
    """
    agent = agent_of(user, "", now)
    evaluations = []
    # A microsecond apart, so that pages show them in the order in which RQ holds them.
    moments = (now + timedelta(microseconds=place) for place in itertools.count())
    for solution, moment in zip(solutions, moments, strict=False):
        if not sees_hidden(user):
            check_quota(user, now)
        submission = _submission(version, agent, user, solution, moment)
        evaluations.append(evaluate(submission=submission, device=device, mode=mode, now=moment))
    return evaluations


def _submission(
    version: TaskVersion, agent: Agent, user: User, solution: Solution, now: datetime
) -> Submission:
    """One for each kernel and user: trying it again is a re-run."""
    same = {
        "author": user,
        "task_version": version,
        "agent": agent,
        "digest": solution.digest(),
        "private": True,
        "origin": Submission.Origin.DRY_RUN,
    }
    known = Submission.objects.filter(**same, language_model=None).first()
    return known or Submission.objects.create(
        **same,
        **{name: value for name, value in columns_of(solution).items() if name not in same},
        created_at=now,
    )
