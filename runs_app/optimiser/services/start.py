"""Start an optimization run."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import queues
from runs_app.core.queue.devices import resolve_device
from runs_app.core.text import storable
from runs_app.models import Device, Run
from runs_app.optimiser.evolve.answers import Wanted
from runs_app.optimiser.evolve.budget import Allowance
from runs_app.optimiser.evolve.commands import Finish
from runs_app.optimiser.evolve.config import Budget, Problem, RunConfig
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services import spending
from runs_app.optimiser.services.control import check_running
from runs_app.optimiser.services.history import RunDetails
from runs_app.optimiser.services.problem import problem_for, seed_for
from runs_app.optimiser.services.rehearsal import Rehearsal
from runs_app.optimiser.services.request import RunRequest, config_for
from runs_app.submitting.authors import agent_of
from runs_app.submitting.services import check_fit
from runs_app.submitting.shipped import system_user
from tasks_app.errors import Faults
from tasks_app.models import TaskVersion
from tasks_app.selectors import find_task, no_task

_ROOM = 1.1  # chosen: the first prompt grows by what is measured of the seed and the device
_DEMO_TASK = "matrix_mul"
_DEMO_EVALUATIONS = 10  # chosen: a curve, and soon over; a new site's boards fill behind it


@transaction.atomic
def start_run(
    *, user: User, request: RunRequest, now: datetime, faults: Faults | None = None
) -> Run:
    """Store a run and queue its first step.

    Raises `SubmissionError` naming all wrong fields, after `faults` that were found before, and
    `QuotaExceeded`; nothing is stored then.
    """
    faults, named = faults or Faults(), request.agent.strip()
    agent = faults.of(agent_of, user, named, now) if named else None
    version, device, problem, config = planned(request, user, faults)
    check_running(user, now)
    if spending.is_priced(config.models):
        if request.budget.usd is None:
            config = replace(config, budget=spending.within_day(config.budget, user, now))
        spending.check_day(config.budget, user=user, now=now)
    run = Run.objects.create(
        name=storable(request.name.strip()),
        user=user,
        agent=agent or agent_of(user, f"kbench-{request.strategy}", now),
        task_version=version,
        direction=request.direction.value,
        device=device,
        strategy=request.strategy,
        seed=config.seed,
        config=storable(codec.encode(config)),
        problem=storable(codec.encode(problem)),
        private=request.private,
        enters_best=request.enters_best,
        created_at=now,
        resumed_at=now,
    )
    run_log.write(run, "started", _summary(run, config, problem), now=now)
    run.save(update_fields=["events_stored"])
    transaction.on_commit(lambda: queues.enqueue_advance(run.pk))
    return run


def start_demo_run(*, device: Device, now: datetime) -> Run | None:
    """Start a run without a language model, so that a new site shows one at work.

    None if there are runs already, or the task has no kernel for the device.
    """
    task = find_task(_DEMO_TASK)
    own = Run.objects.filter(device__imported_from="")
    if own.exists() or task is None or task.current_version is None:
        return None
    kernels = task.current_version.data.kernels
    if not any(kernel.language is device.language for kernel in kernels):
        return None
    request = RunRequest(
        task=_DEMO_TASK,
        device=device.slug,
        strategy="autotune",
        budget=Budget(evaluations=_DEMO_EVALUATIONS, wall_time_s=1800),
        name="Demo: the knobs of a matrix multiplication",
        seed=1,
    )
    return start_run(user=system_user(), request=request, now=now)


def planned(
    request: RunRequest, user: User | None, faults: Faults | None = None
) -> tuple[TaskVersion, Device, Problem, RunConfig]:
    """What a run of this request is about, and how it would look for kernels.

    Raises `SubmissionError` naming all wrong fields, after `faults` that were found before.
    """
    faults = faults or Faults()
    config = faults.of(config_for, request)
    version = faults.of(_version, request)
    device = faults.of(resolve_device, request.device)
    if version and device:
        faults.of(check_fit, version, request.direction.value, device)
    seed = None
    if version and device and not faults.found:
        seed = faults.of(seed_for, request, version, device, user)
    faults.tell(SubmissionError)
    assert version and device and config and seed  # noqa: PT018 - else it was told
    config = replace(config, budget=spending.capped(config.budget, config.models, user))
    problem = problem_for(version, device, request.direction, seed)
    problem = replace(problem, answer_tokens=config.answer_tokens)
    _check_strategy(problem, config, request)
    _check_caps(problem, config)
    return version, device, problem, config


def _version(request: RunRequest) -> TaskVersion:
    task = find_task(request.task)
    if task is None or task.current_version is None:
        raise SubmissionError("task", no_task(request.task))
    return task.current_version


def _check_strategy(problem: Problem, config: RunConfig, request: RunRequest) -> None:
    """Raise `SubmissionError` for what the strategy refuses, or if its first command is the end.

    Also where no answer could be a kernel, as the seed's function is in a file that stays.
    """
    field = "source" if request.seed_kernel == "own" else "seed_kernel"
    asks = problem.seed_files and STRATEGIES[config.strategy].needs_models
    if asks and not Wanted.of(problem).is_in(problem.seed_source):
        name = problem.seed_entry
        reason = f"{name} must define the kernel's function itself: a run changes only {name}"
        raise SubmissionError(field, reason)
    try:
        optimizer = Optimizer(problem, config, History(RunDetails(Run())))
    except DataError as error:
        raise SubmissionError.about(error) from None
    for command in optimizer.strategy.ask(optimizer.history):
        if isinstance(command, Finish):
            raise SubmissionError(field, command.reason)


def _check_caps(problem: Problem, config: RunConfig) -> None:
    """Raise `SubmissionError` for a cap that ends the run before its first call or candidate."""
    faults, caps, seeds = Faults(), config.budget, 0
    if STRATEGIES[config.strategy].needs_models:
        roomy = replace(caps, evaluations=None, wall_time_s=None)
        rehearsal = Rehearsal(problem, replace(config, budget=roomy))
        found = [rehearsal.optimizer.allowance(ask) for ask in rehearsal.first_asks()]
        seeds = rehearsal.history.told.begun
        if found and all(each.lacks for each in found):
            least = min(found, key=lambda each: each.needs)
            faults.add(f"budget.{least.lacks}", _too_low(least))
    if caps.evaluations is not None and caps.evaluations <= seeds:
        also = ", since measuring the seed kernel uses one" if seeds else ""
        faults.add("budget.evaluations", f"must be at least {seeds + 1}{also}")
    if caps.wall_time_s == 0:
        faults.add("budget.wall_time_s", "must be more than 0")
    faults.tell(SubmissionError)


def _too_low(found: Allowance) -> str:
    least = found.needs * _ROOM
    words = f"${math.ceil(least * 100) / 100:.2f}" if found.lacks == "usd" else f"{least:.0f}"
    return f"doesn't pay for one call, so the run would end at once; set at least {words}"


def _summary(run: Run, config: RunConfig, problem: Problem) -> dict[str, object]:
    """What the first event tells of the run."""
    return {
        "by": "its owner",
        "strategy": run.strategy,
        "task": problem.task,
        "direction": run.direction,
        "device": run.device_id,
        "models": [model.name for model in config.models],
        "budget": codec.encode(config.budget),
        "seed_title": problem.seed_title,
    }
