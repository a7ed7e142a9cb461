"""Improves a verifier's instructions from its mistakes, over generations (robust-kbench).

Generation 0 is the prompt to begin with. In each later one, `population` prompts are written by
the language model from mistakes of the two best so far, and vote on all training kernels; the best
of them votes on the held-out ones too. Only training accuracy ever chooses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from runs_app.optimiser.evolve.answers import Unusable, read_vote
from runs_app.optimiser.evolve.commands import Prompt
from runs_app.optimiser.evolve.config import Problem
from runs_app.optimiser.evolve.history import draw
from runs_app.optimiser.evolve.prompts import render
from runs_app.optimiser.evolve.verifiers import verify_prompt

LEAST_CHARACTERS, MOST_CHARACTERS = 200, 12_000
"""Of instructions; robust-kbench's tuned ones have 3,600 to 5,000."""

_SHOWN_SOURCE, _SHOWN_WORDS = 4000, 1200  # characters of a mistake's kernel, and of its answer
_TAGGED = re.compile(r"<instructions>(.*?)</instructions>", re.DOTALL | re.IGNORECASE)
_QUESTIONS = {
    "compile": "whether the compiler will accept the kernel",
    "memory": "whether the kernel will run to completion: no crash, no violation, no limit reached",
    "numerics": "whether the kernel's outputs will be correct, given that it runs to completion",
}


class Purpose(StrEnum):
    """What a want is for; the role of its call."""

    VOTE = "verify"
    IMPROVE = "tune"


