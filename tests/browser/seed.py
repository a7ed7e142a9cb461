"""Fills a site's database with invented results, to look at its pages: `python -m tests.browser.seed`.

Never run it on a site that people use: the results are made up.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")

AUTHORS = (
    ("kbench-naive", "", 0.35),
    ("kbench-good", "", 1.25),
    ("islands-v2", "claude-opus-4.5", 1.9),
    ("islands-v2", "gpt-5.1", 1.6),
    ("fsr-depth3", "deepseek-v3.2", 1.1),
    ("", "", 1.4),
    ("translate-once", "qwen3-coder-480b-a35b-instruct", 0.8),
)
WRONG = ("WRONG_RESULT", "COMPILE_ERROR", "RUNTIME_ERROR", "TIME_LIMIT", "VIOLATION", "UNSTABLE")


def measurement(rng: random.Random, median_ns: float) -> Any:
    """A median with an interval of a plausible width."""
    from gpu_runner.data.evaluation import Measurement

    low, high = rng.uniform(0.002, 0.02), rng.uniform(0.002, 0.02)
    return Measurement(
        median_ns=median_ns,
        low_ns=median_ns * (1 - low),
        high_ns=median_ns * (1 + high),
        calls=rng.randint(30, 600),
    )


def workloads(rng: random.Random, task: Any, kind: Any, direction: Any, level: float) -> Iterator[Any]:
    """Invented results of a task's workloads."""
    from gpu_runner.data.evaluation import OutputError, ProcessRun, WorkloadResult

    for index, workload in enumerate(task.workloads_for(kind, direction, hidden=True)):
        eager_ns = 3000.0 * 7**index * rng.uniform(0.6, 1.6)
        compiled_ns = eager_ns * rng.uniform(0.6, 1.1)
        own_ns = min(eager_ns, compiled_ns) / (level * rng.uniform(0.85, 1.2))
        cost = task.cost(workload, direction)
        baselines = {"eager": measurement(rng, eager_ns), "compiled": measurement(rng, compiled_ns)}
        speedups = {name: b.median_ns / own_ns for name, b in baselines.items()}
        yield WorkloadResult(
            name=workload.name,
            parameters=workload.parameters,
            hidden=workload.hidden,
            measurement=measurement(rng, own_ns),
            processes=(ProcessRun(process=0, times_ns=(own_ns,), seeds=(1,), verified=(0,)),),
            errors=(OutputError(output="out", scaled=rng.uniform(0.01, 0.6), relative=1e-7),),
            baselines=baselines,
            speedups={**speedups, "best": min(speedups.values())},
            flops=cost.flops if cost else None,
            bytes=cost.bytes if cost else None,
            weight=cost.weight if cost and cost.weight else 1.0,
            floor_ns=own_ns * rng.uniform(0.2, 0.8) if cost else None,
        )


def result(rng: random.Random, evaluation: Any, verdict: Any, level: float) -> Any:
    """An invented result, illegal in nothing."""
    from gpu_runner.data.evaluation import (
        BuildReport,
        EvaluationResult,
        Mismatch,
        StageTime,
    )
    from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Stage, Verdict
    from gpu_runner.supervisor.judge import summary

    task = evaluation.task_version.data
    correct = verdict is Verdict.CORRECT
    kind = DeviceKind(evaluation.device.kind)
    rows = tuple(workloads(rng, task, kind, Direction(evaluation.direction), level))
    failed = verdict is Verdict.COMPILE_ERROR
    log = "kernel.cpp:3:14: error: 'vec' was not declared in this scope\n    3 |     float x = vec[i];\n"
    mismatch = Mismatch(
        workload=rows[0].name, output="out", reason="off by 3.1e-2, bound 1.2e-6", index=(3, 17),
        expected=0.125, actual=0.1561, bound=1.2e-6, wrong_elements=1531, elements=4096,
    )  # fmt: skip
    stages = (Stage.BUILD,) if failed else tuple(Stage)
    numbers = summary(rows) if correct else {}
    return EvaluationResult(
        evaluation_id=str(evaluation.pk),
        attempt=1,
        verdict=verdict,
        reason="every verified output is within the tolerance" if correct else log.splitlines()[0],
        mode=Mode(evaluation.mode),
        device=evaluation.device_id,
        task=task.name,
        task_digest=evaluation.task_version.digest,
        solution_digest=evaluation.submission.digest,
        workloads=() if failed else rows,
        mismatch=mismatch if verdict is Verdict.WRONG_RESULT else None,
        build=BuildReport(
            ok=not failed, cached=False, duration_s=0.8, log=log if failed else "",
            command="g++ -O3 -march=native -fopenmp -shared kernel.cpp", compiler="g++ 14.2",
            digest="0" * 64,
        ),
        stages=tuple(
            StageTime(stage=s, started_s=n * 1.0, duration_s=rng.uniform(0.1, 4))
            for n, s in enumerate(stages)
        ),
        environment={"device_name": "AMD EPYC 9654", "cpus": 32, "torch": "2.13.0", "tf32": False},
        output="hello from the kernel\n" if verdict is Verdict.RUNTIME_ERROR else "",
        **numbers,
    )  # fmt: skip


