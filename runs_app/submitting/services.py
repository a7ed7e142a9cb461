"""Enter a kernel, measure it again, or take it back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.codec import DataError
from gpu_runner.data.files import check_modules
from gpu_runner.data.formats.text import plain
from gpu_runner.data.packages import PACKAGES
from gpu_runner.data.solution import Solution, code_of
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode
from runs_app.core.checks.selectors import may_check
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.integrity.selectors import may_stop
from runs_app.core.queue.devices import resolve_device
from runs_app.core.queue.runners import lacking_packages
from runs_app.core.work import lifecycle
from runs_app.core.work.access import asked_for
from runs_app.core.work.lifecycle import evaluate
from runs_app.models import Device, Evaluation, Submission
from runs_app.models.submission import columns_of
from runs_app.submitting.authors import agent_of, language_model_of
from runs_app.submitting.quota import check_quota
from runs_app.submitting.shipped import bring_kernels
from tasks_app.errors import Faults
from tasks_app.models import TaskVersion
from tasks_app.people import role_of

_Word = TypeVar("_Word", bound=StrEnum)


@transaction.atomic
def submit(  # noqa: PLR0913 - keywords only: one for each field of the form
    *,
    user: User,
    task_version: TaskVersion | None,
    source: str,
    device: str,
    now: datetime,
    files: Mapping[str, str] | None = None,
    entry: str = "",
    language: str = "",
    direction: str = Direction.FORWARD.value,
    mode: str = Mode.QUICK.value,
    agent: str = "",
    language_model: str = "",
    private: bool = False,
    origin: Submission.Origin = Submission.Origin.PERSON,
    faults: Faults | None = None,
    kept: bool = False,
) -> Submission:
    """Enter a kernel and queue its first evaluation.

    `files` are the texts beside the source, which is that of the `entry`, by name.
    `device` is a device's slug, or "cuda" for the only CUDA device; where it is empty, `language`
    and `source` decide. An empty `agent` means that `user` wrote the kernel. A private submission
    for a version that was never public is a dry run, whatever `origin` says. Raises
    `SubmissionError` naming all wrong fields; nothing is stored then. `faults` are those that the
    caller has found; only if it has found one can the version be None. `kept`: the version is
    taken even if its task was retired since. A task's first ranked submission on a device brings
    the task's own kernels along.
    """
    faults, beside = faults or Faults(), files or {}
    target = faults.of(resolve_device, device, language, code_of(source, beside))
    solution = faults.of(
        solution_for, source, language, direction, target, entry=entry, files=beside
    )
    if task_version and not kept:
        faults.of(_check_open, task_version, user)
    if task_version and target and direction in set(Direction):
        faults.of(check_fit, task_version, direction, target)
    chosen_mode = faults.of(_mode, mode)
    author = faults.of(agent_of, user, agent, now)
    writer = faults.of(language_model_of, language_model, now)
    faults.tell(SubmissionError)
    assert task_version and target and solution and chosen_mode and author  # noqa: PT018 - told
    check_quota(user, now, chosen_mode)
    is_dry = private and task_version.published_at is None
    submission = Submission.objects.create(
        author=user,
        task_version=task_version,
        **columns_of(solution),
        agent=author,
        language_model=writer,
        private=private,
        origin=Submission.Origin.DRY_RUN if is_dry else origin,
        created_at=now,
    )
    evaluate(submission=submission, device=target, mode=chosen_mode, now=now)
    if chosen_mode is Mode.RANKED:
        _bring_shipped(task_version, target, now)
    return submission


@transaction.atomic
def rerun(
    *, submission: Submission, user: User, now: datetime, device: str = "", mode: str = ""
) -> Evaluation:
    """Measure a submission again, on its latest device and in its latest mode unless told else.

    Raises `NotAllowed` for anybody but the author and admins, `SubmissionError` for bad input.
    """
    _check_owner(submission, user)
    if submission.budgeted and not user.is_staff:
        raise NotAllowed("", "only admins can re-run a challenge entry's submission")
    if submission.run_id is not None:
        raise NotAllowed("", "this is a run's candidate; submit it to have it measured again")
    latest = asked_for(submission.evaluations.select_related("device")).first()
    if latest is None and not (device and mode):
        raise SubmissionError(
            "device", "choose a device and a mode: there is no earlier evaluation"
        )
    target = (
        resolve_device(device, submission.language, submission.solution.code)
        if device or latest is None
        else latest.device
    )
    if target.imported_from:
        reason = f"this site has no device {target.name}; choose one of its devices"
        raise SubmissionError("device", reason)
    if submission.language not in [language.value for language in target.languages]:
        known = " and ".join(language.label for language in target.languages)
        raise SubmissionError("device", f"{target} runs only {known}")
    _check_packages(submission.language, submission.solution.code, target)
    if not may_check(submission.task_version, user):  # who may try a draft's kernels, may again
        _check_open(submission.task_version, user)
    check_fit(submission.task_version, submission.direction, target)
    chosen_mode = _mode(mode) if mode or latest is None else Mode(latest.mode)
    check_quota(user, now, chosen_mode)
    if chosen_mode is Mode.RANKED:
        _bring_shipped(submission.task_version, target, now)
    return evaluate(submission=submission, device=target, mode=chosen_mode, now=now)


@transaction.atomic
def cancel(*, evaluation: Evaluation, user: User, now: datetime) -> Evaluation:
    """Take an evaluation out of the queue, or stop it.

    Raises `WrongState` if it is over, `NotAllowed` for what admins alone stop; see `may_stop`.
    """
    _check_owner(evaluation.submission, user)
    locked = lifecycle.lock(Evaluation, evaluation.pk)
    if locked.is_over:
        raise WrongState("", f"this evaluation is already {locked.get_status_display().lower()}")
    if not may_stop(locked, user):
        what = "an audit" if locked.mode == Mode.AUDIT else "a re-run that has begun"
        raise NotAllowed("", f"only admins can cancel {what}, because its outcome counts")
    lifecycle.cancel(
        locked, reason=f"canceled by {role_of(user, evaluation.submission.author_id)}", now=now
    )
    return locked


def _bring_shipped(version: TaskVersion, device: Device, now: datetime) -> None:
    if settings.SUBMIT_SHIPPED_KERNELS:
        # After the commit: nothing that is wrong with them may cost anybody a submission.
        transaction.on_commit(lambda: bring_kernels(version, device, now), robust=True)


def solution_for(
    source: str,
    language: str,
    direction: str,
    device: Device | None,
    *,
    entry: str = "",
    files: Mapping[str, str] | None = None,
) -> Solution:
    """What the device would run; raises `SubmissionError` for what it, or any device, can't."""
    faults, beside = Faults(), files or {}
    chosen = faults.of(_language, language, device)
    chosen_direction = faults.of(_one_of, Direction, "direction", direction)
    if chosen and device:
        faults.of(_check_packages, chosen, code_of(source, beside), device)
    usual = chosen or (Language(device.language) if device else Language.CPP)
    towards = chosen_direction or Direction.FORWARD
    solution = faults.of(_solution, source, usual, towards, entry, beside)
    faults.tell(SubmissionError)
    assert solution  # else it was told
    return solution


