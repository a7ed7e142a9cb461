"""CUDAMaster's planner, coder, compiler and debugger (arXiv 2603.07169)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve.commands import Place, Role
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.history import Candidate
from runs_app.optimiser.evolve.prompts import render
from runs_app.optimiser.evolve.steps import Inquiry, Steps, fastest, is_judged, one_line
from runs_app.optimiser.evolve.strategies.contract import (
    MAX_TRIES,
    Planned,
    StrategyInfo,
    between,
    check_size,
)
from runs_app.optimiser.evolve.strategies.translate import first_kernel
from runs_app.optimiser.evolve.verifiers import judged

MAX_PLAN_TOKENS = 2000
"""Of the planner's answer. It is asked for twelve lines; what it says reaches the coder uncut."""
_WHOLE_ROUNDS, _ROUNDS_SHOWN = 3, 12

REPLACED = "the compiler role changed it"
"""How the reason begins of a dropped draft whose repaired version is measured; pages look at it."""

PLAN_SLOT, CODE_SLOT, COMPILE_SLOT, DEBUG_SLOT = 0, 1, 2, 3
"""Where in a round a role speaks; the debugger has the slots from its own on."""


class Keep(StrEnum):
    """Which kernels a round hands to the next."""

    VALID = "valid"  # the paper's: any that is correct
    FASTER = "faster"


