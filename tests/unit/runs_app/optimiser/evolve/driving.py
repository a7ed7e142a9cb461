"""A simulated world that carries a run's transitions out: scripted answers, scripted hardware."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language, Mode, Verdict
from runs_app.optimiser.evolve import budget, events
from runs_app.optimiser.evolve.commands import Ask, Command, Message
from runs_app.optimiser.evolve.config import Briefing, Budget, ModelSpec, Problem, RunConfig
from runs_app.optimiser.evolve.evaluations import LAST_MODES, is_refusal
from runs_app.optimiser.evolve.events import Answer, Evaluated, Event, Outcome, Transition
from runs_app.optimiser.evolve.feedback import Feedback, feedback_of
from runs_app.optimiser.evolve.history import Candidate, History
from runs_app.optimiser.evolve.optimizer import Optimizer
from runs_app.optimiser.evolve.replay import Reply
from runs_app.optimiser.evolve.strategies import Strategy

SIGNATURE = "void scale(const float* x, float* y, int64_t n)"
MODELS = (
    ModelSpec(name="small", price_in_usd=0.2, price_out_usd=1.0),
    ModelSpec(name="large", price_in_usd=2.0, price_out_usd=10.0),
)


def kernel(body: str = "y[i] = 2 * x[i];") -> str:
    """A whole kernel in C++."""
    return (
        f'extern "C" {SIGNATURE} {{\n  for (int64_t i = 0; i < n; ++i) {{\n    {body}\n  }}\n}}\n'
    )


def fenced(source: str, title: str = "kernel") -> str:
    """An answer as a language model would give it."""
    return f"NAME: {title}\nTHOUGHT: it may be faster.\n```cpp\n{source}```\n"


def a_problem(**changes: Any) -> Problem:
    """A problem on a CPU; `changes` replace its fields."""
    fields: dict[str, Any] = {
        "task": "scale", "title": "Scale", "description": "Multiply by two.", "abi": Abi.C,
        "signature": SIGNATURE, "direction": Direction.FORWARD, "dtype": "float32",
        "language": Language.CPP, "device_name": "a CPU", "device_kind": DeviceKind.CPU,
        "reference": "def forward(x):\n    return 2 * x\n", "workloads": ("n1024: n=1024",),
        "toolchain": "g++ -O3", "seed_source": kernel(), "seed_title": "naive", "floor_ns": 100.0,
    }  # fmt: skip
    return Problem(**{**fields, **changes})


def a_config(strategy: str = "islands", **changes: Any) -> RunConfig:
    """A run with two language models; `changes` replace its fields."""
    fields: dict[str, Any] = {"strategy": strategy, "seed": 7, "models": MODELS}
    return RunConfig(**{**fields, **changes})


def a_result(
    latency_ns: float | None,
    *,
    verdict: Verdict = Verdict.CORRECT,
    mode: Mode = Mode.QUICK,
    spread: float = 0.01,
    floor_ns: float | None = 100.0,
    throughputs: Sequence[float] = (10.0, 80.0, 80.0),
) -> EvaluationResult:
    """What hardware says: a time in nanoseconds, or the verdict alone where that is None."""
    workload = WorkloadResult(name="n1024", parameters={"n": 1024}, hidden=False)
    profile = None
    if latency_ns is not None:
        low_ns, high_ns = latency_ns * (1 - spread), latency_ns * (1 + spread)
        measured = Measurement(time_ns=latency_ns, low_ns=low_ns, high_ns=high_ns, calls=20)
        workload = replace(workload, measurement=measured, floor_ns=floor_ns)
        metrics = dict(zip(THROUGHPUTS, throughputs, strict=True))
        profile = Profile(tool="portable", reason="no ncu", workload="n1024", metrics=metrics)
    return EvaluationResult(
        evaluation_id="0", attempt=1, verdict=verdict, reason="as scripted", mode=mode,
        device="cpu", task="scale", task_digest="0", solution_digest="0", latency_ns=latency_ns,
        floor_fraction=floor_ns / latency_ns if latency_ns and floor_ns else None,
        workloads=(workload,), profile=profile if mode is Mode.PROFILE else None,
    )  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """An answer that did not come."""

    reason: str = "HTTP 500"


@dataclass
class World:
    """Carries transitions out and tells what came of them, in an order drawn from `seed`.

    speak: the language models' answer to an ask. judge: what hardware says of a source, None for
    an evaluation that got lost. It holds the texts of the run, as the site's rows would.
    """

    judge: Callable[[str, Mode], EvaluationResult | None] = lambda _source, mode: a_result(
        1000.0, mode=mode
    )
    speak: Callable[[Ask], str | Failure] = lambda _ask: fenced(kernel())
    seed: int = 0
    sources: dict[int, str] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    prompts: dict[int, tuple[Message, ...]] = field(default_factory=dict)
    feedbacks: dict[tuple[int, Mode], Feedback] = field(default_factory=dict)
    asks: dict[int, tuple[Ask, events.Asked]] = field(default_factory=dict)
    pending: list[events.Asked | events.Measuring] = field(default_factory=list)
    most_pending: dict[str, int] = field(default_factory=lambda: {"asked": 0, "measuring": 0})

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def source(self, candidate: int) -> str:
        return self.sources[candidate]

    def answer(self, ask: int) -> str:
        return self.answers[ask]

    def reply(self, ask: int) -> Reply:
        return Reply(self.answers.get(ask, ""))

    def feedback(self, candidate: int, mode: Mode | None = None) -> Feedback | None:
        """Of the newest mode that says anything new, where none is named."""
        every = (Mode.AUDIT, Mode.RANKED, Mode.PROFILE, Mode.QUICK)
        modes = every if mode is None else (mode,)
        found = (self.feedbacks.get((candidate, m)) for m in modes)
        return next((feedback for feedback in found if feedback), None)

    def prompt(self, ask: int) -> tuple[Message, ...]:
        return self.prompts[ask]

    def carry_out(self, transitions: Sequence[Transition]) -> None:
        """Do what the transitions say; what they begin ends when its turn comes."""
        for transition in transitions:
            match transition.event:
                case events.Asked() as asked:
                    assert isinstance(transition.command, Ask)
                    self.asks[asked.number] = transition.command, asked
                    self.prompts[asked.number] = transition.command.prompt.messages
                    self.pending.append(asked)
                case events.Drafted() as drafted:
                    self.sources[drafted.number] = transition.source
                case events.Measuring() as measuring:
                    self.pending.append(measuring)
        for kind in self.most_pending:
            number = sum(events.kind_of(event) == kind for event in self.pending)
            self.most_pending[kind] = max(self.most_pending[kind], number)

    def next_outcome(self) -> Outcome:
        """One of the things under way ends."""
        event = self.pending.pop(self.random.randrange(len(self.pending)))
        return self._answer(event) if isinstance(event, events.Asked) else self._evaluate(event)

    def _answer(self, asked: events.Asked) -> Outcome:
        command, _ = self.asks[asked.number]
        said = self.speak(command)
        if isinstance(said, Failure):
            return Answer(event=events.Failed(ask=asked.number, reason=said.reason))
        self.answers[asked.number] = said
        model = next(m for m in MODELS if m.name == asked.model)
        tokens_in = budget.tokens_bound(command.prompt.messages) // 4
        tokens_out = min(len(said) // 4 + 1, asked.max_tokens)
        cost_usd = budget.cost_usd(model, tokens_in, tokens_out)
        used = {"tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": cost_usd}
        event = events.Answered(ask=asked.number, latency_s=1.0, **used)
        return Answer(event=event, text=said)

    def _evaluate(self, event: events.Measuring) -> Evaluated:
        result = self.judge(self.sources[event.candidate], event.mode)
        if result is None:
            return Evaluated(candidate=event.candidate, mode=event.mode, reason="it is gone")
        if event.mode not in LAST_MODES or is_refusal(result.verdict):
            self.feedbacks[event.candidate, event.mode] = feedback_of(result)
        return Evaluated(candidate=event.candidate, mode=event.mode, result=result)


class Scripted:
    """A strategy that is a function of the history."""

    def __init__(self, commands: Callable[[History], list[Command]]) -> None:
        self.commands = commands

    def ask(self, history: History) -> list[Command]:
        return self.commands(history)


@dataclass
class Drive:
    """A run in a simulated world, and what was recorded of it."""

    optimizer: Optimizer
    world: World
    events: list[Event] = field(default_factory=list)

    @property
    def history(self) -> History:
        return self.optimizer.history

    @property
    def best(self) -> Candidate:
        """The best kernel, which there must be."""
        assert self.history.best is not None
        return self.history.best

    @property
    def end(self) -> events.Finished:
        """How it ended, as it must have."""
        assert self.history.finished is not None
        return self.history.finished

    def record(self, transitions: Sequence[Transition]) -> None:
        self.world.carry_out(transitions)
        self.events += [transition.event for transition in transitions]

    def step(self, tells: int) -> None:
        """Tell up to so many outcomes, then ask until nothing is left, as the site does."""
        for _ in range(min(tells, len(self.world.pending))):
            self.record(self.optimizer.tell(self.world.next_outcome()))
        while transitions := self.optimizer.ask():
            self.record(transitions)

    def go(self, events_at_most: int = 100_000) -> Drive:
        """Until nothing is under way."""
        self.step(0)
        while self.world.pending and len(self.events) < events_at_most:
            self.step(self.world.random.choice((1, 1, 1, 2, 3)))
        return self

    def extend(self, new: Budget) -> None:
        """Give the run another budget."""
        self._happened(events.Extended(budget=new))

    def learn(self, briefing: Briefing) -> None:
        """More was measured of the device."""
        self._happened(events.Briefed(briefing=briefing))

    def _happened(self, event: Event) -> None:
        self.history.apply(event)
        self.events.append(event)


def begin(
    problem: Problem, config: RunConfig, world: World, strategy: Strategy | None = None
) -> Drive:
    """A run that has not begun; `strategy` replaces the configured one."""
    optimizer = Optimizer(problem, config, History(world))
    if strategy is not None:
        optimizer.strategy = strategy
    return Drive(optimizer, world)
