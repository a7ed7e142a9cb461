"""robust-kbench's evolution, its Algorithm 1 (arXiv 2509.14279)."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from runs_app.optimiser.evolve.commands import Place, Prompt, Role
from runs_app.optimiser.evolve.history import Candidate, draw
from runs_app.optimiser.evolve.prompts import MAX_KERNELS_TOKENS, fence_of, render, sample_text
from runs_app.optimiser.evolve.sections import CHARACTERS_PER_TOKEN, clip
from runs_app.optimiser.evolve.steps import Inquiry, Steps, fastest, named
from runs_app.optimiser.evolve.strategies.contract import (
    MAX_AT_ONCE,
    MAX_STEPS,
    MAX_TRIES,
    Planned,
    StrategyInfo,
    between,
    check_size,
)
from runs_app.optimiser.evolve.strategies.translate import first_kernel
from runs_app.optimiser.evolve.verifiers import judged

MAX_KERNEL_TOKENS = 6000
"""Of each kernel in the context; a longer one loses its middle."""
_NO_ROOM = "\n\nThere is no room for its source."


class Context(StrEnum):
    """Which correct kernels a prompt shows (robust-kbench's ablation)."""

    LEAST_TO_MOST = "least_to_most"  # the fastest, ordered from slow to fast
    BEST_ONLY = "best_only"
    RANDOM = "random"


@dataclass(frozen=True)
class EvolveParameters:
    """robust-kbench's: ten generations of eight proposals."""

    generations: int = 10
    proposals: int = 8
    context: int = 5  # kernels shown
    context_order: Context = Context.LEAST_TO_MOST
    recommendations: int = 3  # 0: no call that condenses a profile
    tries: int = 10  # of the translation, where no kernel is there to begin with

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning; raises `DataError`."""
        between(1, MAX_STEPS, generations=self.generations)
        between(1, MAX_AT_ONCE, proposals=self.proposals, context=self.context)
        between(1, MAX_TRIES, tries=self.tries)
        between(0, MAX_AT_ONCE, recommendations=self.recommendations)
        check_size(generations=self.generations, proposals=self.proposals)


class Evolve(Planned[EvolveParameters]):
    """Generations of proposals, each drawn from the ensemble and shown the archive."""

    def _plan(self, steps: Steps) -> str:
        """Algorithm 1, from top to bottom."""
        parameters = self.parameters
        first = first_kernel(steps, parameters.tries)
        if first is None:
            return f"no correct seed kernel after {parameters.tries} tries"
        archive, advice = [first], ""  # from slow to fast
        for generation in range(1, parameters.generations + 1):
            shown = self._context(generation, archive)
            proposals = [
                partial(
                    self._proposal, steps, Place(generation=generation, slot=slot), shown, advice
                )
                for slot in range(1, parameters.proposals + 1)
            ]
            measured = judged(steps, proposals)  # verify all, measure the survivors
            for candidate in measured:
                if candidate.is_correct:
                    insort(archive, candidate, key=_slow_to_fast)
            if generation < parameters.generations:
                advice = self._recommendations(steps, generation, measured) or advice
        return f"all {parameters.generations} generations are done"

    def _context(self, generation: int, archive: list[Candidate]) -> list[Candidate]:
        """Which of the correct kernels of earlier generations a prompt shows."""
        count = min(self.parameters.context, len(archive))
        match self.parameters.context_order:
            case Context.LEAST_TO_MOST:
                return archive[-count:]
            case Context.BEST_ONLY:
                return archive[-1:]
            case Context.RANDOM:
                return draw(self.config.seed, "context", generation).sample(archive, count)

    def _proposal(
        self, steps: Steps, place: Place, shown: list[Candidate], advice: str
    ) -> Candidate | None:
        """One sample: model and temperature are drawn at random."""
        inquiry = Inquiry(
            role=Role.PROPOSE,
            place=place,
            prompt=lambda: self._prompt(steps, place, shown, advice),
            parents=tuple(candidate.number for candidate in reversed(shown)),
        )
        return steps.kernel(inquiry)

    def _prompt(self, steps: Steps, place: Place, shown: list[Candidate], advice: str) -> Prompt:
        texts = kernel_texts(steps, shown)
        return render(
            "evolve",
            self.problem,
            kernels="\n\n".join(texts.values()),
            recommendations=advice or "None yet.",
            tried=steps.tried(besides=texts, before=place.generation),
            sample=sample_text("proposal", place.slot, self.parameters.proposals),
        )

    def _recommendations(self, steps: Steps, generation: int, measured: list[Candidate]) -> str:
        """The profile of the generation's best, condensed for the next one; "" without one."""
        best = fastest(measured)
        if best is None or not self.parameters.recommendations:
            return ""
        best = steps.profiled(best)
        inquiry = Inquiry(
            role=Role.RECOMMEND,
            place=Place(generation=generation),
            prompt=lambda: render(
                "recommend",
                self.problem,
                code=steps.source(best),
                report=steps.report(best),
                count=str(self.parameters.recommendations),
                tried=steps.tried(besides=(best.number,)),
            ),
            about=best.number,
            calm=True,
        )
        text = steps.text(inquiry)
        return f"Of kernel #{best.number}:\n\n{text}" if text else ""


def _slow_to_fast(candidate: Candidate) -> tuple[float, int]:
    return -(candidate.latency_ns or 0.0), candidate.number


def kernel_texts(steps: Steps, shown: list[Candidate]) -> dict[int, str]:
    """Kernels with their times, for a prompt, by number in the order given.

    The fastest have their source. For which there is no room their times stand alone, or nothing.
    """
    room = MAX_KERNELS_TOKENS * CHARACTERS_PER_TOKEN
    texts: dict[int, str] = {}
    for candidate in sorted(shown, key=_slow_to_fast, reverse=True):
        ways = (_kernel_text(steps, candidate), _times_text(steps, candidate) + _NO_ROOM)
        text = next((text for text in ways if len(text) + 2 <= room), None)
        if text is not None:
            texts[candidate.number] = text
            room -= len(text) + 2
    return {c.number: texts[c.number] for c in shown if c.number in texts}


def _kernel_text(steps: Steps, candidate: Candidate) -> str:
    code = clip(steps.source(candidate).rstrip(), MAX_KERNEL_TOKENS)
    return f"{_times_text(steps, candidate)}\n\n```{fence_of(steps.problem)}\n{code}\n```"


def _times_text(steps: Steps, candidate: Candidate) -> str:
    return f"### Kernel {named(candidate)}\n{steps.times(candidate)}"


INFO = StrategyInfo(
    name="evolve",
    title="Evolution",
    summary=(
        "Writes kernels in generations: prompts show the fastest ones so far and ask for "
        "several new ones at once."
    ),
    paper="robust-kbench, arXiv 2509.14279, Algorithm 1",
    parameters=EvolveParameters,
    grows=("generations",),
    help={
        "generations": "The number of generations.",
        "proposals": "How many kernels are proposed in each generation.",
        "context": "How many correct kernels a prompt shows.",
        "context_order": "Which kernels those are: the fastest, ordered from slow to fast; "
        "only the best; or random ones.",
        "recommendations": "How many recommendations to draw from a profile; 0 for none.",
        "tries": "Attempts at the translation if there is no working kernel to start from.",
    },
    make=Evolve,
)
