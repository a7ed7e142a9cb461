"""What an evaluation's page shows of the compiler's report and a profile, and the way to one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, Profile
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.profile.bottleneck import DEFAULT_THRESHOLD_PCT, class_of, filtered
from runs_app.core.profile.diagnosis import MEANINGS, NEAR_PCT, diagnosis_of
from runs_app.core.work.access import asked_for, visible_evaluations
from runs_app.models import Evaluation, Status, Submission
from tasks_app.numbers import duration_text, significant
from tasks_app.people import Viewer
from tasks_app.templatetags.display import amount, size

_KERNEL_COLUMNS: Mapping[str, str] = {
    "launches_count": "Launches",
    "compute_throughput_pct": "Compute",
    "dram_throughput_pct": "DRAM",
    "memory_throughput_pct": "Memory",
    "achieved_occupancy_pct": "Occupancy",
    "estimated_occupancy_pct": "Occupancy (estimate)",
    "registers_per_thread": "Registers",
    "dynamic_shared_bytes_per_block": "Dynamic shared",
    "grid_blocks": "Blocks",
    "block_threads": "Threads",
}
"""Metrics of a kernel that have a column where any kernel has them, and the column's heading."""
_NAMES = {
    "dram": "DRAM", "fma": "FMA", "ipc": "IPC", "l1tex": "L1TEX", "l2": "L2", "mem": "memory",
    "sm": "SM",
}  # fmt: skip


def _percentage(value: float) -> str:
    return f"{significant(value)} %"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


_UNITS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("_flop_per_byte", "", lambda value: f"{significant(value)} FLOP/byte"),
    ("_flop_per_s", " arithmetic", lambda value: amount(value, "FLOP/s")),
    ("_bytes_per_s", " bandwidth", lambda value: amount(value, "B/s")),
    ("_bytes_per_block", " memory", lambda value: f"{size(value)} a block"),
    ("_cycles_per_inst", "", lambda value: f"{significant(value)} cycles/instruction"),
    ("_inst_per_cycle", "", lambda value: f"{significant(value)} instructions/cycle"),
    ("_per_thread", "", lambda value: f"{_whole(value)} a thread"),
    ("_per_sm", "", lambda value: f"{significant(value)} an SM"),
    ("_bytes", "", size),
    ("_count", "", _whole),
    ("_ns", "", duration_text),
    ("_pct", "", _percentage),
    ("", "", significant),
)
"""Suffix of a key, what stands for it in the label, and how a value is printed; first one holds."""
_WHOLE_NUMBERS = ("grid_blocks", "block_threads")


@dataclass(frozen=True)
class MetricRow:
    """A metric in words, with its value and unit."""

    key: str
    label: str
    value: str


@dataclass(frozen=True)
class KernelRow:
    """One CUDA kernel of a profiled call; `cells` stand in the order of the table's columns."""

    name: str
    time: str
    cells: tuple[MetricRow, ...]


@dataclass(frozen=True, kw_only=True)
class ProfileView:
    """A profile, ready to print.

    bottleneck: what limits the kernel, in words. main: the metrics that speak of that, the
    throughputs first; others: all the rest. columns: the labels of the kernels' metrics.
    """

    profile: Profile
    bottleneck: str
    near_pct: float
    main: tuple[MetricRow, ...]
    others: tuple[MetricRow, ...]
    columns: tuple[str, ...]
    kernels: tuple[KernelRow, ...]

    @property
    def headline(self) -> str:
        """The cause if one was proven, else what limits the kernel; empty if nothing is known."""
        first = next(iter(self.profile.causes), self.bottleneck)
        return f"{first[:1].upper()}{first[1:]}".rstrip(".")


def profile_view(profile: Profile | None) -> ProfileView | None:
    """The profile of a result; None where there is none."""
    if not profile:
        return None
    metrics = profile.metrics
    bottleneck = class_of(metrics, DEFAULT_THRESHOLD_PCT)
    main = dict.fromkeys((*THROUGHPUTS, *(filtered(metrics, bottleneck) if bottleneck else ())))
    columns = _columns(profile.kernels)
    return ProfileView(
        profile=profile,
        bottleneck=MEANINGS.get(diagnosis_of(metrics), ""),
        near_pct=NEAR_PCT,
        main=tuple(metric_row(key, metrics[key]) for key in main if key in metrics),
        others=tuple(metric_row(key, value) for key, value in metrics.items() if key not in main),
        columns=tuple(_KERNEL_COLUMNS[key] for key in columns),
        kernels=tuple(_kernel_row(kernel, columns) for kernel in profile.kernels),
    )


