"""What the workbench shows: the task in brief, what to begin from, and what it opens with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.forms import Form
from django.urls import reverse

from gpu_runner.data.static import gpu_reason
from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.verdict import DeviceKind, Direction, Language
from runs_app.core.hooks import Bearer
from runs_app.core.integrity.eligibility import leader
from runs_app.core.queue.loads import Load
from runs_app.core.work.access import visible_evaluations
from runs_app.models import Device, Evaluation, Submission
from runs_app.submitting.live import Live
from runs_app.submitting.quota import Quota
from runs_app.submitting.workbench.attempts import Attempts
from tasks_app.models import TaskVersion
from tasks_app.pages import task_page
from tasks_app.people import Viewer
from tasks_app.selectors import task_document

STARTER = "starter"
"""Stands for the entry point around nothing, where a path stands for a kernel of the task."""
PYTHON_STARTER = "starter.py"
"""The same as a Python module."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A source to begin from.

    `opening` names it for the browser's drafts; empty where its files have to come with a new page.
    `source_url` is empty for the starter, which the page holds itself.
    """

    name: str
    opening: str
    address: str
    source_url: str = ""
    language: str = ""
    written_in: str = ""
    """The language for people; `language` is empty for the one that the device compiles."""
    evaluation: Evaluation | None = None


@dataclass(frozen=True, kw_only=True)
class Brief:
    """A task as the workbench shows it, for one device and direction."""

    version: TaskVersion
    data: TaskData
    board: str
    entrance: str
    workloads: Sequence[task_page.WorkloadRow]
    elsewhere: int
    hidden: int
    tolerance: str
    starter: str
    python_starter: str
    starts: Sequence[Start]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What the editor holds first, and what that is called."""

    source: str = ""
    name: str = ""
    key: str = ""
    language: str = ""
    entry: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Console:
    """A submission with its newest evaluation; a fresh one with what its author should know."""

    submission: Submission
    live: Live | None
    is_fresh: bool = False
    remark: str = ""
    quota: Quota | None = None
    attempts: Attempts | None = None


@dataclass(frozen=True, kw_only=True)
class WorkbenchPage:
    """The form with everything that can be chosen in it, its author's attempts and the console."""

    form: Form
    opening: Opening
    foreign: bool
    modes: list[tuple[str, str, str]]
    chosen_mode: str
    chosen_device: str
    facts: str
    """What the chosen device is, if it is a CPU."""
    written_by: str
    files: list[str]
    """Names of the files beside the source."""
    queues: list[Load]
    expected: dict[str, dict[str, object]]
    quota: Quota | None
    agents: list[str]
    language_models: list[str]
    directions: dict[str, tuple[str, ...]]
    brief: Brief | None
    attempts: Attempts
    host: str
    console: Console | None
    bearer: Bearer | None
    """For whom it is submitted, if not for the viewer."""

    @property
    def opens_files(self) -> bool:
        """Whether a fault of a file needs to be seen."""
        return bool({"file", "beside", "more"} & set(self.form.errors))

    @property
    def opens_fold(self) -> bool:
        """Whether the author needs to be seen."""
        faulty = {"agent", "language_model"} & set(self.form.errors)
        return bool(faulty or self.written_by == "agent")


def brief(version: TaskVersion, direction: str, device: Device | None, user: Viewer) -> Brief:
    """The task of `version`; a direction that it does not have gives way to its first."""
    data = version.data
    wanted = direction_of(data, direction)
    rows = task_page.workload_rows(data, wanted)
    here = [row for row in rows if device is None or device.kind in row.devices]
    hidden = task_page.hidden_counts(data, wanted).items()
    entrances = {each.direction: each.declaration for each in task_page.entrances(data)}
    return Brief(
        version=version,
        data=data,
        board=_board(data, version.task.slug, wanted, device),
        entrance=entrances.get(wanted.value) or next(iter(entrances.values())),
        workloads=here,
        elsewhere=len(rows) - len(here),
        hidden=sum(n for kinds, n in hidden if device is None or device.kind in kinds),
        tolerance=task_page.tolerance_text(data),
        starter=task_page.starter(data, wanted),
        python_starter=task_page.python_starter(data, wanted),
        starts=tuple(_starts(version, wanted, device, user)),
    )


