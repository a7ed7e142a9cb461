"""The request for an evaluation, and its result: complete enough to redo the statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gpu_runner.data import codec
from gpu_runner.data.archive import Loaded
from gpu_runner.data.codec import DataError
from gpu_runner.data.environment import Environment
from gpu_runner.data.integrity import Audit, Burst, OutsideTime, Suspicion
from gpu_runner.data.profile import KernelResources, Profile
from gpu_runner.data.queue import Urgency
from gpu_runner.data.solution import Solution
from gpu_runner.data.symptom import Finding
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language, Mode, Stage, Verdict

SLOW_BASELINE = 10.0
"""A baseline that takes more times the physical limit than this makes speedups that say little."""
JUDGED_FLOOR_NS = 50_000.0
"""Below such a limit, a baseline is mostly the cost of a call of PyTorch."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Everything that a runner needs to know of an evaluation.

    device: name of the device's queue and board, such as "cpu" or "nvidia-h200".
    must_beat_ns: by listed workload, a time above which the kernel is of no use to who asks.
    loaded: of an audit, what the result that it is about says that it ran.
    """

    KIND: ClassVar[str] = "evaluation"

    evaluation_id: str
    task: Task
    solution: Solution
    mode: Mode
    device: str
    attempt: int = 1
    urgency: Urgency = Urgency.PEOPLE
    must_beat_ns: Mapping[str, float] = field(default_factory=dict)
    loaded: tuple[Loaded, ...] = ()
    schema_version: int = codec.SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Refuse a direction that the task does not have, and no times, naming the field."""
        for name, limit_ns in self.must_beat_ns.items():
            if not 0 < limit_ns < float("inf"):
                raise DataError(f"must_beat_ns.{name}", "must be a positive time")
        if self.solution.direction not in self.task.directions:
            have = ", ".join(self.task.directions)
            raise DataError("direction", f"task {self.task.name!r} supports only: {have}")

    @property
    def abi(self) -> Abi:
        """How the kernel is called: a Python module takes tensors, whatever ABI its task has."""
        return Abi.TORCH if self.solution.language is Language.PYTHON else self.task.abi


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Time of a call with its 95 % bootstrap confidence interval, in nanoseconds.

    On a GPU the median of the processes' medians, on a CPU the lower quartile of their fastest
    calls (`gpu_runner.supervisor.device.statistics`).
    """

    time_ns: float
    low_ns: float
    high_ns: float
    calls: int

    def __post_init__(self) -> None:
        """Refuse an interval that does not hold its time, or a time that is not positive."""
        if not 0 < self.low_ns <= self.time_ns <= self.high_ns < float("inf"):
            raise DataError("time_ns", "must satisfy 0 < low <= time <= high < inf")

    @property
    def relative_half_width(self) -> float:
        """Half the interval over the time: 0.01 means +- 1 %."""
        return (self.high_ns - self.low_ns) / 2 / self.time_ns

    def noise(self, resolution_ns: float) -> float:
        """The same; an interval narrower than the clock's resolution counts as exact."""
        half_ns = (self.high_ns - self.low_ns) / 2
        return self.relative_half_width if half_ns > resolution_ns else 0.0


