"""A run as sites make them, from its seed to an entry on a board, and its way to another site."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.scores import summary
from runs_app.models import Evaluation, LanguageModel, Run, Submission
from runs_app.optimiser.services.enter import enter_candidate
from tests import factories as make
from tests.unit.runs_app.features.transfer.measured import SITE, workloads
from tests.unit.runs_app.optimiser.conftest import Start, World

ADDRESS = "http://127.0.0.1:9/v1"


def measure(run: Run, time_ns: float) -> None:
    """End the run's evaluations that wait: each is a nanosecond faster than the one before."""
    waiting = Evaluation.objects.filter(status="QUEUED").order_by("created_at", "pk")
    for place, row in enumerate(waiting):
        if row.submission.run_id not in (run.pk, None):
            continue
        found = workloads(time_ns - place)
        result = make.make_result(row, workloads=found, **summary(found), build=None)
        make.start(row)
        payload = {"result": codec.encode(result)}
        make.send(row, EventKind.FINISHED, payload, seq=2)


def finished(start: Start, world: World, **fields: Any) -> Run:
    """A run that is over: a seed, three candidates by a language model, the best entered."""
    run = start(name="Faster and faster", **fields)
    world.advance(run)
    measure(run, 1000.0)
    world.advance(run)
    secret = f"I mind {make.HIDDEN_WORKLOAD} at {ADDRESS}."
    world.answer(run, problem="", served_by="writer-1-preview")
    run.calls.filter(number=3).update(status="FAILED", error=secret, response="")
    world.advance(run)
    measure(run, 900.0)
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
    document: dict[str, Any] = json.loads(path.read_text())
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
