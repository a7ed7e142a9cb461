"""What a run is about, and how it is to go: frozen, and stored with the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from gpu_runner.data.codec import LEFT_OUT, DataError, refuse
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language


class ProfileMode(StrEnum):
    """How much of a profile a prompt shows (CUDAMaster's ablation)."""

    NONE = "none"
    FILTERED = "filtered"
    FULL = "full"


BY_MEMORY, BY_ARITHMETIC, BY_TENSORS = "memory", "arithmetic", "tensors"
"""What a workload's limit comes from; the last: all of its tensors moved once."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A language model as a run sees it; prices in USD a million tokens, as at the start.

    A price of 0 is free; None is one that nobody entered.

    writes: whether it may be drawn for kernels; a model that was chosen to verify alone does not.
    extra_tokens: the most that the fixed parameters of its requests add to a prompt.
    """

    name: str
    writes: bool = True
    price_in_usd: float | None = None
    price_out_usd: float | None = None
    max_output_tokens: int = 8192
    extra_tokens: int = 0

    @property
    def is_priced(self) -> bool:
        """Whether its prices are known."""
        return self.price_in_usd is not None and self.price_out_usd is not None


MOST: Mapping[str, int] = {
    "usd": 100_000,
    "tokens": 10**10,
    "evaluations": 10**6,
    "wall_time_s": 366 * 24 * 3600,
}
"""No cap may be larger: a slip of the keyboard, and more than a store has room for."""

MOST_ANSWER_TOKENS = 10**6


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Caps of a run; None is no cap, 0 leaves nothing to spend."""

    usd: float | None = None
    tokens: int | None = None
    evaluations: int | None = None
    wall_time_s: int | None = None

    def __post_init__(self) -> None:
        """Refuse caps below zero; raises `DataError` naming the field."""
        caps = ((name, getattr(self, name)) for name in MOST)
        refuse(
            DataError(f"budget.{name}", "must be 0 or more")
            for name, cap in caps
            if cap is not None and not 0 <= cap < float("inf")
        )


@dataclass(frozen=True, kw_only=True)
class VerifierConfig:
    """Which verifiers vote before hardware, and what their votes do.

    A candidate's score is the mean of its votes (robust-kbench). Soft: of a generation the best
    `survivors` by score are measured. Hard: those with a score below `threshold` are dropped.
    prompts: name of the tuned prompt for each verifier; the shipped one where there is none.
    """

    names: tuple[str, ...] = ()  # of compile, memory, numerics; none switches them off
    soft: bool = True
    threshold: float = 0.5
    survivors: int = 4
    reflect: bool = True
    model: str = ""  # empty: the model that wrote the candidate
    prompts: Mapping[str, str] = field(default_factory=dict)  # verifier -> instructions


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a run is to go. `parameters` belong to the strategy, named as in its paper."""

    strategy: str
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelSpec, ...] = ()
    temperatures: tuple[float, ...] = (0.5, 0.75, 1.0)  # robust-kbench's
    max_tokens: int = 8192
    budget: Budget = field(default_factory=Budget)
    verifiers: VerifierConfig = field(default_factory=VerifierConfig)
    profile: ProfileMode = ProfileMode.FILTERED
    concurrent_asks: int = 4
    concurrent_evaluations: int = 4
    ranks_best: bool = False  # its best are ranked and audited before it ends; see `confirm`

    def __post_init__(self) -> None:
        """Refuse a run that could do nothing; raises `DataError` naming the field."""
        for name in ("concurrent_asks", "concurrent_evaluations", "max_tokens"):
            if getattr(self, name) < 1:
                raise DataError(name, "must be 1 or more")

    @property
    def writers(self) -> tuple[ModelSpec, ...]:
        """The ensemble that kernels are asked of."""
        return tuple(model for model in self.models if model.writes)

    @property
    def answer_tokens(self) -> int:
        """How long an answer may be at most, whichever writer is asked; 0 without any."""
        most = (model.max_output_tokens for model in self.writers)
        return min(self.max_tokens, *most) if self.writers else 0

    def model(self, name: str) -> ModelSpec:
        """The language model of that name; raises `DataError`."""
        for model in self.models:
            if model.name == name:
                return model
        raise DataError("models", f"{name!r} is not one of the run's language models")


@dataclass(frozen=True, kw_only=True)
class KnownTimes:
    """What is known of a listed workload, in nanoseconds: baselines, and a physical limit."""

    workload: str
    baselines_ns: Mapping[str, float] = field(default_factory=dict)
    limit_ns: float | None = None
    limit_by: str = ""  # "memory" or "arithmetic", where an estimate tells


@dataclass(frozen=True, kw_only=True)
class Briefing:
    """What was measured of a task and a device; a run may learn more of it while it goes on."""

    baselines_ns: Mapping[str, float] = field(default_factory=dict)
    floor_ns: float | None = None
    known: tuple[KnownTimes, ...] = ()
    limit_source: str = ""  # where the limits of `known` come from
    hardware: tuple[str, ...] = ()  # what is known of the device that measures
    processors: int | None = None  # that a kernel gets on a CPU
    compiler: str = ""  # and its version
    call_limit_s: float | None = None

    def names(self) -> set[str]:
        """What is known, each by a name; a figure that was measured again adds none."""
        found = {each.name for each in fields(Briefing) if getattr(self, each.name)}
        found |= {f"hardware {number}" for number in range(len(self.hardware))}
        for times in self.known:
            found |= {f"{times.workload}: {baseline}" for baseline in times.baselines_ns}
            if times.limit_ns is not None:
                found.add(f"{times.workload} has a limit")
        return found


@dataclass(frozen=True, kw_only=True)
class Problem(Briefing):
    """What a prompt may tell of the task and the device; hidden workloads are not among it."""

    task: str
    title: str
    description: str
    abi: Abi
    signature: str
    direction: Direction
    dtype: str
    language: Language
    device_name: str
    device_kind: DeviceKind
    reference: str  # source of the reference
    workloads: tuple[str, ...]  # such as "n16_c256: N=16, C=256"
    toolchain: str  # the fixed compiler command, for people
    seed_source: str = ""  # empty: the run begins with a translation
    seed_title: str = ""
    seed_entry: str = field(default="", metadata=LEFT_OUT)  # its name, if there are other files
    seed_files: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)  # they stay
    threshold_pct: float = 30.0  # CUDAMaster's, recalibrated for the device where that was possible
    tolerance: str = ""  # the bound on an element's error, in numbers
    values: str = ""  # which other values kernels are tested with, in a sentence
    answer_tokens: int = 0  # that an answer may have; 0 where it is not known

    def may_beat(self, workload: str) -> bool:
        """Whether a kernel may be far below the workload's limit without doing less work.

        A limit by its tensors counts inputs of which a part may be enough. One by arithmetic in
        float32 is that of the units for it; parts of float32 are faster on tensor cores.
        """
        by = next((known.limit_by for known in self.known if known.workload == workload), "")
        in_parts = self.device_kind is DeviceKind.CUDA and self.dtype in ("float32", "float64")
        return by == BY_TENSORS or (by == BY_ARITHMETIC and in_parts)

    def with_briefing(self, briefing: Briefing | None) -> Problem:
        """The problem as it is known since then; None changes nothing."""
        if briefing is None:
            return self
        return replace(self, **{f.name: getattr(briefing, f.name) for f in fields(Briefing)})
