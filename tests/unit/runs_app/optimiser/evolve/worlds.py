"""Simulated language models and hardware that are good enough to make a run interesting."""

from __future__ import annotations

import itertools
import random
import re

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.knobs import find_knobs
from tests.unit.runs_app.optimiser.evolve.driving import Failure, World, a_result, fenced, kernel

SKILL = {"small": 0.3, "large": 0.6}
"""How often a proposal of a model is faster than the kernels that it was shown."""

KNOBS = {
    "TILE": "8 16 32 64 128",
    "UNROLL": "1 2 4 8 16",
    "VEC": "1 2 4 8",
    "STAGES": "1 2 3 4",
    "THREADS": "32 64 128 256 512",
}

_COST = re.compile(r"cost_(\d+)")


def values_of(source: str) -> dict[str, str]:
    """The value of each knob as the source has it. Raises `KnobError`."""
    return {knob.name: knob.default for knob in find_knobs(source)}


def costly(cost: float, number: int = 0) -> str:
    """A kernel whose time is written in it, in picoseconds."""
    return kernel(f"const int cost_{int(cost * 1000)} = {number}; y[i] = 2 * x[i] + 0 * {number};")


class Talk:
    """Language models that improve what they are shown, or fail in every way that they know."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.numbers = itertools.count(1)

    def __call__(self, ask: Ask) -> str | Failure:
        number = next(self.numbers)
        if self.dice.random() < 0.05:
            return Failure("HTTP 503")
        if ask.role in (Role.VERIFY, Role.REFLECT):
            return f"I have read it. FINAL VERIFICATION ANSWER: {self.dice.random() < 0.7}"
        if not ask.role.writes_code:
            return "Use wider loads, and hide latency."
        if self.dice.random() < 0.05:
            return "I'm sorry, I cannot help with that."
        shown = "".join(message.content for message in ask.prompt.messages)
        known = [int(cost) / 1000 for cost in _COST.findall(shown)] or [1000.0]
        better = self.dice.random() < SKILL[ask.model]
        factor = self.dice.uniform(0.75, 0.98) if better else self.dice.uniform(1.0, 1.5)
        return fenced(costly(max(101.0, min(known) * factor), number), f"try {number}")


def judge(source: str, mode: Mode) -> EvaluationResult:
    """The time that is written in a kernel; some are wrong, and some do not compile."""
    found = _COST.search(source)
    cost = int(found[1]) / 1000 if found else 1000.0
    if found and int(found[1]) % 17 == 0:
        return a_result(None, verdict=Verdict.WRONG_RESULT, mode=mode)
    busy = float(int(cost * 1000) % 90)
    return a_result(cost, mode=mode, throughputs=(busy, 20.0, 40.0))


def talking_world(seed: int) -> World:
    """A world with those language models and that hardware."""
    return World(judge=judge, speak=Talk(seed), seed=seed)


def tunable() -> str:
    """A kernel with 2,000 combinations of knobs."""
    lines = [f"constexpr int {n} = {v.split()[0]};  // knob: {v}" for n, v in KNOBS.items()]
    return "\n".join([*lines, kernel()])


class Landscape:
    """A time for every combination: a bowl with its bottom anywhere, an interaction, and walls."""

    def __init__(self, seed: int, noise: float = 0.02) -> None:
        dice = random.Random(seed)
        self.noise, self.dice = noise, dice
        self.bottom = {name: dice.uniform(0, len(v.split()) - 1) for name, v in KNOBS.items()}
        self.weight = {name: dice.uniform(0.05, 0.5) for name in KNOBS}
        self.interaction = dice.uniform(0, 0.1)

    def time_ns(self, values: dict[str, str]) -> float | None:
        """Without noise; None where the combination does not compile."""
        if int(values["TILE"]) * int(values["STAGES"]) * int(values["VEC"]) > 2048:
            return None
        off = {n: KNOBS[n].split().index(values[n]) - self.bottom[n] for n in KNOBS}
        slopes = sum(self.weight[n] * off[n] ** 2 / (len(KNOBS[n].split()) - 1) for n in KNOBS)
        return 1000 * (1 + slopes + self.interaction * abs(off["TILE"] + off["UNROLL"]))

    def best_ns(self) -> float:
        """The fastest of all combinations."""
        every = itertools.product(*(values.split() for values in KNOBS.values()))
        times = (self.time_ns(dict(zip(KNOBS, one, strict=True))) for one in every)
        return min(time for time in times if time is not None)

    def judge(self, source: str, mode: Mode) -> EvaluationResult:
        """Hardware with noise; `noise` is half the 95 % interval over the time."""
        time = self.time_ns(values_of(source))
        if time is None:
            return a_result(None, verdict=Verdict.COMPILE_ERROR, mode=mode)
        return a_result(time * self.dice.gauss(1, self.noise / 2), spread=self.noise, mode=mode)
