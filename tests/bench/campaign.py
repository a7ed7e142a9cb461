"""An optimization run on this host without a site: its transitions are carried out by threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device.device import device_name
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.brief import Figures, briefing, tolerance_text, values_text
from runs_app.optimiser.evolve.commands import Ask, Measure
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.events import Answer, Evaluated, Outcome, Transition
from runs_app.optimiser.evolve.feedback import Feedback, feedback_of
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer
from tasks_app.pages.task_page import command_text, entrances
from tests.bench.evaluations import Entry, request

Model = Callable[[int, Ask], Answer]
"""Answers an ask, whose number comes first, or says why it did not."""


@dataclass
class Texts:
    """The history's texts, in memory."""

    sources: dict[int, str] = field(default_factory=dict)
    feedbacks: dict[int, Feedback] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)

    def source(self, candidate: int) -> str:
        """Source of a candidate."""
        return self.sources[candidate]

    def feedback(self, candidate: int) -> Feedback | None:
        """What hardware said of a candidate."""
        return self.feedbacks.get(candidate)

    def answer(self, ask: int) -> str:
        """Text of an answer."""
        return self.answers[ask]


def problem_of(task: Task, config: SupervisorConfig, seed: str, title: str) -> Problem:
    """What a prompt may tell of a built-in task; its hidden workloads stay out."""
    direction = Direction.FORWARD
    public = task.workloads_for(config.kind, direction, hidden=False)
    found = (entry for entry in entrances(task) if entry.direction is direction)
    return Problem(
        task=task.name,
        title=task.title,
        description=task.description,
        abi=task.abi,
        signature=task.signature or next((e.declaration for e in found), ""),
        direction=direction,
        dtype=task.dtype,
        language=config.kind.language,
        device_name=device_name(config.kind, config.index),
        device_kind=config.kind,
        reference=task.files["reference.py"],
        workloads=tuple(
            f"{w.name}: {', '.join(f'{k}={v}' for k, v in w.parameters.items())}" for w in public
        ),
        toolchain=command_text(config.kind),
        seed_source=seed,
        seed_title=title,
        tolerance=tolerance_text(task, public, direction),
        values=values_text(task, config.kind, direction),
        **vars(briefing(task, config.kind, direction, Figures())),
    )


class Campaign:
    """One run: asks the optimiser, carries commands out side by side, tells what came back."""

    def __init__(
        self,
        task: Task,
        problem: Problem,
        config: RunConfig,
        host: SupervisorConfig,
        model: Model | None = None,
    ) -> None:
        """`model` answers asks; a strategy without language models needs none."""
        self.task, self.host, self.model = task, host, model
        self.texts = Texts()
        self.history = History(self.texts)
        problem = replace(problem, answer_tokens=config.answer_tokens)
        self.optimizer = Optimizer(problem, config, self.history)
        self.events: list[events.Event] = []
        self.began = time.monotonic()

    def run(self, say: Callable[[str], None]) -> None:
        """Run it to its end."""
        waiting: set[Future[Outcome]] = set()
        with ThreadPoolExecutor(max_workers=16) as pool:
            while self.history.finished is None:
                waiting |= {pool.submit(*job) for job in self._step([])}
                while waiting and self.history.finished is None:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    outcomes = [future.result() for future in done]
                    waiting |= {pool.submit(*job) for job in self._step(outcomes)}
                    self._report(outcomes, say)

    def _step(self, outcomes: list[Outcome]) -> list[tuple[Callable[..., Outcome], int, object]]:
        jobs = []
        for outcome in outcomes:
            self._keep(outcome)
            jobs += [self._carry_out(transition) for transition in self.optimizer.tell(outcome)]
        while transitions := self.optimizer.ask():
            jobs += [self._carry_out(transition) for transition in transitions]
        return [job for job in jobs if job is not None]

    def _keep(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer) and isinstance(outcome.event, events.Answered):
            self.texts.answers[outcome.event.ask] = outcome.text
        elif isinstance(outcome, Evaluated) and outcome.result is not None:
            self.texts.feedbacks[outcome.candidate] = feedback_of(outcome.result)

    def _carry_out(
        self, transition: Transition
    ) -> tuple[Callable[..., Outcome], int, object] | None:
        self.events.append(transition.event)
        if isinstance(transition.event, events.Drafted):
            self.texts.sources[transition.event.number] = transition.source
        if isinstance(transition.event, events.Asked) and isinstance(transition.command, Ask):
            assert self.model is not None, "this strategy asks a language model"
            return self.model, transition.event.number, transition.command
        if isinstance(transition.command, Measure):
            return self._measure, transition.command.candidate, transition.command
        return None

    def _measure(self, candidate: int, command: Measure) -> Outcome:
        entry = Entry(f"{self.task.name}-{candidate}", self.task, self.texts.sources[candidate])
        asked = request(entry, self.host, command.mode)
        result = evaluate(replace(asked, must_beat_ns=command.must_beat_ns), self.host)
        return Evaluated(candidate=candidate, mode=command.mode, result=result)

    def _report(self, outcomes: list[Outcome], say: Callable[[str], None]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Evaluated) and outcome.result is not None:
                candidate = self.history.candidates[outcome.candidate]
                time_us = f"{candidate.latency_ns / 1e3:.2f} us" if candidate.latency_ns else "-"
                mark = " best" if self.history.best is candidate else ""
                elapsed_s = time.monotonic() - self.began
                say(
                    f"{elapsed_s:6.1f} s #{candidate.number} {candidate.verdict} {time_us}{mark}"
                    f" {candidate.title} {'' if candidate.is_correct else candidate.reason[:100]}"
                )