def _board(data: TaskData, task: str, direction: Direction, device: Device | None) -> str:
    """The address of the task's board, for the same device and direction."""
    chosen = {"task": task} | ({"device": device.slug} if device else {})
    if len(data.directions) > 1:
        chosen["direction"] = direction.value
    return f"{reverse('leaderboard')}?{urlencode(chosen)}"


def kernel_source(version: TaskVersion, path: str, direction: str, user: Viewer) -> str | None:
    """The text of a kernel that comes with the task, or of its starter; None if not to be seen."""
    if path == STARTER:
        return task_page.starter(version.data, direction_of(version.data, direction))
    if path == PYTHON_STARTER:
        return task_page.python_starter(version.data, direction_of(version.data, direction))
    files: dict[str, str] = task_document(version, user)["files"]
    shown = {kernel.path for kernel in task_page.kernel_views(version.data, files)}
    return files[path] if path in shown else None


def direction_of(data: TaskData, name: str) -> Direction:
    """The direction of that name; a task that does not have it gives its first."""
    return next((each for each in data.directions if each.value == name), data.directions[0])


def _starts(
    version: TaskVersion, direction: Direction, device: Device | None, user: Viewer
) -> Iterable[Start]:
    query = {"task": version.task.slug, "direction": direction.value}
    query |= {"device": device.slug} if device else {}
    yield from _own(version, direction, device, user)
    yield Start(
        name="the starter",
        opening=f"kernel:{STARTER}",
        address=_address(query | {"kernel": STARTER}),
        written_in=device.language.label if device else "",
    )
    module = query | {"kernel": PYTHON_STARTER}
    yield Start(
        name="the starter in Python",
        opening=f"kernel:{PYTHON_STARTER}",
        address=_address(module),
        language=Language.PYTHON.value,
        written_in=Language.PYTHON.label,
        source_url=f"{reverse('workbench-source')}?{urlencode(module)}",
    )
    first = leader(version, direction.value, device.slug) if device else None
    if first is not None:
        yield _submitted(first, f"the leader, by {first.submission.agent}")
    files: dict[str, str] = task_document(version, user)["files"]
    for kernel in task_page.kernel_views(version.data, files):
        if not _runs_on(device, kernel) or kernel.direction != direction.value:
            continue
        chosen = query | {"kernel": kernel.path}
        yield Start(
            name=f"{kernel.agent}'s kernel",
            opening=f"kernel:{kernel.path}",
            address=_address(chosen),
            source_url=f"{reverse('workbench-source')}?{urlencode(chosen)}",
            language=kernel.language,
            written_in=Language(kernel.language).label,
        )


def _runs_on(device: Device | None, kernel: task_page.KernelView) -> bool:
    """Whether the device runs such a kernel; a Python module may be for GPUs alone."""
    language = Language(kernel.language)
    if device is None or device.kind not in language.device_kinds:
        return device is None
    is_module = language is Language.PYTHON and device.kind == DeviceKind.CPU
    return not (is_module and gpu_reason(kernel.source))


def _own(
    version: TaskVersion, direction: Direction, device: Device | None, user: Viewer
) -> Iterable[Start]:
    """The last that the viewer entered on the device."""
    if device is None or user.pk is None:
        return
    rows = visible_evaluations(user).filter(
        submission__author_id=user.pk,
        submission__run=None,
        task_version=version,
        direction=direction.value,
        device=device,
    )
    newest = rows.order_by("-submission__created_at", "-created_at").first()
    if newest is not None:
        yield _submitted(newest, "your last attempt")


def _submitted(evaluation: Evaluation, name: str) -> Start:
    key = evaluation.submission_id
    query = {"submission": str(key), "device": evaluation.device_id}
    return Start(
        name=name,
        opening="" if evaluation.submission.files else f"submission:{key}",
        address=_address(query),
        source_url=reverse("submission-source", args=[key]),
        language=evaluation.submission.language,
        written_in=Language(evaluation.submission.language).label,
        evaluation=evaluation if evaluation.latency_ns else None,
    )


def _address(query: dict[str, str]) -> str:
    return f"{reverse('submit')}?{urlencode(query)}"
