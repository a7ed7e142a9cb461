"""What a host that reaches no site does with a spool, without a kernel being run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.order import Order
from gpu_runner.data.spool import SpoolFolder
from runs_app.features.spool.services import export_spool
from runs_app.models import Evaluation
from tests import evidence
from tests import factories as make


def export(folder: Path, most: int = 1000) -> int:
    """Hand out what waits for the CPU."""
    return export_spool(folder=folder, device=make.make_cpu(), most=most, now=make.NOW)


def all_jobs(folder: Path) -> list[Order]:
    """All jobs of the spool."""
    spool = SpoolFolder(folder)
    return [spool.job(path) for path in spool.job_files()]


def the_job(folder: Path, evaluation: Evaluation) -> Order:
    """The newest attempt of an evaluation."""
    mine = [job for job in all_jobs(folder) if job.job_id == str(evaluation.pk)]
    return max(mine, key=lambda job: job.attempt)


def work(
    folder: Path, evaluation: Evaluation, *, kinds: str = "started finished", **result: Any
) -> Path:
    """What a host would write for the job; `result` are fields of what it found, if it is short."""
    job = the_job(folder, evaluation)
    request = codec.decode(EvaluationRequest, job.request)
    found = make.make_result(evaluation, **result) if result else evidence.result(request, 1000.0)
    payloads: dict[str, dict[str, Any]] = {
        "started": {"runner": "far", "at": 0.0},
        "finished": {"result": codec.encode(found)},
        "lost": {"runner": "far", "reason": "its process died"},
    }
    lines = [
        codec.encode(
            Event(
                job=job.kind,
                job_id=job.job_id,
                attempt=job.attempt,
                seq=seq,
                kind=EventKind(kind),
                payload=payloads[kind],
            )
        )
        for seq, kind in enumerate(kinds.split(), 1)
    ]
    path = SpoolFolder(folder).events_file(job.name)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