@dataclass(frozen=True)
class CudaMasterParameters:
    """CUDAMaster's R and D."""

    r: int = 3
    d: int = 3
    compiler: bool = True
    keep: Keep = Keep.VALID
    tries: int = 10  # of the translation, where no kernel is there to begin with

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning; raises `DataError`."""
        between(1, MAX_TRIES, r=self.r, tries=self.tries)
        between(0, MAX_TRIES, d=self.d)
        check_size(r=self.r, d=self.d)


class CudaMaster(Planned[CudaMasterParameters]):
    """Rounds of one strategy each: planned, coded, compiled, run, debugged, kept if valid."""

    def _plan(self, steps: Steps) -> str:
        """The loop: profile, filter, plan, code, compile, run, debug, keep, profile again."""
        current = first_kernel(steps, self.parameters.tries, self._mode)
        if current is None:
            return f"no correct seed kernel after {self.parameters.tries} tries"
        current = steps.profiled(current)
        past: list[str] = []
        kept = [current]
        for number in range(1, self.parameters.r + 1):
            strategy = self._strategy(steps, number, current, past)
            outcome = self._round(steps, number, current, strategy) if strategy else None
            result = one_line(outcome) if outcome is not None else _no_kernel(steps, number)
            past.append(_entry(number, strategy, result))
            if outcome is not None and self._keeps(outcome, current):
                current = steps.profiled(outcome)
                kept.append(current)
        best = fastest(kept) or current
        done = f"all {self.parameters.r} rounds are done"
        return f"{done}: kernel #{best.number} is the fastest one kept"

    def _round(
        self, steps: Steps, number: int, current: Candidate, strategy: str
    ) -> Candidate | None:
        """One strategy carried out: the candidate that it ends with, None if there is no code."""
        found = judged(steps, [partial(self._coded, steps, number, current, strategy)], self._mode)
        for attempt in range(self.parameters.d):
            if not found or found[0].is_correct or not is_judged(found[0]):
                break
            mended = partial(self._debugged, steps, number, attempt, found[0], strategy)
            found = judged(steps, [mended], self._mode) or found
        return found[0] if found else None

    def _strategy(self, steps: Steps, number: int, current: Candidate, past: list[str]) -> str:
        """The Planner: from the filtered profile and the history to one incremental strategy."""
        inquiry = Inquiry(
            role=Role.PLAN,
            place=Place(generation=number, slot=PLAN_SLOT),
            prompt=lambda: render(
                "plan",
                self.problem,
                code=steps.source(current),
                report=steps.report(current),
                history=_history(past),
            ),
            about=current.number,
            max_tokens=MAX_PLAN_TOKENS,
        )
        return steps.text(inquiry)

    def _coded(
        self, steps: Steps, number: int, current: Candidate, strategy: str
    ) -> Candidate | None:
        """The Coder writes the whole kernel, and the Compiler looks at it."""
        inquiry = Inquiry(
            role=Role.CODE,
            place=Place(generation=number, slot=CODE_SLOT),
            prompt=lambda: render(
                "code",
                self.problem,
                code=steps.source(current),
                times=steps.times(current),
                strategy=strategy,
            ),
            parents=(current.number,),
        )
        coded = steps.kernel(inquiry)
        if coded is None or not self.parameters.compiler or steps.is_repeat(coded):
            return coded
        return self._compiled(steps, number, coded)

    def _compiled(self, steps: Steps, number: int, coded: Candidate) -> Candidate:
        """The Compiler: OK, or the source changed so that the fixed command builds it."""
        inquiry = Inquiry(
            role=Role.COMPILE,
            place=Place(generation=number, slot=COMPILE_SLOT),
            prompt=lambda: render("compile", self.problem, code=steps.source(coded)),
            parents=coded.parents,
            about=coded.number,
            calm=True,
        )
        changed = steps.kernel(inquiry)
        if changed is None or changed.digest == coded.digest:
            return coded
        steps.dropped(coded, f"{REPLACED}: see #{changed.number}")
        return changed

    def _debugged(
        self, steps: Steps, number: int, attempt: int, failed: Candidate, strategy: str
    ) -> Candidate | None:
        """The Debug agent: diagnosis and mend of a compile, memory or numerical error."""
        inquiry = Inquiry(
            role=Role.DEBUG,
            place=Place(generation=number, slot=DEBUG_SLOT + attempt),
            prompt=lambda: render(
                "debug",
                self.problem,
                code=steps.source(failed),
                strategy=strategy,
                error=steps.error(failed),
            ),
            parents=(failed.number,),
            about=failed.number,
        )
        return steps.kernel(inquiry)

    def _keeps(self, outcome: Candidate, current: Candidate) -> bool:
        if not outcome.is_correct or self.parameters.keep is Keep.VALID:
            return outcome.is_correct
        return fastest([current, outcome]) is outcome

    @property
    def _mode(self) -> Mode:
        """A profile comes with the run of a kernel, where the run wants profiles."""
        return Mode.QUICK if self.config.profile is ProfileMode.NONE else Mode.PROFILE


def _history(past: list[str]) -> str:
    """What the Planner reads of earlier rounds: the last ones whole, some before them in short."""
    older, newer = past[-_ROUNDS_SHOWN:-_WHOLE_ROUNDS], past[-_WHOLE_ROUNDS:]
    short = [entry if len(entry) <= 300 else f"{entry[:140]} ... {entry[-140:]}" for entry in older]
    return "\n".join([*short, *newer]) or "This is the first round."


def _entry(number: int, strategy: str, result: str) -> str:
    """A round in the history that the Planner reads."""
    first = " ".join(strategy.split()) or "no strategy was given"
    return f"Round {number}: {first} -> {result}"


def _no_kernel(steps: Steps, number: int) -> str:
    """Why a round came to no kernel; that is the answer's fault, and not the strategy's."""
    asked = steps.history.find(Role.CODE, generation=number)
    why = next((f" ({question.problem})" for question in asked if question.problem), "")
    return f"no kernel could be read from the answer{why}; the strategy itself was not tried"


INFO = StrategyInfo(
    name="cudamaster",
    title="CUDAMaster",
    summary=("One idea per round: a planner reads the profile, a coder writes, a debugger fixes."),
    paper="CUDAMaster, arXiv 2603.07169",
    parameters=CudaMasterParameters,
    grows=("r",),
    papers_classes=True,
    help={
        "r": "The number of rounds; each round tries one strategy.",
        "d": "How many times a failing kernel is debugged in each round.",
        "compiler": "Whether the compiler role reviews the code before it is built.",
        "keep": "Which kernels continue: every correct one (as in the paper), or only faster ones.",
        "tries": "Attempts at the translation if there is no working kernel to start from.",
    },
    make=CudaMaster,
)
