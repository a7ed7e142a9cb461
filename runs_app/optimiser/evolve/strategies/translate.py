"""robust-kbench's translation (arXiv 2509.14279): from torch to a first working kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve.commands import Place, Role
from runs_app.optimiser.evolve.history import AskState, Candidate, Question
from runs_app.optimiser.evolve.prompts import render
from runs_app.optimiser.evolve.steps import Inquiry, Steps, fastest, is_judged
from runs_app.optimiser.evolve.strategies.contract import MAX_TRIES, Planned, StrategyInfo, between
from runs_app.optimiser.evolve.verifiers import judged


@dataclass(frozen=True)
class TranslateParameters:
    """robust-kbench's: up to ten tries, each after the last; it ends at the first that works."""

    tries: int = 10
    summarise: bool = True
    stop_when_correct: bool = True

    def __post_init__(self) -> None:
        """Refuse less than one try, and far too many; raises `DataError`."""
        between(1, MAX_TRIES, tries=self.tries)


class Translate(Planned[TranslateParameters]):
    """Tries one after another, and an error is condensed before the next try."""

    def _plan(self, steps: Steps) -> str:
        seed = steps.seed()
        first = steps.measured(seed) if seed is not None else None
        if first is not None and first.is_correct and self.parameters.stop_when_correct:
            return "the seed kernel is correct: there is nothing to translate"
        found = translate(steps, self.parameters, before=first)
        return _end(found, self.parameters.tries)


def translate(
    steps: Steps, parameters: TranslateParameters, before: Candidate | None = None
) -> Candidate | None:
    """The translation as a phase of any strategy: the fastest correct kernel, None if none works.

    before: a kernel that does not work, or not well enough; it counts as an earlier attempt. The
    tries are at generation 0, slots 1, 2, ...; a summary is at the place of the kernel that failed.
    """
    previous = before if before is not None and is_judged(before) else None
    correct = previous if previous is not None and previous.is_correct else None
    unusable = ""
    for attempt in range(1, parameters.tries + 1):
        error = _error(steps, previous, parameters) if previous is not None else ""
        inquiry = _inquiry(steps, attempt, previous, f"{error}\n\n{unusable}".strip())
        found = judged(steps, [partial(steps.kernel, inquiry)])
        unusable = "" if found else _unusable(steps.answered(inquiry))
        if not found or not is_judged(found[0]):
            continue
        previous = found[0]
        if previous.is_correct:
            correct = fastest(filter(None, (correct, previous)))
            if parameters.stop_when_correct:
                break
    return correct


def first_kernel(steps: Steps, tries: int, mode: Mode = Mode.QUICK) -> Candidate | None:
    """What a strategy begins with: the seed, measured in that mode, or a translation.

    The latter where the seed does not work; None where no try does.
    """
    seed = steps.seed()
    if seed is not None and steps.measured(seed, mode).is_correct:
        return seed
    return translate(steps, TranslateParameters(tries=tries), before=seed)


def _error(steps: Steps, previous: Candidate, parameters: TranslateParameters) -> str:
    """What came of a kernel; an error in a few words, by a call of its own (SUMMARISE)."""
    if previous.is_correct:
        return f"It is correct. Make it faster.\n\n{steps.report(previous)}"
    error = steps.error(previous)
    if not parameters.summarise:
        return error
    inquiry = Inquiry(
        role=Role.SUMMARISE,
        place=previous.place,
        prompt=lambda: render("summarise", steps.problem, code=steps.source(previous), error=error),
        about=previous.number,
        calm=True,
    )
    return steps.text(inquiry) or error


def _unusable(question: Question) -> str:
    """What to say of an answer without a kernel; nothing of a call that failed."""
    answered = question.state is AskState.ANSWERED
    return f"Your last answer could not be used: {question.problem}." if answered else ""


def _inquiry(steps: Steps, attempt: int, previous: Candidate | None, error: str) -> Inquiry:
    """The next try (TRANSLATE): from the task alone, or after what came of the last kernel."""
    place = Place(generation=0, slot=attempt)
    if previous is None:
        return Inquiry(
            role=Role.TRANSLATE,
            place=place,
            prompt=lambda: render("translate", steps.problem, note=error),
        )
    return Inquiry(
        role=Role.TRANSLATE,
        place=place,
        prompt=lambda: render(
            "translate_retry", steps.problem, code=steps.source(previous), error=error
        ),
        parents=(previous.number,),
    )


def _end(found: Candidate | None, tries: int) -> str:
    if found is None:
        return f"no correct kernel in {tries} tries"
    return f"the translation works: kernel #{found.number} is correct"


INFO = StrategyInfo(
    name="translate",
    title="Translation",
    summary=(
        "Tries several times to write a correct first kernel; each attempt sees what "
        "was wrong with the previous one."
    ),
    paper="robust-kbench, arXiv 2509.14279",
    parameters=TranslateParameters,
    grows=("tries",),
    help={
        "tries": "The maximum number of attempts in a row.",
        "summarise": "Whether a separate call summarizes an error before the next attempt.",
        "stop_when_correct": "Whether the run ends with the first correct kernel.",
    },
    make=Translate,
)
