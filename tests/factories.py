"""Plain functions that make rows and documents for tests; nothing in them is random but ids."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineReport
from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.event import Event, EventKind, RunnerState
from gpu_runner.data.order import Ask
from gpu_runner.data.queue import Urgency
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from kbench_web.accounts.tokens import create_token
from kbench_web.models import ApiToken
from runs_app.core.runners import results
from runs_app.core.runners.events import Sender, record_event
from runs_app.core.work import lifecycle
from runs_app.models import (
    Agent,
    Audited,
    BaselineMeasurement,
    Candidate,
    Evaluation,
    LanguageModel,
    Run,
    RunEvent,
    Runner,
    RunnerJob,
    RunnerToken,
    Status,
    Submission,
)
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Budget, Problem, RunConfig
from runs_app.submitting.services import submit
from tests.basic_factories import (  # noqa: F401
    HIDDEN_WORKLOAD,
    NOW,
    NUMBERS,
    SOURCE,
    later,
    make_admin,
    make_cpu,
    make_device,
    make_task,
    make_task_version,
    make_user,
)


def make_runner_token(**overrides: Any) -> RunnerToken:
    """A runner that the admins control and that serves any device; its name is "test"."""
    fields: dict[str, Any] = {
        "digest": secrets.token_hex(32),
        "prefix": "kbr_12345",
        "serves": RunnerToken.Serves.ANY,
        "trusted": True,
        "created_at": NOW,
        **overrides,
    }
    name = fields.pop("name", "test")
    return RunnerToken.objects.get_or_create(name=name, defaults=fields)[0]


def make_runner(**overrides: Any) -> Runner:
    """A runner of the CPU that is ready; `name` is what it calls itself."""
    token = overrides.pop("token", None) or make_runner_token()
    own_name = overrides.pop("name", None) or f"runner{next(NUMBERS)}"
    fields: dict[str, Any] = {
        "token": token,
        "name": f"{token.name}.{own_name}",
        "boot_id": "boot-1",
        "state": Runner.State.READY,
        "jail": True,
        "booted_at": NOW,
        "seen_at": NOW,
    }
    if "device" not in overrides:
        fields["device"] = make_cpu()
    return Runner.objects.create(**{**fields, **overrides})


def make_submission(**overrides: Any) -> Submission:
    """A submission with one queued evaluation on the CPU."""
    make_cpu()
    fields: dict[str, Any] = {"source": SOURCE, "device": "cpu", "now": NOW}
    if "user" not in overrides:
        known = Agent.objects.filter(name=overrides.get("agent", ""), owner__isnull=False).first()
        fields["user"] = known.owner if known else make_user()
    if "task_version" not in overrides:
        fields["task_version"] = make_task_version()
    return submit(**{**fields, **overrides})


def make_evaluation(**overrides: Any) -> Evaluation:
    """The queued evaluation of a new submission; the overrides are the submission's."""
    return make_submission(**overrides).evaluations.get()


def make_finished_evaluation(
    verdict: Verdict = Verdict.CORRECT, result: dict[str, Any] | None = None, **overrides: Any
) -> Evaluation:
    """An evaluation that came to its end; `result` overrides fields of its result.

    Each ranked one is of a source of its own, unless told otherwise: those of one share a score.
    """
    if overrides.get("mode") == "ranked":
        overrides.setdefault("source", f"{SOURCE}// {Evaluation.objects.count()}\n")
    evaluation = make_evaluation(**overrides)
    document = make_result(evaluation, verdict=verdict, **(result or {}))
    send(evaluation, EventKind.STARTED, {"runner": "nobody", "at": 0.0}, seq=1)
    send(evaluation, EventKind.FINISHED, {"result": codec.encode(document)}, seq=2)
    evaluation.refresh_from_db()
    return evaluation


def make_measurement(time_ns: float = 1000.0, spread: float = 0.01) -> Measurement:
    """A median with an interval of `spread` on both sides."""
    low_ns, high_ns = time_ns * (1 - spread), time_ns * (1 + spread)
    return Measurement(time_ns=time_ns, low_ns=low_ns, high_ns=high_ns, calls=30)


BASELINES_NS = {"eager": 2000.0, "compiled": 1500.0, "best": 1500.0}
"""What correct results of tests are compared with."""


def make_workload_result(**overrides: Any) -> WorkloadResult:
    """A measured listed workload, twice as fast as eager and 1.5 times as compiled."""
    fields: dict[str, Any] = {
        "name": "n256", "parameters": {"N": 256}, "hidden": False,
        "measurement": make_measurement(1000.0),
        "baselines": {"eager": make_measurement(2000.0), "compiled": make_measurement(1500.0)},
        "speedups": {"eager": 2.0, "compiled": 1.5, "best": 1.5},
    }  # fmt: skip
    return WorkloadResult(**{**fields, **overrides})


