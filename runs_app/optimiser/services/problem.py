"""What a run's prompts may tell of its task and device; nothing of hidden workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db.models import Q

from gpu_runner.data.codec import DataError
from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import ShippedKernel, Task
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Mode, Verdict
from runs_app.core.errors import SubmissionError
from runs_app.core.integrity.eligibility import doubted_by_audits, without_doubts
from runs_app.core.profile.bottleneck import calibrate
from runs_app.models import Device, Evaluation, Result
from runs_app.optimiser.evolve.brief import tolerance_text, values_text
from runs_app.optimiser.evolve.config import Problem
from runs_app.optimiser.evolve.reference import description_for, files_for, reference_for
from runs_app.optimiser.selectors.settings import OWN_KERNEL
from runs_app.optimiser.services.brief import briefing_of
from runs_app.optimiser.services.request import RunRequest
from tasks_app.disclosure import public_task
from tasks_app.models import TaskVersion
from tasks_app.pages.task_page import command_text, entrances, reference_files

NAIVE, TUNABLE = "kbench-naive", "kbench-tunable"
_TUNER = "autotune"
_TRANSLATOR = "translate"
_TORCH = ", with torch's headers and libraries; the module is a pybind11 extension"
_PROFILES = 60  # newest profiles that the device's threshold is computed from


@dataclass(frozen=True)
class Seed:
    """The kernel that a run begins with, and whose it is; an empty source is none."""

    source: str = ""
    title: str = ""
    entry: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def problem_for(version: TaskVersion, device: Device, direction: Direction, seed: Seed) -> Problem:
    """The problem as everybody may see it."""
    public = public_task(version.document)
    kind, data = DeviceKind(device.kind), version.data
    workloads = data.workloads_for(kind, direction, hidden=False)
    return Problem(
        task=data.name,
        title=data.title,
        description=description_for(data.description, direction),
        abi=data.abi,
        signature=data.signature or _torch_signature(data, direction),
        direction=direction,
        dtype=data.dtype,
        language=device.language,
        device_name=device.name,
        device_kind=kind,
        reference=_reference(public["files"], direction),
        workloads=tuple(
            f"{workload.name}: {', '.join(f'{k}={v}' for k, v in workload.parameters.items())}"
            for workload in workloads
        ),
        toolchain=command_text(kind) + (_TORCH if data.abi is Abi.TORCH else ""),
        seed_source=seed.source,
        seed_title=seed.title,
        seed_entry=seed.entry,
        seed_files=seed.files,
        threshold_pct=calibrate(_throughputs(device)),
        tolerance=tolerance_text(data, workloads, direction),
        values=values_text(data, kind, direction),
        **vars(briefing_of(version, device, direction)),
    )


def _torch_signature(data: Task, direction: Direction) -> str:
    """Name and arguments of the function that an extension exports."""
    found = (entry.declaration for entry in entrances(data) if entry.direction == direction)
    return next(found, "")


def seed_for(request: RunRequest, version: TaskVersion, device: Device, user: User | None) -> Seed:
    """The kernel that the request asks for; raises `SubmissionError` where there is none."""
    match request.seed_kernel:
        case "none":
            return Seed()
        case "own":
            return _own(request, device)
        case "best":
            return _best(version, device, request, user)
        case "" if request.strategy == _TRANSLATOR:
            return Seed()  # a kernel that is right would leave nothing to translate
    shipped = _shipped(request, version, device)
    if shipped is not None:
        return Seed(version.data.files[shipped.path], shipped.agent)
    if request.seed_kernel == "naive":
        reason = f"task {version.task.slug} has no kernel for {device.name}: choose “none” or “own”"
        raise SubmissionError("seed_kernel", reason)
    return Seed()


def _shipped(request: RunRequest, version: TaskVersion, device: Device) -> ShippedKernel | None:
    """The naive kernel, or for the tuner one with knobs; else the first that there is."""
    fitting = [
        kernel
        for kernel in version.data.kernels
        if kernel.language is device.language and kernel.direction is request.direction
    ]
    wanted = (TUNABLE, NAIVE) if request.strategy == _TUNER else (NAIVE,)
    for agent in wanted:
        for kernel in fitting:
            if kernel.agent == agent:
                return kernel
    return fitting[0] if fitting else None


def _best(version: TaskVersion, device: Device, request: RunRequest, user: User | None) -> Seed:
    visible = Q(submission__private=False)
    if request.private and user is not None:  # a public run would show it to everybody
        visible |= Q(submission__author=user)
    rows = Evaluation.objects.filter(task_version=version, device=device)
    best = (
        without_doubts(rows)
        .filter(visible, direction=request.direction.value, verdict=Verdict.CORRECT.value)
        .filter(submission__run=None, submission__language=device.language.value)
        .exclude(mode=Mode.AUDIT.value)
        .exclude(submission__digest__in=doubted_by_audits(rows).values("submission__digest"))
        .select_related("submission__agent")
        .order_by("-merit", "created_at")
        .first()
    )
    if best is None:
        reason = f"nothing correct has been measured on {device.name} yet: choose another seed"
        raise SubmissionError("seed_kernel", reason)
    kernel = best.submission
    return Seed(kernel.source, kernel.agent.name, kernel.entry, kernel.files)


def _own(request: RunRequest, device: Device) -> Seed:
    try:
        kernel = Solution(
            source=request.source,
            language=device.language,
            direction=request.direction,
            entry=request.entry,
            files=request.files,
        )
    except DataError as error:
        raise SubmissionError.about(error) from None
    return Seed(kernel.source, OWN_KERNEL, kernel.name if kernel.files else "", kernel.files)


def _reference(files: dict[str, str], direction: Direction) -> str:
    modules = [
        (path, reference_for(text, direction))
        for path, text in sorted(reference_files(files_for(files, direction)))
    ]
    if len(modules) == 1:
        return modules[0][1]
    return "\n\n".join(f"# {path}\n{text}" for path, text in modules)


def _throughputs(device: Device) -> list[float]:
    """Of profiles of naive kernels on the device, in percent, three a profile."""
    seeds = Q(
        evaluation__submission__candidate__edit="seed",
        evaluation__submission__run__problem__seed_title=NAIVE,
    )
    rows = Result.objects.filter(
        seeds | Q(evaluation__submission__agent__name=NAIVE),
        evaluation__device=device,
        evaluation__mode=Mode.PROFILE.value,
        evaluation__verdict=Verdict.CORRECT.value,
    ).order_by("-evaluation__finished_at")
    found: list[float] = []
    for document in rows.values_list("document", flat=True)[:_PROFILES]:
        metrics = (document.get("profile") or {}).get("metrics") or {}
        if all(name in metrics for name in THROUGHPUTS):
            found += [float(metrics[name]) for name in THROUGHPUTS]
    return found
