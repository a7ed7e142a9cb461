"""A run as sites make them, from its seed to an entry on a board, and its way to another site."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db.models import Q

from gpu_runner.data import codec
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.event import EventKind
from gpu_runner.data.scores import summary
from runs_app.features.transfer import files
from runs_app.models import Evaluation, LanguageModel, Run, Submission
from runs_app.optimiser.services.enter import enter_candidate
from tests import factories as make
from tests.unit.runs_app.features.transfer.measured import SITE, workloads
from tests.unit.runs_app.optimiser.conftest import Start, World

BUILD = BuildReport(
    ok=True, cached=False, duration_s=1.0, log="a warning", command="g++ -O3", compiler="g++ 13",
    digest="0" * 64,
)  # fmt: skip
ADDRESS = "http://127.0.0.1:9/v1"


def measure(run: Run, time_ns: float) -> None:
    """End the run's evaluations that wait: each is a nanosecond faster than the one before."""
    of_run = Q(submission__run=run) | Q(submission__entered_from__run=run)
    waiting = Evaluation.objects.filter(of_run, status="QUEUED")
    for place, row in enumerate(waiting.order_by("submission__candidate__number")):
        found = workloads(time_ns - place)
        result = make.make_result(row, workloads=found, **summary(found), build=BUILD)
        now = make.later(1000 - time_ns + place)
        make.start(row, now=now)
        payload = {"result": codec.encode(result)}
        make.send(row, EventKind.FINISHED, payload, seq=2, now=now)


def finished(start: Start, world: World, **fields: Any) -> Run:
    """A run that is over: a seed, and two candidates by a language model that failed once."""
    run = start(name="Faster and faster", **fields)
    world.advance(run)
    measure(run, 1000.0)
    world.advance(run)
    secret = f"I mind {make.HIDDEN_WORKLOAD} at {ADDRESS}."
    world.answer(run, problem="", served_by="writer-1-preview")
    run.calls.filter(number=3).update(status="FAILED", error=secret, response="")
    for time_ns in (900.0, 890.0, 880.0, 870.0):  # what is left are ranking and audit, if wanted
        world.advance(run)
        measure(run, time_ns)
    world.advance(run)
    assert (run.status, run.candidates_made) == ("FINISHED", 3)
    return run


def entered(run: Run) -> Submission:
    """The run's best on a board, ranked."""
    assert run.best is not None
    submission = enter_candidate(candidate=run.best, user=run.user, now=make.NOW)
    measure(run, 850.0)
    run.refresh_from_db()
    return submission


def exported(run: Run, path: Path, **options: Any) -> dict[str, Any]:
    """What this site exports, read back; JSON."""
    call_command("export_run", str(run.pk), str(path), **{"site": SITE, "verbosity": 0, **options})
    document: dict[str, Any] = dict(files.read(path))
    return document


def imported(*paths: Path) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("import_run", *map(str, paths), stdout=out)
    return out.getvalue()


def forget() -> None:
    """From now on this is another site, which has the tasks and nobody's runs."""
    Run.objects.all().delete()
    Submission.objects.all().delete()
    LanguageModel.objects.all().delete()
