"""Invented runs: events that nobody measured, stored as the site would store them.

`python -m tests.browser.invented_run CANDIDATES [STRATEGY]` adds one to a test site, and prints
its address; never on a site that people use.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402

from gpu_runner.data import codec  # noqa: E402
from gpu_runner.data.verdict import Mode  # noqa: E402
from runs_app.models import (  # noqa: E402
    Agent,
    Candidate,
    Device,
    LanguageModel,
    LanguageModelCall,
    Run,
    RunEvent,
)
from runs_app.optimiser.evolve import events  # noqa: E402
from runs_app.optimiser.evolve.commands import Edit, Place, Role  # noqa: E402
from runs_app.optimiser.evolve.config import (  # noqa: E402
    Budget,
    ModelSpec,
    Problem,
    RunConfig,
    VerifierConfig,
)
from runs_app.optimiser.evolve.events import Event  # noqa: E402
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime  # noqa: E402
from tasks_app.models import TaskVersion  # noqa: E402
from tasks_app.selectors import published_tasks  # noqa: E402

MODELS = ("claude-opus-4.5", "gpt-5.1", "deepseek-v3.2")
VERIFIERS = ("compile", "memory", "numerics")
_SEED_NS = 84_000.0
_BASELINE_NS = 41_000.0
_FLOOR_NS = 9_500.0
_FAILURES = ("COMPILE_ERROR", "COMPILE_ERROR", "WRONG_RESULT", "RUNTIME_ERROR", "TIME_LIMIT",
             "VIOLATION", "UNSTABLE")  # fmt: skip
_TECHNIQUES = ("shared memory", "vector loads", "blocking", "simd", "unrolling")
_TITLES = ("Tile rows in registers", "Vectorise the inner loop", "Fuse both passes",
           "Prefetch the next tile", "Unroll by four", "Split the reduction")  # fmt: skip
_WIDTH = 12  # candidates of a generation


@dataclass
class World:
    """Decides what happens, one candidate after the other."""

    rng: random.Random
    strategy: str
    asks: int = 0
    times: dict[int, float] = field(default_factory=dict)
    best_ns: float = float("inf")

    def candidate(self, number: int) -> Iterator[Event]:
        """The events of one candidate's life."""
        place = Place(
            generation=(number + _WIDTH - 2) // _WIDTH,
            slot=(number - 2) % _WIDTH if number > 1 else 0,
            island=number % 4 if self.strategy == "islands" and number > 1 else 0,
        )
        parents = self._parents()
        model = "" if number == 1 or self.strategy == "autotune" else self.rng.choice(MODELS)
        ask = None
        if model:
            ask = yield from self._asked(Role.PROPOSE, model, place, parents)
        edit = Edit.SEED if number == 1 else Edit.REWRITE if model else Edit.KNOBS
        yield events.Drafted(
            number=number, digest=f"{number:064d}", edit=edit, place=place, ask=ask, model=model,
            parents=parents, title="kbench-naive" if number == 1 else self.rng.choice(_TITLES),
            knobs={} if model or number == 1 else {"TILE": str(2 ** self.rng.randint(2, 7))},
            techniques=tuple(self.rng.sample(_TECHNIQUES, 2)),
        )  # fmt: skip
        passes = yield from self._votes(number, model, place)
        if not passes:
            yield events.Dropped(candidate=number, reason="1 of 3 verifiers let it pass")
            return
        yield events.Measuring(candidate=number, mode=Mode.QUICK)
        yield self._measured(number)

    def _parents(self) -> tuple[int, ...]:
        fast = sorted(self.times, key=lambda number: self.times[number])[:8]
        if not fast:
            return ()
        return tuple(self.rng.sample(fast, min(len(fast), 2 if self.rng.random() < 0.15 else 1)))

    def _asked(
        self, role: Role, model: str, place: Place, parents: tuple[int, ...] = (), about: int = 0
    ) -> Iterator[Event]:
        self.asks += 1
        number = self.asks
        yield events.Asked(
            number=number, role=role, place=place, model=model, temperature=0.75, prompt="propose",
            prompt_version=1, max_tokens=8192, worst_usd=0.09, worst_tokens=14_000,
            parents=parents, about=about or None,
            verifier=VERIFIERS[number % 3] if role is Role.VERIFY else "",
        )  # fmt: skip
        tokens = self.rng.randint(800, 4000)
        yield events.Answered(
            ask=number, tokens_in=3500, tokens_out=tokens, cost_usd=tokens * 4e-6, latency_s=12.0
        )
        return number

    def _votes(self, number: int, model: str, place: Place) -> Iterator[Event]:
        if not model:
            return True
        votes = []
        for verifier in VERIFIERS:
            ask = yield from self._asked(Role.VERIFY, model, place, about=number)
            votes.append(self.rng.random() < 0.8)
            yield events.Voted(candidate=number, verifier=verifier, passes=votes[-1], ask=ask)
        return sum(votes) > 1

    def _measured(self, number: int) -> events.Measured:
        if number > 1 and self.rng.random() < 0.3:
            return events.Measured(
                candidate=number,
                mode=Mode.QUICK,
                verdict=self.rng.choice(_FAILURES),
                reason="kernel.cpp:3:14: error: 'vec' was not declared in this scope",
            )
        base = min(self.best_ns, _SEED_NS)
        latency = _SEED_NS if number == 1 else base * self.rng.lognormvariate(0.16, 0.22)
        latency = max(latency, _FLOOR_NS * 1.3)
        best = latency < self.best_ns
        self.best_ns = min(self.best_ns, latency)
        self.times[number] = latency
        return events.Measured(
            candidate=number, mode=Mode.QUICK, verdict="CORRECT", reason="", latency_ns=latency,
            spread=0.012, speedup=_BASELINE_NS / latency, floor_fraction=_FLOOR_NS / latency,
            bottleneck=self.rng.choice(("compute", "memory", "latency")), best=best,
        )  # fmt: skip


