"""A run without Redis, endpoint or runner: a test carries out what the run asks of the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from runs_app.core.messaging import queues
from runs_app.models import Evaluation, LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve import commands as to
from runs_app.optimiser.evolve.commands import Ask, Command, Edit, Message, Place, Prompt, Role
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.history import CandidateState, History
from runs_app.optimiser.evolve.strategies import STRATEGIES, StrategyInfo
from runs_app.optimiser.services.advance import advance_run
from runs_app.optimiser.services.request import read_run_request
from runs_app.optimiser.services.start import start_run
from tests import factories as make
from tests.unit.queued import Jobs

__all__ = ["Jobs"]

Start = Callable[..., Run]
"""Starts a run; arguments replace what a request asks for."""
MODEL = "writer-1"
KERNEL = (
    '```cpp\nextern "C" void scale(float* out, const float* x, int N) {{ out[{}] = x[0]; }}\n```'
)


class Plain:
    """Measures the seed, then asks `asks` times for a better one and measures what comes."""

    def __init__(self, problem: Problem, config: RunConfig, parameters: PlainParameters) -> None:
        """Asks as often as the parameters say."""
        self.problem, self.config, self.asks = problem, config, parameters.asks

    def ask(self, history: History) -> list[Command]:
        """The seed first, all asks at once after it, the end when everything was measured."""
        if not history.candidates:
            return [to.Draft(source=self.problem.seed_source, edit=Edit.SEED, place=Place())]
        commands: list[Command] = [
            to.Measure(candidate=candidate.number)
            for candidate in history.candidates.values()
            if candidate.state is CandidateState.DRAFTED
        ]
        if 1 in history.candidates and history.candidates[1].verdict:
            commands += [self._ask(slot) for slot in range(len(history.questions), self.asks)]
        done = len(history.questions) == self.asks and not history.waiting()
        return commands or ([to.Finish(reason="all is asked")] if done else [])

    def _ask(self, slot: int) -> Ask:
        text = f"Make it faster, try {slot}."
        prompt = Prompt(name="plain", version=1, messages=(Message(role="user", content=text),))
        return Ask(
            role=Role.PROPOSE, prompt=prompt, model=self.config.writers[0].name, temperature=0.5,
            parents=(1,), place=Place(slot=slot),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlainParameters:
    """Of `Plain`."""

    asks: int = 3


INFO = StrategyInfo(
    name="plain", title="Plain", summary="Asks and measures.", paper="", needs_seed=True,
    parameters=PlainParameters, help={"asks": "how often"}, make=Plain, grows=("asks",),
)  # fmt: skip


@dataclass
class World:
    """What was asked of RQ, and how a test carries it out."""

    advances: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    jobs: Jobs = field(default_factory=Jobs)

    def enqueue_advance(self, run_id: object) -> bool:
        """Remember a step; a second one is not queued before the first has begun."""
        if str(run_id) not in self.advances:
            self.advances.append(str(run_id))
        return True

    def enqueue_call(self, call_id: object) -> bool:
        """Remember a call."""
        self.calls.append(str(call_id))
        return True

    def waiting_calls(self) -> set[str]:
        """Calls that wait."""
        return set(self.calls)

    def advance(self, run: Run, now: Any = make.NOW) -> int:
        """Take the steps that were asked for, until there is none."""
        count = advance_run(run_id=run.pk, now=now)
        while self.advances:
            count += advance_run(run_id=UUID(self.advances.pop(0)), now=now)
        run.refresh_from_db()
        return count

    def answer(self, run: Run, text: str = "", **columns: Any) -> int:
        """Give every waiting call of the run an answer; returns how many."""
        waiting = list(run.calls.filter(status="WAITING").order_by("number"))
        for call in waiting:
            answered = {
                "status": "ANSWERED", "response": text or KERNEL.format(call.number),
                "tokens_in": 100, "tokens_out": 50, "cost_usd": 0.0002, "sent_at": make.NOW,
                "ended_at": make.NOW,
            }  # fmt: skip
            rows = LanguageModelCall.objects.filter(pk=call.pk)
            rows.update(**{**answered, **columns})
        return len(waiting)

    def to_first_calls(self, run: Run) -> None:
        """Go on until the seed is measured and the language model is asked."""
        self.advance(run)
        self.measure(run)
        self.advance(run)

    def to_the_end(self, run: Run, latency_ns: float = 900.0) -> None:
        """Go on until what the language models answer is measured, once."""
        self.to_first_calls(run)
        self.answer(run)
        self.advance(run)
        self.measure(run, latency_ns)
        self.advance(run)

    def measure(
        self, run: Run, latency_ns: float = 1000.0, verdict: str = "CORRECT", *,
        most: int | None = None, now: datetime = make.NOW,
    ) -> int:  # fmt: skip
        """End the evaluations of the run that wait, `most` of them at most; returns how many."""
        waiting = list(
            Evaluation.objects.filter(submission__run=run, status="QUEUED").order_by(
                "created_at", "submission__candidate__number"
            )[:most]
        )
        for place, row in enumerate(waiting):
            fields: dict[str, Any] = {"verdict": Verdict(verdict)}
            if verdict == "CORRECT":
                fields["latency_ns"] = latency_ns - place
            result = make.make_result(row, **fields)
            make.start(row, now=now)
            payload = {"result": codec.encode(result)}
            make.send(row, EventKind.FINISHED, payload, seq=2, now=now)
        return len(waiting)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, jobs: Jobs) -> World:
    """The world of a run; what waits for a commit is done as if it came at once."""
    fake = World(jobs=jobs)
    for name in ("enqueue_advance", "enqueue_call", "waiting_calls"):
        monkeypatch.setattr(queues, name, getattr(fake, name))
    monkeypatch.setattr(transaction, "on_commit", lambda function, **_: function())
    monkeypatch.setitem(STRATEGIES, "plain", INFO)
    return fake


@pytest.fixture
def model(db: None) -> LanguageModel:
    """A language model that can be called, at 1 and 2 USD a million tokens."""
    return LanguageModel.objects.create(
        name=MODEL, base_url="http://127.0.0.1:9/v1", price_in_usd=1.0, price_out_usd=2.0,
        created_at=make.NOW,
    )  # fmt: skip


@pytest.fixture
def start(model: LanguageModel, world: World) -> Start:
    """Starts a run of the strategy `plain` on a task with a naive kernel."""

    def started(**overrides: Any) -> Run:
        user = overrides.pop("user", None) or make.make_user()
        version = overrides.pop("task_version", None) or make.make_task_version()
        make.make_cpu()
        document: dict[str, Any] = {
            "task": version.task.slug, "device": "cpu", "strategy": "plain", "models": [MODEL],
            "budget": {"evaluations": 50, "usd": 5.0}, "seed": 7,
            "ranks_best": False,  # see test_ranking.py
        }  # fmt: skip
        request = read_run_request({**document, **overrides})
        return start_run(user=user, request=request, now=make.NOW)

    return started
