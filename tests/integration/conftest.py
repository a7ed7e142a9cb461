"""A site at work on runs: its workers as processes, its models and its runner by script."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.utils import timezone

from runs_app.models import Evaluation, LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.events import Event, Searched
from runs_app.optimiser.services.control import stop_run
from runs_app.optimiser.services.history import budget_of, stored_events
from runs_app.optimiser.services.replay import replay_run
from runs_app.optimiser.services.request import read_run_request
from runs_app.optimiser.services.start import start_run
from tests import factories as make
from tests.integration.run_scripts import SIGNATURE, source
from tests.integration.run_stack import SITE, Endpoint, ScriptedRunner, Stack, wait_for
from tests.scripted_endpoint import Asked

MODELS = ("small", "large")
SEED = source("CORRECT_2000")
FLUSHES = 5  # tries


@dataclass
class Site:
    """What a test does with the site, and what must hold of every run of it."""

    stack: Stack
    folder: Path
    user: User
    endpoints: list[Endpoint] = field(default_factory=list)
    runner: ScriptedRunner | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The newest one."""
        return self.endpoints[-1]

    def speak(self, script: str, *, listen: bool = True) -> Endpoint:
        """Let language models speak by a script."""
        endpoint = Endpoint(self.folder / f"endpoint{len(self.endpoints)}", script)
        self.endpoints.append(endpoint)
        if listen:
            endpoint.start()
        for number, name in enumerate(MODELS, start=1):
            fields = {"base_url": endpoint.base_url, "created_at": timezone.now()}
            prices = {"price_in_usd": 0.1 * number, "price_out_usd": 1.0 * number}
            LanguageModel.objects.update_or_create(name=name, defaults={**fields, **prices})
        return endpoint

    def start(
        self, strategy: str, parameters: dict[str, Any] | None = None, **document: Any
    ) -> Run:
        """Start a run with the task that multiplies, from a kernel of two microseconds."""
        request: dict[str, Any] = {
            "task": "scale",
            "device": "cpu",
            "strategy": strategy,
            "parameters": parameters,
            "models": list(MODELS),
            "seed": 11,
            "budget": {"evaluations": 40, "usd": 1.0},
            "seed_kernel": "own",
            "source": SEED,
            "ranks_best": False,  # but in `test_run_kills`
            **document,
        }
        if request["seed_kernel"] != "own":
            del request["source"]
        found = read_run_request(request)
        return start_run(user=self.user, request=found, now=timezone.now())

    def until(self, run: Run, status: str, timeout_s: float = 240) -> Run:
        """Wait for a status of the run."""

        def reached() -> bool:
            run.refresh_from_db()
            return run.status == status

        try:
            wait_for(reached, f"the run is {status}", timeout_s)
        except AssertionError:
            raise AssertionError(f"{run.status} {run.reason!r}\n{self.stack.log()}") from None
        return run

    def settled(self, run: Run, status: str = "FINISHED", timeout_s: float = 240) -> Run:
        """Wait for the run's end, and check all that holds of an ended run."""
        self.until(run, status, timeout_s)
        over = run.calls.exclude(status__in=("WAITING", "SENT"))
        wait_for(lambda: over.filter(told=True).count() == run.calls.count(), "all is told")
        wait_for(lambda: not run.candidates.exclude(measuring=[]).exists(), "nothing is measured")
        run.refresh_from_db()
        self.check(run)
        return run

    def check(self, run: Run) -> None:
        """No event doubled, no ask paid twice, no candidate measured twice, no cap exceeded."""
        seqs = list(run.events.order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(1, run.events_stored + 1))
        told = self.events(run)
        end = next((n for n, each in enumerate(told) if isinstance(each, Searched)), len(told))
        assert len(set(map(repr, told[:end]))) == end  # the best are ranked by turns after it
        sent = Counter(asked.call_id for asked in self.asked())
        for call in run.calls.all():
            assert sent[str(call.pk)] <= max(call.attempts, 1), (call.number, call.error)
            if call.status == LanguageModelCall.Status.ANSWERED:
                assert sent[str(call.pk)] >= 1
        evaluations = Evaluation.objects.filter(submission__run=run)
        modes = Counter(evaluations.values_list("submission", "mode"))
        assert all(n <= (2 if mode == "ranked" else 1) for (_, mode), n in modes.items()), modes
        evaluations = evaluations.exclude(mode__in=("ranked", "audit"))  # these count in no cap
        budget = budget_of(run)
        assert evaluations.count() <= (budget.evaluations or evaluations.count())
        assert run.usd <= (run.usd if budget.usd is None else budget.usd)
        assert run.tokens <= (run.tokens if budget.tokens is None else budget.tokens)

    def replays(self, run: Run) -> None:
        """The same again without a network: every endpoint is gone."""
        for endpoint in self.endpoints:
            endpoint.stop()
        report = replay_run(run)
        assert report.differences == ()
        assert report.events == len(self.events(run))

    def events(self, run: Run) -> list[Event]:
        """All events, in order."""
        return stored_events(run)

    def asks(self, run: Run) -> list[events.Asked]:
        """The asks, in order."""
        return [event for event in self.events(run) if isinstance(event, events.Asked)]

    def asked(self) -> list[Asked]:
        """What arrived at endpoints."""
        return [asked for endpoint in self.endpoints for asked in endpoint.asked]

    def heard(self, run: Run) -> dict[int, Asked]:
        """What arrived of each ask."""
        numbers = {str(key): number for key, number in run.calls.values_list("pk", "number")}
        return {numbers[a.call_id]: a for a in self.asked() if a.call_id in numbers}

    def close(self) -> None:
        """Leave nothing at work."""
        for run in Run.objects.filter(status__in=("RUNNING", "PAUSED")):
            stop_run(run=run, user=self.user, now=timezone.now())
        for endpoint in self.endpoints:
            endpoint.stop()
        if self.runner is not None:
            self.runner.stop()
        self.stack.sweep()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the site's programs come last: what works on runs would meet those of others."""
    items.sort(key=lambda item: "stack" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Stack]:
    """Redis and the site's programs, for all tests; those that died are restarted.

    Each takes three seconds of a processor to start.
    """
    running = Stack(tmp_path_factory.mktemp("stack"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection.ops, "execute_sql_flush", patient_flush)
        try:
            running.start("redis")
            yield running
        finally:
            running.stop()


def patient_flush(sql_list: list[str]) -> None:
    """Empty the database after a test, though the site's programs still look into it.

    PostgreSQL may see a deadlock between the two, and then ends either of them.
    """
    flush = type(connection.ops).execute_sql_flush
    for _ in range(FLUSHES - 1):
        try:
            flush(connection.ops, sql_list)
        except OperationalError:
            time.sleep(0.5)
        else:
            return
    flush(connection.ops, sql_list)


@pytest.fixture
def bare_site(
    stack: Stack, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[Site]:
    """The site without a runner."""
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = stack.redis.url
    settings.SUBMIT_SHIPPED_KERNELS = False  # in this process, too, as in the stack's
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    make.make_cpu()
    stack.start(*stack.missing(SITE))
    site = Site(stack, tmp_path, make.make_admin())
    yield site
    site.close()


@pytest.fixture
def site(bare_site: Site) -> Site:
    """The site with a scripted runner and a task."""
    make.make_task_version(signature=SIGNATURE)
    bare_site.runner = ScriptedRunner(make.make_runner_token())
    return bare_site
