"""Searches the values of the knobs that a kernel declares; needs no language model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve.commands import Command, Draft, Edit, Finish, Measure, Place
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.history import Candidate, CandidateState, History, draw, noise_ns
from runs_app.optimiser.evolve.knobs import Knob, KnobError, find_knobs, space_size, with_knobs
from runs_app.optimiser.evolve.strategies.contract import MAX_STEPS, StrategyInfo, between

Assignment = tuple[str, ...]
"""A value for each knob, in the order of the source."""

_EXAMPLE = "constexpr int TILE = 32;  // knob: 16 32 64"


@dataclass(frozen=True, kw_only=True)
class AutotuneParameters:
    """How long to search, and how."""

    evaluations: int = 60
    sample: int = 10
    explore: float = 0.2
    patience: int = 25

    def __post_init__(self) -> None:
        """Refuse a search that could not go anywhere; raises `DataError`."""
        between(1, MAX_STEPS, evaluations=self.evaluations, patience=self.patience)
        between(0, MAX_STEPS, sample=self.sample)
        between(0, 1, explore=self.explore)


def _refusal(source: str) -> str:
    """Why a kernel can't be tuned; empty if it can."""
    try:
        knobs = find_knobs(source)
    except KnobError as error:
        return f"one of the kernel's knobs can't be used: {error}"
    return "" if knobs else f"the kernel declares no knobs: add a line such as {_EXAMPLE!r}"


class Autotune:
    """A random sample, then steps from the best, with a share of random draws throughout.

    It ends after `evaluations`, when every combination has been tried, or when the last `patience`
    measurements brought nothing that beats the incumbent by more than both their spreads.
    """

    def __init__(self, problem: Problem, config: RunConfig, parameters: AutotuneParameters) -> None:
        """Nothing is checked yet: a kernel without knobs ends the run with a reason."""
        self._source, self._title = problem.seed_source, problem.seed_title
        self._parameters, self._seed = parameters, config.seed
        self._at_once = config.concurrent_evaluations

    def ask(self, history: History) -> list[Command]:
        """Measure what is drafted, and draft so much that no device waits."""
        if reason := _refusal(self._source):
            return [Finish(reason=reason)]
        knobs = find_knobs(self._source)
        if reason := self._end(history, knobs):
            return [Finish(reason=reason)]
        drafted = [n for n, c in history.candidates.items() if c.state is CandidateState.DRAFTED]
        commands: list[Command] = [Measure(candidate=number) for number in drafted]
        if len(drafted) + history.in_flight < self._at_once:
            commands += self._draft(history, knobs)
        return commands

    def _end(self, history: History, knobs: tuple[Knob, ...]) -> str:
        """Why the search is over; empty while it is not."""
        tried, limits = len(history.settled), self._parameters
        best = incumbent(history.settled)
        since = tried if best is None else tried - 1 - history.settled.index(best)
        lost, size = _lost(history), space_size(knobs)
        if tried >= size:
            return f"all {tried} combinations were measured"
        if tried + lost >= size:
            return (
                f"{tried} of {size} combinations were measured; the evaluations of {lost} were lost"
            )
        if tried >= limits.evaluations:
            return f"{tried} combinations were measured, the number requested"
        if since >= limits.patience:
            found = "no improvement beyond noise" if best is not None else "no correct kernel"
            return f"the last {since} measurements found {found}"
        return ""

    def _draft(self, history: History, knobs: tuple[Knob, ...]) -> list[Command]:
        number = len(history.candidates) + 1
        if number > min(self._parameters.evaluations + _lost(history), space_size(knobs)):
            return []
        if number == 1:
            values = {knob.name: knob.default for knob in knobs}
            title = self._title or _title(values)
            return [
                Draft(source=self._source, edit=Edit.SEED, place=Place(), knobs=values, title=title)
            ]
        parent, chosen = self._choose(history, knobs, draw(self._seed, "autotune", number))
        values = dict(zip((knob.name for knob in knobs), chosen, strict=True))
        generation = history.candidates[parent].place.generation + 1
        return [
            Draft(
                source=with_knobs(self._source, values),
                edit=Edit.KNOBS,
                place=Place(generation=generation, slot=number),
                parents=(parent,),
                knobs=values,
                title=_title(values),
            )
        ]

    def _choose(
        self, history: History, knobs: tuple[Knob, ...], rng: Random
    ) -> tuple[int, Assignment]:
        """A combination that was not tried, and the candidate from which it steps."""
        tried = {_assignment(c, knobs) for c in history.candidates.values()}
        if len(tried) > self._parameters.sample and rng.random() >= self._parameters.explore:
            for centre in reversed(history.correct()):
                steps = [s for s in neighbours(_assignment(centre, knobs), knobs) if s not in tried]
                if steps:
                    return centre.number, rng.choice(steps)
        return 1, _untried(knobs, tried, rng)


def incumbent(settled: list[Candidate]) -> Candidate | None:
    """The candidate that later ones must beat; None where none is correct.

    It gives way only to one whose lead is larger than both spreads together, in quadrature: the
    95 % intervals of the two times then leave no doubt.
    """
    best: Candidate | None = None
    for candidate in settled:
        if candidate.is_correct and (best is None or _beats(candidate, best)):
            best = candidate
    return best


def neighbours(centre: Assignment, knobs: tuple[Knob, ...]) -> Iterator[Assignment]:
    """One knob one step further, in the order of its values; up and down, knob by knob."""
    for at, knob in enumerate(knobs):
        index = knob.values.index(centre[at])
        for step in (index + 1, index - 1):
            if 0 <= step < len(knob.values):
                yield (*centre[:at], knob.values[step], *centre[at + 1 :])


def _beats(candidate: Candidate, best: Candidate) -> bool:
    gain_ns = (best.latency_ns or 0.0) - (candidate.latency_ns or 0.0)
    return gain_ns > noise_ns(candidate, best)


def _untried(knobs: tuple[Knob, ...], tried: set[Assignment], rng: Random) -> Assignment:
    """Any combination that was not tried; there is one."""
    if space_size(knobs) <= 2 * len(tried):
        everything = itertools.product(*(knob.values for knob in knobs))
        return rng.choice([assignment for assignment in everything if assignment not in tried])
    while (drawn := tuple(rng.choice(knob.values) for knob in knobs)) in tried:
        pass  # at least every second draw is new
    return drawn


def _lost(history: History) -> int:
    """How many candidates the run goes on without: each of their evaluations was lost."""
    return sum(c.verdict == Verdict.SYSTEM_ERROR for c in history.candidates.values())


def _assignment(candidate: Candidate, knobs: tuple[Knob, ...]) -> Assignment:
    return tuple(candidate.knobs[knob.name] for knob in knobs)


def _title(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


INFO = StrategyInfo(
    name="autotune",
    title="Autotune",
    summary="Measures combinations of the values that a kernel's knobs declare.",
    paper="",
    parameters=AutotuneParameters,
    grows=("evaluations", "patience"),
    help={
        "evaluations": "The maximum number of combinations to measure, including the kernel's own.",
        "sample": "How many random combinations to try before the search continues from the best.",
        "explore": "Share of random draws after that, so the search can escape a local optimum.",
        "patience": "The search ends after this many measurements without a clear improvement.",
    },
    make=Autotune,
    needs_models=False,
    needs_seed=True,
    refusal=_refusal,
)