def make_run(
    version: TaskVersion, candidates: int, strategy: str = "islands", **columns: Any
) -> Run:
    """A run with so many candidates, all its events, rows of candidates and calls."""
    started = datetime.now(UTC) - timedelta(seconds=4 * candidates)
    for name in MODELS:
        LanguageModel.objects.get_or_create(name=name, defaults={"created_at": started})
    config = RunConfig(
        strategy=strategy,
        seed=7,
        models=() if strategy == "autotune" else tuple(ModelSpec(name=name) for name in MODELS),
        budget=Budget(usd=200.0, tokens=200_000_000, evaluations=10 * candidates),
        verifiers=VerifierConfig(names=() if strategy == "autotune" else VERIFIERS),
    )
    problem = Problem(
        task=version.task.slug, title=version.task.title, description="", abi=version.data.abi,
        signature=version.data.signature, direction=version.data.directions[0], dtype="float32",
        language=Device.objects.get(slug="cpu").language, device_name="CPU", device_kind="cpu",
        reference="", workloads=(), toolchain="g++ -O3", seed_title="kbench-naive",
        baselines_ns={"eager": 61_000.0, "compiled": _BASELINE_NS}, floor_ns=_FLOOR_NS,
    )  # fmt: skip
    agent, _ = Agent.objects.get_or_create(
        name=f"kbench-{strategy}", defaults={"kind": "agent", "created_at": started}
    )
    fields = {
        "user": User.objects.first(), "agent": agent, "task_version": version,
        "direction": "forward", "device": Device.objects.get(slug="cpu"), "strategy": strategy,
        "seed": 7,
        "config": codec.encode(config), "problem": codec.encode(problem), "created_at": started,
        "resumed_at": started,
    }  # fmt: skip
    run = Run.objects.create(**{**fields, **columns})
    Writer(run, started).write(World(random.Random(5), strategy), candidates)
    return run