@dataclass(frozen=True, kw_only=True)
class Example:
    """A kernel with its truth. `said`: hardware's words; `reference`: a kernel that works."""

    key: str
    task: str
    problem: Problem
    source: str
    reference: str
    passes: bool
    said: str
    held_out: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a tuning is to go; `start` are the instructions that it begins with."""

    verifier: str
    start: str
    generations: int = 5
    population: int = 4  # prompts of a generation
    seed: int = 0
    shown_mistakes: int = 6  # in a call for a better one


@dataclass(frozen=True, kw_only=True)
class Want:
    """A question to the language model; `key` is unlike that of any other."""

    key: tuple[str | int, ...]
    purpose: Purpose
    prompt: Prompt


@dataclass(frozen=True)
class Count:
    """Right votes of `of` answers; `unread` of them held no vote. Failed calls do not count."""

    right: int
    of: int
    unread: int

    @property
    def share(self) -> float:
        """Accuracy; below any other if nothing was counted."""
        return self.right / self.of if self.of else -1.0


@dataclass(kw_only=True)
class Variant:
    """One prompt: its text, and votes by the example's index; None is an answer without one."""

    generation: int
    slot: int  # its place in the generation
    text: str = ""
    parent: tuple[int, int] | None = None  # generation and slot of the prompt that it improves
    problem: str = ""  # why there is no text
    votes: dict[int, bool | None] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)  # by example: the answer that voted
    failed: set[int] = field(default_factory=set)  # examples whose call failed

    def count(self, examples: Sequence[Example], *, held_out: bool) -> Count | None:
        """Its votes on one of the two sets; None before there is any."""
        votes = [
            (vote, examples[index].passes)
            for index, vote in self.votes.items()
            if examples[index].held_out is held_out
        ]
        if not votes:
            return None
        unread = sum(vote is None for vote, _ in votes)
        return Count(sum(vote is passes for vote, passes in votes), len(votes), unread)


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A finished generation; `best` is None where no prompt of it could be used."""

    number: int
    variants: tuple[Variant, ...]
    best: Variant | None


class Tuner:
    """Pure ask and tell: the same plan, examples and answers give the same prompts."""

    def __init__(self, plan: Plan, examples: Sequence[Example]) -> None:
        self.plan, self.examples = plan, tuple(examples)
        self.generations: list[Generation] = []
        self.reason = ""  # why it ended before the last generation
        self._asked: set[tuple[str | int, ...]] = set()
        self._number = 0
        self._variants = [Variant(generation=0, slot=0, text=plan.start.strip())]

    @property
    def best(self) -> Variant | None:
        """The best by training accuracy, the earlier of equals; held-out votes do not matter."""
        found = [g.best for g in self.generations if g.best is not None]
        return max(found, key=self._train_share, default=None)

    def ask(self) -> list[Want]:
        """Everything that can be asked now and has not been asked yet."""
        wants = [want for want in self._wants() if want.key not in self._asked]
        self._asked |= {want.key for want in wants}
        return wants

    def tell(self, want: Want, text: str | None) -> None:
        """Learn of an answer; None says that the call failed, which speaks for no prompt."""
        kind, slot, index = want.key[0], int(want.key[2]), int(want.key[3])
        variant = self._variants[slot]
        if kind == "improve":
            self._improved(variant, text)
        elif text is None:
            variant.failed.add(index)
        else:
            vote = read_vote(text)
            variant.votes[index] = None if isinstance(vote, Unusable) else vote
            variant.words[index] = text
        self._close_if_over()

    def _wants(self) -> list[Want]:
        wants = []
        for variant in self._variants:
            if not variant.text and not variant.problem:
                wants.append(self._improve(variant))
            elif variant.text:
                wants += [self._vote(variant, index) for index in self._open(variant, False)]
        best = self._best_of_generation()
        if best is not None:
            wants += [self._vote(best, index) for index in self._open(best, True)]
        return wants

    def _open(self, variant: Variant, held_out: bool) -> list[int]:  # noqa: FBT001 - which set
        return [
            index
            for index, example in enumerate(self.examples)
            if example.held_out is held_out
            and index not in variant.votes
            and index not in variant.failed
        ]

    def _vote(self, variant: Variant, index: int) -> Want:
        example = self.examples[index]
        prompt = verify_prompt(
            example.problem, self.plan.verifier, example.source, example.reference, variant.text
        )
        key = ("vote", variant.generation, variant.slot, index)
        return Want(key=key, purpose=Purpose.VOTE, prompt=prompt)

    def _improve(self, variant: Variant) -> Want:
        parent = self._parents()[variant.parent or (0, 0)]
        count = parent.count(self.examples, held_out=False) or Count(0, 0, 0)
        prompt = render(
            "tune_improve",
            self.examples[0].problem,
            verifier=self.plan.verifier,
            question=_QUESTIONS[self.plan.verifier],
            instructions=parent.text,
            accuracy=f"{count.right} of {count.of}",
            mistakes="\n\n".join(self._mistakes(parent, variant)),
        )
        key = ("improve", variant.generation, variant.slot, 0)
        return Want(key=key, purpose=Purpose.IMPROVE, prompt=prompt)

    def _mistakes(self, parent: Variant, variant: Variant) -> list[str]:
        """Some of the parent's mistakes, drawn anew for each variant."""
        wrong = self._wrong(parent)
        rng = draw(self.plan.seed, "mistakes", variant.generation, variant.slot)
        chosen = sorted(rng.sample(wrong, min(len(wrong), self.plan.shown_mistakes)))
        return [_mistake(n, self.examples[i], parent, i) for n, i in enumerate(chosen, 1)]

    def _wrong(self, variant: Variant) -> list[int]:
        return [
            index
            for index, vote in sorted(variant.votes.items())
            if not self.examples[index].held_out and vote is not self.examples[index].passes
        ]

    def _improved(self, variant: Variant, text: str | None) -> None:
        read = Unusable("the call failed") if text is None else read_instructions(text)
        if isinstance(read, Unusable):
            variant.problem = read.reason
        elif any(read == other.text for other in self._known()):
            variant.problem = "these instructions have been tried before"
        else:
            variant.text = read

    def _close_if_over(self) -> None:
        unwritten = any(not v.text and not v.problem for v in self._variants)
        if unwritten or any(self._open(v, False) for v in self._variants if v.text):
            return
        best = self._best_of_generation()
        if best is not None and self._open(best, True):
            return
        done = Generation(number=self._number, variants=tuple(self._variants), best=best)
        self.generations.append(done)
        self._variants = self._next()

    def _best_of_generation(self) -> Variant | None:
        """Once all training votes are in."""
        written = [v for v in self._variants if v.text]
        if any(not v.text and not v.problem for v in self._variants):
            return None
        if any(self._open(v, False) for v in written):
            return None
        counted = [v for v in written if v.votes]
        return max(counted, key=self._train_share, default=None)

    def _next(self) -> list[Variant]:
        """The variants of the next generation, not yet written; none if the tuning is over."""
        ranked = sorted(self._parents().values(), key=lambda v: -self._train_share(v))
        if not ranked:
            self.reason = "the first prompt produced no vote"
        elif not self._wrong(ranked[0]) and self._number < self.plan.generations:
            self.reason = (
                "the best prompt made no mistakes in training, so there is nothing to learn from"
            )
        if self.reason or self._number >= self.plan.generations:
            return []
        self._number += 1
        parents = [v for v in ranked[:2] if self._wrong(v)]
        return [
            Variant(
                generation=self._number,
                slot=slot,
                parent=(parents[slot % len(parents)].generation, parents[slot % len(parents)].slot),
            )
            for slot in range(self.plan.population)
        ]

    def _parents(self) -> dict[tuple[int, int], Variant]:
        """Prompts of finished generations that have votes, in order."""
        return {(v.generation, v.slot): v for g in self.generations for v in g.variants if v.votes}

    def _known(self) -> list[Variant]:
        return [v for g in self.generations for v in g.variants] + self._variants

    def _train_share(self, variant: Variant) -> float:
        count = variant.count(self.examples, held_out=False)
        return count.share if count else -1.0


def read_instructions(text: str) -> str | Unusable:
    """The instructions between their tags; of several the last counts."""
    found = _TAGGED.findall(text)
    if not found:
        return Unusable("the answer has no <instructions> … </instructions>")
    instructions: str = found[-1].strip()
    if not LEAST_CHARACTERS <= len(instructions) <= MOST_CHARACTERS:
        return Unusable(
            f"the instructions have {len(instructions)} characters, not {LEAST_CHARACTERS} to "
            f"{MOST_CHARACTERS}"
        )
    return instructions


def _mistake(number: int, example: Example, variant: Variant, index: int) -> str:
    vote = variant.votes[index]
    voted = "gave no readable vote" if vote is None else f"voted {vote}"
    words = variant.words.get(index, "")[-_SHOWN_WORDS:]
    return (
        f"### Mistake {number}: it {voted}; the right vote was {example.passes}\n"
        f"Task: {example.problem.title}. Hardware said: {example.said}\n\n"
        f"Kernel:\n~~~\n{example.source[:_SHOWN_SOURCE]}\n~~~\n"
        f"The end of the verifier's answer:\n~~~\n{words}\n~~~"
    )
