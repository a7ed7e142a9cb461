"""A simulated language model that reads what its prompts say, and hardware that it can learn.

A kernel is a set of ideas. Each idea makes it faster or slower; two are worth something only
together, and one makes it much slower. The model adds ideas to what it is shown. It avoids what it
reads to have failed, follows what it reads to have helped, and mends what it is told of.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.evolve import events
from runs_app.evolve.commands import Ask, Edit, Role
from runs_app.evolve.outcomes import Evaluated
from tests.unit.runs_app.evolve.driving import World, a_result, fenced, kernel

IDEAS = "abcdefghijkl"
SEED_NS = 1000.0
NOISE = 0.02
FLAWED = 0.3
"""Of the answers with new code do not compile at first."""
MENDED = 0.7
"""Of those compile after a mend."""
BODY = "\n".join(
    f"// line {number} of a kernel that is as long as kernels are" for number in range(60)
)

_IDEAS = re.compile(r'IDEAS = "([a-l]*)"')
_RESULT = re.compile(
    r"#\d+ \+([a-l]+): correct, ([\d.]+) us.*\(from #\d+[^:]*: correct, ([\d.]+) us"
)
_LOST = re.compile(r"#\d+ \+([a-l])[^a-l].*?, ([\d.]+)x the best one's time")
_WORDS = re.compile(r"(helped|lost): ([a-l ]*)")


def source(ideas: str, flaw: int = 0) -> str:
    """A kernel with these ideas; one with a flaw does not compile."""
    flawed = f"missing_{flaw};\n" if flaw else ""
    return f'const char* IDEAS = "{"".join(sorted(ideas))}";\n{flawed}{BODY}\n{kernel()}'


def ideas_of(text: str) -> list[str]:
    """Of each kernel that a text shows."""
    return _IDEAS.findall(text)


@dataclass
class Hardware:
    """What each idea is worth, drawn from a seed."""

    seed: int
    factor: Mapping[str, float] = field(init=False)
    pair: str = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(f"noise {self.seed}")
        dice = random.Random(f"hardware {self.seed}")
        names = dice.sample(IDEAS, len(IDEAS))
        good, bad = (
            [dice.uniform(0.75, 0.93) for _ in range(5)],
            [dice.uniform(1.05, 1.4) for _ in range(4)],
        )
        worth = [*good, *bad, dice.uniform(4, 8)]
        self.pair = "".join(names[:2])
        self.factor = dict(zip(names[2:], worth, strict=True))

    def time_ns(self, ideas: str) -> float:
        """Without noise."""
        both = len(set(self.pair) & set(ideas))
        time_ns = SEED_NS * (1.0, 1.1, 0.6)[both]
        for idea in ideas:
            time_ns *= self.factor.get(idea, 1.0)
        return time_ns

    def judge(self, text: str, mode: Mode) -> EvaluationResult:
        """What is said of a source."""
        if "missing_" in text:
            return a_result(None, verdict=Verdict.COMPILE_ERROR, mode=mode)
        time_ns = self.time_ns(ideas_of(text)[0]) * self.dice.gauss(1, NOISE / 2)
        return a_result(time_ns, spread=NOISE, mode=mode, floor_ns=None)


class Reader:
    """The language model."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"model {seed}")
        self.flaws = 0

    def __call__(self, ask: Ask) -> str:
        """The answer to a prompt, made of its text alone."""
        text = ask.prompt.messages[-1].content
        match ask.role:
            case Role.DEBUG:
                return self._code(ideas_of(text)[0], "mended", 1 - MENDED)
            case Role.RECOMMEND:
                return notes(text)
            case _:
                return self._proposal(ask, text)

    def _proposal(self, ask: Ask, text: str) -> str:
        shown = ideas_of(text)
        base = shown[0] if ask.prompt.name.startswith("islands") else shown[-1]
        if ask.edit is Edit.CROSSOVER:
            return self._code(base + shown[1], f"+{shown[1]}", FLAWED)
        helped, lost = known(text)
        count = 2 if ask.edit is Edit.REWRITE and ask.prompt.name.startswith("islands") else 1
        chosen = "".join(self._idea(base, helped, lost) for _ in range(count))
        if ask.edit is Edit.DIFF:
            return self._diff(base, chosen)
        return self._code(base + chosen, f"+{chosen}", FLAWED)

    def _idea(self, base: str, helped: set[str], lost: set[str]) -> str:
        wanted = sorted(helped - set(base))
        if wanted and self.dice.random() < 0.5:
            return self.dice.choice(wanted)
        fresh = sorted(set(IDEAS) - set(base) - lost) or list(IDEAS)
        return self.dice.choice(fresh)

    def _code(self, ideas: str, title: str, flawed: float) -> str:
        return fenced(source("".join(set(ideas)), self._flaw(flawed)), title)

    def _diff(self, base: str, chosen: str) -> str:
        old = source(base).splitlines()[0]
        new = source("".join(set(base + chosen)), self._flaw(FLAWED / 2)).splitlines()
        lines = new[:2] if "missing_" in new[1] else new[:1]
        edit = ["<<<<<<< SEARCH", old, "=======", *lines, ">>>>>>> REPLACE"]
        return "\n".join([f"NAME: +{chosen}", "THOUGHT: one idea.", "CODE:", *edit])

    def _flaw(self, share: float) -> int:
        self.flaws += 1
        return self.flaws if self.dice.random() < share else 0


def known(text: str) -> tuple[set[str], set[str]]:
    """Ideas that the notes in a prompt call good and bad, and what was tried and lost."""
    found: dict[str, set[str]] = {"helped": set(), "lost": set()}
    for word, ideas in _WORDS.findall(text):
        found[word] |= set(ideas.split())
    found["lost"] |= {idea for idea, ratio in _LOST.findall(text) if float(ratio) > 2}
    return found["helped"], found["lost"] - found["helped"]


def notes(text: str) -> str:
    """What the results say of each idea that came alone, beside what the notes said before."""
    helped, lost = known(text)
    for ideas, after, before in _RESULT.findall(text):
        if len(ideas) > 1:
            continue
        better = float(after) < (1 - NOISE) * float(before)
        helped, lost = (
            (helped | {ideas}, lost - {ideas}) if better else (helped - {ideas}, lost | {ideas})
        )
    return f"helped: {' '.join(sorted(helped))}\nlost: {' '.join(sorted(lost))}"


@dataclass
class OwnWorld(World):
    """A world that stops what cannot win, as runners do, and counts what a device has worked."""

    device_ns: float = 0.0
    stopped: int = 0

    def _evaluate(self, event: events.Measuring) -> Evaluated:
        outcome = super()._evaluate(event)
        result = outcome.result
        limit_ns = event.must_beat_ns.get("n1024")
        if result is None or result.latency_ns is None:
            return outcome
        if limit_ns is None or result.latency_ns <= limit_ns:
            self.device_ns += CALLS * result.latency_ns
            return outcome
        self.device_ns += CALLS_BEFORE_A_STOP * result.latency_ns
        self.stopped += 1
        stopped = a_result(None, verdict=Verdict.TOO_SLOW, mode=event.mode)
        return Evaluated(candidate=event.candidate, mode=event.mode, result=stopped)


CALLS, CALLS_BEFORE_A_STOP = 12, 3
"""Of a workload in `quick`, about; and after how many a hopeless kernel is stopped."""


def own_world(seed: int) -> OwnWorld:
    """A world with that model and that hardware."""
    return OwnWorld(judge=Hardware(seed).judge, speak=Reader(seed), seed=seed)