def metric_row(key: str, value: float) -> MetricRow:
    """A metric in words; the suffix of its key is its unit."""
    return MetricRow(key, _label(key), _printed(key, value))


def _columns(kernels: Iterable[KernelMetrics]) -> list[str]:
    known = {key for kernel in kernels for key in kernel.metrics}
    return [key for key in _KERNEL_COLUMNS if key in known]


def _kernel_row(kernel: KernelMetrics, columns: Iterable[str]) -> KernelRow:
    told = kernel.metrics
    cells = (MetricRow(key, _KERNEL_COLUMNS[key], _cell(key, told.get(key))) for key in columns)
    return KernelRow(kernel.name, duration_text(kernel.duration_ns), tuple(cells))


def _cell(key: str, value: float | None) -> str:
    """A value in a table; registers are always a thread's, and shared memory a block's."""
    if value is None:
        return "–"
    return _printed(key, value).removesuffix(" a thread").removesuffix(" a block")


def _printed(key: str, value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if key in _WHOLE_NUMBERS:
        return _whole(value)
    return next(printer for suffix, _, printer in _UNITS if key.endswith(suffix))(value)


def _label(key: str) -> str:
    suffix, noun = next((suffix, noun) for suffix, noun, _ in _UNITS if key.endswith(suffix))
    words = key.removesuffix(suffix).split("_")
    text = " ".join(_NAMES.get(word, word) for word in words) + noun
    return text[:1].upper() + text[1:]


ANCHOR = "#h-profile"
"""The heading of a profile on the page of its evaluation."""


@dataclass(frozen=True, kw_only=True)
class ProfileStep:
    """A link, or without an address a button that measures the submission again."""

    words: str
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Other evaluations of a submission that are told with one of them.

    under_way: the newest that is later and not over. profile: the newest correct profile of the
    kernel on the same device, for a correct evaluation that is no profile itself.
    """

    under_way: Evaluation | None = None
    profile: Evaluation | None = None


def beside(evaluation: Evaluation, user: Viewer) -> Beside:
    """What else is told with an evaluation."""
    rows = asked_for(visible_evaluations(user).filter(submission=evaluation.submission_id))
    later = rows.filter(
        created_at__gt=evaluation.created_at, status__in=(Status.QUEUED, Status.RUNNING)
    )
    profiles = rows.filter(
        device=evaluation.device_id, mode=Mode.PROFILE.value, verdict=Verdict.CORRECT.value
    )
    takes_one = evaluation.is_correct and evaluation.mode != Mode.PROFILE
    return Beside(under_way=later.first(), profile=profiles.first() if takes_one else None)


def profile_step(evaluation: Evaluation, known: Beside, *, is_mine: bool) -> ProfileStep | None:
    """What leads from a correct result to its kernel's profile; None from a profile itself."""
    if not evaluation.is_correct or evaluation.mode == Mode.PROFILE:
        return None
    if known.profile:
        return ProfileStep(words="See what limits this kernel", address=ANCHOR)
    if known.under_way and known.under_way.mode == Mode.PROFILE:
        return None
    return _action(evaluation, is_mine=is_mine)


def _action(evaluation: Evaluation, *, is_mine: bool) -> ProfileStep | None:
    submission, version = evaluation.submission, evaluation.task_version
    if version.task.current_version_id != version.pk:
        return None
    words = "Find out what limits this kernel"
    is_entered = submission.origin not in (Submission.Origin.RUN, Submission.Origin.IMPORTED)
    if is_mine and is_entered and not submission.budgeted:
        return ProfileStep(words=words)
    wanted = {"submission": submission.pk, "mode": Mode.PROFILE.value}
    if not evaluation.imported:
        wanted["device"] = evaluation.device_id
    return ProfileStep(words=words, address=f"{reverse('submit')}?{urlencode(wanted)}")