@dataclass(frozen=True, kw_only=True)
class ProcessRun:
    """What one fresh process returned for one workload: every call, in order.

    `seeds` are the seeds of the inputs of single calls, one a call, revealed now that the process
    is gone; times_ns are the times that it claims of them. `verified` are the indices of the calls
    whose outputs were compared with the reference. The same of the calls that were made in bursts,
    which have no times of their own. host_ns: median time that the
    host needed to queue a call on a device, as the process says. held_ns: of each single call,
    how long it held the process: on a GPU by the supervisor's clock, on a CPU by processor time.
    gate_ns: of each, as the supervisor saw it pass the gate, where there is
    one. late_ns: of each, how long others kept the supervisor from its processor meanwhile.
    kept_ns: of each, how long others kept the process from its own, on a CPU.
    threads: of the process, at most, after a call on a CPU. varied: how many calls with other
    families of values were verified, besides these; their times don't count. hard_ns: those of
    them with hard values, as the process claims.
    """

    process: int
    times_ns: tuple[float, ...]
    seeds: tuple[int, ...]
    verified: tuple[int, ...]
    bursts: tuple[Burst, ...] = ()
    burst_seeds: tuple[int, ...] = ()
    burst_verified: tuple[int, ...] = ()
    host_ns: float = 0.0
    held_ns: tuple[float, ...] = ()
    gate_ns: tuple[float, ...] = ()
    late_ns: tuple[int, ...] = ()
    kept_ns: tuple[int, ...] = ()
    threads: int = 0
    varied: int = 0
    hard_ns: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OutputError:
    """Largest error seen in one output over all verified calls.

    scaled: error over the task's bound, at most 1 passes; relative: Frobenius norm of the error
    over that of the expected output. absolute, pointwise: of an element, as it is and over its
    size, to leave as FlashInfer Trace; None where a verifier judged, or an older runner.
    """

    output: str
    scaled: float
    relative: float
    absolute: float | None = None
    pointwise: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """The first wrong element of an output, with what was wrong about the whole of it.

    findings: what the whole looks like, the most explaining first; often none.
    """

    workload: str
    output: str
    reason: str
    index: tuple[int, ...] = ()
    expected: float | None = None
    actual: float | None = None
    bound: float | None = None
    wrong_elements: int = 0
    elements: int = 0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkloadResult:
    """Times, errors and baselines of one workload.

    claimed_ns: what the runner claimed, where the supervisor saw more. `measurement` is what it
    saw; hidden workloads that are not timed have none.
    """

    name: str
    parameters: Mapping[str, object]
    hidden: bool
    measurement: Measurement | None = None
    processes: tuple[ProcessRun, ...] = ()
    errors: tuple[OutputError, ...] = ()
    baselines: Mapping[str, Measurement] = field(default_factory=dict)
    speedups: Mapping[str, float] = field(default_factory=dict)  # per baseline, and "best"
    flops: float | None = None
    bytes: float | None = None
    weight: float = 1.0
    floor_ns: float | None = None  # physical limit: work over the device's theoretical peak
    tensor_bytes: float | None = None  # of a call's inputs and outputs, also without a formula
    outside: OutsideTime | None = None  # the supervisor's own clock
    claimed_ns: float | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that nobody could show."""
        codec.shallow(self.parameters, "parameters")


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """What the compiler did: its commands and its log, cut to a readable length.

    resources: of each CUDA kernel, by the assembler; none for a CPU. flags: what the source asked
    for; they are in the command, too.
    """

    ok: bool
    cached: bool
    duration_s: float
    log: str
    command: str
    compiler: str
    digest: str
    resources: tuple[KernelResources, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StageTime:
    """When a stage began, in seconds after the evaluation did, and how long it took."""

    stage: Stage
    started_s: float
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Outcome of an evaluation.

    latency_ns: geometric mean of the listed workloads' times. speedups: geometric means over
    the listed workloads, per baseline and against the "best" of them in each workload.
    unlisted_speedups: the same over the unlisted workloads, to three digits. floor_fraction:
    geometric mean of physical limit over time. p_score: MSKernelBench's P against the best
    baseline, weighted by work. hard_ratio: how many times as long calls with hard values took, if
    enough were made. profile: in mode `profile`, of a kernel whose outputs were right.
    audit: in mode `audit`, likewise.
    suspicions: while there are any, a person must decide before the result counts. hints:
    static findings about who does the work, if kbench saw who did it, and times that the outside
    clock couldn't confirm; they hold nothing back.
    loaded: the code that processes on listed workloads ran, with digests that the supervisor took.
    pending_baselines: names of those that are not known on this device yet, because they take long
    to compile; they are measured apart, and then join the result. retryable: of a SYSTEM_ERROR,
    whether another attempt may go well, because this host was the cause.
    """

    evaluation_id: str
    attempt: int
    verdict: Verdict
    reason: str  # one line for a person
    mode: Mode
    device: str
    task: str
    task_digest: str
    solution_digest: str
    latency_ns: float | None = None
    speedups: Mapping[str, float] = field(default_factory=dict)
    unlisted_speedups: Mapping[str, float] = field(default_factory=dict)
    floor_fraction: float | None = None
    p_score: float | None = None
    hard_ratio: float | None = None
    workloads: tuple[WorkloadResult, ...] = ()
    pending_baselines: tuple[str, ...] = ()
    mismatch: Mismatch | None = None
    build: BuildReport | None = None
    profile: Profile | None = None
    audit: Audit | None = None
    suspicions: tuple[Suspicion, ...] = ()
    hints: tuple[Suspicion, ...] = ()
    stages: tuple[StageTime, ...] = ()
    loaded: tuple[Loaded, ...] = ()
    environment: Environment = field(default_factory=Environment)
    output: str = ""  # what the kernel printed, cut; never judged
    log: str = ""  # our own account of a SYSTEM_ERROR
    retryable: bool = False
    schema_version: int = codec.SCHEMA_VERSION

    def __post_init__(self) -> None:
        """A latency iff CORRECT: an illegal result cannot be built."""
        if (self.latency_ns is not None) != (self.verdict is Verdict.CORRECT):
            raise DataError("latency_ns", "must be set if and only if the verdict is CORRECT")
        if self.retryable and self.verdict is not Verdict.SYSTEM_ERROR:
            raise DataError("retryable", "must be set only for a SYSTEM_ERROR")