def make_result(evaluation: Evaluation, **overrides: Any) -> EvaluationResult:
    """The result of an evaluation, correct unless told otherwise."""
    verdict = overrides.get("verdict", Verdict.CORRECT)
    fields: dict[str, Any] = {
        "evaluation_id": str(evaluation.pk),
        "attempt": evaluation.attempt, "verdict": verdict, "reason": "all outputs are right",
        "mode": Mode(evaluation.mode), "device": evaluation.device_id,
        "task": evaluation.task_version.task.slug,
        "task_digest": evaluation.task_version.digest,
        "solution_digest": evaluation.submission.digest,
    }  # fmt: skip
    if verdict is Verdict.CORRECT:
        latency_ns = overrides.get("latency_ns", 1000.0)
        usual = {name: ns / latency_ns for name, ns in BASELINES_NS.items()}
        listed = overrides.get("speedups", usual)
        fields |= {
            "latency_ns": latency_ns,
            "speedups": listed,
            "unlisted_speedups": listed,
            "floor_fraction": 0.5,
            "p_score": 1.5,
            "workloads": (
                make_workload_result(),
                make_workload_result(name=HIDDEN_WORKLOAD, parameters={"N": 1777}, hidden=True),
            ),
        }
    return EvaluationResult(**{**fields, **overrides})


def baseline_report(measurement: BaselineMeasurement, **overrides: Any) -> dict[str, Any]:
    """A runner's report of the baselines of the one listed workload."""
    fields: dict[str, Any] = {
        "task_digest": measurement.version.digest,
        "baselines": {"n256": make_workload_result().baselines},
    }
    document: dict[str, Any] = codec.encode(BaselineReport(**{**fields, **overrides}))
    return document


def pass_audits() -> None:
    """Let every ranked result have passed its audit, so that its figure is sure."""
    Evaluation.objects.filter(mode=Mode.RANKED.value).update(audited=Audited.PASSED)


def make_event(job: RunnerJob, /, **overrides: Any) -> Event:
    """A runner's event about a job."""
    fields: dict[str, Any] = {
        "job": job.KIND,
        "job_id": str(job.pk),
        "attempt": job.attempt,
        "seq": 1,
        "kind": EventKind.STARTED,
        "payload": {"runner": "nobody", "at": 0.0},
    }
    return Event(**{**fields, **overrides})


def make_runner_state(**overrides: Any) -> RunnerState:
    """A heartbeat of a ready runner of the CPU."""
    fields: dict[str, Any] = {
        "name": "host-1",
        "boot_id": "boot-1",
        "device": "cpu", "device_kind": DeviceKind.CPU.value, "device_name": "CPU",
        "state": "ready", "reason": "",
        "jail": True,
        "current": (),
        "builds": 1,
        "version": "0.1.0",
        "at": 0.0,
    }  # fmt: skip
    return RunnerState(**{**fields, **overrides})


def make_heartbeat(**overrides: Any) -> Event:
    """The event of a heartbeat."""
    payload = codec.encode(make_runner_state(**overrides))
    return Event(job_id="", attempt=0, seq=0, kind=EventKind.RUNNER, payload=payload)


def make_token(user: User, **overrides: Any) -> str:
    """The text of an API token of `user`, valid for a day from now."""
    fields: dict[str, Any] = {
        "name": "test",
        "scopes": ApiToken.Scope.values,
        "lifetime": timedelta(days=1),
        "now": datetime.now(UTC),
    }
    return create_token(user=user, **{**fields, **overrides})[1]


def hand_over(job: RunnerJob, runner: str = "nobody", now: datetime = NOW) -> Runner:
    """Give a job that waits to the runner that calls itself so, made if there is none."""
    name = f"test.{runner}"
    found = Runner.objects.select_related("token").filter(name=name).first()
    holder = found or make_runner(name=runner, device=job.device)
    with transaction.atomic():
        locked = lifecycle.lock(type(job), job.pk)
        if locked.status == Status.QUEUED:
            lifecycle.give_to_runner(locked, runner=holder, ticket=secrets.token_hex(16), now=now)
    return holder


def make_ask(runner: Runner, /, **overrides: Any) -> Ask:
    """What a runner asks that would take anything."""
    fields: dict[str, Any] = {
        "runner": runner.own_name,
        "boot_id": runner.boot_id,
        "device": runner.device_id,
        "urgencies": tuple(Urgency),
        "ticket": secrets.token_hex(16),
    }
    return Ask(**{**fields, **overrides})


def send(
    job: RunnerJob,
    kind: EventKind,
    payload: dict[str, Any],
    *,
    seq: int = 1,
    now: datetime = NOW,
) -> bool:
    """Record an event of the job's current attempt, as the ingester would.

    A job that waits is handed over first. Results are believed, whatever is in them.
    """
    if type(job)._default_manager.filter(pk=job.pk, status=Status.QUEUED).exists():
        hand_over(job, now=now)
    event = make_event(job, kind=kind, payload=payload, seq=seq)
    with mock.patch.object(results, "check_plausible"):
        return record_event(event=event, sender=make_sender(), now=now)