def _solution(
    source: str, language: Language, direction: Direction, entry: str, files: Mapping[str, str]
) -> Solution:
    try:  # with the ends of lines of no system, so that the same kernel has one digest
        check_modules(files)
        return Solution(
            source=plain(source),
            language=language,
            direction=direction,
            entry=entry,
            files={name: plain(text) for name, text in files.items()},
        )
    except DataError as error:
        raise SubmissionError.about(error) from None


def _language(name: str, device: Device | None) -> Language:
    chosen = _one_of(Language, "language", name or (device.language if device else Language.CPP))
    if device and chosen not in device.languages:
        needed = " and ".join(language.label for language in device.languages)
        raise SubmissionError("language", f"{device} runs {needed}, not {chosen.label}")
    return chosen


def _one_of(kind: type[_Word], field: str, value: str, *hidden: _Word) -> _Word:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(each.value for each in kind if each not in hidden)
        raise SubmissionError(field, f"{value!r} is not one of {allowed}") from None


def _check_packages(language: str, source: str, device: Device) -> None:
    """Refuse a module that no runner of the device can import, and say how one could."""
    if language != Language.PYTHON or not (lacking := lacking_packages(device, source)):
        return
    words, what = ", ".join(lacking), "it" if len(lacking) == 1 else "them"
    line = " ".join(["pip install", *(PACKAGES[name][0] for name in lacking)])
    reason = f"the source imports {words}, but no runner for {device.name} has {what} installed"
    raise SubmissionError("source", f"{reason}; a runner's operator can install {what} ({line})")


def _check_open(version: TaskVersion, user: User) -> None:
    trying = version.task.state == version.task.State.REVIEW and user.is_staff
    if version.task.state != version.task.State.PUBLISHED and not trying:
        raise SubmissionError(
            "task", f"{version.task.slug} doesn't accept submissions because it isn't public"
        )


def check_fit(version: TaskVersion, direction: str, device: Device) -> None:
    """Raise `SubmissionError` if the task has nothing to measure there."""
    if direction not in version.directions:
        have = ", ".join(version.directions)
        raise SubmissionError("direction", f"task {version.task.slug} has only: {have}")
    kind = DeviceKind(device.kind)
    if not version.data.workloads_for(kind, Direction(direction), hidden=False):
        reason = f"task {version.task.slug} has no {direction} workload for {kind}"
        raise SubmissionError("device", reason)


def _mode(mode: str) -> Mode:
    if mode == Mode.AUDIT:
        raise SubmissionError(
            "mode", "records are audited automatically; admins can request more audits"
        )
    return _one_of(Mode, "mode", mode, Mode.AUDIT)


def _check_owner(submission: Submission, user: User) -> None:
    if submission.author_id != user.pk and not user.is_staff:
        raise NotAllowed("", "only its author and admins can do this")
