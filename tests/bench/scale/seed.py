"""A site of many years: users, agents, submissions, evaluations, runs, drawn from one seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import OuterRef, Subquery

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from runs_app.core.work import replaced
from runs_app.models import (
    Agent,
    Candidate,
    Device,
    Evaluation,
    EvaluationEvent,
    LanguageModel,
    Result,
    Run,
    RunEvent,
    Submission,
)
from tasks_app.models import Task
from tests import factories
from tests.bench.scale.bulk import insert
from tests.browser import invented

_DAYS = 365
_PER_SUBMISSION = 20
_CANDIDATES_A_RUN = 50
_UNDER_WAY = 600
_WORKLOADS = 2
"""Workloads that a stored result keeps: 5 KB, where a real one has 30."""
_AGENTS, _MODELS = 200, 20
_SOURCE = 'extern "C" void kernel(float* out, const float* x, int N) { out[0] = N * x[0]; }\n'


@dataclass(frozen=True)
class Problem:
    """A version, direction and device that kernels compete on, and its level in nanoseconds."""

    version: int
    direction: str
    language: str
    devices: tuple[str, ...]
    level_ns: float
    result: dict[str, Any]
    task: str


class Seed:
    """Draws everything; the same size and moment give the same site but for ids."""

    def __init__(self, evaluations: int, now: datetime) -> None:
        """With so many evaluations, a tenth of candidates, a hundredth of users."""
        self.random = random.Random(1)
        self.now = now
        self.count = evaluations
        self.users = max(evaluations // 100, 10)
        self.submissions = max(evaluations // _PER_SUBMISSION, 10)
        self.runs = max(evaluations // 10 // _CANDIDATES_A_RUN, 2)
        self.problems: list[Problem] = []
        self.kernels: list[tuple[uuid.UUID, Problem, float]] = []
        self.finished: dict[tuple[uuid.UUID, str], tuple[uuid.UUID, dict[str, Any]]] = {}

    def store(self) -> dict[str, int]:
        """Fill an empty, migrated database; returns rows by kind."""
        call_command("load_tasks", "--brief", verbosity=0)
        self._devices()
        self.problems = [each for task in self._tasks() for each in self._problems_of(task)]
        counts = {
            "users": insert(User, self._users()),
            "agents": insert(Agent, self._agents()),
            "language models": insert(LanguageModel, self._models()),
            "submissions": insert(Submission, self._submissions()),
            "evaluations": insert(Evaluation, self._evaluations()),
            "results": insert(Result, self._results()),
            "evaluation events": insert(EvaluationEvent, self._events()),
            "runs": insert(Run, self._runs()),
            "candidates": insert(Candidate, self._candidates()),
            "run events": insert(RunEvent, self._run_events()),
        }
        replaced.settle(Submission.objects.values("pk"))
        last = Candidate.objects.filter(run=OuterRef("pk"), number=_CANDIDATES_A_RUN)
        Run.objects.filter(pk__in=self.run_ids[:900]).update(best=Subquery(last.values("pk")[:1]))
        return counts

    def _devices(self) -> None:
        factories.make_cpu()
        for slug, name in (("nvidia-h100", "NVIDIA H100"), ("nvidia-h200", "NVIDIA H200")):
            factories.make_device(slug=slug, name=name, created_at=self.now)
        for device in Device.objects.all():
            factories.make_runner(device=device, seen_at=self.now)

    def _tasks(self) -> list[Task]:
        rows = Task.objects.filter(state=Task.State.PUBLISHED).select_related("current_version")
        return list(rows.order_by("slug"))

    def _problems_of(self, task: Task) -> Iterator[Problem]:
        version = task.current_version
        assert version is not None
        level = self.random.uniform(5e3, 5e6)
        for direction in version.data.directions:
            for language, devices in (
                (Language.CPP, ("cpu",)),
                (Language.CUDA, ("nvidia-h100", "nvidia-h200")),
            ):
                request = EvaluationRequest(
                    evaluation_id="x",
                    task=version.data,
                    solution=Solution(source=_SOURCE, language=language, direction=direction),
                    mode=Mode.RANKED,
                    device=devices[0],
                    attempt=1,
                )
                result = codec.encode(invented.result(self.random, request, Verdict.CORRECT))
                result["workloads"] = result["workloads"][:_WORKLOADS]
                yield Problem(
                    version=version.pk,
                    direction=direction.value,
                    language=language.value,
                    devices=devices,
                    level_ns=level,
                    result=result,
                    task=task.slug,
                )

    def _moment(self, share: float) -> datetime:
        """A moment of the last year, the newest at share 1."""
        return self.now - timedelta(days=_DAYS * (1 - share), seconds=60)

    def _users(self) -> Iterator[dict[str, Any]]:
        for number in range(1, self.users + 1):
            yield {
                "id": number,
                "username": f"user{number}",
                "password": "!",
                "date_joined": self._moment(number / self.users),
            }

    def _agents(self) -> Iterator[dict[str, Any]]:
        for number in range(1, _AGENTS + 1):
            yield {"id": number, "name": f"agent-{number}", "created_at": self._moment(0)}

    def _models(self) -> Iterator[dict[str, Any]]:
        for number in range(1, _MODELS + 1):
            yield {"id": number, "name": f"model-{number}", "created_at": self._moment(0)}

    def _submissions(self) -> Iterator[dict[str, Any]]:
        for number in range(self.submissions):
            problem = self.random.choice(self.problems)
            agent = self.random.randint(1, _AGENTS)
            level = self.random.lognormvariate(0.3, 0.5) * (0.5 + agent / _AGENTS)
            identity = uuid.UUID(int=self.random.getrandbits(128), version=4)
            self.kernels.append((identity, problem, level))
            yield {
                "id": identity,
                "author_id": self.random.randint(1, self.users),
                "task_version_id": problem.version,
                "source": _SOURCE,
                "language": problem.language,
                "direction": problem.direction,
                "digest": f"{self.random.getrandbits(256):064x}",
                "agent_id": agent,
                "language_model_id": self.random.choice((None, *range(1, _MODELS + 1))),
                "private": self.random.random() < 0.05,
                "origin": self.random.choice(("person", "api", "api")),
                "created_at": self._moment(number / self.submissions),
            }

    def _evaluations(self) -> Iterator[dict[str, Any]]:
        for number in range(self.count):
            submission, problem, level = self.random.choice(self.kernels)
            device = self.random.choice(problem.devices)
            row = self._evaluation(number, submission, problem, device)
            if number < self.count - _UNDER_WAY:
                self._end(row, problem, level)
            yield row

    def _evaluation(
        self, number: int, submission: uuid.UUID, problem: Problem, device: str
    ) -> dict[str, Any]:
        created = self._moment(number / self.count)
        runs = self.count - _UNDER_WAY <= number < self.count - _UNDER_WAY + 4
        names = (
            "latency_ns",
            "speedup_best",
            "speedup_eager",
            "speedup_compiled",
            "score",
            "merit",
        )
        more = ("latency_spread", "speedup_spread", "unlisted_speedup", "floor_fraction")
        return dict.fromkeys((*names, *more)) | {
            "id": uuid.UUID(int=self.random.getrandbits(128), version=4),
            "device_id": device,
            "status": "RUNNING" if runs else "QUEUED",
            "submission_id": submission,
            "task_version_id": problem.version,
            "direction": problem.direction,
            "mode": "ranked",
            "verdict": "",
            "audited": "none",
            "events_stored": 1,
            "created_at": created,
            "queued_at": created,
            "started_at": created if runs else None,
            "last_event_at": created if runs else None,
            "finished_at": None,
        }

    def _end(self, row: dict[str, Any], problem: Problem, level: float) -> None:
        right = self.random.random() < 0.8
        started = row["created_at"] + timedelta(seconds=self.random.expovariate(1 / 30))
        row |= {
            "status": "FINISHED",
            "started_at": started,
            "last_event_at": started,
            "finished_at": started + timedelta(seconds=8),
            "verdict": "CORRECT" if right else self.random.choice(("WRONG_RESULT", "VIOLATION")),
        }
        if not right:
            return
        speedup = level * self.random.uniform(0.97, 1.03)
        row |= {
            "latency_ns": problem.level_ns / speedup,
            "speedup_best": speedup,
            "speedup_eager": speedup * 1.2,
            "speedup_compiled": speedup,
            "latency_spread": 0.01,
            "speedup_spread": 0.015,
            "unlisted_speedup": speedup * 1.1,
            "floor_fraction": min(speedup / 10, 0.99),
            "score": speedup,
            "merit": speedup,
            "audited": "passed" if self.random.random() < 0.02 else "none",
        }
        self.finished[row["submission_id"], row["device_id"]] = (row["id"], problem.result)

    def _results(self) -> Iterator[dict[str, Any]]:
        """Of the latest correct one of each submission and device."""
        for evaluation, document in self.finished.values():
            yield {"evaluation_id": evaluation, "document": document}

    def _events(self) -> Iterator[dict[str, Any]]:
        newest = list(self.finished.values())[-self.count // 10 :]
        for number, (evaluation, _) in enumerate(newest, 1):
            yield {
                "id": number,
                "evaluation_id": evaluation,
                "position": 1,
                "attempt": 1,
                "kind": "queued",
                "payload": {"reason": ""},
                "created_at": self.now,
            }

    def _runs(self) -> Iterator[dict[str, Any]]:
        self.run_ids = [uuid.uuid4() for _ in range(self.runs)]
        template = factories.make_run(device=Device.objects.get(pk="cpu"))
        for number, identity in enumerate(self.run_ids):
            problem = self.random.choice(self.problems)
            at = self._moment(number / self.runs)
            yield {
                "id": identity,
                "user_id": self.random.randint(1, self.users),
                "agent_id": template.agent_id,
                "task_version_id": problem.version,
                "direction": problem.direction,
                "device_id": problem.devices[0],
                "strategy": self.random.choice(("autotune", "islands", "translate")),
                "seed": number,
                "config": template.config,
                "problem": template.problem,
                "private": number % 20 == 1,
                "status": "FINISHED",
                "evaluations": _CANDIDATES_A_RUN,
                "candidates_made": _CANDIDATES_A_RUN,
                "seed_latency_ns": 2000.0,
                "best_latency_ns": 1000.0,
                "events_stored": 3 * _CANDIDATES_A_RUN,
                "created_at": at,
                "advanced_at": at,
                "ended_at": at,
            }

    def _candidates(self) -> Iterator[dict[str, Any]]:
        for place, run in enumerate(self.run_ids):
            for number in range(1, _CANDIDATES_A_RUN + 1):
                latency = 2000.0 - 20 * number
                yield {
                    "id": place * _CANDIDATES_A_RUN + number,
                    "run_id": run,
                    "number": number,
                    "source": _SOURCE,
                    "digest": f"{self.random.getrandbits(256):064x}",
                    "edit": "seed" if number == 1 else "knobs",
                    "parents": [number - 1] if number > 1 else [],
                    "title": f"tile of {number}",
                    "state": "measured",
                    "measured": ["profile"],
                    "verdict": "CORRECT",
                    "latency_ns": latency,
                    "speedup": 1000.0 / latency,
                    "feedback": {"verdict": "CORRECT", "reason": "", "workloads": []},
                    "created_at": self.now,
                    "measured_at": self.now,
                }

    def _run_events(self) -> Iterator[dict[str, Any]]:
        number = 0
        for run in self.run_ids:
            for seq in range(1, 3 * _CANDIDATES_A_RUN + 1):
                number += 1
                yield {
                    "id": number,
                    "run_id": run,
                    "seq": seq,
                    "kind": "note",
                    "payload": {"text": f"step {seq}"},
                    "created_at": self.now,
                }