def evaluate(rng: random.Random, version: Any, author: Any, device: Any, when: datetime) -> None:
    """One submission of one author, finished with an invented result."""
    from django.contrib.auth.models import User

    from gpu_runner.data import codec
    from gpu_runner.data.event import Event, EventKind
    from gpu_runner.data.verdict import Verdict
    from runs_app import services
    from runs_app.models import Agent
    from runs_app.services.shipped import shipped_agent

    agent, model, level = author
    direction = rng.choice(version.directions)
    user = User.objects.get(username="ada" if agent else "grace")
    shipped = agent.startswith("kbench-")
    files = version.data.files
    kernel = next((k for k in version.data.kernels if k.agent == agent), None)
    kernel = kernel or next(iter(version.data.kernels), None)
    source = files[kernel.path] if kernel else "// a kernel\nint main() { return 0; }\n"
    submission = services.submit(
        user=user, task_version=version, source=f"{source}// {rng.random()}\n", device=device,
        direction=direction, mode="ranked", agent="" if shipped else agent,
        language_model=model, now=when,
    )  # fmt: skip
    if shipped:
        submission.agent = shipped_agent(agent, when)
        submission.save()
    evaluation = submission.evaluations.get()
    correct = shipped or rng.random() < 0.7
    verdict = Verdict.CORRECT if correct else Verdict(rng.choice(WRONG))
    document = result(rng, evaluation, verdict, level * rng.uniform(0.7, 1.4))
    facts = (
        (EventKind.STARTED, {"runner": "bench-01", "at": when.timestamp()}),
        (EventKind.FINISHED, {"result": codec.encode(document)}),
    )
    for seq, (kind, payload) in enumerate(facts, start=1):
        event = Event(
            evaluation_id=str(evaluation.pk), attempt=1, seq=seq, kind=kind, payload=payload
        )
        services.record_event(event=event, now=when + timedelta(seconds=3 * seq))
    assert Agent.objects.exists()


def main() -> None:
    """Publish the built-in tasks and invent results for them."""
    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import CommandError, call_command

    from runs_app import queues
    from runs_app.models import Device, Runner
    from runs_app.services import submit
    from tasks_app.selectors import published_tasks

    queues.enqueue = lambda evaluation: True
    settings.MAX_SUBMISSIONS_PER_DAY = settings.MAX_WAITING_PER_USER = 100_000
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    call_command("migrate", verbosity=0)
    with contextlib.suppress(CommandError):  # a task that cannot be read leaves the others
        call_command("load_tasks", verbosity=0)
    now = datetime.now(UTC)
    rng = random.Random(7)
    for name in ("ada", "grace"):
        if not User.objects.filter(username=name).exists():
            User.objects.create_user(name, password="kernel-watcher")
    cuda, _ = Device.objects.get_or_create(
        slug="nvidia-h200",
        defaults={"kind": "cuda", "name": "NVIDIA H200", "created_at": now},
    )
    for device in (Device.objects.get(slug="cpu"), cuda):
        Runner.objects.update_or_create(
            name=f"bench-{device.slug}",
            defaults={
                "boot_id": "1", "device": device, "state": "ready", "jail": device.slug == "cpu",
                "booted_at": now - timedelta(hours=5), "version": "0.1.0", "builds": 2,
                "seen_at": now if device.slug == "cpu" else now - timedelta(minutes=9),
            },
        )  # fmt: skip
    versions = [task.current_version for task in published_tasks()]
    for number, version in enumerate(versions):
        for author in AUTHORS:
            for device in ("cpu", "nvidia-h200"):
                if rng.random() < 0.75:
                    when = now - timedelta(minutes=rng.randint(5, 9000), seconds=number)
                    evaluate(rng, version, author, device, when)
    ada = User.objects.get(username="ada")
    for device in ("cpu", "nvidia-h200", "nvidia-h200"):
        source = f"// {rng.random()}\n"
        submit(user=ada, task_version=versions[0], source=source, device=device, now=now)


if __name__ == "__main__":
    main()
