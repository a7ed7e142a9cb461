"""What happened in a run, in order: the history is a fold of these, and so is a replay.

And the outcomes from which the optimiser makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve.commands import Command, Edit, Place, Role
from runs_app.optimiser.evolve.config import Briefing, Budget


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A language model is asked; `number` counts a run's asks from 1."""

    number: int
    role: Role
    place: Place
    model: str
    temperature: float
    prompt: str
    prompt_version: int
    max_tokens: int  # of the answer
    worst_usd: float  # what it costs at most; held back from the budget until it is answered
    worst_tokens: int  # of prompt and answer at most
    parents: tuple[int, ...] = ()  # numbers of candidates that are to be changed
    about: int | None = None  # number of the candidate to be judged, mended or advised about
    verifier: str = ""
    edit: Edit = Edit.REWRITE


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The answer came. `problem` says why no kernel, or no vote, could be read from it."""

    ask: int  # number of the `Asked`
    tokens_in: int
    tokens_out: int
    cost_usd: float | None  # None: nobody knows the price
    latency_s: float
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """No whole answer came. The cost is the worst case where the call may have been paid."""

    ask: int  # number of the `Asked`
    reason: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = 0.0


@dataclass(frozen=True, kw_only=True)
class Drafted:
    """A candidate exists; `number` counts a run's candidates from 1."""

    number: int
    digest: str  # of its source without comments and layout; see `parser.digest_of`
    edit: Edit
    place: Place
    ask: int | None = None  # number of the `Asked` that it answers; None: no model wrote it
    model: str = ""
    parents: tuple[int, ...] = ()  # numbers of candidates
    knobs: Mapping[str, str] = field(default_factory=dict)  # values by name
    title: str = ""
    techniques: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Voted:
    """A verifier's vote on a candidate; the one after reflection replaces the first."""

    candidate: int
    verifier: str
    passes: bool
    ask: int


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A candidate will not be measured."""

    candidate: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """An evaluation of a candidate is queued; above `must_beat_ns` of a workload it is stopped."""

    candidate: int
    mode: Mode
    must_beat_ns: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An evaluation of a candidate ended; `best` says that nothing correct was faster before."""

    candidate: int
    mode: Mode
    verdict: str
    reason: str
    latency_ns: float | None = None
    spread: float | None = None  # half the 95 % interval over the time
    speedup: float | None = None  # against the best baseline, where the runner knows it
    score: float | None = None  # on listed and unlisted sizes; of ranking and audit alone
    floor_fraction: float | None = None  # the physical limit over the time
    bottleneck: str = ""
    best: bool = False


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A command had a kernel measured before it answered; `number` counts those of its ask."""

    ask: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The search came to its end, and from now on its best are ranked; fields as in `Finished`."""

    reason: str
    by_budget: bool = False


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which candidate the run calls its best at its end, and what stands behind that."""

    candidate: int
    is_ranked: bool
    is_audited: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The run ended by itself; `by_budget` says that a larger budget would let it go on."""

    reason: str
    by_budget: bool = False


@dataclass(frozen=True, kw_only=True)
class Extended:
    """The run got another budget, and goes on if its budget had ended it.

    parameters: of the strategy, where it got more to do; then the run goes on however it ended.
    """

    budget: Budget
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Briefed:
    """More was measured of the task and the device than prompts could tell so far."""

    briefing: Briefing


Event = (
    Asked
    | Answered
    | Failed
    | Drafted
    | Voted
    | Dropped
    | Measuring
    | Measured
    | Tried
    | Searched
    | Chosen
    | Finished
    | Extended
    | Briefed
)

KINDS: dict[str, type[Any]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def kind_of(event: Event) -> str:
    """Name under which an event is stored."""
    return type(event).__name__.lower()


def is_known(kind: str) -> bool:
    """Whether it is one of these kinds; other rows tell of people: started, paused, entered."""
    return kind in KINDS


def encode(event: Event) -> dict[str, object]:
    """The event as JSON."""
    document: dict[str, object] = codec.encode(event)
    return document


def decode(kind: str, document: Mapping[str, object]) -> Event:
    """The event of an encoded document; raises `DataError`, or `KeyError` for an unknown kind."""
    event: Event = codec.decode_stored(KINDS[kind], document)
    return event


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A language model's answer to an ask, or what came of a call that failed.

    `event` says which, and what it cost; its `problem` is found when the text is read.
    """

    event: Answered | Failed
    text: str = ""
    finish_reason: str = "stop"


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """An evaluation ended; no result means that it was cancelled or lost, for `reason`."""

    candidate: int
    mode: Mode
    result: EvaluationResult | None = None
    reason: str = ""


Outcome = Answer | Evaluated


@dataclass(frozen=True, kw_only=True)
class Transition:
    """An event that was recorded, and what it takes to make it true in the world."""

    event: Event
    command: Command | None = None  # Ask: send the prompt. Measure: queue the evaluation.
    source: str = ""  # of a candidate that was drafted
