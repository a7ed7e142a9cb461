"""CUDA-LLM's Feature Search and Reinforcement (arXiv 2506.09092)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve.commands import Message, Place, Prompt, Role
from runs_app.optimiser.evolve.history import Candidate, CandidateState
from runs_app.optimiser.evolve.prompts import fence_of, render, sample_text
from runs_app.optimiser.evolve.steps import Inquiry, Steps, fastest, is_judged
from runs_app.optimiser.evolve.strategies.contract import (
    MAX_AT_ONCE,
    MAX_STEPS,
    Planned,
    StrategyInfo,
    between,
    check_size,
)
from runs_app.optimiser.evolve.verifiers import judged


@dataclass(frozen=True)
class FsrParameters:
    """CUDA-LLM's N and D, in the reimplementations' size: the paper states none."""

    n: int = 5
    depth: int = 5
    history: int = 3  # earlier rounds that the dialogue keeps

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning; raises `DataError`."""
        between(1, MAX_AT_ONCE, n=self.n)
        between(1, MAX_STEPS, depth=self.depth)
        between(0, MAX_AT_ONCE, history=self.history)
        check_size(n=self.n, depth=self.depth)


@dataclass(frozen=True)
class Round:
    """What a depth carries to the next: a kernel that passed or failed, and what else was tried."""

    kernel: Candidate
    passed: bool
    tried: tuple[Candidate, ...] = ()


class Fsr(Planned[FsrParameters]):
    """N candidates at each depth; the fastest goes on, or else a failure with its error."""

    def _plan(self, steps: Steps) -> str:
        """The search from depth 1 to `depth`."""
        rounds: list[Round] = []
        seed = steps.seed()
        if seed is not None:
            seed = steps.measured(seed)
            rounds = self._next(rounds, [seed])
        for depth in range(1, self.parameters.depth + 1):
            drafts = [
                partial(self._candidate, steps, Place(generation=depth, slot=slot), tuple(rounds))
                for slot in range(1, self.parameters.n + 1)
            ]
            rounds = self._next(rounds, judged(steps, drafts))
        best = fastest(kernel.kernel for kernel in rounds)
        found = f"kernel #{best.number} is the fastest" if best else "no kernel passed"
        return f"the search reached depth {self.parameters.depth}: {found}"

    def _next(self, rounds: list[Round], candidates: list[Candidate]) -> list[Round]:
        """Compile, validate, profile: the rounds with what this depth carries to the next."""
        candidates = [candidate for candidate in candidates if is_judged(candidate)]
        if not candidates:
            return rounds
        compiled = [c for c in candidates if _is_compiled(c)]
        valid = [c for c in compiled if c.is_correct]
        best = fastest([*(entry.kernel for entry in rounds if entry.passed), *valid])
        measured = [c for c in candidates if c.state is CandidateState.MEASURED]
        failed = [*compiled, *measured, *candidates][0]  # one that compiles is nearest to working
        kernel = best if valid and best is not None else failed
        tried = tuple(candidate for candidate in candidates if candidate is not kernel)
        if rounds and rounds[-1].kernel is kernel:  # nothing was faster: the dialogue says so
            return [*rounds[:-1], replace(rounds[-1], tried=rounds[-1].tried + tried)]
        return [*rounds, Round(kernel, passed=kernel.is_correct, tried=tried)]

    def _candidate(self, steps: Steps, place: Place, rounds: tuple[Round, ...]) -> Candidate | None:
        inquiry = Inquiry(
            role=Role.PROPOSE,
            place=place,
            prompt=lambda: self._prompt(steps, rounds, self._sample(place, rounds)),
            parents=(rounds[-1].kernel.number,) if rounds else (),
        )
        return steps.kernel(inquiry)

    def _sample(self, place: Place, rounds: tuple[Round, ...]) -> str:
        """Tells the candidates of a depth apart, so that each takes another idea."""
        mends = bool(rounds) and not rounds[-1].passed
        text = sample_text("candidate", place.slot, self.parameters.n, mends=mends)
        return f"\n\n{text}" if text else ""

    def _prompt(self, steps: Steps, rounds: tuple[Round, ...], sample: str) -> Prompt:
        """The task, and the dialogue since: each round's kernel, and what was said of it."""
        first = render("fsr_initial", self.problem, sample="" if rounds else sample)
        if not rounds:
            return first
        kept = rounds[-(self.parameters.history + 1) :]
        messages = list(first.messages)
        for entry in kept:
            follow = self._follow_up(steps, entry, sample if entry is kept[-1] else "")
            code = f"```{fence_of(self.problem)}\n{steps.source(entry.kernel).rstrip()}\n```"
            messages += [Message(role="assistant", content=code), follow.messages[-1]]
        last = self._follow_up(steps, kept[-1], sample)
        return replace(last, messages=tuple(messages))

    def _follow_up(self, steps: Steps, entry: Round, sample: str) -> Prompt:
        """What is said of a round's kernel: make it faster, or repair it."""
        report = steps.error(entry.kernel)
        tried = "\n".join(f"- {steps.line(candidate)}" for candidate in entry.tried) or "- nothing"
        name = "fsr_faster" if entry.passed else "fsr_repair"
        return render(name, self.problem, report=report, tried=tried, sample=sample)


def _is_compiled(candidate: Candidate) -> bool:
    """Whether a candidate was measured and got past the compiler."""
    measured = candidate.state is CandidateState.MEASURED
    return measured and candidate.verdict != Verdict.COMPILE_ERROR


INFO = StrategyInfo(
    name="fsr",
    title="Feature search and reinforcement",
    summary=(
        "At each depth, writes several kernels based on the fastest one, or on a "
        "failure and its error."
    ),
    paper="CUDA-LLM, arXiv 2506.09092",
    parameters=FsrParameters,
    grows=("depth",),
    help={
        "n": "How many candidates are written at each depth.",
        "depth": "How many times the search continues from the fastest kernel, or from a failure.",
        "history": "How many earlier rounds a prompt keeps as dialogue.",
    },
    make=Fsr,
)