def make_sender(**overrides: Any) -> Sender:
    """Whose word a test's events are."""
    return Sender(token=make_runner_token(**overrides))


def beat(*, now: datetime = NOW, token: RunnerToken | None = None, **overrides: Any) -> bool:
    """Record a heartbeat."""
    sender = Sender(token=token or make_runner_token())
    return record_event(event=make_heartbeat(**overrides), sender=sender, now=now)


def start(job: RunnerJob, runner: str = "nobody", now: datetime = NOW) -> None:
    """Let a runner begin with a job."""
    hand_over(job, runner, now)
    send(job, EventKind.STARTED, {"runner": runner, "at": 0.0}, seq=1, now=now)
    job.refresh_from_db()
    assert job.status == Status.RUNNING


def finish(evaluation: Evaluation, **overrides: Any) -> None:
    """Let a runner begin with an evaluation and end it; the overrides are its result's."""
    start(evaluation)
    document = codec.encode(make_result(evaluation, **overrides))
    send(evaluation, EventKind.FINISHED, {"result": document}, seq=2)


def make_run(**overrides: Any) -> Run:
    """A running autotune run on the CPU, of which nothing has happened yet."""
    version = overrides.get("task_version") or make_task_version()
    strategy = overrides.get("strategy", "autotune")
    config = overrides.pop("config", None) or RunConfig(
        strategy=strategy, seed=7, budget=Budget(evaluations=40, wall_time_s=600)
    )
    running = overrides.get("status", Run.Status.RUNNING) == Run.Status.RUNNING
    ended = overrides.get("status") in (Run.Status.FINISHED, Run.Status.STOPPED)
    agent, _ = Agent.objects.get_or_create(
        name=f"kbench-{strategy}", defaults={"kind": Agent.Kind.AGENT, "created_at": NOW}
    )
    fields: dict[str, Any] = {
        "agent": agent,
        "task_version": version,
        "direction": Direction.FORWARD.value,
        "strategy": strategy,
        "seed": config.seed,
        "config": codec.encode(config),
        "problem": codec.encode(make_problem()),
        "created_at": NOW,
        "resumed_at": NOW if running else None,
        "ended_at": NOW if ended else None,
    }
    if "device" not in overrides:
        fields["device"] = make_cpu()
    if "user" not in overrides:
        fields["user"] = make_user()
    return Run.objects.create(**{**fields, **overrides})


def make_problem(**overrides: Any) -> Problem:
    """What a prompt tells of the task that `make_task` makes."""
    fields: dict[str, Any] = {
        "task": "scale",
        "title": "Scale a vector",
        "description": "",
        "abi": Abi.C,
        "signature": "void scale(float* out, const float* x, int N)",
        "direction": Direction.FORWARD,
        "dtype": "float32",
        "language": Language.CPP,
        "device_name": "CPU",
        "device_kind": DeviceKind.CPU,
        "reference": "def make_inputs(N):\n    return {}\n",
        "workloads": ("n256: N=256",),
        "toolchain": "g++ -O3",
        "seed_source": SOURCE,
        "seed_title": "kbench-good",
    }
    return Problem(**{**fields, **overrides})


def give_to_run(submission: Submission, run: Run | None = None) -> None:
    """Have a submission measure a candidate of `run`, or of a new run."""
    run = run or make_run(task_version=submission.task_version)
    submission.run, submission.origin = run, Submission.Origin.RUN
    submission.save()
    submission.evaluations.update(queue_place=Urgency.RUNS.place)


def make_candidate(run: Run, **overrides: Any) -> Candidate:
    """The next candidate of a run, drafted and not measured."""
    run.candidates_made += 1
    run.save()
    fields: dict[str, Any] = {
        "number": run.candidates_made,
        "source": SOURCE,
        "digest": "0" * 64,
        "edit": "knobs" if run.candidates_made > 1 else "seed",
        "parents": [1] if run.candidates_made > 1 else [],
        "created_at": NOW,
    }
    return Candidate.objects.create(run=run, **{**fields, **overrides})


def make_run_event(
    run: Run, kind: str | events.Event, payload: dict[str, Any] | None = None, now: datetime = NOW
) -> RunEvent:
    """The next event of a run: one of the optimiser's, or a kind with its payload."""
    if not isinstance(kind, str):
        kind, payload = events.kind_of(kind), events.encode(kind)
    run.events_stored += 1
    run.save()
    return RunEvent.objects.create(
        run=run, seq=run.events_stored, kind=kind, payload=payload or {}, created_at=now
    )


def make_judge() -> LanguageModel:
    """A priced language model `judge` at an address where nobody answers."""
    return LanguageModel.objects.create(
        name="judge", base_url="http://127.0.0.1:9/v1", price_in_usd=10.0, price_out_usd=100.0,
        max_output_tokens=1000, created_at=NOW,
    )  # fmt: skip
