"""What a strategy can command: an answer, a candidate, a measurement, or the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpu_runner.data.verdict import Mode


class Role(StrEnum):
    """What a language model is asked to be; the comment names the paper's step."""

    TRANSLATE = "translate"  # robust-kbench: from torch to a first working kernel
    SUMMARISE = "summarise"  # robust-kbench: an error in a few words, before the retry
    PROPOSE = "propose"  # robust-kbench, FSR, islands: a kernel
    RECOMMEND = "recommend"  # robust-kbench: a profile condensed to recommendations
    PLAN = "plan"  # CUDAMaster's Planner: one strategy, no code
    CODE = "code"  # CUDAMaster's Coder
    COMPILE = "compile"  # CUDAMaster's Compiler: what the toolchain needs
    DEBUG = "debug"  # CUDAMaster's Debug: diagnosis and mend
    VERIFY = "verify"  # a verifier's vote
    REFLECT = "reflect"  # the verifier's second look at its vote

    @property
    def writes_code(self) -> bool:
        """Whether an answer is a Proposal, to be parsed into a Candidate."""
        return self in _WRITES_CODE


_WRITES_CODE = {Role.TRANSLATE, Role.PROPOSE, Role.CODE, Role.COMPILE, Role.DEBUG}


class Edit(StrEnum):
    """How a candidate comes from its parents."""

    SEED = "seed"  # the kernel that a run begins with
    REWRITE = "rewrite"
    DIFF = "diff"
    CROSSOVER = "crossover"
    KNOBS = "knobs"  # other values of declared knobs; no language model


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a conversation; `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt made from the file of that name and version."""

    name: str
    version: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a strategy's plan something belongs; strategies say what the numbers count."""

    generation: int = 0
    slot: int = 0
    island: int = 0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question to a language model.

    parents: candidates that the answer is to improve. about: the candidate that it speaks of.
    verifier: which one asks (roles verify and reflect). max_tokens: None is the run's own limit.
    """

    role: Role
    prompt: Prompt
    model: str
    temperature: float
    place: Place
    parents: tuple[int, ...] = ()
    about: int | None = None
    verifier: str = ""
    edit: Edit = Edit.REWRITE
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A candidate that needs no language model: the seed, or other knobs."""

    source: str
    edit: Edit
    place: Place
    parents: tuple[int, ...] = ()
    knobs: Mapping[str, str] = field(default_factory=dict)
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """An evaluation of a candidate: quick or profile in the search, ranked or audit after it.

    must_beat_ns: by workload, a time above which it is stopped: it could not win any more.
    """

    candidate: int
    mode: Mode = Mode.QUICK
    must_beat_ns: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Drop:
    """A candidate that will not be measured, and why."""

    candidate: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The strategy has come to its end; the run ends when nothing is under way any more."""

    reason: str


Command = Ask | Draft | Measure | Drop | Finish
