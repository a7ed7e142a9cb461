"""Fills a site's database with invented results, to look at its pages.

`python -m tests.browser.seed`; never on a site that people use.
"""

from __future__ import annotations

import contextlib
import os
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402

from gpu_runner.data import codec  # noqa: E402
from gpu_runner.data.event import Event, EventKind  # noqa: E402
from gpu_runner.data.verdict import Verdict  # noqa: E402
from runs_app.core.messaging import orders  # noqa: E402
from runs_app.core.runners.events import Sender, record_event  # noqa: E402
from runs_app.core.runners.tokens import local_runner  # noqa: E402
from runs_app.core.work import lifecycle  # noqa: E402
from runs_app.models import Device, Runner  # noqa: E402
from runs_app.submitting.services import submit  # noqa: E402
from runs_app.submitting.shipped import shipped_agent  # noqa: E402
from tasks_app.models import TaskVersion  # noqa: E402
from tasks_app.selectors import published_tasks  # noqa: E402
from tests.browser import invented  # noqa: E402
from tests.browser.walking import PASSWORD  # noqa: E402

EVERY = 12
"""Besides that of softmax, one board in so many gets results: all would take minutes."""
_CUDA = "nvidia-h200"
_WRONG = ("WRONG_RESULT", "COMPILE_ERROR", "RUNTIME_ERROR", "TIME_LIMIT", "VIOLATION", "UNSTABLE")


@dataclass(frozen=True)
class Writer:
    """Who writes kernels, and about how fast they are against the best baseline."""

    agent: str
    language_model: str
    level: float

    @property
    def is_shipped(self) -> bool:
        """Whether the kernels come with the tasks."""
        return self.agent.startswith("kbench-")


WRITERS = (
    Writer("kbench-naive", "", 0.35),
    Writer("kbench-good", "", 1.25),
    Writer("islands-v2", "claude-opus-4.5", 1.9),
    Writer("islands-v2", "gpt-5.1", 1.6),
    Writer("fsr-depth3", "deepseek-v3.2", 1.1),
    Writer("", "", 1.4),
    Writer("translate-once", "qwen3-coder-480b-a35b-instruct", 0.8),
)


def evaluate(
    rng: random.Random, version: TaskVersion, writer: Writer, device: str, when: datetime
) -> None:
    """One submission of one writer, finished with an invented result."""
    kernels = {kernel.agent: version.data.files[kernel.path] for kernel in version.data.kernels}
    source = kernels.get(writer.agent) or next(iter(kernels.values()), "int main() {}\n")
    submission = submit(
        user=User.objects.get(username="ada" if writer.agent else "grace"),
        task_version=version,
        source=f"{source}// {rng.random()}\n",
        device=device,
        direction=rng.choice(version.directions),
        mode="ranked",
        agent="" if writer.is_shipped else writer.agent,
        language_model=writer.language_model,
        now=when,
    )
    if writer.is_shipped:
        submission.agent = shipped_agent(writer.agent, when)
        submission.save()
    evaluation = submission.evaluations.get()
    correct = writer.is_shipped or rng.random() < 0.7
    verdict = Verdict.CORRECT if correct else Verdict(rng.choice(_WRONG))
    level = writer.level * rng.uniform(0.7, 1.4)
    document = invented.result(rng, evaluation.request(), verdict, level)
    name = f"{settings.LOCAL_RUNNER}.{device}"
    runner = Runner.objects.select_related("token").get(name=name)
    lifecycle.give_to_runner(evaluation, runner=runner, ticket="0" * 32, now=when)
    facts = (
        (EventKind.STARTED, {"runner": runner.own_name, "at": when.timestamp()}),
        (EventKind.FINISHED, {"result": codec.encode(document)}),
    )
    for seq, (kind, payload) in enumerate(facts, start=1):
        event = Event(
            job=evaluation.KIND,
            job_id=str(evaluation.pk),
            attempt=1,
            seq=seq,
            kind=kind,
            payload=payload,
        )
        sender = Sender(token=runner.token)
        record_event(event=event, sender=sender, now=when + timedelta(seconds=3 * seq))


def prepare(now: datetime) -> None:
    """Accounts, devices and runners; one of the two runners is silent."""
    for name in ("ada", "grace"):
        if not User.objects.filter(username=name).exists():
            User.objects.create_user(name, password=PASSWORD)
    cuda, _ = Device.objects.get_or_create(
        slug=_CUDA, defaults={"kind": "cuda", "name": "NVIDIA H200", "created_at": now}
    )
    token = local_runner(now=now)
    for device in (Device.objects.get(slug="cpu"), cuda):
        silence = timedelta(minutes=9 if device == cuda else 0)
        Runner.objects.update_or_create(
            name=f"{token.name}.{device.slug}",
            defaults={
                "token": token,
                "boot_id": "1",
                "device": device,
                "state": "ready",
                "jail": device != cuda,
                "booted_at": now - timedelta(hours=5),
                "seen_at": now - silence,
                "version": "0.1.0",
                "builds": 2,
            },
        )


def main() -> None:
    """Invent results for some of the built-in tasks, which are loaded where there are none yet."""
    orders.enqueue = lambda evaluation: True
    orders.drop = lambda evaluation, attempt: None
    settings.MAX_SUBMISSIONS_PER_DAY = settings.MAX_WAITING_PER_USER = 100_000
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    call_command("migrate", verbosity=0)
    if not published_tasks().exists():
        with contextlib.suppress(CommandError):  # a task that cannot be read leaves the others
            call_command("load_tasks", verbosity=0)
    now, rng = datetime.now(UTC), random.Random(7)
    prepare(now)
    settings.SUBMIT_SHIPPED_KERNELS = False
    tasks = list(published_tasks())
    for task in (t for place, t in enumerate(tasks) if place % EVERY == 0 or t.slug == "softmax"):
        version = task.current_version
        for writer in WRITERS:
            for device in ("cpu", _CUDA):
                if version and rng.random() < 0.75:
                    evaluate(
                        rng, version, writer, device, now - timedelta(minutes=rng.randint(5, 9000))
                    )
    ada = User.objects.get(username="ada")
    for device in ("cpu", _CUDA, _CUDA):
        source = f"// {rng.random()}\n"
        submit(
            user=ada, task_version=tasks[0].current_version, source=source, device=device, now=now
        )


if __name__ == "__main__":
    main()