@dataclass
class Writer:
    """Stores events in bulk, with the rows that repeat them."""

    run: Run
    now: datetime
    events: list[RunEvent] = field(default_factory=list)
    rows: dict[int, Candidate] = field(default_factory=dict)
    calls: dict[int, LanguageModelCall] = field(default_factory=dict)

    def write(self, world: World, candidates: int) -> None:
        """Everything that `world` decides of the first candidates."""
        self._event("started", {"by": "ada"})
        models = {model.name: model for model in LanguageModel.objects.all()}
        for number in range(1, candidates + 1):
            for event in world.candidate(number):
                self.now += timedelta(seconds=0.7)
                self._event(events.kind_of(event), events.encode(event))
                self._project(event, models)
        LanguageModelCall.objects.bulk_create(self.calls.values(), batch_size=500)
        Candidate.objects.bulk_create(self.rows.values(), batch_size=500)
        RunEvent.objects.bulk_create(self.events, batch_size=2000)
        self._summarise(candidates)

    def _event(self, kind: str, payload: dict[str, Any]) -> None:
        seq = len(self.events) + 1
        self.events.append(
            RunEvent(run=self.run, seq=seq, kind=kind, payload=payload, created_at=self.now)
        )

    def _project(self, event: Event, models: dict[str, LanguageModel]) -> None:
        match event:
            case events.Asked():
                self.calls[event.number] = LanguageModelCall(
                    run=self.run, number=event.number, role=event.role.value,
                    verifier=event.verifier,
                    about=event.about, edit=event.edit.value,
                    language_model=models[event.model], prompt=event.prompt,
                    messages=[{"role": "user", "content": "Make this kernel faster."}],
                    temperature=0.75, max_tokens=8192, created_at=self.now,
                )  # fmt: skip
            case events.Answered():
                call = self.calls[event.ask]
                call.status, call.ended_at, call.told = "ANSWERED", self.now, True
                call.response = "I tile the rows.\n\n```cpp\nint tile = 8;\n```\n"
                call.tokens_in, call.tokens_out = event.tokens_in, event.tokens_out
                call.cost_usd = event.cost_usd
            case events.Drafted():
                self.rows[event.number] = self._row(event)
            case events.Voted():
                self.rows[event.candidate].votes[event.verifier] = event.passes
            case events.Dropped():
                self.rows[event.candidate].state = "dropped"
                self.rows[event.candidate].reason = event.reason
            case events.Measuring():
                self.rows[event.candidate].state = "measuring"
            case events.Measured():
                _measured(self.rows[event.candidate], event)

    def _row(self, event: events.Drafted) -> Candidate:
        body = "\n".join(f"    out[i + {k}] = x[i + {k}] * {event.number % 97};" for k in range(12))
        return Candidate(
            run=self.run, number=event.number, digest=event.digest, edit=event.edit.value,
            parents=list(event.parents),
            source=f'extern "C" void scale(float* out) {{\n{body}\n}}\n',
            generation=event.place.generation, slot=event.place.slot, island=event.place.island,
            call=self.calls[event.ask] if event.ask else None, model=event.model, title=event.title,
            knobs=dict(event.knobs), techniques=list(event.techniques), created_at=self.now,
        )  # fmt: skip

    def _summarise(self, candidates: int) -> None:
        run = self.run
        correct = [row for row in self.rows.values() if row.latency_ns]
        run.best = min(correct, key=lambda row: row.latency_ns or 0.0, default=None)
        run.best_latency_ns = run.best.latency_ns if run.best else None
        run.seed_latency_ns = self.rows[1].latency_ns if self.rows else None
        run.candidates_made, run.events_stored = candidates, len(self.events)
        run.evaluations = sum(row.state == "measured" for row in self.rows.values())
        run.usd = sum(call.cost_usd for call in self.calls.values())
        run.tokens = sum(call.tokens_in + call.tokens_out for call in self.calls.values())
        run.save()


def _measured(row: Candidate, event: events.Measured) -> None:
    row.state, row.verdict, row.reason = "measured", event.verdict, event.reason
    row.latency_ns, row.spread, row.speedup = event.latency_ns, event.spread, event.speedup
    row.floor_fraction, row.bottleneck = event.floor_fraction, event.bottleneck
    row.was_best = event.best
    times = (
        WorkloadTime(
            name="n4096", parameters={"N": "4096"}, time_ns=event.latency_ns,
            low_ns=event.latency_ns * 0.99, high_ns=event.latency_ns * 1.01,
            baseline_ns=_BASELINE_NS, floor_ns=_FLOOR_NS,
        ),
    ) if event.latency_ns else ()  # fmt: skip
    row.feedback = codec.encode(
        Feedback(
            verdict=event.verdict,
            reason=event.reason,
            latency_ns=event.latency_ns,
            workloads=times,
            build_log=f"{event.reason}\n" if event.verdict == "COMPILE_ERROR" else "",
            profile_tool="counters",
            profile={"ipc": 1.8, "cache_miss_rate": 0.034} if event.latency_ns else {},
        )
    )


def main() -> None:
    """Add a run to the site of the environment."""
    candidates = int(sys.argv[1])
    strategy = sys.argv[2] if len(sys.argv) > 2 else "islands"
    task = published_tasks().filter(slug="softmax").first() or published_tasks().first()
    assert task is not None
    assert task.current_version is not None
    columns = {"user": User.objects.get(username="ada")}
    print(make_run(task.current_version, candidates, strategy, **columns).get_absolute_url())


if __name__ == "__main__":
    main()
