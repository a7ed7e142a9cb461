"""Enter the kernels that come with the tasks, so that every board has something to beat."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import receiver

from gpu_runner.data.formats.mskernelbench import Offer
from gpu_runner.data.queue import Urgency
from gpu_runner.data.solution import Solution
from gpu_runner.data.static import gpu_reason
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import DeviceKind, Language, Mode
from runs_app.core.hooks import device_made
from runs_app.core.work.lifecycle import evaluate
from runs_app.models import Agent, Device, Evaluation, Status, Submission
from runs_app.models.submission import columns_of
from runs_app.submitting.authors import shipped_agent
from tasks_app.models import TaskVersion
from tasks_app.selectors import published_tasks

SYSTEM_USER = "kbench (site)"  # no name that anybody can sign up with
_DEMO_TASK = "softmax"
_TUNED = ("kbench-best", "kbench-good")  # agents of the shipped kernels that somebody has tuned


@receiver(device_made)
def _begin(sender: object, device: Device, now: datetime, **_: object) -> None:
    """Give a new device's boards something to beat, unless the site wants none."""
    if settings.SUBMIT_SHIPPED_KERNELS:
        submit_first_kernels(device=device, now=now)


def submit_first_kernels(*, device: Device, now: datetime) -> list[Evaluation]:
    """Queue the shipped kernels of the tasks for which a tuned one comes along.

    The kernels of the others follow with the first ranked submission to their task: all of them
    would keep a small machine busy for hours.
    """
    versions = [
        version
        for version in _versions()
        if any(kernel.agent in _TUNED for kernel in version.data.kernels)
    ]
    return submit_shipped_kernels(device=device, now=now, versions=versions)


def submit_shipped_kernels(
    *,
    device: Device,
    now: datetime,
    mode: Mode = Mode.RANKED,
    agent: str = "",
    versions: Sequence[TaskVersion] | None = None,
) -> list[Evaluation]:
    """Queue the shipped kernels of tasks on a device, of all that are published by default.

    agent: whose kernels alone.

    Those that have an evaluation there in that mode, and were not lost to us, are left alone.
    """
    # A microsecond apart, so that pages show them in the order in which RQ holds them.
    moments = (now + timedelta(microseconds=place) for place in itertools.count())
    evaluations = (
        _enter(version, kernel.agent, shipped_solution(version, kernel), device, mode, moment)
        for (version, kernel), moment in zip(_kernels(device.kind, versions), moments, strict=False)
        if agent in ("", kernel.agent)
    )
    return [evaluation for evaluation in evaluations if evaluation is not None]


def bring_kernels(version: TaskVersion, device: Device, now: datetime) -> None:
    """Queue the kernels of one task, if this is the version on which people compete."""
    if published_tasks().filter(current_version=version).exists():
        submit_shipped_kernels(device=device, now=now, versions=[version])


def submit_offers(
    *, offers: Iterable[Offer], device: Device, now: datetime, mode: Mode = Mode.RANKED
) -> list[Evaluation]:
    """Queue kernels that an import matched with tasks, as `submit_shipped_kernels` does.

    Those of tasks that are not public, and those for other devices, are left alone.
    """
    versions = {task.slug: task.current_version for task in published_tasks()}
    entered: list[Evaluation | None] = []
    for offer in offers:
        version = versions.get(offer.task)
        if version is not None and DeviceKind(device.kind) in offer.solution.language.device_kinds:
            moment = now + timedelta(microseconds=len(entered))
            entered.append(_enter(version, offer.agent, offer.solution, device, mode, moment))
    return [evaluation for evaluation in entered if evaluation is not None]


def submit_demo(*, device: Device, now: datetime) -> Evaluation | None:
    """Queue one quick evaluation, so that a new site's first page is not empty.

    None if there are evaluations on the device already, or no kernel for it.
    """
    if Evaluation.objects.filter(device=device).exists():
        return None
    kernels = sorted(
        _kernels(device.kind), key=lambda pair: (pair[0].task.slug != _DEMO_TASK, pair[1].agent)
    )
    if not kernels:
        return None
    version, kernel = kernels[0]
    return _enter(version, kernel.agent, shipped_solution(version, kernel), device, Mode.QUICK, now)


def _versions() -> list[TaskVersion]:
    versions = (task.current_version for task in published_tasks())
    return [version for version in versions if version is not None]


def _kernels(
    kind: str, versions: Sequence[TaskVersion] | None = None
) -> list[tuple[TaskVersion, ShippedKernel]]:
    """Tuned ones first, and those of tasks with many: boards that compare something fill soon."""
    found = [
        (version, kernel)
        for version in (_versions() if versions is None else versions)
        for kernel in version.data.kernels
        if _runs_on(kind, version, kernel)
    ]
    return sorted(found, key=lambda pair: (pair[1].agent not in _TUNED, -len(pair[0].data.kernels)))


def _runs_on(kind: str, version: TaskVersion, kernel: ShippedKernel) -> bool:
    """Whether a kernel is for such a device; the text of a Python module says if it needs a GPU."""
    if kernel.language is Language.PYTHON and DeviceKind(kind) is DeviceKind.CPU:
        return not gpu_reason(version.data.files[kernel.path])
    return DeviceKind(kind) in kernel.language.device_kinds


def shipped_solution(version: TaskVersion, kernel: ShippedKernel) -> Solution:
    """A kernel that comes with a version; raises `DataError` if its file cannot be a source."""
    source = version.data.files.get(kernel.path, "")
    return Solution(source=source, language=kernel.language, direction=kernel.direction)


@transaction.atomic
def _enter(
    version: TaskVersion,
    agent_name: str,
    solution: Solution,
    device: Device,
    mode: Mode,
    now: datetime,
) -> Evaluation | None:
    # nobody else enters them now
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)
    agent = shipped_agent(agent_name, now)
    # One submission for each device and mode: the demo's page shows the demo and nothing else.
    known = Evaluation.objects.filter(
        submission__task_version=version,
        submission__agent=agent,
        submission__digest=solution.digest(),
        device=device,
        mode=mode.value,
    )
    if known.exclude(status=Status.CANCELLED).exclude(verdict="SYSTEM_ERROR").exists():
        return None
    lost = known.select_related("submission").order_by("created_at").first()
    submission = lost.submission if lost else _submission(version, agent, solution, now)
    # many are ranked at once; the demo is one, and somebody waits for it
    urgency = Urgency.BACKGROUND if mode is Mode.RANKED else None
    return evaluate(submission=submission, device=device, mode=mode, now=now, urgency=urgency)


def _submission(
    version: TaskVersion, agent: Agent, solution: Solution, now: datetime
) -> Submission:
    return Submission.objects.create(
        author=system_user(),
        task_version=version,
        agent=agent,
        **columns_of(solution),
        origin=Submission.Origin.SHIPPED,
        created_at=now,
    )


def system_user() -> User:
    """The account of the site itself."""
    return account_of_nobody(SYSTEM_USER)


def account_of_nobody(username: str) -> User:
    """An account in whose name the site enters something; nobody can sign in to it."""
    user, made = User.objects.get_or_create(username=username)
    if made:
        user.set_unusable_password()
        user.save()
    return user
