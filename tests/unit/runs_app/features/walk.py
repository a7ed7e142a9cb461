"""A process of its own: migrate, load a task, measure a kernel, finish a run, walk all pages.

It prints a line for each page or answer of the API that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import django

django.setup()

from django.core.management import call_command  # noqa: E402 - after the set-up
from django.test import Client  # noqa: E402
from django.urls import URLPattern, URLResolver, get_resolver  # noqa: E402

from gpu_runner.data.formats import catalog_folder  # noqa: E402
from runs_app.core import hooks  # noqa: E402
from runs_app.core.messaging import orders, queues  # noqa: E402
from runs_app.models import Evaluation, LanguageModel, Run  # noqa: E402
from runs_app.optimiser.services.advance import advance_run  # noqa: E402
from runs_app.optimiser.services.calls import answer_call  # noqa: E402
from runs_app.optimiser.services.request import read_run_request  # noqa: E402
from runs_app.optimiser.services.start import start_run  # noqa: E402
from tests import factories as make  # noqa: E402
from tests.scripted_endpoint import Answer, ScriptedEndpoint  # noqa: E402
from tests.unit.queued import Jobs  # noqa: E402


def main() -> None:
    """Do all of it."""
    without_redis()
    call_command("migrate", verbosity=0)
    call_command("load_tasks", catalog_folder() / "vector_add", verbosity=0)
    evaluation = make.make_finished_evaluation(mode="ranked", user=make.make_user(username="ada"))
    assert evaluation.verdict == "CORRECT"
    hooks.tick.send(sender=None, now=make.NOW)
    run = finished_run(evaluation)
    values = {
        "slug": evaluation.task_version.task.slug,
        "number": 1,
        "submission_id": evaluation.submission_id,
        "evaluation_id": evaluation.pk,
        "run_id": run.pk,
        "language_model_id": LanguageModel.objects.get().pk,
        "device_slug": "cpu",
        "agent_id": evaluation.submission.agent_id,
        "user_id": evaluation.submission.author_id,
        "path": "reference.py",
        "name": "results",
    }
    walk(evaluation, values)


def finished_run(seed: Evaluation) -> Run:
    """A run whose language model writes one kernel, which is faster than its seed."""
    written = make.SOURCE.replace("N * x[0]", "x[0] * N")
    answer = f"NAME: turned\nTHOUGHT: it may help.\n```cpp\n{written}```\n"
    with ScriptedEndpoint([Answer(answer)]) as endpoint:
        LanguageModel.objects.create(name="m", base_url=endpoint.base_url, created_at=make.NOW)
        request = read_run_request(
            {
                **{"task": seed.task_version.task.slug, "device": "cpu", "models": ["m"]},
                **{"strategy": "fsr", "parameters": {"n": 1, "depth": 1}, "ranks_best": False},
            }
        )
        run = start_run(user=seed.submission.author, request=request, now=make.NOW)
        for latency_ns in (2000.0, 1000.0):
            advance_run(run_id=run.pk, now=make.NOW)
            for call in run.calls.filter(status="WAITING"):
                answer_call(call_id=call.pk)
            advance_run(run_id=run.pk, now=make.NOW)
            for evaluation in Evaluation.objects.filter(submission__run=run, status="QUEUED"):
                make.finish(evaluation, latency_ns=latency_ns)
        advance_run(run_id=run.pk, now=make.NOW)
    run.refresh_from_db()
    assert (run.status, run.best_latency_ns) == ("FINISHED", 1000.0), run.reason
    return run


def without_redis() -> None:
    """Let nobody wait for what is not there."""
    jobs = Jobs()
    for name in ("enqueue", "drop", "waiting", "tell"):
        setattr(orders, name, getattr(jobs, name))
    for name in ("enqueue_advance", "enqueue_call", "enqueue_beside_runs", "enqueue_behind_steps"):
        setattr(queues, name, lambda *_, **__: True)


def walk(evaluation: Evaluation, values: dict[str, object]) -> None:
    """Ask for each address as a visitor, as the author and as an admin."""
    clients = [Client(raise_request_exception=False) for _ in range(3)]
    clients[1].force_login(evaluation.submission.author)
    clients[2].force_login(make.make_admin(username="root"))
    count = 0
    for path in sorted(set(addresses(get_resolver(), "/", values))):
        answers = [client.get(path).status_code for client in clients]
        count += 1
        if max(answers) >= 500:
            print(f"FAILED {path}: {answers}")
    print(f"{count} addresses")


def addresses(resolver: URLResolver, start: str, values: dict[str, object]) -> Iterator[str]:
    """All addresses whose parameters have values, but for Django's admin pages of rows."""
    for entry in resolver.url_patterns:
        path = start + re.sub(r"[$^]|\\Z", "", str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from addresses(entry, path, values)
        elif isinstance(entry, URLPattern):
            names = re.findall(r"<(?:\w+:)?(\w+)>", path)
            if set(names) <= set(values) and "(" not in path:
                yield re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(values[found[1]]), path)


if __name__ == "__main__":
    main()
