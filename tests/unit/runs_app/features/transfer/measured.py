"""Results as runners send them: every number follows from the workloads."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command

from gpu_runner.data.scores import summary
from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Submission
from tests import factories as make

SITE = "kernels.example"


def workloads(time_ns: float) -> tuple[Any, ...]:
    """The task's listed workloads in that time, and the hidden one."""
    own = {"measurement": make.make_measurement(time_ns)}
    speedups = {"eager": 2000.0 / time_ns, "compiled": 1500.0 / time_ns, "best": 1500.0 / time_ns}
    return (
        make.make_workload_result(**own, speedups=speedups),
        make.make_workload_result(
            name="n4096", parameters={"N": 4096}, **own, speedups=speedups, floor_ns=100.0
        ),
        make.make_workload_result(
            name=make.HIDDEN_WORKLOAD, parameters={"N": 1777}, hidden=True, **own
        ),
    )


def ranked(
    time_ns: float = 1000.0, verdict: Verdict = Verdict.CORRECT, **fields: Any
) -> Evaluation:
    """A finished ranked evaluation; the fields are the submission's."""
    result: dict[str, Any] = {"environment": {"torch": "2.13.0", "blocks": [{"name": "one"}]}}
    if verdict is Verdict.CORRECT:
        found = workloads(time_ns)
        result |= {"workloads": found, **summary(found)}
    return make.make_finished_evaluation(verdict=verdict, result=result, mode="ranked", **fields)


def exported(path: Path, **options: Any) -> dict[str, Any]:
    """What this site exports, read back; JSON."""
    call_command("export_results", str(path), **{"site": SITE, "verbosity": 0, **options})
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def forget() -> None:
    """From now on this is another site, which has the tasks and nobody's submissions."""
    Submission.objects.all().delete()


def exported_one(folder: Path, **fields: Any) -> dict[str, Any]:
    """A file `one.json` with one result, which this site then lacks."""
    ranked(**fields)
    document = exported(folder / "one.json")
    forget()
    return document


def imported(path: Path) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("import_results", str(path), stdout=out)
    return out.getvalue()
